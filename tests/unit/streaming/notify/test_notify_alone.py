"""``groupwatch notify`` with no Kafka at all: it tells so, remembers that it did, and says how it is."""

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from alerts.delivery.alert_log import AlertLog
from streaming.config.config import Config, parse_config
from streaming.config.server import ServerConfig
from streaming.devkit.kafka.webhook_probe import WebhookProbe
from streaming.notify import notifying
from streaming.notify.notifying import NotifyProcess
from streaming.notify.watching import of_records
from streaming.serving.http import health_application
from streaming.serving.server import Server


@pytest.fixture
def web() -> Iterator[WebhookProbe]:
    with WebhookProbe() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, web: WebhookProbe) -> Config:
    return parse_config(
        f"""
clusters: [{{name: gone, bootstrap_servers: ["127.0.0.1:1"]}}]
checkpoint: {tmp_path}
rules: {{cluster_unreachable: {{after: 500ms}}}}
receivers: [{{name: oncall, webhook: {{url: "{web.url}"}}}}]
"""
    )


@pytest.fixture
def make_station(config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], NotifyProcess]]:
    monkeypatch.setattr(notifying, "_LISTEN_S", 0.0)
    monkeypatch.setattr(notifying, "topics_of", lambda _config: [])
    monkeypatch.setattr(notifying, "alert_logs", lambda _config: {"gone": no_log})
    made: list[NotifyProcess] = []

    def make() -> NotifyProcess:
        station = NotifyProcess(config, CollectorRegistry())
        made.append(station)
        return station

    yield make
    for station in made:
        station.stop()


def no_log(_receiver: str) -> AlertLog:
    """Find no cluster."""
    raise ConnectionError("nobody answers")


def look_until(station: NotifyProcess, holds: Callable[[], object]) -> None:
    """Look, as the process does each second."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        station.look()
        time.sleep(0.02)


def test_an_outage_is_told_without_kafka_and_once_over_a_restart(
    web: WebhookProbe, make_station: Callable[[], NotifyProcess]
) -> None:
    """Nothing that the alert needs lies on the cluster in trouble; the file beside the process knows it."""
    first = make_station()
    look_until(first, lambda: web.told)
    look_until(first, lambda: not first.deliveries()[0]["waiting"])
    first.look()
    first.stop()
    second = make_station()
    second.look()
    (state,) = second.deliveries()
    assert (state["receiver"], state["waiting"]) == ("oncall", 0)
    assert len(web.told) == 1


def test_a_job_that_delivers_by_itself_is_not_talked_over(
    web: WebhookProbe, make_station: Callable[[], NotifyProcess]
) -> None:
    """The process stands by, is ready, and says why; it speaks once that job is not heard any more."""
    station = make_station()
    job = station.jobs["gone"]
    told = b'{"kind":"clock","job":{"cluster":"gone","batches":1,"speaks":true}}'
    (record,) = of_records([told], ["gone"])["gone"]
    job.heard(record)
    station.look()
    assert station.deliveries() == []
    (cluster,) = station.clusters()
    assert cluster["ready"]
    assert "delivers alerts itself" in cluster["notices"][0]
    (silent,) = of_records([told.replace(b"true", b"false")], ["gone"])["gone"]
    job.heard(silent)
    look_until(station, station.deliveries)


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s


class Standby:
    """``notify`` beside a job that delivers by itself, with two clusters."""

    def __init__(self, folder: Path, web: WebhookProbe) -> None:
        self.now, self.web = Now(), web
        self.opened: list[str] = []
        self._config = parse_config(
            f"""
