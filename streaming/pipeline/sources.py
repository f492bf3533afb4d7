"""Reads all Kafka inputs as one frame of raw rows.

Each distinct cluster has one source, always with ``assign``.  With ``subscribe`` the old offset reader, the
only one that sees internal topics, would join a consumer group and so write to the very topic that is
watched.
"""

import json
import logging
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streaming.config import ClusterPlan
from streaming.decoders import cut_words
from streaming.jars import CUT_FEED, CUT_WORDS, EVEN_KAFKA, EVEN_TASKS, PACKED_FEEDS
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import GROUP_PREFIX, spark_options
from streaming.pipeline.beginning import Beginning
from streaming.pipeline.executors import cores_for_tasks
from streaming.pipeline.session import has_class, packs_records
from streaming.workers import BLOCK, CONTROL, EVENTS, OFFSETS

EARLIEST = -2
"""Spark's value for the earliest offset in ``startingOffsets``."""

READ_OPTIONS: Mapping[str, str] = {
    # With the default of 500 ms, a batch over 50 partitions sometimes stalls for seconds.
    "kafka.fetch.max.wait.ms": "10",
    # Each poll costs two extra round trips: at the default of 500 rows they dominate a backlog.  And a large
    # one outlives the JVM's young objects: 20,000 rows brought twice as many full collections.
    "kafka.max.poll.records": "2000",
    # Otherwise one hanging transaction would hide all groups of a partition.
    "kafka.isolation.level": "read_uncommitted",
    "groupIdPrefix": f"{GROUP_PREFIX}source",
    "includeHeaders": "false",
    # A monitor that was down for longer than events are retained must start and report what it missed,
    # not refuse to start.  Gaps left by compaction are no loss in either setting.
    "failOnDataLoss": "false",
    # Bounds the memory of the first batch.  It counts the span of offsets, not rows: a compacted topic has
    # far fewer rows, so a small number here would mean thousands of nearly empty batches.
    "maxOffsetsPerTrigger": "10000000",
}

_log = logging.getLogger(__name__)

Assigned = dict[str, dict[int, int]]
"""Topic -> partition -> where the first start begins."""


def assignments(
    plan: ClusterPlan, beginning: Beginning, events_partitions: int
) -> list[tuple[KafkaAddress, Assigned]]:
    """Return what each source reads, in the order that the checkpoint fixes."""
    watched: Assigned = {}
    if plan.offsets_topic is not None:
        watched[plan.offsets_topic] = dict.fromkeys(range(beginning.shard_count), EARLIEST)
    if plan.events_topic is not None:
        starts = dict.fromkeys(range(events_partitions), EARLIEST)  # those added later: from their beginning
        watched[plan.events_topic] = starts | dict(enumerate(beginning.events_starts))
    control = {plan.control_topic: {0: beginning.control_end}}
    if plan.has_own_output:
        return [(plan.kafka, watched), (plan.output, control)]
    return [(plan.kafka, watched | control)]


def read_sources(
    spark: SparkSession,
    plan: ClusterPlan,
    beginning: Beginning,
    events_partitions: int,
) -> DataFrame:
    """Return the stream ``feed, partition, offset, timestamp_ms, key, value`` of all inputs.

    Where the session packs records, its only column is ``block`` (``streaming.workers.blocks``).

    Args:
        spark: the session.
        plan: the cluster.
        beginning: where its checkpoint began.
        events_partitions: how many partitions the events topic has now.
    """
    # Idle partitions make no task, but busy ones make one each, and each costs a Python handshake.
    tasks = cores_for_tasks(spark)
    _log.info("%s: %d tasks read", plan.cluster, tasks)
    frames = [
        _source(spark, plan, address, assigned, tasks)
        for address, assigned in assignments(plan, beginning, events_partitions)
        if assigned
    ]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows.coalesce(tasks)


def kafka_format(spark: SparkSession) -> str:
    """Return the format by which Spark reads Kafka: ours where its JVM has our class, else Spark's own."""
    # Where others started that JVM, or the connector is the user's, it cannot be loaded.
    return EVEN_KAFKA if has_class(spark, EVEN_KAFKA) else "kafka"


def _source(
    spark: SparkSession,
    plan: ClusterPlan,
    address: KafkaAddress,
    assigned: Assigned,
    tasks: int,
) -> DataFrame:
    options = dict(READ_OPTIONS) | spark_options(address)
    options["assign"] = json.dumps({topic: sorted(starts) for topic, starts in assigned.items()})
    options["startingOffsets"] = json.dumps(assigned)
    options[EVEN_TASKS] = str(tasks)
    feeds = {plan.control_topic: CONTROL, plan.offsets_topic: OFFSETS, plan.events_topic: EVENTS}
    packs = packs_records(spark)
    if packs:
        options[PACKED_FEEDS] = ",".join(f"{topic}={number}" for topic, number in feeds.items() if topic)
        options |= {CUT_FEED: str(EVENTS), CUT_WORDS: cut_words()}
    rows = spark.readStream.format(kafka_format(spark)).options(**options).load()
    if packs:
        return rows.select(f.col("value").alias(BLOCK))
    feed = f.lit(CONTROL)
    for topic, number in feeds.items():
        if topic is not None:
            feed = f.when(f.col("topic") == topic, f.lit(number)).otherwise(feed)
    return rows.select(
        feed.cast("tinyint").alias("feed"),
        "partition",
        "offset",
        f.unix_millis("timestamp").alias("timestamp_ms"),
        "key",
        "value",
    )
