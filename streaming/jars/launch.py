"""Starts Spark's JVM, and asks it what it was given.

It takes as long to start as Python needs to import the rest of the job, so the two go side by side:
``begin_jvm`` as soon as the configuration is known, ``given_to_jvm`` where the session is made.  Under
spark-submit the JVM has started us, and there is nothing to begin.
"""

import math
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from pyspark import SparkConf, SparkContext

from streaming.jars.class_archive import archive_file, archiving, taking
from streaming.jars.jars import ensure_jars
from streaming.jars.java import FEW_PROCESSORS, QUICK_COMPILER, SERIAL_COLLECTOR
from streaming.jars.own_java import OWN_JAR

_CONNECTOR = "spark-sql-kafka-0-10"
_ENVIRONMENT: Mapping[str, str] = {
    # Defaults that every setting overrides; the JVM has its size before anybody can set one in it.
    "SPARK_DRIVER_MEMORY": "2g",
    # glibc gives many threads many arenas, each of which keeps what RocksDB and the network once needed.
    "MALLOC_ARENA_MAX": "2",
    # Each batch needs the same megabytes again, which glibc gives back to the kernel, and the kernel clears:
    # with 10,000 busy groups 440,000 page faults a minute, and a twentieth of our CPU.
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(128 * 2**20),
    # The JVM that only puts together the command line ends before better code would pay.
    "SPARK_LAUNCHER_OPTS": QUICK_COMPILER,
}
_MADE_UP: Mapping[str, str] = {"spark.master": "local[*]", "spark.ui.showConsoleProgress": "true"}
"""What spark-submit sets by itself where nobody has."""
_passed: dict[str, str] = {}
"""What we ourselves gave to the JVM that we started."""
_begun: list["Future[None]"] = []
_JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable whose options Spark's launcher gives to the JVM, before those that a user has set in Spark."""


def begin_jvm(settings: Mapping[str, str], *, archive_to: Path | None = None) -> None:
    """Start the JVM in a thread; ``given_to_jvm`` waits for it, and raises what went wrong.

    Args:
        settings: the ``spark:`` section of the configuration, as text.
        archive_to: where it archives at its end the classes that it has loaded; None: it does not.
    """
    if is_submitted(os.environ) or _begun:
        return
    begun: Future[None] = Future()
    _begun.append(begun)
    Thread(target=_begin, args=(settings, begun, archive_to), name="jvm", daemon=True).start()


def _begin(settings: Mapping[str, str], begun: "Future[None]", archive_to: Path | None) -> None:
    try:
        _launch(settings, archive_to)
    except BaseException as error:
        begun.set_exception(error)
    else:
        begun.set_result(None)


def given_to_jvm(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what others than we have set in the JVM; start it if nobody has.

    Args:
        settings: the ``spark:`` section of the configuration, as text.

    Raises:
        streaming.jars.JarError: the Kafka connector is not available.
    """
    if _begun:
        _begun.pop().result()
    else:
        _launch(settings)
    ours = dict(_MADE_UP) | _passed
    return {name: value for name, value in _conf().items() if ours.get(name) != value}


def _conf() -> dict[str, str]:
    return dict(SparkConf().getAll())


def _launch(settings: Mapping[str, str], archive_to: Path | None = None) -> None:
    if SparkContext._jvm is None and not is_submitted(os.environ):
        jars = [] if brings_connector(settings, os.environ) else ensure_jars("connector")
        ours = _java_options(archive_file(jars, os.environ), archive_to)
        os.environ[_JAVA_OPTIONS] = " ".join([*ours, os.environ.get(_JAVA_OPTIONS, "")]).strip()
        _passed.update(settings)
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        # On the JVM's own class path our jars stand beside spark.jars, which may be anybody's.
        known = [os.environ["SPARK_DIST_CLASSPATH"]] if os.environ.get("SPARK_DIST_CLASSPATH") else []
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join([*known, *map(str, [*jars, OWN_JAR])])
    conf = SparkConf(loadDefaults=False)
    for name, value in _passed.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)


def _java_options(archive: Path, archive_to: Path | None) -> Iterator[str]:
    """Yield our options; where a user has set the same one in Spark, that stands later and counts."""
    # Batches are short, and Java's better compiler takes more CPU than its code saves.
    yield QUICK_COMPILER
    # Java collects the whole heap whenever its classes outgrow a bound, which begins with 21 MB: in the first
    # busy batch if there is an archive, four times in a start if there is none (they grow to 145 MB).
    yield "-XX:MetaspaceSize=192m"
    if processors() <= FEW_PROCESSORS:
        # What lives is 100 to 150 MB, and G1 lets the garbage beside it grow to a gigabyte.
        yield SERIAL_COLLECTOR
        # What a busy batch has in flight (40 MB) outlives some collections of the young heap: with less room
        # it is moved to the old one, which then fills.  Spark refuses a heap that could not begin with this.
        yield from ("-Xms448m", "-XX:NewSize=180m", "-XX:SurvivorRatio=4")
    yield from map(_quoted, taking(archive) if archive_to is None else archiving(archive_to))


def processors(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many processors this process may use, by its container's quota as well.

    Args:
        quota: the kernel's file of it: microseconds of CPU, or ``max``, in so many microseconds.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text().split()
        return min(there, max(1, math.ceil(int(allowed) / int(period))))
    except (OSError, ValueError):
        return there  # no quota, or another system


def _quoted(option: str) -> str:
    """Return an option as Spark's launcher reads it, which divides them at blanks."""
    return f'"{option}"' if " " in option else option


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Say whether spark-submit has started us."""
    return "PYSPARK_GATEWAY_PORT" in environment


def brings_connector(settings: Mapping[str, object], environment: Mapping[str, str]) -> bool:
    """Say whether the user's own jars or packages have the Kafka connector, so that ours stays out."""
    places = [settings.get("spark.jars"), settings.get("spark.jars.packages")]
    return any(_CONNECTOR in str(one) for one in (*places, environment.get("PYSPARK_SUBMIT_ARGS")))