clusters:
- {{name: near, bootstrap_servers: ["127.0.0.1:1"]}}
- {{name: far, bootstrap_servers: ["127.0.0.1:2"]}}
checkpoint: {folder}
rules: {{cluster_unreachable: {{after: 30s}}, monitor_stalled: {{after: 60s}}}}
receivers: [{{name: oncall, webhook: {{url: "{web.url}"}}}}]
"""
        )
        self.station = NotifyProcess(self._config, CollectorRegistry(), self.now)

    def restart(self, *, clusters: Collection[str] = ("near", "far")) -> None:
        """End the process and begin another, with these clusters configured."""
        self.station.stop()
        kept = [one for one in self._config.clusters if one.name in clusters]
        self._config = self._config.model_copy(update={"clusters": kept})
        self.station = NotifyProcess(self._config, CollectorRegistry(), self.now)

    def open_log(self, cluster: str) -> AlertLog:
        """Find nobody who answers."""
        self.opened.append(cluster)
        raise ConnectionError("nobody answers")

    def live(self, seconds: int, *, answering: Collection[str] = ("near", "far"), job: bool = True) -> None:
        """Let time pass; the job is heard where Kafka answers, if it lives."""
        for _ in range(seconds):
            self.now.s += 1
            for cluster in answering:
                self.station.jobs[cluster].kafka_answered()
                if job:
                    self._hear(cluster)
            self.station.look()

    def _hear(self, cluster: str) -> None:
        told = b'{"kind":"clock","job":{"cluster":"%s","batches":1,"speaks":true}}' % cluster.encode()
        for record in of_records([told], [cluster])[cluster]:
            self.station.jobs[cluster].heard(record)

    def await_told(self, *expected: tuple[str, str, str]) -> None:
        """Wait until just this was told: (alert, cluster, status)."""
        look_until(self.station, lambda: len(self.told()) >= len(expected))
        assert sorted(self.told()) == sorted(expected)

    def told(self) -> list[tuple[str, str, str]]:
        """Return what was told."""
        return [(one.labels["alertname"], one.labels["cluster"], one.status) for one in self.web.told]

    def ids(self) -> set[str]:
        """Return the ids under which MonitorStalled of one cluster was told."""
        return {one.fingerprint for one in self.web.told if one.labels["cluster"] == "near"}


@pytest.fixture
def standby(tmp_path: Path, web: WebhookProbe, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    monkeypatch.setattr(notifying, "topics_of", lambda _config: [])  # nobody waits for silences
    made = Standby(tmp_path, web)
    monkeypatch.setattr(notifying, "alert_logs", lambda _config: {"near": made.open_log})
    yield made
    made.station.stop()


def test_a_job_that_dies_together_with_one_of_its_kafkas_is_told(standby: Standby) -> None:
    """Who cannot be heard is not taken to live for ever; both are told in at most twice the usual time."""
    standby.live(20)
    standby.live(61, answering=["near"], job=False)
    standby.await_told(("ClusterUnreachable", "far", "firing"), ("MonitorStalled", "near", "firing"))


def test_a_job_that_lives_on_one_cluster_is_left_to_tell_of_the_other(standby: Standby) -> None:
    """The outage that it tells of itself is not told twice, however long it is."""
    standby.live(20)
    standby.live(600, answering=["near"])
    assert standby.station.deliveries() == []
    assert standby.told() == []


DEAD = [("MonitorStalled", "near", "firing"), ("MonitorStalled", "far", "firing")]
BACK = [("MonitorStalled", "near", "resolved"), ("MonitorStalled", "far", "resolved")]


def test_the_end_of_what_was_told_is_told_when_the_job_delivers_again(standby: Standby) -> None:
    """Under the same id, by whoever told its beginning; the topics are the job's again meanwhile."""
    standby.live(20)
    standby.live(80, job=False)
    standby.await_told(*DEAD)
    standby.live(2)
    opened = len(standby.opened)
    standby.await_told(*DEAD, *BACK)
    assert len(standby.ids()) == 1
    standby.live(1)
    look_until(standby.station, lambda: standby.station.deliveries() == [])
    assert len(standby.opened) == opened
    standby.live(300)
    assert len(standby.told()) == 4


def test_the_end_is_told_also_after_a_restart(standby: Standby) -> None:
    """The file beside the process remembers what is open, also where the job delivers from the first."""
    standby.live(20)
    standby.live(80, job=False)
    standby.await_told(*DEAD)
    standby.restart()
    opened = len(standby.opened)
    standby.live(2)
    standby.await_told(*DEAD, *BACK)
    assert len(standby.ids()) == 1
    assert len(standby.opened) == opened


def test_what_was_told_of_a_cluster_that_is_removed_is_ended(standby: Standby) -> None:
    """By the start that knows it no more: nobody would ever find it well again."""
    standby.live(20)
    standby.live(80, job=False)
    standby.await_told(*DEAD)
    standby.restart(clusters=["near"])
    standby.live(6, answering=["near"], job=False)
    standby.await_told(*DEAD, ("MonitorStalled", "far", "resolved"))


def test_a_cluster_that_is_still_away_when_the_job_is_back_is_told_when_it_answers(
    standby: Standby,
) -> None:
    """What is open stays so until it is over, and nothing new is opened beside the job."""
    standby.live(20)
    standby.live(61, answering=["near"], job=False)
    began = [("ClusterUnreachable", "far", "firing"), ("MonitorStalled", "near", "firing")]
    standby.await_told(*began)
    standby.live(30, answering=["near"])
    standby.await_told(*began, ("MonitorStalled", "near", "resolved"))
    standby.live(2)
    over = ("ClusterUnreachable", "far", "resolved")
    standby.await_told(*began, ("MonitorStalled", "near", "resolved"), over)


def test_a_job_that_dies_again_is_told_again(standby: Standby) -> None:
    """Standing by is no end."""
    standby.live(20)
    for times in (1, 2):
        standby.live(80, job=False)
        standby.await_told(*(DEAD * times), *(BACK * (times - 1)))
        standby.live(20)
        standby.await_told(*(DEAD * times), *(BACK * times))


def test_metrics_and_health_are_served(make_station: Callable[[], NotifyProcess]) -> None:
    """On a server of its own; an outage of Kafka or of the job is not this process's illness."""
    registry = CollectorRegistry()
    station = make_station()
    look_until(station, station.deliveries)
    server = Server(ServerConfig(port=0), health_application(station, registry))
    port = server.start()
    try:
        health = httpx.get(f"http://127.0.0.1:{port}/healthz").json()
        ready = httpx.get(f"http://127.0.0.1:{port}/ready")
        metrics = httpx.get(f"http://127.0.0.1:{port}/metrics")
    finally:
        server.stop()
    assert [one["receiver"] for one in health["deliveries"]] == ["oncall"]
    assert (ready.status_code, ready.json()["clusters"][0]["cluster"]) == (503, "gone")
    assert metrics.status_code == 200
