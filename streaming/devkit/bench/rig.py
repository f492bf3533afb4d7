"""Shared by the rows that need Spark and Kafka: a session, a cluster, the job's query, and a stopwatch.

Our query and the floor are timed alike, by Spark's own times of its batches: from the start of the first to
the end of the one that counts as the last.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streaming import pipeline, workers
from streaming.config import ClusterPlan, Config, plan_of
from streaming.devkit.bench import material
from streaming.devkit.kafka import EmbeddedKafka
from streaming.driver import ClusterJob, Outlets
from streaming.health import positions_in
from streaming.kafka_clients import admin_client, spark_options
from streaming.pipeline import Beginning

OFFSETS_TOPIC = "__consumer_offsets"
_PATIENCE_S = 900.0
_LOOK_EVERY_S = 0.25
"""Spark itself gives the times of a batch; asking more often only disturbs the measurement."""
_FORGET_S = 1
"""How soon Spark closes unused consumers and producers."""
_ADMIN_CLIENT_ID = "__admin_client"
"""The only client id that a broker lets produce to internal topics."""


class Fill(Protocol):
    """A function for ``mapInArrow`` that makes rows of task numbers."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        ...


class BenchError(Exception):
    """A measurement could not be made; the message is one sentence."""


def say(words: str) -> None:
    """Report progress on stderr; stdout is for the one JSON object."""
    print(f"groupwatch bench: {words}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def spark_session(folder: Path, cores: int) -> Iterator[SparkSession]:
    """Return the session as the job makes it, on ``cores`` cores."""
    user = {
        "spark.master": f"local[{cores}]",
        "spark.sql.streaming.numRecentProgressUpdates": "200",
    }
    # Producers of the filling must not outlive their cluster: they would look for it for minutes.  What the
    # consumers of one measurement had read must not fill the heap of the next.
    for cache in ("producer.cache", "consumer.cache", "consumer.fetchedData.cache"):
        user[f"spark.kafka.{cache}.timeout"] = f"{_FORGET_S}s"
        user[f"spark.kafka.{cache}.evictorThreadRunInterval"] = f"{_FORGET_S}s"
    spark = pipeline.start_session(user, checkpoint=str(folder), app_name="groupwatch-bench")
    try:
        yield spark
    finally:
        spark.stop()


def plan_for(kafka: EmbeddedKafka, folder: Path, name: str) -> ClusterPlan:
    """Return the plan of a job that begins with a checkpoint of its own."""
    config = Config.model_validate(
        {
            "clusters": [{"name": name, "bootstrap_servers": kafka.bootstrap_servers.split(",")}],
            "checkpoint": str(folder / "checkpoints"),
        }
    )
    return plan_of(config, config.clusters[0])


def fill(spark: SparkSession, kafka: EmbeddedKafka, topic: str, tasks: int, rows: Fill) -> None:
    """Produce what ``rows`` yields for the task numbers 0 … tasks - 1, with Spark's own sink."""
    made = spark.range(0, tasks, 1, tasks).mapInArrow(rows.__call__, material.FILL_SCHEMA)
    options = spark_options(kafka.address) | {
        "kafka.client.id": _ADMIN_CLIENT_ID,
        "kafka.linger.ms": "20",
        "kafka.batch.size": "262144",
        "kafka.acks": "1",
        "topic": topic,
    }
    made.write.format("kafka").options(**options).save()


def ends(kafka: EmbeddedKafka, topic: str) -> list[int]:
    """Return the end offsets of a topic."""
    admin = admin_client(kafka.address)
    try:
        return pipeline.ends_of(admin, topic)
    finally:
        admin.close()


@dataclass
class Batches:
    """A query's batches, as Spark tells of them."""

    told: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def note(self, query: StreamingQuery) -> None:
        """Take in what is new; idle triggers, which have no batch of their own, are left out."""
        for one in query.recentProgress:
            if one["numInputRows"] > 0:
                self.told.setdefault(one["batchId"], one)

    def reaching(self, targets: Mapping[str, list[int]]) -> int | None:
        """Return the first batch after which everything up to ``targets`` had been read."""
        for number in sorted(self.told):
            at = positions_in(self.told[number])
            if all(
                position >= end
                for topic, wanted in targets.items()
                for position, end in zip(at.get(topic, [-1] * len(wanted)), wanted, strict=False)
            ):
                return number
        return None

    def seconds(self, last: int) -> float:
        """Return how long it took from the start of the first batch to the end of ``last``."""
        return _end_s(self.told[last]) - _start_s(self.told[min(self.told)])

    def durations(self) -> list[float]:
        """Return each batch's seconds, in order."""
        return [one["durationMs"]["triggerExecution"] / 1000 for _, one in sorted(self.told.items())]


def _start_s(progress: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(str(progress["timestamp"])).timestamp()


def _end_s(progress: Mapping[str, Any]) -> float:
    return _start_s(progress) + float(progress["durationMs"]["triggerExecution"]) / 1000


def follow(query: StreamingQuery, targets: Mapping[str, list[int]]) -> tuple[float, Batches]:
    """Return the seconds until the batch that reached ``targets`` was committed.

    In ours that batch has also brought every state forward: the clock that says it may is written
    before the query starts.

    Raises:
        BenchError: the query ended, or took too long.
    """
    batches, deadline = Batches(), time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        batches.note(query)
        reached = batches.reaching(targets)
        if reached is not None:
            return batches.seconds(reached), batches
        if not query.isActive:
            raise BenchError(f"the query ended by itself: {query.exception()}")
        time.sleep(_LOOK_EVERY_S)
    raise BenchError(f"the query did not catch up within {_PATIENCE_S:.0f} s")


def floor(
    spark: SparkSession, plan: ClusterPlan, began: Beginning, targets: Mapping[str, list[int]]
) -> float:
    """Return the seconds that Spark needs to read the same rows, in the same way, without using them."""
    rows = pipeline.read_sources(spark, plan, began, len(began.events_ends))
    return _into_nothing(rows, plan, targets)


def handed_over(
    spark: SparkSession, plan: ClusterPlan, began: Beginning, targets: Mapping[str, list[int]]
) -> float:
    """Return the seconds of the floor and of handing its rows to a Python function that ignores them.

    No Python code can be faster.
    """
    _warm_workers(spark)
    rows = pipeline.read_sources(spark, plan, began, len(began.events_ends))
    return _into_nothing(rows.mapInArrow(material.nothing_kept, workers.SCHEMA), plan, targets)


def _into_nothing(rows: DataFrame, plan: ClusterPlan, targets: Mapping[str, list[int]]) -> float:
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", f"{plan.checkpoint}-nothing-{time.monotonic_ns()}")
        .trigger(processingTime=f"{plan.trigger_ms} milliseconds")
        .start()
    )
    try:
        return follow(query, targets)[0]
    finally:
        query.stop()
        _rest()


def _rest() -> None:
    """Wait until Spark has closed a measurement's connections, or the next one would pay for them."""
    time.sleep(3 * _FORGET_S)


@contextmanager
def job(spark: SparkSession, plan: ClusterPlan) -> Iterator[tuple[ClusterJob, StreamingQuery]]:
    """Run a cluster's job, whole: clock, probes, query, and outputs into Kafka; its rows go nowhere else."""
    _warm_workers(spark)
    one = ClusterJob(lambda: spark, plan, Outlets(apply=lambda _cluster, _rows: None))
    one.start()
    try:
        yield one, _query_of(spark, plan)
    finally:
        one.stop()
        _rest()


def _warm_workers(spark: SparkSession) -> None:
    """Have the Python workers as warm as the floor's JVM is: Spark ends those that idle for a minute."""
    tasks = 2 * spark.sparkContext.defaultParallelism
    made = spark.range(0, tasks, 1, tasks).mapInArrow(material.nothing_made, "id long")
    made.write.format("noop").mode("overwrite").save()


def _query_of(spark: SparkSession, plan: ClusterPlan) -> StreamingQuery:
    name, deadline = f"groupwatch-{plan.cluster}", time.monotonic() + 120
    while time.monotonic() < deadline:
        for query in spark.streams.active:
            if query.name == name:
                return query
        time.sleep(0.02)
    raise BenchError("the job's query did not start within 120 s")


def await_ready(one: ClusterJob) -> None:
    """Return when every shard has reported and everything that was there has been read.

    Raises:
        BenchError: it took too long.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while not one.progress.has_caught_up:
        if time.monotonic() > deadline:
            raise BenchError(f"the job was not ready within {_PATIENCE_S:.0f} s: {one.progress.describe()}")
        time.sleep(0.05)
