"""Alerts that are in no topic: sent straight, and remembered over a restart."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.notifier import Notifier
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from streaming.config import Config
from streaming.config.config import parse_config
from streaming.driver.supervisor import Limits, Watched
from streaming.health.query_progress import Progress
from streaming.notify.direct_alerts import DirectAlerts, state_file
from tests.unit.made_alerts import BEGAN_MS, an_alert

MINIMAL = "clusters: [{name: a, bootstrap_servers: ['127.0.0.1:1']}]\n"


class Desk:
    """A receiver in memory."""

    max_age_ms = 86_400_000
    renew_ms: int | None = None
    batch_max: int = 1
    takes_silenced: bool = False

    def __init__(self, name: str = "oncall") -> None:
        self.name = name
        self.outcome = Outcome.DELIVERED
        self.got: list[str] = []

    def deliver(self, notification: Notification) -> Delivery:
        """Keep it."""
        self.got.append(notification.idempotency_key)
        return Delivery(outcome=self.outcome)

    def close(self) -> None:
        """Nothing is held."""


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s


class Process:
    """One life of a process that watches one cluster."""

    def __init__(self, path: Path, *desks: Desk, clusters: Collection[str] = ("prod",)) -> None:
        self.now = Now()
        self.progress = Progress("prod", clock=self.now)
        self.notifier = Notifier(desks, (), {}, clock_ms=lambda: round(self.now.s * 1000))
        self.direct = DirectAlerts(path, clock_ms=lambda: round(self.now.s * 1000))
        self.direct.end_all_but(clusters)
        self.watched = Watched(self.progress, Limits(), self.direct.deliver, self.direct.open_alerts())
        self.direct.speak_through(self.notifier)

    def live(self, seconds: int, *, kafka: bool) -> None:
        """Let time pass, with a cluster that answers or not."""
        for _ in range(seconds):
            self.now.s += 1
            if kafka:
                self.progress.kafka_answered()
                self.progress.batch_done()
            self.watched.look(round(self.now.s * 1000))
            for sender in self.notifier._senders:
                while sender.send_one():
                    pass
            self.direct.save()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "open-alerts-notify.json"


def test_an_outage_that_outlives_the_process_ends_under_its_id(path: Path) -> None:
    """A restart tells nothing twice, and its end to whoever knows the beginning."""
    first, desk = Process(path, old := Desk()), Desk()
    first.live(10, kafka=True)
    first.live(60, kafka=False)
    (told,) = old.got
    second = Process(path, desk)
    second.now.s = first.now.s
    second.live(100, kafka=False)
    assert desk.got == []
    second.live(5, kafka=True)
    assert desk.got == [told.replace("/0", "/1")]
    third = Process(path, desk)
    third.now.s = second.now.s
    third.live(5, kafka=True)
    assert len(desk.got) == 1


def test_a_restart_does_not_take_its_own_start_for_an_answer(path: Path) -> None:
    """An open outage ends when Kafka answers, and not before."""
    first = Process(path, Desk())
    first.live(60, kafka=False)
    second = Process(path, desk := Desk())
    second.live(25, kafka=False)
    assert (desk.got, len(second.direct.open_alerts())) == ([], 1)


def test_a_receiver_that_could_not_be_told_is_told_after_the_restart(path: Path) -> None:
    """Who was told is remembered for each receiver."""
    away, fine = Desk("away"), Desk("fine")
    away.outcome = Outcome.RETRY
    first = Process(path, away, fine)
    first.live(60, kafka=False)
    away, fine = Desk("away"), Desk("fine")
    second = Process(path, away, fine)
    second.live(3, kafka=False)
    assert (len(away.got), fine.got) == (1, [])


def test_an_end_that_could_not_be_told_is_told_after_the_restart(path: Path) -> None:
    """The file keeps an alert until everybody has its end."""
    desk = Desk()
    first = Process(path, desk)
    first.live(60, kafka=False)
    desk.outcome = Outcome.RETRY
    first.live(3, kafka=True)
    second = Process(path, desk := Desk())
    second.live(3, kafka=True)
    assert [key.split("/")[1] for key in desk.got] == ["1"]


def test_a_job_whose_receivers_are_told_by_another_process_keeps_its_ids(path: Path) -> None:
    """Without a notifier the alert is only shown, and goes on over a restart."""
    direct = DirectAlerts(path)
    alert = an_alert(name="ClusterUnreachable", group="")
    direct.deliver(alert)
    assert [one.id for one in DirectAlerts(path).open_alerts()] == [alert.id]
    direct.deliver(an_alert(name="ClusterUnreachable", group="", revision=1, status=AlertStatus.RESOLVED))
    assert DirectAlerts(path).open_alerts() == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1, "alerts": [{"alert": 7}]}', b"\xff" * 100])
def test_a_damaged_file_is_said_and_costs_only_itself(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The process starts, and writes a new one."""
    path.parent.mkdir()
    path.write_bytes(content)
    direct = DirectAlerts(path)
    assert "cannot be read" in caplog.text
    direct.deliver(an_alert(name="MonitorStalled", group=""))
    assert len(DirectAlerts(path).open_alerts()) == 1


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The alert is sent all the same."""

    class Speaker:
        def __init__(self) -> None:
            self.sent: list[Alert] = []

        def direct(self, alert: Alert) -> None:
            self.sent.append(alert)

        def restore(self, alert: Alert, told: Mapping[str, LastDelivery]) -> None:
            """Nothing is restored."""

        def last_deliveries(self, _alert_id: str) -> dict[str, LastDelivery]:
            return {"oncall": LastDelivery(Severity.CRITICAL, 1)}

    (tmp_path / "file").write_text("in the way")
    direct = DirectAlerts(tmp_path / "file" / "x.json")
    direct.speak_through(speaker := Speaker())
    direct.deliver(an_alert(group=""))
    assert len(speaker.sent) == 1
    assert "cannot be written" in direct.error


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("checkpoint: /var/lib/gw", "/var/lib/gw/open-alerts-run.json"),
        ("checkpoint: file:///var/lib/gw", "/var/lib/gw/open-alerts-run.json"),
        ("checkpoint: s3a://bucket/gw", "/home/me/.state/groupwatch/open-alerts-run-b1286f20.json"),
        ("{checkpoint: s3a://bucket/gw, state_dir: /data}", "/data/open-alerts-run-b1286f20.json"),
    ],
)
def test_the_file_lies_beside_a_local_checkpoint(
    more: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else where it is configured, or in the user's folder for such things."""
    monkeypatch.setenv("XDG_STATE_HOME", "/home/me/.state")
    config: Config = parse_config(MINIMAL + more.strip("{}").replace(", ", "\n"))
    assert os.fspath(state_file(config, "run")) == expected


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"format":1,"alerts":[{"alert":{"id":"\xff"}}]}', id="no-utf-8"),
        pytest.param(b'{"zz":' + b"[" * 20_000 + b"]" * 20_000 + b"}", id="nested-without-end"),
        pytest.param(b"\x00\x01", id="no-json"),
    ],
)
def test_a_damaged_file_keeps_nobody_from_starting(tmp_path: Path, content: bytes) -> None:
    """What it told of open alerts is lost, and said; the process runs."""
    path = tmp_path / "open-alerts-run.json"
    path.write_bytes(content)

    assert Process(path, Desk()).direct.open_alerts() == []


