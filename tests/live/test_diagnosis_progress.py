"""Consumers that do not get on, on a real cluster, and consumers that seem not to.

One reads and does not commit any more, one commits the same offset again and again, one seeks back to
the beginning; beside them a slow committer, and a group that has read all there is.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from streaming.embedded.jars import JarError, ensure_jars
from streaming.embedded.kafka import EmbeddedKafka
from tests.live.stage import Job, Pager, alerts_of, await_that

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RULES: dict[str, Any] = {"commits_stopped": {"after": "12s"}, "commits_stalled": {"after": "8s"}}
COMMITS = 12
"""More than a window, so that what is usual is known."""


class Reader:
    """A consumer in a thread: reads all the time, and commits every now and then."""

    def __init__(self, bootstrap: str, group: str, topic: str, every_s: float = 1.0) -> None:
        self.commits = 0
        self.mode = "reads"
        """reads; silent: commits nothing; stuck: commits the same again; back: seeks to the beginning."""
        self._every_s = every_s
        self._stop = threading.Event()
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=f"{group}-0",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        self._thread = threading.Thread(target=self._read, name=group, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        committed_at = time.monotonic()
        last: dict[TopicPartition, OffsetAndMetadata] = {}
        while not self._stop.is_set():
            self._consumer.poll(timeout_ms=100)
            if self.mode == "back":
                self._consumer.seek_to_beginning()
                self._consumer.commit(self._positions())
                self.mode = "reads"
            if time.monotonic() - committed_at < self._every_s or self.mode == "silent":
                continue
            committed_at = time.monotonic()
            last = last if self.mode == "stuck" else self._positions()
            if last:
                self._consumer.commit(last)
                self.commits += 1
        self._consumer.close()

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        mine = self._consumer.assignment()
        return {one: OffsetAndMetadata(self._consumer.position(one), "", -1) for one in mine}


class Writer:
    """Writes to "busy" until stopped, and a little to "quiet" at first."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        for _ in range(20):
            self._producer.send("quiet", b"x")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write no more."""
        self._stop.set()
        self._thread.join()
        self._producer.close()

    def _write(self) -> None:
        while not self._stop.wait(0.05):
            self._producer.send("busy", b"x")
            self._producer.flush()


@dataclass
class Story:
    """What was seen of it."""

    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Every revision of every alert."""

    def of(self, group: str) -> list[tuple[str, str]]:
        """Return (name, status) of a group's alerts in order."""
        return [(one["name"], one["status"]) for one in self.alerts if one["group"] == group]


def _is_told(job: Job, group: str, name: str) -> bool:
    answer = job.get("/api/v1/alerts")
    found = answer.json()["alerts"] if answer is not None else []
    return any((one["name"], one["group"]) == (name, group) for one in found)


def _await_told(job: Job, group: str, name: str, *, over: bool = False) -> None:
    what = f"{name} of {group} is {'over' if over else 'told'}"
    await_that(lambda: _is_told(job, group, name) is not over, what, patience_s=60)


def _await_commits(reader: Reader) -> None:
    await_that(lambda: reader.commits >= COMMITS, "it commits")


def _play(kafka: EmbeddedKafka, job: Job, readers: dict[str, Reader]) -> None:
    bootstrap = kafka.bootstrap_servers
    for group in ("stops", "stalls", "rewinds"):
        readers[group] = Reader(bootstrap, group, "busy")
    readers["slowly"] = Reader(bootstrap, "slowly", "busy", every_s=4.0)
    readers["idle"] = Reader(bootstrap, "idle", "quiet")
    for group in ("stops", "stalls", "rewinds"):
        _await_commits(readers[group])
    readers["stops"].mode, readers["stalls"].mode, readers["rewinds"].mode = "silent", "stuck", "back"
    _await_told(job, "rewinds", "OffsetRewind")
    for group, name in (("stops", "CommitsStopped"), ("stalls", "CommitsStalled")):
        _await_told(job, group, name)
        readers[group].mode = "reads"
    for group, name in (("stops", "CommitsStopped"), ("stalls", "CommitsStalled")):
        _await_told(job, group, name, over=True)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    try:
        ensure_jars("broker")
        ensure_jars("connector")
    except JarError as error:
        pytest.skip(f"no jars: {error}")
    folder = tmp_path_factory.mktemp("progress")
    readers: dict[str, Reader] = {}
    with (
        EmbeddedKafka(folder / "kafka", offsets_partitions=8, heap="384m", rebalance_delay_ms=500) as kafka,
        Pager() as pager,
    ):
        kafka.create_topic("busy", partitions=1)
        kafka.create_topic("quiet", partitions=1)
        job, writer = Job(kafka.bootstrap_servers, folder, pager, RULES), Writer(kafka.bootstrap_servers)
        try:
            job.start()
            job.await_ready()
            _play(kafka, job, readers)
            yield Story(alerts_of(kafka.address))
        finally:
            for reader in readers.values():
                reader.stop()
            writer.stop()
            job.stop()


def test_a_consumer_that_reads_on_and_commits_nothing(story: Story) -> None:
    """Its owner is named, and the alert ends with the next commit."""
    fired = next(one for one in story.alerts if one["group"] == "stops")

    assert story.of("stops") == [("CommitsStopped", "firing"), ("CommitsStopped", "resolved")]
    assert [(one["client_id"], one["basis"]) for one in fired["culprits"]] == [("stops-0", "inferred")]
    assert "busy-0" in fired["summary"]


def test_a_consumer_that_commits_the_same_offset(story: Story) -> None:
    """It is stalled, not stopped and not slow."""
    assert story.of("stalls") == [("CommitsStalled", "firing"), ("CommitsStalled", "resolved")]


def test_a_seek_to_the_beginning(story: Story) -> None:
    """However soon it has read all that again."""
    fired = next(one for one in story.alerts if one["group"] == "rewinds")

    assert story.of("rewinds") == [("OffsetRewind", "firing")]
    assert fired["severity"] == "warning"
    assert "back to 0" in fired["evidence"][0]


def test_who_is_slow_or_idle_is_left_alone(story: Story) -> None:
    """As is everybody else."""
    assert {one["group"] for one in story.alerts} == {"stops", "stalls", "rewinds"}
