"""``groupwatch notify`` with no Kafka at all: it tells so, remembers that it did, and says how it is."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from alerts.alert_log import AlertLog
from streaming import notifying
from streaming.config import Config, parse_config
from streaming.embedded.webhook_probe import WebhookProbe
from streaming.http import Server, health_application
from streaming.notifying import Station
from streaming.watching import of_records


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
def make_station(config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Station]]:
    monkeypatch.setattr(notifying, "_LISTEN_S", 0.0)
    monkeypatch.setattr(notifying, "alert_logs", lambda _config: {"gone": no_log})
    made: list[Station] = []

    def make() -> Station:
        station = Station(config, CollectorRegistry())
        made.append(station)
        return station

    yield make
    for station in made:
        station.stop()


def no_log(_receiver: str) -> AlertLog:
    """Find no cluster."""
    raise ConnectionError("nobody answers")


def look_until(station: Station, holds: Callable[[], object]) -> None:
    """Look, as the process does each second."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        station.look()
        time.sleep(0.02)


def test_an_outage_is_told_without_kafka_and_once_over_a_restart(
    web: WebhookProbe, make_station: Callable[[], Station]
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
    web: WebhookProbe, make_station: Callable[[], Station]
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


def test_metrics_and_health_are_served(make_station: Callable[[], Station]) -> None:
    """On a server of its own; an outage of Kafka or of the job is not this process's illness."""
    registry = CollectorRegistry()
    station = make_station()
    look_until(station, station.deliveries)
    server = Server("127.0.0.1", 0, health_application(station, registry))
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
