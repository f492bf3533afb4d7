"""Clocks that are not ours, in topics that anybody may write to: incidents are told in time all the same."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import admin_client, producer
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.scene import Scene
from tests.live.support.stage import Job, Page, Pager, alerts_of, await_that, need_jars, now_ms

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

GROUP = "watched"
SESSION_S = 6.0
IN_TIME_S = 30.0
"""From the crash to the page on a busy machine; the forged clocks are hours and years ahead."""
_EVENTS, _CONTROL = "groupwatch-events", "groupwatch-control"
_HOUR_MS = 3_600_000
_FORGED = 5
REFUSED = {"events": 8 * _FORGED, "control": 2 * _FORGED}
"""Two clocks each time, and of each a copy in four partitions."""


class Second:
    """What a second groupwatch writes to the same topics: its clock is a minute ahead."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        """Begin at once."""
        self._out = producer(kafka.address)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._ends.wait(0.3):
            send_clocks(self._out, run="second", at_ms=now_ms() + 60_000)

    def end(self) -> None:
        """Stop ticking."""
        self._ends.set()
        self._thread.join()
        self._out.close()


def send_clocks(out: Any, *, run: str, at_ms: int) -> None:
    """Write a clock record, and its copies, as a groupwatch of that run would."""
    copy = {"groupwatch": "clock", "at_ms": at_ms, "sequence": at_ms, "run": run, "skew_ms": {}}
    key, value = b"groupwatch-clock", json.dumps(copy).encode()
    sent = [out.send(_EVENTS, partition=n, key=key, value=value, timestamp_ms=at_ms) for n in range(4)]
    record = {"kind": "clock", "at_ms": at_ms, "run": run, "sequence": at_ms, "events_partitions": 4}
    sent.append(out.send(_CONTROL, partition=0, value=json.dumps(record).encode(), timestamp_ms=at_ms))
    for one in sent:
        one.get(timeout=60)


@dataclass
class Seen:
    """What was seen of it."""

    ready: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    crashed_ms: int = 0
    page: Page | None = None
    alerts: list[dict[str, Any]] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    metrics: str = ""


def _play(kafka: EmbeddedKafka, job: Job, scene: Scene, pager: Pager) -> Seen:
    seen = Seen()
    job.start()
    job.await_ready()
    out, second = producer(kafka.address), Second(kafka)
    try:
        scene.member(GROUP, "watched-0", session_timeout_ms=CALM_SESSION_MS)
        victim = scene.member(GROUP, "watched-1", session_timeout_ms=round(SESSION_S * 1000))
        await_that(scene.is_stable(GROUP, 2), "the group is Stable")
        await_that(lambda: job.states().get(GROUP) == "Stable", "and is seen")
        # A line of the next year: in a topic of CreateTime nothing but our clock says that it is not yet.
        line = f"[2099-01-01 00:00:00,000] INFO [GroupCoordinator id=1] Member x in group {GROUP} has failed"
        sent = out.send(_EVENTS, partition=0, key=b"1", value=line.encode(), timestamp_ms=4_070_908_800_000)
        sent.get(timeout=60)
        run = json.loads(next(job.checkpoint.glob("*/groupwatch.json")).read_text())["run"]
        for number in range(_FORGED):
            send_clocks(out, run=run, at_ms=now_ms() + (number + 1) * _HOUR_MS)
            send_clocks(out, run=run, at_ms=now_ms() + 30_000)

        def refused() -> dict[str, int]:
            told = {one: job.counted("groupwatch_undecodable_total", one) for one in ("events", "control")}
            return {source: counts.get("clock_refused", 0) for source, counts in told.items()}

        with contextlib.suppress(AssertionError):  # which of them is missing, the test says
            await_that(lambda: refused() == REFUSED, "each is read and counted")
        seen.refused = refused()
        seen.crashed_ms = now_ms()
        victim.crash()

        def page() -> Page | None:
            told = [one for one in list(pager.pages) if one.labels["alertname"] == "SessionTimeout"]
            return told[0] if told else None

        seen.page = await_that(page, "the crash is told")
        answer = job.get("/ready")
        assert answer is not None
        seen.ready = answer.json()["clusters"][0]
        seen.metrics = job.metrics()
        seen.alerts, seen.pages = alerts_of(kafka.address), list(pager.pages)
        return seen
    finally:
        second.end()
        out.close()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("clocks")
    with EmbeddedKafka(folder / "kafka", offsets_partitions=8, heap="512m") as kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        admin = admin_client(kafka.address)
        # Kafka 4 refuses what is more than an hour ahead, before it nothing.
        wanted = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, _EVENTS, wanted)])
        admin.close()
        job = Job(kafka.bootstrap_servers, folder, pager)
        scene = Scene(kafka, job, "full")
        try:
            yield _play(kafka, job, scene, pager)
        finally:
            scene.end()
            job.stop()


def test_an_incident_is_told_in_time_beside_clocks_of_others(seen: Seen) -> None:
    """Forged clocks of our run, and a second groupwatch a minute ahead, take nobody's time along."""
    assert seen.page is not None
    assert seen.page.labels["group"] == GROUP
    assert seen.page.received_at_ms - seen.crashed_ms < (SESSION_S + IN_TIME_S) * 1000
    told = next(one for one in seen.alerts if one["name"] == "SessionTimeout")
    assert 0 <= told["starts_at_ms"] - seen.crashed_ms + 3_000 < (SESSION_S + IN_TIME_S) * 1000
    assert seen.ready["watermark_behind_s"] < IN_TIME_S
    assert 'groupwatch_watermark_delay_seconds{cluster="live"}' in seen.metrics


def test_what_is_not_believed_is_counted(seen: Seen) -> None:
    """Each forged clock of our run; those of another run are nobody's fault."""
    assert seen.refused == REFUSED


def test_nothing_else_is_told(seen: Seen) -> None:
    """The line of the year 2099 says nothing about who lives now; the crash is all that is told."""
    assert {one["name"] for one in seen.alerts} <= {"SessionTimeoutImminent", "SessionTimeout"}
    assert [one["client_id"] for one in seen.alerts[-1]["culprits"]] == ["watched-1"]


def test_a_topic_of_create_time_is_named(seen: Seen) -> None:
    """The job goes on, and says what it costs."""
    assert any(
        "groupwatch-events has message.timestamp.type=CreateTime" in one for one in seen.ready["notices"]
    )
