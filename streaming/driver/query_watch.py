"""Follows a running query until it dies or must restart, and stops it between two batches."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.control import MarkHeldError
from streaming.driver.lease import Lease
from streaming.health import Watermark, positions_in
from streaming.kafka_clients import KafkaAdminClient, KafkaError
from streaming.pipeline import Beginning, Reading

_WATCH_S = 0.25
_PARTITIONS_LOOK_S = 30.0
_STOP_WAIT_S = 30.0
_STOP_LOOK_S = 0.005
"""Far shorter than asking a broker for its newest offsets."""

_NAMES_ERROR = re.compile(r"(?!Caused by)[\w.]*(Error|Exception)\b: \S")

_log = logging.getLogger(__name__)


class StartAgainError(RuntimeError):
    """The query has to start again, and nothing is wrong with it; the text says why."""


class TopicsChangedError(StartAgainError):
    """A topic has more partitions, or was recreated; the query must restart to read them."""


class QueryWatch:
    """Follows one cluster's queries, one after the other."""

    def __init__(
        self,
        plan: ClusterPlan,
        reading: Reading,
        watermark: Watermark,
        lease: Lease,
        stopping: threading.Event,
    ) -> None:
        """Prepare.

        Args:
            plan: the cluster.
            reading: takes how far the query has read.
            watermark: takes the same for the offsets topic.
            lease: says whether another process took over.
            stopping: set when the query is no longer to be followed.
        """
        self._plan = plan
        self._reading = reading
        self._watermark = watermark
        self._lease = lease
        self._stopping = stopping
        self._asked = threading.Event()

    def start_again(self) -> None:
        """Let the query that runs, or the next one, start again."""
        self._asked.set()

    def follow(self, running: StreamingQuery, check: Callable[[], None]) -> None:
        """Follow the query until we are stopped; call ``check`` at intervals.

        Raises:
            Exception: the query died of it.
            StartAgainError: a topic was recreated, or somebody asked.
            MarkHeldError: another process took over.
        """
        last, before = ("", -1), dict[str, list[int]]()
        checked_at = time.monotonic()
        while not self._stopping.is_set():
            running.awaitTermination(_WATCH_S)  # raises the query's own failure
            if not running.isActive:
                raise RuntimeError("the query ended by itself")
            if self._asked.is_set():
                self._asked.clear()
                raise StartAgainError("the settings have changed")
            if self._lease.is_lost:
                raise MarkHeldError("another process took over")
            told: Any = running.lastProgress
            if told is not None and (told["timestamp"], told["batchId"]) != last:
                last = told["timestamp"], told["batchId"]
                positions = positions_in(told)
                topic = pipeline.went_back(before, positions)
                if topic:
                    raise TopicsChangedError(f"{topic} has smaller offsets than before")
                before = positions
                self._reading.reached(positions)
                self._watermark.reached(self._reading.positions(self._plan.offsets_topic or ""))
            if time.monotonic() - checked_at > _PARTITIONS_LOOK_S:
                checked_at = time.monotonic()
                check()

    def check_partitions(self, admin: KafkaAdminClient, began: Beginning, events_partitions: int) -> None:
        """Look for partitions that the query does not read, and for recreated topics.

        Raises:
            TopicsChangedError: there are some.
        """
        try:
            events = pipeline.partition_count(admin, self._plan.events_topic or "")
            shards = pipeline.count_shards(admin, self._plan)
            ids = pipeline.ids_of(admin, _watched_topics(self._plan))
        except Exception as error:
            _log.debug("looking for new partitions: %r", error)
            return
        if self._plan.offsets_topic and shards != began.shard_count:
            raise TopicsChangedError(f"{self._plan.offsets_topic} has {shards} partitions now")
        for topic, (topic_id, _) in ids.items():
            if topic_id and began.topic_ids.get(topic, topic_id) != topic_id:
                raise TopicsChangedError(f"{topic} was recreated")
        if events > events_partitions:
            raise TopicsChangedError(f"{self._plan.events_topic} has {events} partitions now")


def _watched_topics(plan: ClusterPlan) -> list[str]:
    """Return the input topics on the watched cluster."""
    found = pipeline.topics_of(plan)
    return [topic for topic, address in found.items() if address.identity == plan.kafka.identity]


def notice_topics(plan: ClusterPlan, notice: Callable[[str, str], None]) -> None:
    """Report topics whose setup is not as it should be; the job runs all the same."""
    try:
        for topic, sentence in pipeline.look_at_topics(plan).items():
            notice(f"topic {topic}", sentence)
    except KafkaError as error:
        why = f"the settings of the topics are unknown: {type(error).__name__}: {error}"[:300]
        notice("topics", f"{why}; grant groupwatch's user DESCRIBE_CONFIGS on topics")
    else:
        notice("topics", "")


def targets_of(plan: ClusterPlan, admin: KafkaAdminClient) -> dict[str, list[int]]:
    """Return topic -> the present ends of its partitions, for the inputs."""
    inputs = [topic for topic in (plan.offsets_topic, plan.events_topic) if topic]
    return {topic: pipeline.ends_of(admin, topic) for topic in inputs}


def gist(error: Exception) -> str:
    """Return a failure in one line.

    Spark wraps an exception of our code in pages of its own and of Python's trace; the last line that names
    an exception says what happened.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if _NAMES_ERROR.match(line)]
    return (named[-1] if named else f"{type(error).__name__}: {' '.join(lines)}")[:500]


def stop_gently(running: StreamingQuery) -> None:
    """Stop between batches: ``stop`` would interrupt a running batch, which then must be repeated.

    If batches follow each other without a pause, Spark asks for the newest offsets between them.
    """
    deadline = time.monotonic() + _STOP_WAIT_S
    while running.isActive and not _is_between_batches(running.status) and time.monotonic() < deadline:
        time.sleep(_STOP_LOOK_S)
    running.stop()


def _is_between_batches(status: Mapping[str, Any]) -> bool:
    return not status["isTriggerActive"] or status["message"].startswith("Getting offsets")
