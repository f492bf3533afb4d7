"""The only Java of ours: Hadoop's local files without a process for each."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from streaming.jars import local_files
from streaming.jars.java import java_command

_SPARK = Path(pyspark.__file__).parent / "jars"
_SOURCE = Path(local_files.__file__).with_name("LocalFiles.java")


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A JVM with Hadoop and our class, which finds no program to start."""
    needed = [local_files.LOCAL_FILES_JAR, *_SPARK.glob("*.jar")]
    command = java_command()
    monkeypatch.setenv("PATH", "/nowhere")
    port, process = launch_gateway(
        classpath=os.pathsep.join(map(str, needed)),
        jarpath=str(next(_SPARK.glob("py4j-*.jar"))),
        java_path=shutil.which(command) or command,
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)


def test_a_file_gets_its_mode_and_its_checksum_without_a_process(java: Any, tmp_path: Path) -> None:
    """Hadoop started a chmod for each of the two."""
    hadoop = java.org.apache.hadoop
    configuration = hadoop.conf.Configuration()
    configuration.set("fs.file.impl", local_files.LOCAL_FILES)
    configuration.set("fs.permissions.umask-mode", "027")
    file = hadoop.fs.Path(f"file://{tmp_path}/one")

    stream = file.getFileSystem(configuration).create(file, True)
    stream.writeBytes("some bytes")
    stream.close()

    assert (tmp_path / "one").read_bytes() == b"some bytes"
    assert [oct(one.stat().st_mode & 0o777) for one in sorted(tmp_path.iterdir())] == ["0o640", "0o640"]
    assert (tmp_path / ".one.crc").exists()


def test_a_folder_goes_on_giving_its_files_its_group(java: Any, tmp_path: Path) -> None:
    """As chmod does: the set-group-ID bit of a shared folder stays on what is made in it."""
    tmp_path.chmod(0o2775)
    hadoop = java.org.apache.hadoop
    configuration = hadoop.conf.Configuration()
    configuration.set("fs.file.impl", local_files.LOCAL_FILES)
    folder = hadoop.fs.Path(f"file://{tmp_path}/shared")

    folder.getFileSystem(configuration).mkdirs(folder)

    assert oct((tmp_path / "shared").stat().st_mode & 0o7777) == "0o2755"


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK")
def test_the_jar_is_compiled_from_the_source_beside_it(tmp_path: Path) -> None:
    """What nobody can read is held against what everybody can."""
    hadoop = str(next(_SPARK.glob("hadoop-client-api-*.jar")))
    command = ["javac", "--release", "17", "-g:none", "-d", str(tmp_path), "-cp", hadoop, str(_SOURCE)]
    subprocess.run(command, check=True, capture_output=True)

    with zipfile.ZipFile(local_files.LOCAL_FILES_JAR) as jar:
        shipped = {name: jar.read(name) for name in jar.namelist() if not name.endswith("/")}

    made = {str(one.relative_to(tmp_path)): one.read_bytes() for one in tmp_path.rglob("*.class")}
    assert shipped == made
