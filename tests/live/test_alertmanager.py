"""Our alerts in Debian's Alertmanager: told, silenced, inhibited, louder, ended; a side killed."""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from alerts.alert import Alert, AlertStatus, Culprit, Severity
from alerts.delivery import FOREVER_MS, LiveQuiet, Match, Notifier, Silence
from alerts.delivery.receivers import AlertmanagerReceiver, ReceiverContext
from streaming.devkit.kafka import free_ports
from tests.live.support.stage import await_that, now_ms

pytestmark = pytest.mark.promtool

PATIENCE_S = 120.0
Labels = dict[str, str]


class Hook:
    """Where Alertmanager tells people: keeps what is firing and what has been resolved."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        """(status, alertname, severity), as they came."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.told += [
                    (one["status"], one["labels"]["alertname"], one["labels"]["severity"])
                    for one in body["alerts"]
                ]
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class Alertmanager:
    """One process, with a route, an inhibition, and a receiver of ours."""

    def __init__(self, folder: Path, hook: str) -> None:
        self._folder = folder
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        (folder / "config.yml").write_text(
            json.dumps(
                {
                    "route": {
                        "receiver": "hook",
                        "group_by": ["alertname", "cluster", "group"],
                        "group_wait": "100ms",
                        "group_interval": "200ms",
                    },
                    "receivers": [
                        {"name": "hook", "webhook_configs": [{"url": hook, "send_resolved": True}]}
                    ],
                    "inhibit_rules": [
                        {
                            "source_matchers": ["alertname=CoordinatorMoved"],
                            "target_matchers": ["alertname=RebalanceStorm"],
                            "equal": ["cluster"],
                        }
                    ],
                }
            )
        )

    def start(self) -> None:
        """Start it, and return when it answers."""
        with (self._folder / "log").open("ab") as out:
            self._process = subprocess.Popen(
                [
                    "prometheus-alertmanager",
                    "--config.file=config.yml",
                    "--storage.path=data",
                    "--cluster.listen-address=",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                cwd=self._folder,
                stdout=out,
                stderr=out,
            )
        await_that(lambda: self.get("/-/ready") is not None, "Alertmanager is ready", PATIENCE_S)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def get(self, path: str) -> httpx.Response | None:
        """Ask it; None if it has no good answer."""
        with suppress(httpx.TransportError):
            answer = httpx.get(f"{self.url}{path}", timeout=5)
            return answer if answer.status_code == 200 else None
        return None

    def alerts(self) -> list[dict[str, Any]]:
        """Return what is active there, silenced and inhibited ones too."""
        answer = self.get("/api/v2/alerts")
        return [] if answer is None else list(answer.json())

    def states(self) -> dict[str, str]:
        """Return alertname/severity -> active or suppressed."""
        found = {(one["labels"]["alertname"], one["labels"]["severity"]): one for one in self.alerts()}
        return {"/".join(key): one["status"]["state"] for key, one in found.items()}

    def await_states(self, wanted: dict[str, str]) -> None:
        """Return once it shows just that."""
        await_that(lambda: self.states() == wanted, f"{self.port} shows {wanted}", PATIENCE_S)

    def silence(self, *matchers: str) -> None:
        """Silence what matches, as people do."""
        subprocess.run(
            [
                *("amtool", "silence", "add", f"--alertmanager.url={self.url}"),
                *("--author=me", "--comment=why", "--duration=1h", *matchers),
            ],
            check=True,
            capture_output=True,
        )

    def silences(self) -> list[dict[str, Any]]:
        """Return the silences that are in force there."""
        answer = self.get("/api/v2/silences")
        return [
            one for one in ([] if answer is None else answer.json()) if one["status"]["state"] == "active"
        ]


class Beside:
    """Two Alertmanagers that know nothing of one another, and a notifier that tells both."""

    def __init__(self, folder: Path) -> None:
        self.quiet = LiveQuiet()
        self.hook = Hook()
        self.first, self.second = (Alertmanager(folder / name, self.hook.url) for name in ("a", "b"))
        self.receiver = AlertmanagerReceiver(
            "am",
            [self.first.url, f"{self.second.url}/"],
            context=ReceiverContext(
                "http://gw:9464", lambda alert: f"team-{alert.group}" if alert.group else "", self.quiet
            ),
        )
        self.receiver.renew_ms = 500  # a minute, for people who have the time
        self.notifier = Notifier([self.receiver], [], {}, quiet=self.quiet)

    def next_process(self, silence: Silence) -> Notifier:
        """Return the notifier of a process that knows nothing of this one, with one silence."""
        quiet = LiveQuiet()
        quiet.add_all([silence])
        receiver = AlertmanagerReceiver(
            "am", [self.first.url, self.second.url], context=ReceiverContext(quiet=quiet)
        )
        receiver.renew_ms = self.receiver.renew_ms
        return Notifier([receiver], [], {}, quiet=quiet)

    def tell(self, alert: Alert) -> Alert:
        """Deliver a revision, and return it."""
        self.notifier.direct(alert)
        return alert

    def await_states(self, wanted: dict[str, str], *managers: Alertmanager) -> None:
        """Return once these (both, if none is named) show just that."""
        for one in managers or (self.first, self.second):
            one.await_states(wanted)


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    if shutil.which("prometheus-alertmanager") is None or shutil.which("amtool") is None:
        pytest.skip("prometheus-alertmanager is not installed")
    made = Beside(tmp_path)
    with ExitStack() as undo:
        undo.callback(made.hook.close)
        for one in (made.first, made.second):
            one.start()
            undo.callback(one.kill)
        made.notifier.start()
        undo.callback(made.notifier.stop)
        yield made


def storm(**changes: Any) -> Alert:
    """Return an alert that has just begun."""
    at_ms = now_ms()
    base = Alert(
        id="storm-1",
        revision=0,
        name="RebalanceStorm",
        cluster="eu",
        group="payments",
        status=AlertStatus.FIRING,
        severity=Severity.WARNING,
        starts_at_ms=at_ms - 1_000,
        ends_at_ms=None,
        detected_at_ms=at_ms,
        summary="payments rebalanced 7 times",
        cause="one member leaves and joins again and again",
        culprits=(Culprit(member_id="m-1", client_id="app", client_host="/10.0.0.7"),),
        cost="",
        advice="look at 10.0.0.7",
        runbook="https://runbooks.example/storm",
    )
    return msgspec.structs.replace(base, **changes)


def test_an_alert_is_told_to_both_with_its_labels(beside: Beside) -> None:
    """Labels, annotations, and an end that is five minutes ahead and moves on while it fires."""
    alert = beside.tell(storm())
    beside.await_states({"RebalanceStorm/warning": "active"})

    def ahead_s() -> float:
        (one,) = beside.second.alerts()
        return datetime.fromisoformat(one["endsAt"]).timestamp() - alert.detected_at_ms / 1000

    (one,) = beside.first.alerts()
    assert one["labels"] == {
        "alertname": "RebalanceStorm",
        "cluster": "eu",
        "group": "payments",
        "severity": "warning",
        "owner": "team-payments",
    }
    assert one["annotations"] == {
        "summary": alert.summary,
        "cause": alert.cause,
        "culprit": "m-1 (client app, host /10.0.0.7, observed)",
        "advice": alert.advice,
        "runbook_url": alert.runbook,
    }
    assert one["generatorURL"] == "http://gw:9464/?cluster=eu&q=payments"
    first_s = ahead_s()
    assert 290 < first_s < 330
    await_that(lambda: ahead_s() > first_s, "the end moves on", PATIENCE_S)


def test_an_alert_gets_louder_and_ends(beside: Beside) -> None:
    """The old severity ends as the new one begins, and the last word is the end."""
    beside.tell(storm())
    beside.await_states({"RebalanceStorm/warning": "active"})
    beside.tell(storm(revision=1, severity=Severity.CRITICAL))
    beside.await_states({"RebalanceStorm/critical": "active"})
    beside.tell(
        storm(revision=2, severity=Severity.CRITICAL, status=AlertStatus.RESOLVED, ends_at_ms=now_ms())
    )
    beside.await_states({})
    told = ("resolved", "RebalanceStorm", "critical")
    await_that(lambda: told in beside.hook.told, "people are told the end", PATIENCE_S)
    assert ("resolved", "RebalanceStorm", "warning") in beside.hook.told


def test_alertmanagers_silence_and_inhibition_apply(beside: Beside) -> None:
    """What amtool silences and what another alert inhibits reaches nobody, and stays known."""
    beside.first.silence("alertname=SessionTimeout")
    beside.second.silence("alertname=SessionTimeout")
    beside.tell(storm(id="moved", name="CoordinatorMoved", group=""))
    beside.await_states({"CoordinatorMoved/warning": "active"})
    beside.tell(storm())
    beside.tell(storm(id="timeout-1", name="SessionTimeout"))
    suppressed = dict.fromkeys(("RebalanceStorm/warning", "SessionTimeout/warning"), "suppressed")
    beside.await_states({"CoordinatorMoved/warning": "active"} | suppressed)
    assert {name for _, name, _ in beside.hook.told} == {"CoordinatorMoved"}


def test_one_that_is_away_is_made_up_for(beside: Beside) -> None:
    """While one is dead the other is told; the dead one comes back and learns what still fires."""
    beside.second.kill()
    beside.tell(storm())
    beside.await_states({"RebalanceStorm/warning": "active"}, beside.first)
    shutil.rmtree(beside.second._folder / "data")
    beside.second.start()
    beside.await_states({"RebalanceStorm/warning": "active"})


def test_alerts_end_by_themselves_after_our_death(beside: Beside) -> None:
    """Nobody repeats them any more, so each ends five minutes after the last word about it."""
    beside.tell(storm())
    beside.await_states({"RebalanceStorm/warning": "active"})
    beside.notifier.stop()
    (one,) = beside.first.alerts()
    assert datetime.fromisoformat(one["endsAt"]).timestamp() <= time.time() + 300


def quiet_for(minutes: int = 60, name: str = "s1", **match: Any) -> Silence:
    """Return a silence that Ada has added."""
    until_ms = now_ms() + minutes * 60_000 if minutes else FOREVER_MS
    return Silence(match=Match(**match), until_ms=until_ms, id=name, author="ada", comment="migration")


def test_what_is_silenced_here_is_silenced_there(beside: Beside) -> None:
    """It stays visible, nobody is told, and people see who silenced it; what is not ours is left alone."""
    beside.quiet.add_all([quiet_for(groups=("pay.*",))])
    foreign = {"alertname": "DiskFull", "group": "payments", "severity": "warning"}
    httpx.post(f"{beside.first.url}/api/v2/alerts", json=[{"labels": foreign}])
    beside.tell(storm(id="moved", name="CoordinatorMoved", group=""))
    beside.tell(storm(id="timeout-1", name="SessionTimeout"))
    ours = {"CoordinatorMoved/warning": "active", "SessionTimeout/warning": "suppressed"}
    beside.await_states(ours | {"DiskFull/warning": "active"}, beside.first)
    beside.await_states(ours, beside.second)
    await_that(lambda: len({name for _, name, _ in beside.hook.told}) == 2, "people are told", PATIENCE_S)
    assert {name for _, name, _ in beside.hook.told} == {"CoordinatorMoved", "DiskFull"}
    for manager in (beside.first, beside.second):
        (one,) = manager.silences()
        assert (one["createdBy"], one["comment"].split(" [")[0]) == ("ada", "migration")


def test_a_silence_that_comes_and_goes_while_it_fires(beside: Beside) -> None:
    """It is made at once, made longer, and ended at once; only then are people told again."""
    beside.receiver.renew_ms = None  # nothing is repeated: what happens is because of the silence
    beside.tell(storm())
    beside.await_states({"RebalanceStorm/warning": "active"})
    for minutes in (60, 120):
        beside.quiet.add_all([quiet_for(minutes, groups=("payments",))])
        beside.await_states({"RebalanceStorm/warning": "suppressed"})
        for manager in (beside.first, beside.second):
            await_that(lambda: _minutes_left(manager) == {minutes}, f"{minutes} minutes", PATIENCE_S)  # noqa: B023
    beside.quiet.add_all([])
    beside.await_states({"RebalanceStorm/warning": "active"})
    assert beside.first.silences() == []


def _minutes_left(manager: Alertmanager) -> set[int]:
    ends = [datetime.fromisoformat(one["endsAt"]).timestamp() for one in manager.silences()]
    return {round((end_s - time.time()) / 60) for end_s in ends}


def test_an_acknowledged_alert_is_silent_until_its_end(beside: Beside) -> None:
    """Also louder; it alone, and the next of its kind is told."""
    beside.quiet.add_all([quiet_for(0, alert_id="storm-1")])
    beside.tell(storm())
    beside.tell(storm(id="other", group="orders", name="SessionTimeout"))
    states = {"RebalanceStorm/warning": "suppressed", "SessionTimeout/warning": "active"}
    beside.await_states(states)
    beside.tell(storm(revision=1, severity=Severity.CRITICAL))
    beside.await_states({"RebalanceStorm/critical": "suppressed", "SessionTimeout/warning": "active"})
    assert _minutes_left(beside.first) == {60}
    beside.tell(storm(revision=2, status=AlertStatus.RESOLVED, ends_at_ms=now_ms()))
    beside.quiet.add_all([])  # as the desk does when the alert has ended
    beside.await_states({"SessionTimeout/warning": "active"})
    beside.tell(storm(id="storm-2"))
    beside.await_states({"RebalanceStorm/warning": "active", "SessionTimeout/warning": "active"})


def test_a_later_process_knows_the_silences_of_an_earlier_one(beside: Beside) -> None:
    """It makes none twice, and ends what is over; one that lost its silences gets them again."""
    silences = [quiet_for(groups=("payments",)), quiet_for(name="s2", groups=("orders",))]
    beside.quiet.add_all(silences)
    beside.tell(storm())
    beside.tell(storm(id="other", group="orders", name="SessionTimeout"))
    both = dict.fromkeys(("RebalanceStorm/warning", "SessionTimeout/warning"), "suppressed")
    beside.await_states(both)
    beside.notifier.stop()
    again = beside.next_process(silences[0])
    try:
        again.start()
        for alert in (storm(), storm(id="other", group="orders", name="SessionTimeout")):
            again.direct(alert)
        beside.await_states({"RebalanceStorm/warning": "suppressed", "SessionTimeout/warning": "active"})
        assert [len(one.silences()) for one in (beside.first, beside.second)] == [1, 1]
        beside.second.kill()
        shutil.rmtree(beside.second._folder / "data")
        beside.second.start()
        beside.await_states({"RebalanceStorm/warning": "suppressed", "SessionTimeout/warning": "active"})
    finally:
        again.stop()
    assert ("firing", "RebalanceStorm", "warning") not in beside.hook.told
