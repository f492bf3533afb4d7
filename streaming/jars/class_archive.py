"""Java's archive of loaded classes, which spares a JVM to read and check them anew at each start.

An archive holds for one Java, and for one class path: the same jars in the same order, of the same size and
time.  Its file is named by all that, so Java is never given one that it would refuse.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from streaming.jars.jars import Tell, cache_dir
from streaming.jars.java import java_command
from streaming.jars.own_java import OWN_JAR

_ON_THE_CLASS_PATH = ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables by which Spark's launcher puts more on the class path."""


def archive_file(connector: Sequence[Path], environment: Mapping[str, str]) -> Path:
    """Return where the archive of this Java and the class path of Spark's JVM is, or would be.

    Args:
        connector: the jars that we add to Spark's own.
        environment: variables of this process, before ours are added.

    Raises:
        streaming.jars.JavaError: there is no usable Java.
    """
    return _named_by("classes", _class_path(connector, environment))


def broker_archive_file(jars: Sequence[Path]) -> Path:
    """Return where the archive of this Java and an embedded broker's class path is, or would be.

    Args:
        jars: all of its class path, in order.

    Raises:
        streaming.jars.JavaError: there is no usable Java.
    """
    return _named_by("broker-classes", map(_described, jars))


def taking(archive: Path) -> list[str]:
    """Return the options by which Java takes its classes from an archive; none if it is not there."""
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def archiving(archive_to: Path) -> list[str]:
    """Return the options by which Java archives at its end the classes that it has loaded."""
    # Without the last two, a line for each class that no archive takes.
    return [f"-XX:ArchiveClassesAtExit={archive_to}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def made_once(file: Path, make: Callable[[Path], None], *, whose: str, tell: Tell) -> bool:
    """Make an archive if need be, in place of those of its folder; returns whether there is one.

    Args:
        file: as named above.
        make: runs a Java that archives its classes into the file that it is given.
        whose: classes they are, for ``tell``.
        tell: where progress goes.
    """
    if file.exists():
        return True
    tell(f"Archiving {whose} into {file}")
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        make(partial)
        if not partial.exists():
            return False
        for old in file.parent.glob("*.jsa"):
            old.unlink()
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return True


def _named_by(folder: str, class_path: Iterable[str]) -> Path:
    java = Path(java_command()).resolve()
    digest = hashlib.sha256()
    for part in (_described(java), _described(java.parents[1] / "lib" / "modules"), *class_path):
        digest.update(part.encode() + b"\0")
    return cache_dir() / folder / f"{digest.hexdigest()[:16]}.jsa"


def _class_path(connector: Sequence[Path], environment: Mapping[str, str]) -> Iterable[str]:
    yield from (f"{name}={environment.get(name, '')}" for name in _ON_THE_CLASS_PATH)
    own = Path(_find_spark_home()) / "jars"
    # Java takes all jars of this folder in the order in which the file system tells them.
    yield from (_described(own / name) for name in os.listdir(own))
    yield from map(_described, connector)
    yield _described(OWN_JAR)


def _described(file: Path) -> str:
    try:
        found = file.stat()
    except OSError:
        return f"{file} is missing"
    return f"{file} {found.st_size} {int(found.st_mtime)}"
