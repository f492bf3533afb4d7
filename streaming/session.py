"""The SparkSession: every setting with its reason.

Whatever a user puts under ``spark:`` wins, with two exceptions that would silently break reading
(see ``_FIXED``).
"""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

_STORE = "spark.sql.streaming.stateStore"

DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",  # our own server shows what matters; the UI keeps every job in memory
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",  # local mode: executors are in this process, nothing to expose
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # Frozen in the checkpoint by the first start, so it must be chosen, not inherited (default 200).
    "spark.sql.shuffle.partitions": "8",
    f"{_STORE}.providerClass": ("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
    # Without it every batch zips and uploads a whole snapshot of each store.
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # An extra lookup for each write, to count rows that we count ourselves.
    f"{_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # Every store together, not each: native memory is outside the heap.
    f"{_STORE}.rocksdb.boundedMemoryUsage": "true",
    f"{_STORE}.rocksdb.maxMemoryUsageMB": "256",
    f"{_STORE}.rocksdb.allowFAllocate": "false",  # dozens of small files would each reserve megabytes
    f"{_STORE}.minDeltasForSnapshot": "50",
    "spark.sql.streaming.minBatchesToRetain": "30",  # partitions × batches files in the checkpoint
    "spark.sql.streaming.numRecentProgressUpdates": "5",  # driver memory of a job that runs for months
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Any other value than Int.MaxValue sums the size of every vector again for every row.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Above the number of partitions one executor reads, or consumers are closed and opened each batch.
    "spark.kafka.consumer.cache.capacity": "512",
    "spark.sql.codegen.wholeStage": "true",
    "spark.log.level": "WARN",
}

_FIXED: Mapping[str, str] = {
    # The default reader drops internal topics without a word: zero rows, no error.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
}


def settings(user: Mapping[str, str], jars: str = "") -> dict[str, str]:
    """Return the settings of the session: ours, the user's over them, then what must hold.

    Args:
        user: the ``spark:`` section of the configuration.
        jars: comma-separated paths of the Kafka connector, unless the user names jars or packages.
    """
    result = dict(DEFAULTS) | {name: _text(value) for name, value in user.items()}
    if jars and not {"spark.jars", "spark.jars.packages"} & set(user):
        result["spark.jars"] = jars
    return result | dict(_FIXED)


def start(user: Mapping[str, str], jars: str = "", app_name: str = "groupwatch") -> SparkSession:
    """Start, or return, the process's SparkSession."""
    # Workers must be this interpreter: another one on the PATH has no pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(app_name)
    for name, value in settings(user, jars).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings(user)["spark.log.level"])
    return session


def _text(value: object) -> str:
    # YAML turns true into a bool; Spark reads "true", not "True".
    return str(value).lower() if isinstance(value, bool) else str(value)
