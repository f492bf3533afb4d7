"""What Spark's Kafka source does with the internal topic, which is why we read it as we do."""

import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.jars import EVEN_TASKS, PACKED_FEEDS
from streaming.kafka_clients import producer
from streaming.pipeline import session
from streaming.pipeline.sources import kafka_format
from streaming.workers.blocks import BLOCK, unpacked
from tests.live.support.plain_job import ThreadedConsumer
from tests.live.support.stage import await_that, group_ids

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

OLD_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    one = session.start_session({"spark.master": "local[2]"}, app_name="test")
    yield one
    one.stop()


@pytest.fixture(scope="module")
def committed(kafka: EmbeddedKafka) -> EmbeddedKafka:
    """A cluster in whose offsets topic a group has left records."""
    member = ThreadedConsumer(kafka.address, "reading", "reader")
    member.await_assignment()
    member.close()
    await_that(lambda: "reading" in group_ids(kafka.address), "the broker knows the group")
    return kafka


def test_a_session_carries_bytes_as_they_are(spark: SparkSession) -> None:
    """A state task's JVM hands each shard's saved bytes to Python."""
    jvm, data = spark.sparkContext._jvm, bytes(range(128, 256)) * 100
    wrapped = getattr(jvm.org.apache.spark.sql.execution.python, "EvaluatePython$BytesWrapper")(data)
    assert data in jvm.net.razorvine.pickle.Pickler().dumps(wrapped)


def _rows(spark: SparkSession, kafka: EmbeddedKafka, how: dict[str, str], folder: Path) -> int:
    """Count what a stream over ``__consumer_offsets`` reads until it has caught up."""
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("startingOffsets", "earliest")
        .options(**how)
        .load()
    )
    found: list[int] = []
    _read_all(rows, folder, lambda frame, _: found.append(frame.count()))
    return sum(found)


def _read_all(rows: DataFrame, checkpoint: Path, use: Callable[[DataFrame, int], None]) -> None:
    """Give a stream's batches to ``use`` until it has caught up."""
    query = (
        rows.writeStream.foreachBatch(use)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    query.stop()


ASSIGN = {"assign": '{"__consumer_offsets":' + str(list(range(50))) + "}"}


@pytest.mark.parametrize("how", [ASSIGN, {"subscribe": "__consumer_offsets"}], ids=["assign", "subscribe"])
def test_the_default_reader_sees_nothing_and_says_nothing(
    spark: SparkSession, committed: EmbeddedKafka, how: dict[str, str], tmp_path: Path
) -> None:
    """Spark drops internal topics: no rows, no error. If this fails, Spark has learnt to read them."""
    spark.conf.set(OLD_READER, "false")
    try:
        assert _rows(spark, committed, how, tmp_path) == 0
    finally:
        spark.conf.set(OLD_READER, "true")


def test_our_session_reads_the_internal_topic(
    spark: SparkSession, committed: EmbeddedKafka, tmp_path: Path
) -> None:
    """With the old reader and assigned partitions, the group's records arrive."""
    assert spark.conf.get(OLD_READER) == "true"
    assert _rows(spark, committed, ASSIGN, tmp_path) > 0


def test_assigned_partitions_make_no_group(
    spark: SparkSession, committed: EmbeddedKafka, tmp_path: Path
) -> None:
    """Reading leaves no consumer group on the broker, which subscribe would."""
    before = group_ids(committed.address)
    assert _rows(spark, committed, ASSIGN | {"groupIdPrefix": "groupwatch-source"}, tmp_path) > 0
    assert group_ids(committed.address) == before


def _told(rows: DataFrame, checkpoint: Path) -> list[tuple[object, ...]]:
    """Return what a stream has to read, in an order of its own."""
    found: list[tuple[object, ...]] = []
    _read_all(rows, checkpoint, lambda frame, _: found.extend(map(tuple, frame.collect())))
    return sorted(found, key=lambda row: row[:3])


def test_packed_records_are_those_of_the_rows(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """Of two sources, with and without keys and values; after a restart too, when one had nothing new."""
    feeds = {"packed-lines": 1, "packed-offsets": 7}
    for topic in feeds:
        kafka.create_topic(topic, partitions=2)
    sending = producer(kafka.address)

    def send(topic: str, count: int) -> None:
        for number in range(count):
            key = f"key {number}".encode() if number % 7 else None
            value = bytes(range(256)) * (number % 5) if number % 3 or key is None else None
            sending.send(topic, partition=number % 2, key=key, value=value)
        sending.flush()

    def source(topic: str, feed: int, options: dict[str, str]) -> DataFrame:
        rows = (
            spark.readStream.format(kafka_format(spark))
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("assign", json.dumps({topic: [0, 1]}))
            .option("startingOffsets", "earliest")
            .option(EVEN_TASKS, "2")
            .options(**options)
            .load()
        )
        if options:
            return rows.select(f.col("value").alias(BLOCK))
        number, time = f.lit(feed).cast("tinyint"), f.unix_millis("timestamp")
        return rows.select(number, "partition", "offset", time, "key", "value")

    numbers = {PACKED_FEEDS: ",".join(f"{topic}={feed}" for topic, feed in feeds.items())}
    rows, blocks = (
        reduce(DataFrame.union, [source(topic, feed, options) for topic, feed in feeds.items()])
        for options in ({}, numbers)
    )
    packed = blocks.mapInArrow(
        lambda batches: (rows for one in batches for rows in unpacked(one)),
        "feed byte, partition int, offset long, timestamp_ms long, key binary, value binary",
    )
    for counts in ((1_000, 500), (10, 0), (20, 20)):
        for topic, count in zip(feeds, counts, strict=True):
            send(topic, count)
        told = _told(rows, tmp_path / "rows")
        assert _told(packed, tmp_path / "packed") == told
        assert len(told) == sum(counts)


def test_tasks_read_equal_shares_of_each_topic(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """Spark's own order gives the partitions of one topic to one task, so that the other one waits for it."""
    # No cut between neighbours halves the lines.
    sizes = {"shares-lines": [400, 300, 200, 100], "shares-commits": [100] * 30}
    sending = producer(kafka.address)
    for topic, records in sizes.items():
        kafka.create_topic(topic, partitions=len(records))
        for number, count in enumerate(records):
            for _ in range(count):
                sending.send(topic, partition=number, value=b"x")
    sending.flush()
    rows = (
        spark.readStream.format(kafka_format(spark))
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("assign", json.dumps({topic: list(range(len(one))) for topic, one in sizes.items()}))
        .option("startingOffsets", "earliest")
        .option(EVEN_TASKS, "2")
        .load()
        .coalesce(2)
    )
    shares: list[dict[str, int]] = []

    def share(frame: DataFrame, _: int) -> None:
        for task in (0, 1):
            mine = frame.where(f.spark_partition_id() == task).groupBy("topic").count().collect()
            shares.append({one["topic"]: one["count"] for one in mine})

    _read_all(rows, tmp_path, share)
    assert shares == [{"shares-lines": 500, "shares-commits": 1_500}] * 2
