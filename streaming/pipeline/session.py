"""The SparkSession: every setting with its reason.

A user's ``spark:`` settings win, except over settings whose change would silently break reading (``_FIXED``).
"""

import os
import signal
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streaming.jars import ensure_jars

_STORE = "spark.sql.streaming.stateStore"

DEFAULTS: Mapping[str, str] = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",  # our own server shows what matters; the UI keeps every job in memory
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",  # local mode: executors are in this process, nothing to expose
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",  # progress bars do not belong in a log
    f"{_STORE}.providerClass": ("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
    # Without it every batch zips and uploads a whole snapshot of each store.
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # It costs an extra lookup per write, to count rows that we count ourselves.
    f"{_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # One bound for all stores together: their native memory is outside the heap.
    f"{_STORE}.rocksdb.boundedMemoryUsage": "true",
    f"{_STORE}.rocksdb.maxMemoryUsageMB": "256",
    f"{_STORE}.rocksdb.allowFAllocate": "false",  # dozens of small files would each reserve megabytes
    f"{_STORE}.minDeltasForSnapshot": "50",
    "spark.sql.streaming.minBatchesToRetain": "30",  # each batch leaves files for each store
    "spark.sql.streaming.numRecentProgressUpdates": "5",  # driver memory of a job that runs for months
    # About 10 MB of log lines: larger batches get fresh memory each time, which the kernel must clear.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16000",
    # Any other value than Int.MaxValue sums the size of every vector again for every row.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Between the JVM and its Python workers; the default of 64 KiB makes a backlog take a fifth longer.
    "spark.buffer.size": "1048576",
    # More than the partitions that one executor reads; otherwise each batch closes and opens consumers.
    "spark.kafka.consumer.cache.capacity": "512",
    # The last fetch, up to 20,000 records per partition, would stay in the heap for five minutes after a
    # backlog, and the garbage collector would mark it again and again.
    "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
    "spark.sql.codegen.wholeStage": "true",
    "spark.log.level": "WARN",
}

_FIXED: Mapping[str, str] = {
    # The default reader drops internal topics without a word: zero rows, no error.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
}


_PLAIN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_NOISY = (
    "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",  # each batch over the trigger
    "org.apache.spark.scheduler.DAGScheduler",  # each stop: no job left to cancel
    "org.apache.hadoop.util.Shell",  # a stop between batches that came too late for that: interrupted
)
_SHUFFLE_PARTITIONS_MAX = 8


def settings(user: Mapping[str, object], *, jars: str = "", checkpoint: str = "") -> dict[str, str]:
    """Return the session's settings: ours, overridden by the user's, overridden by the fixed ones.

    Args:
        user: the ``spark:`` section of the configuration.
        jars: comma-separated paths of the Kafka connector, unless the user names jars or packages.
        checkpoint: URI of the checkpoint.
    """
    result = dict(DEFAULTS)
    if urlsplit(checkpoint).scheme in ("", "file"):
        # Spark's default manager asks for links and modes of local files by starting a process each
        # time (no native Hadoop library here): 80 ms for each store and batch instead of 6.
        result["spark.sql.streaming.checkpointFileManagerClass"] = _PLAIN_FILES
    result |= {name: _text(value) for name, value in user.items()}
    result.setdefault("spark.sql.shuffle.partitions", str(shuffle_partitions(result["spark.master"])))
    if jars and not _names_jars(user):
        result["spark.jars"] = jars
    return result | dict(_FIXED)


def shuffle_partitions(master: str) -> int:
    """Return the number of tasks that share the shards.

    Each task costs 60 to 100 ms per batch even if it is empty, so there are no more than cores.  The first
    start fixes the number in the checkpoint; Spark's own default would be 200.
    """
    if not master.startswith("local"):
        return _SHUFFLE_PARTITIONS_MAX
    wanted = master.removeprefix("local").strip("[]").split(",")[0]
    cores = int(wanted) if wanted.isdigit() else (os.cpu_count() or 2)
    return max(1, min(_SHUFFLE_PARTITIONS_MAX, cores))


def start_session(
    user: Mapping[str, object], *, checkpoint: str = "", app_name: str = "groupwatch"
) -> SparkSession:
    """Start, or return, the process's SparkSession.

    Raises:
        streaming.jars.JarError: the Kafka connector is not available.
    """
    # Workers must use this interpreter: another one on the PATH has no pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    jars = "" if _names_jars(user) else ",".join(map(str, ensure_jars("connector")))
    chosen = settings(user, jars=jars, checkpoint=checkpoint)
    builder = SparkSession.builder.appName(app_name)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(chosen["spark.log.level"])
    _quieten(session)
    return session


class JvmLostError(RuntimeError):
    """Spark's JVM has ended; this process cannot continue."""


def is_session_lost(session: SparkSession) -> str:
    """Return the sentence that the JVM we started has ended; "" while it runs.

    It asks the operating system, because a JVM that is gone does not answer and one that hangs may recover.
    """
    process = getattr(session.sparkContext._gateway, "proc", None)
    code = None if process is None else process.poll()
    if code is None:
        return ""
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    memory = " (out of memory is the usual reason: see the kernel's log)" if code == -signal.SIGKILL else ""
    return (
        f"Spark's JVM {how}{memory}: this process cannot go on without it. "
        "Start groupwatch again; it goes on from its checkpoint"
    )


def session_stopped(session: SparkSession) -> str:
    """Return the sentence that Spark has stopped in a JVM that still runs; "" if not, or without an answer.

    It asks the JVM, so call it from the thread whose query has just died.
    """
    try:
        is_stopped = bool(session.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return ""  # gone, or hanging: ``lost`` and the supervisor see that
    if not is_stopped:
        return ""
    return (
        "Spark has stopped itself (its log says why; out of memory is the usual reason): this process cannot "
        "go on without it. Start groupwatch again; it goes on from its checkpoint"
    )


def _quieten(session: SparkSession) -> None:
    """Silence useless warnings: our own health reports batches that take too long."""
    logging = session.sparkContext._jvm.org.apache.logging.log4j
    for name in _NOISY:
        logging.core.config.Configurator.setLevel(name, logging.Level.ERROR)


def _names_jars(user: Mapping[str, object]) -> bool:
    return bool({"spark.jars", "spark.jars.packages"} & set(user))


def _text(value: object) -> str:
    # YAML turns true into a bool; Spark reads "true", not "True".
    return str(value).lower() if isinstance(value, bool) else str(value)