def file_of(more: str, process: str = "run") -> str:
    """Return where a process with this configuration keeps its file."""
    return os.fspath(state_file(parse_config(MINIMAL + more), process))


@pytest.mark.parametrize("process", ["run", "notify"])
@pytest.mark.parametrize("folder", ["", "state_dir: /data\n"])
def test_jobs_with_remote_checkpoints_keep_apart(process: str, folder: str) -> None:
    """Two of them in one home, or one folder, write no file of each other."""
    one = file_of(f"{folder}checkpoint: s3a://bucket/one", process)
    two = file_of(f"{folder}checkpoint: s3a://bucket/two", process)
    assert one != two


def test_jobs_with_local_checkpoints_keep_apart_in_one_folder() -> None:
    """Where ``state_dir`` gathers what otherwise lies beside each checkpoint."""
    one, two = (file_of(f"state_dir: /data\ncheckpoint: /var/{name}") for name in ("one", "two"))
    assert one != two


@pytest.mark.parametrize("more", ["checkpoint: s3a://bucket/one/", "checkpoint: S3A://bucket/one"])
def test_a_job_finds_its_file_again(more: str) -> None:
    """Also with one cluster more or less, and another spelling of the same place."""
    found = file_of("checkpoint: s3a://bucket/one")
    assert file_of(more) == found
    fewer = parse_config(MINIMAL.replace("name: a", "name: b") + more)
    assert os.fspath(state_file(fewer, "run")) == found


def test_an_outage_of_a_cluster_that_is_not_configured_any_more_is_ended(path: Path) -> None:
    """Nobody asks that cluster again, so its alert would be repeated for ever."""
    first = Process(path, old := Desk())
    first.live(60, kafka=False)
    (told,) = old.got
    second = Process(path, desk := Desk(), clusters=("another",))
    assert second.direct.open_alerts() == []
    second.now.s = first.now.s
    second.live(3, kafka=True)
    assert desk.got == [told.replace("/0", "/1")]
    assert second.direct.is_empty


def test_of_two_alerts_about_the_same_one_is_ended(path: Path) -> None:
    """Only one of them would ever be looked at again."""
    direct = DirectAlerts(path)
    for n in (1, 2):
        direct.deliver(an_alert(id=f"a{n}", name="MonitorStalled", detected_at_ms=BEGAN_MS + n))
    direct.end_all_but(["eu"])
    assert [one.id for one in direct.open_alerts()] == ["a2"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "SessionTimeout"},
        {"starts_at_ms": 2**62},
        {"detected_at_ms": 2**62},
        {"revision": 10**9},
        {"id": ""},
        {"cluster": "x" * 1_000},
    ],
)
def test_what_no_process_of_ours_has_written_is_not_believed(
    path: Path, wrong: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """The others in the file are."""
    direct = DirectAlerts(path)
    direct.deliver(good := an_alert(id="good", name="MonitorStalled"))
    direct.deliver(an_alert(**({"name": "MonitorStalled"} | wrong)))
    assert DirectAlerts(path).open_alerts() == [good]
    assert "ignored 1 alerts" in caplog.text


def test_a_time_at_which_nobody_was_told_is_not_believed(path: Path) -> None:
    """It would put the next repeat off for ever."""
    direct = DirectAlerts(path)
    direct.deliver(an_alert(name="MonitorStalled"))
    told = b'"told":{"oncall":["critical",%d]}' % 2**62
    path.write_bytes(path.read_bytes().replace(b'"told":{}', told))
    assert DirectAlerts(path).open_alerts() == []
