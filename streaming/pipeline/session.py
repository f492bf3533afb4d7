"""The SparkSession: every setting with its reason.

A setting of ours is a default: it counts where nobody has set it, be it on the command line of spark-submit,
in a properties file, ``spark-defaults.conf``, the environment or the ``spark:`` section.  What Spark was
given on its command line wins over the ``spark:`` section.  Only ``_FIXED`` cannot be set by anybody.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streaming.jars import (
    EVEN_KAFKA,
    FEW_PROCESSORS,
    LOCAL_FILES,
    PLAIN_BYTES,
    QUICK_COMPILER,
    SERIAL_COLLECTOR,
    JarError,
    brings_connector,
    ensure_jars,
    given_to_jvm,
    is_submitted,
)
from streaming.pipeline import executors
from streaming.pipeline.folders import CheckpointRefusedError

_STORE = "spark.sql.streaming.stateStore"
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",  # our own server shows what matters; the UI keeps every job in memory
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
    # What a state task sorts its rows in.  By itself Spark takes 16 MB of a heap of 2 GB for each, in each
    # batch with rows, however few, and such pages push out of the young heap what would die there.
    "spark.buffer.pageSize": "1m",
    # Between the JVM and its Python workers; the default of 64 KiB makes a backlog take a fifth longer.
    "spark.buffer.size": "1048576",
    # More than the partitions that one executor reads; otherwise each batch closes and opens consumers.
    "spark.kafka.consumer.cache.capacity": "512",
    # The last poll of each partition would stay in the heap for five minutes after a backlog, and the garbage
    # collector would mark it again and again.
    "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
    # Spark's newer Kafka reader writes the code of two projections for each partition that a batch reads, and
    # that is a quarter of what the JVM spends on a small batch.  Offsets are saved alike by both readers.
    "spark.sql.streaming.disabledV2MicroBatchReaders": f"{_PROVIDER},{EVEN_KAFKA}",
    "spark.sql.codegen.wholeStage": "true",
    "spark.log.level": "WARN",
}

_LOCAL_DEFAULTS: Mapping[str, str] = {
    # Executors are in this process: nothing to expose.  On a cluster they must reach the driver.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_OUR_WORKERS: Mapping[str, str] = {
    # Workers share the memory of what they import, start without importing it, and seldom search for cycles.
    # Whoever runs it must have our packages: this environment, or executors that unpack our archive.  Under
    # spark-submit they may come with the job (--py-files), too late for what forks the workers.
    "spark.python.daemon.module": "streaming.workers.daemon",
}

_REMOTE_DEFAULTS: Mapping[str, str] = {
    # A state task waits this long for the executor that has its state.  With Spark's 3 s, which is longer
    # than a task, the tasks of a lost executor stayed for ever on those that were left: 70 % of the time on
    # one of two.  Without a wait each still goes where its state is whenever that executor has a free core.
    "spark.locality.wait": "0s",
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
ARCHIVE = "GROUPWATCH_ARCHIVE"
"""The variable that names the archive of our packages for executors; deploy/spark/submit.sh sets it."""
_UNPACKED = "groupwatch-packages"
"""Where an executor unpacks it, in its own working folder."""
_LOCAL_MASTER = "local[*]"
_STATE_TASKS = "spark.sql.shuffle.partitions"
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"
_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BEFORE_THE_JVM = ("spark.driver.memory", "spark.driver.extraJavaOptions", "spark.driver.extraClassPath")
_PARENT = os.getppid()
_log = logging.getLogger(__name__)


def settings(
    user: Mapping[str, object],
    given: Mapping[str, str],
    *,
    jars: str = "",
    checkpoint: str = "",
    environment: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the session's settings: ours, overridden by the user's, by what Spark was given, by the fixed.

    Args:
        user: the ``spark:`` section of the configuration.
        given: what Spark was given otherwise.
        jars: comma-separated paths of the Kafka connector, for executors.
        checkpoint: URI of the checkpoint.
        environment: variables of this process.
    """
    theirs = as_text(user) | dict(given)
    result = dict(DEFAULTS) | {"spark.master": theirs.get("spark.master", _LOCAL_MASTER)}
    remote = executors.is_remote(result["spark.master"])
    has_ours = bool((environment or {}).get(ARCHIVE)) if remote else not is_submitted(environment or {})
    result |= _OUR_WORKERS if has_ours else {}
    if remote:
        result |= _REMOTE_DEFAULTS
    elif not {"SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"} & set(environment or {}):
        result |= _LOCAL_DEFAULTS
    if _is_on_disk(checkpoint):
        # Spark's default manager asks for links and modes of local files by starting a process each
        # time (no native Hadoop library here): 80 ms for each store and batch instead of 6.
        result["spark.sql.streaming.checkpointFileManagerClass"] = _PLAIN_FILES
        if not remote and not is_submitted(environment or {}):
            # Hadoop starts another for the mode of each file.  Only the JVM that we start has this class.
            result["spark.hadoop.fs.file.impl"] = LOCAL_FILES
    result |= theirs
    if not remote:
        cores = executors.local_cores(result["spark.master"])
        result.setdefault(_STATE_TASKS, str(executors.state_tasks(cores, remote=False)))
    else:
        result.setdefault(_EXECUTOR_JAVA, " ".join(_executor_java(executors.cores_of_each(result))))
        result |= _shipped(result, jars, environment or {})
    return result | dict(_FIXED)


