"""The folder of a checkpoint, for the small files beside Spark's: on a local disk, or where Hadoop reaches.

A folder on a local disk needs no Spark, so a start reads it while Spark's JVM starts.  Hadoop would also
start ten processes for each file there (see ``docs/decisions.md``), and the mark is renewed every 3 s.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")
"""Variables by which a path without a scheme may be one of another file system."""

_log = logging.getLogger(__name__)


class CheckpointRefusedError(RuntimeError):
    """This checkpoint no longer fits the cluster; the message says how to rebuild."""


class Folder(Protocol):
    """Small files in a folder; a name may have a sub-folder before it."""

    def read(self, name: str) -> bytes | None:
        """Return the content of ``name``, None if there is no such file."""
        ...

    def has_files(self, name: str) -> bool:
        """Say whether there is a sub-folder ``name`` with something in it."""
        ...

    def names(self, name: str) -> list[str]:
        """Return the names in the sub-folder ``name``; none if it does not exist."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write ``name``, which must not exist, in one step."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write ``name``, new or existing; in one step where the file system can."""
        ...

    def delete(self, name: str) -> None:
        """Remove ``name`` if it exists; a folder with its content."""
        ...


def folder_of(
    spark: Callable[[], SparkSession], uri: str, environment: Mapping[str, str] = os.environ
) -> Folder:
    """Return the folder at ``uri``; only one elsewhere than on a local disk waits for Spark."""
    path = local_path(uri, environment)
    return HadoopFolder(spark(), uri) if path is None else LocalFolder(path)


def local_path(uri: str, environment: Mapping[str, str]) -> Path | None:
    """Return where ``uri`` is on a local disk; None if it is, or may be, elsewhere."""
    if uri.startswith("file:"):
        path = uri.removeprefix("file:")
        if path.startswith("//"):
            path = "/" + path[2:].partition("/")[2]
        return Path(path).absolute()
    if _SCHEME.match(uri) or any(environment.get(name) for name in _ELSEWHERE):
        return None
    return Path(uri).absolute()


def refuse_misread(spark: SparkSession, uri: str, environment: Mapping[str, str] = os.environ) -> None:
    """Check that Spark takes for local what we do.

    Raises:
        CheckpointRefusedError: it does not.
    """
    if local_path(uri, environment) is None:
        return
    found = str(HadoopFolder(spark, uri).address)
    if not found.startswith("file:"):
        raise CheckpointRefusedError(
            f"the checkpoint {uri} names no file system, and Spark's default is {found}: write the whole "
            "address (hdfs://…, file:///…)"
        )


class HadoopFolder:
    """Small files in a folder of any Hadoop file system; see ``Folder``."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self._jvm = spark.sparkContext._jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(uri)
        self._fs = self._path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self.address = self._fs.getUri()
        self._local = Path(str(self._path.toUri().getPath())).absolute() if self._is_local() else None

    def _is_local(self) -> bool:
        return str(self.address.getScheme()) == "file"

    def read(self, name: str) -> bytes | None:
        """Return the content of ``name``, None if there is no such file."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def has_files(self, name: str) -> bool:
        """Say whether there is a sub-folder ``name`` with something in it."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        return bool(self._fs.exists(path)) and len(self._fs.listStatus(path)) > 0

    def replace(self, name: str, content: bytes) -> None:
        """Write ``name``, new or existing; in one step where the file system can."""
        if self._local is not None:
            replace_locally(self._local, name, content)
            return
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        beside = self._jvm.org.apache.hadoop.fs.Path(self._path, f".{name}.tmp")
        self._create(beside, content)
        if not self._fs.rename(beside, path):  # HDFS renames to nothing that exists
            self._rename_over(beside, path, content)

    def _rename_over(self, source: Any, target: Any, content: bytes) -> None:
        hadoop, gateway = self._jvm.org.apache.hadoop.fs, self._spark.sparkContext._gateway
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()
        try:
            options = gateway.new_array(hadoop.Options.Rename, 1)
            options[0] = hadoop.Options.Rename.OVERWRITE
            hadoop.FileContext.getFileContext(target.toUri(), configuration).rename(source, target, options)
        except (Py4JError, TypeError) as error:  # not every file system has both interfaces
            _log.debug("renaming over %s: %s", target, error)
            self._create(target, content)
            self._fs.delete(source, False)

    def delete(self, name: str) -> None:
        """Remove ``name`` if it exists; a folder with its content."""
        self._fs.delete(self._jvm.org.apache.hadoop.fs.Path(self._path, name), True)

    def names(self, name: str) -> list[str]:
        """Return the names in the sub-folder ``name``; none if it does not exist."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        if not self._fs.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self._fs.listStatus(path)]

    def _create(self, path: Any, content: bytes) -> None:
        stream = self._fs.create(path, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write ``name`` in one step, which a rename completes."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        beside = self._jvm.org.apache.hadoop.fs.Path(self._path, f".{name}.tmp")
        self._create(beside, content)
        self._fs.rename(beside, path)


class LocalFolder:
    """Small files in a folder on a local disk, which Hadoop may read as well; see ``Folder``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> bytes | None:
        """Return the content of ``name``, None if there is no such file."""
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def has_files(self, name: str) -> bool:
        """Say whether there is a sub-folder ``name`` with something in it."""
        return bool(self.names(name))

    def names(self, name: str) -> list[str]:
        """Return the names in the sub-folder ``name``; none if it does not exist."""
        try:
            found = os.listdir(self._path / name)
        except FileNotFoundError:
            return []
        return [one for one in found if not one.endswith(".crc")]

    def write(self, name: str, content: bytes) -> None:
        """Write ``name`` in one step."""
        replace_locally(self._path, name, content)

    def replace(self, name: str, content: bytes) -> None:
        """Write ``name``, new or existing, in one step."""
        replace_locally(self._path, name, content)

    def delete(self, name: str) -> None:
        """Remove ``name`` if it exists; a folder with its content."""
        path = self._path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            _checksum(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def replace_locally(folder: Path, name: str, content: bytes) -> None:
    """Write ``name``, new or existing, in one step, so that Hadoop reads the same.

    Hadoop's checksum of what stood there goes first: it would refuse the new content.

    Raises:
        OSError: the disk cannot be written.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_bytes(content)
    _checksum(path).unlink(missing_ok=True)
    beside.replace(path)


def _checksum(path: Path) -> Path:
    """Return where Hadoop has the checksum of a file."""
    return path.with_name(f".{path.name}.crc")
