"""Builds one cluster's streaming query from its stages."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from streaming import workers
from streaming.config import ClusterPlan
from streaming.pipeline import sources
from streaming.pipeline.beginning import Beginning
from streaming.workers import DecodeStage, ShardStage


def start_query(
    spark: SparkSession,
    plan: ClusterPlan,
    beginning: Beginning,
    events_partitions: int,
    sink: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    """Start the query from its checkpoint, or from the beginning."""
    return start_on(sources.read_sources(spark, plan, beginning, events_partitions), plan, beginning, sink)


def start_on(
    rows: DataFrame, plan: ClusterPlan, beginning: Beginning, sink: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """Start the query on ``rows``, which have the columns of ``read_sources``."""
    outputs = shards(decoded(rows, plan, beginning), plan, beginning)
    return (
        outputs.writeStream.queryName(f"groupwatch-{plan.cluster}")
        .foreachBatch(sink)
        .outputMode("append")
        .option("checkpointLocation", f"{plan.checkpoint}/query")
        .trigger(processingTime=f"{plan.trigger_ms} milliseconds")
        .start()
    )


def decoded(rows: DataFrame, plan: ClusterPlan, beginning: Beginning) -> DataFrame:
    """Return ``cluster, shard, payload``: packed observations of each shard."""
    stage = DecodeStage(
        shard_count=beginning.shard_count,
        run=beginning.run,
        secret=beginning.secret,
        timezone=plan.timezone,
        offsets_ends=dict(enumerate(beginning.offsets_ends)),
        events_ends=dict(enumerate(beginning.events_ends)),
    )
    cells = rows.mapInArrow(stage.__call__, workers.SCHEMA)
    return cells.select(f.lit(plan.cluster).alias("cluster"), "shard", "payload")


def shards(cells: DataFrame, plan: ClusterPlan, beginning: Beginning) -> DataFrame:
    """Return the rows ``kind, key, value`` that the shards output."""
    stage = ShardStage(cluster=plan.cluster, shard_count=beginning.shard_count)
    return cells.groupBy("cluster", "shard").applyInPandasWithState(
        stage.__call__,
        outputStructType=workers.OUTPUT_SCHEMA,
        stateStructType=workers.STATE_SCHEMA,
        outputMode="append",
        timeoutConf="NoTimeout",
    )