def _executor_java(cores: int) -> Iterator[str]:
    """Yield the options of an executor's JVM, which are those of the driver's (``jars/launch.py``)."""
    yield QUICK_COMPILER  # each executor compiles the same for itself
    if 0 < cores <= FEW_PROCESSORS:
        yield SERIAL_COLLECTOR


def _shipped(theirs: Mapping[str, str], jars: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings by which executors get our jars and packages, beside what the user ships."""
    result = {}
    if jars and not brings_connector(theirs, {}):
        result["spark.jars"] = _joined(",", theirs.get("spark.jars"), jars)
    if archive := environment.get(ARCHIVE):
        result["spark.archives"] = _joined(",", theirs.get("spark.archives"), f"{archive}#{_UNPACKED}")
        path = "spark.executorEnv.PYTHONPATH"
        result[path] = _joined(":", _UNPACKED, theirs.get(path))
    return result


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))


def refuse_unshared(master: str, checkpoint: str, *, is_shared: bool) -> None:
    """Refuse a checkpoint that executors on other machines could not reach.

    Raises:
        CheckpointRefusedError: it is on a local disk, and nobody said that the disk is shared.
    """
    if executors.is_remote(master) and _is_on_disk(checkpoint) and not is_shared:
        raise CheckpointRefusedError(
            f"the checkpoint {checkpoint} is on a local disk, but with the master {master} executors on "
            "other machines write it as well: use a file system that all reach (hdfs://, s3a://, abfs://, "
            "gs://), or, if this path is one folder that the driver and all workers share (NFS), say so with "
            "'checkpoint_is_shared: true'"
        )


def start_session(
    user: Mapping[str, object],
    *,
    checkpoint: str = "",
    checkpoint_is_shared: bool = False,
    app_name: str = "groupwatch",
) -> SparkSession:
    """Start, or return, the process's SparkSession.

    Raises:
        streaming.jars.JarError: the Kafka connector is not available.
        CheckpointRefusedError: the executors cannot reach the checkpoint.
    """
    section = as_text(user)
    given = given_to_jvm(section)
    jars = [] if brings_connector(section, os.environ) else ensure_jars("connector")
    chosen = settings(
        user, given, jars=",".join(map(str, jars)), checkpoint=checkpoint, environment=os.environ
    )
    master = chosen["spark.master"]
    refuse_unshared(master, checkpoint, is_shared=checkpoint_is_shared)
    os.environ.setdefault("PYSPARK_PYTHON", worker_python(chosen))
    _note_overruled(user, chosen)
    builder = SparkSession.builder.appName(_name(given, app_name))
    for name, value in chosen.items():
        if given.get(name) != value:
            builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(chosen["spark.log.level"])
    _quieten(session)
    _check_connector(session)
    _carry_bytes_plainly(session)
    if packs_records(session) and chosen[_ARROW_BYTES] == DEFAULTS[_ARROW_BYTES]:
        session.conf.set(_ARROW_BYTES, "1")  # a block is a row, and as large as a batch should be
    if _STATE_TASKS not in chosen:
        count = executors.state_tasks(executors.cores_for_tasks(session), remote=True)
        session.conf.set(_STATE_TASKS, str(count))
    _log.info("Spark runs on %s; %s", master, session.sparkContext.applicationId)
    return session


class LateSession:
    """The process's session, which starts while the rest of the job gets ready; safe in several threads."""

    def __init__(self) -> None:
        self._made: Future[SparkSession] = Future()

    def start(self, make: Callable[[], SparkSession]) -> SparkSession:
        """Make the session; whoever waits for it gets it, or goes on without if that fails."""
        try:
            session = make()
        except BaseException:
            self.give_up()
            raise
        self._made.set_result(session)
        return session

    def give_up(self) -> None:
        """There will be none."""
        self._made.cancel()

    def __call__(self) -> SparkSession:
        """Wait for it.

        Raises:
            NoSessionError: there will be none.
        """
        try:
            return self._made.result()
        except CancelledError as error:
            raise NoSessionError("Spark did not start") from error


class NoSessionError(RuntimeError):
    """This process has no session and will have none: it ends."""


def worker_python(chosen: Mapping[str, str]) -> str:
    """Return the interpreter of the Python workers: ours if they are here, else theirs of our version."""
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return chosen.get("spark.pyspark.python") or (
        own if executors.is_remote(chosen["spark.master"]) else sys.executable
    )


def _name(given: Mapping[str, str], app_name: str) -> str:
    """Return the name given with ``--name``; what spark-submit makes up is no name."""
    name = given.get("spark.app.name", "")
    return app_name if name in {"", "pyspark-shell", Path(sys.argv[0]).name} else name


def _note_overruled(user: Mapping[str, object], chosen: Mapping[str, str]) -> None:
    """Log each setting of the ``spark:`` section that has no effect."""
    for name, value in user.items():
        if chosen[name] != _text(value):
            _log.warning("spark: %s is %s, as Spark was given, not %s", name, chosen[name], _text(value))
        elif is_submitted(os.environ) and name in _BEFORE_THE_JVM:
            _log.warning("spark: %s comes too late under spark-submit: give it there", name)


def _check_connector(session: SparkSession) -> None:
    """Check that the driver has the connector.

    Raises:
        JarError: it has not.
    """
    if not has_class(session, _PROVIDER):
        raise JarError(
            "Spark's driver has no Kafka connector. Under spark-submit give --jars with the files that "
            "'groupwatch jars' names; otherwise see whether spark-env.sh sets SPARK_DIST_CLASSPATH anew"
        )


def _carry_bytes_plainly(session: SparkSession) -> None:
    """Let this JVM hand bytes to Python as they are; executors on other machines go Spark's own way."""
    if not has_class(session, PLAIN_BYTES):
        return
    try:
        session.sparkContext._jvm.groupwatch.PlainBytes.register()
    except Py4JError as error:  # another Spark, whose classes differ
        _log.warning("bytes go to Python as Spark itself carries them: %s", error)


def packs_records(session: SparkSession) -> bool:
    """Say whether Kafka's records come packed: where our class is, and tasks run where it is.

    Others' JVMs have no class of ours, and no executors on other machines.
    """
    is_ours = not executors.is_remote(session.sparkContext.master)
    return is_ours and has_class(session, EVEN_KAFKA)


def has_class(session: SparkSession, name: str) -> bool:
    """Say whether the driver's JVM can load a class."""
    java = session.sparkContext._jvm.java
    try:
        java.lang.Class.forName(name, False, java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JError:
        return False
    return True


def _is_on_disk(checkpoint: str) -> bool:
    return urlsplit(checkpoint).scheme in ("", "file")


class JvmLostError(RuntimeError):
    """Spark's JVM has ended; this process cannot continue."""


def is_session_lost(session: SparkSession) -> str:
    """Return the sentence that the JVM we started has ended; "" while it runs.

    It asks the operating system, because a JVM that is gone does not answer and one that hangs may recover.
    """
    if is_submitted(os.environ):
        # Spark started us, so it is gone when we have another parent.
        return (
            ""
            if os.getppid() == _PARENT
            else (
                "spark-submit has ended, and Spark's JVM with it: this process cannot go on without it. "
                "Submit groupwatch again; it goes on from its checkpoint"
            )
        )
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


def as_text(section: Mapping[str, object]) -> dict[str, str]:
    """Return the ``spark:`` section of the configuration as Spark takes it."""
    return {name: _text(value) for name, value in section.items()}


def _text(value: object) -> str:
    # YAML turns true into a bool; Spark reads "true", not "True".
    return str(value).lower() if isinstance(value, bool) else str(value)
