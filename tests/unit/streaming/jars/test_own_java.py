"""The only Java of ours: files without a process for each, partitions in even parts, bytes as they are."""

import os
import pickle
import shutil
import subprocess
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from py4j.protocol import Py4JJavaError

from streaming.jars import ensure_jars, own_java
from streaming.workers.blocks import unpacked
from tests.unit.streaming.jars.packing import Record, blocks, packed

_SPARK = Path(pyspark.__file__).parent / "jars"
_SOURCES = sorted(Path(own_java.__file__).parent.glob("*.java"))


def test_a_file_gets_its_mode_and_its_checksum_without_a_process(java: Any, tmp_path: Path) -> None:
    """Hadoop started a chmod for each of the two."""
    hadoop = java.org.apache.hadoop
    configuration = hadoop.conf.Configuration()
    configuration.set("fs.file.impl", own_java.LOCAL_FILES)
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
    configuration.set("fs.file.impl", own_java.LOCAL_FILES)
    folder = hadoop.fs.Path(f"file://{tmp_path}/shared")

    folder.getFileSystem(configuration).mkdirs(folder)

    assert oct((tmp_path / "shared").stat().st_mode & 0o7777) == "0o2755"


def _dealt(java: Any, topics: dict[str, list[int]], tasks: int) -> list[list[tuple[str, int]]]:
    """Return topic and records of each task's partitions, as ``coalesce`` cuts the order into parts."""
    kafka, ranges = java.org.apache.spark.sql.kafka010, java.java.util.ArrayList()
    for topic, sizes in topics.items():
        for number, size in enumerate(sizes):
            place = java.org.apache.kafka.common.TopicPartition(topic, number)
            ranges.add(kafka.KafkaOffsetRange(place, 100, 100 + size, java.scala.Option.empty()))
    told = [(one.topic(), one.size()) for one in java.groupwatch.EvenKafka.even(ranges, tasks)]
    count = len(told)
    return [told[i * count // tasks : (i + 1) * count // tasks] for i in range(tasks)]


@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_tasks_get_equal_shares_of_each_topic(java: Any, tasks: int) -> None:
    """Lines are dearer than commits: equal numbers of records in all would not be equal shares."""
    topics = {"offsets": [1_000] * 50, "events": [33_000] * 24, "control": [9]}
    parts = _dealt(java, topics, tasks)

    assert sorted(one for part in parts for one in part) == sorted(
        (topic, size) for topic, sizes in topics.items() for size in sizes
    )
    for topic, sizes in topics.items():
        shares = [sum(name == topic for name, _ in part) for part in parts]
        assert max(shares) - min(shares) <= 1 + (len(sizes) % tasks > 0), topic


def test_a_partition_that_is_larger_than_others_gets_smaller_ones_beside_it(java: Any) -> None:
    """Whoever has least takes the largest that is left."""
    parts = _dealt(java, {"events": [900, 500, 400, 100], "offsets": [200, 200, 10, 10]}, 2)
    assert [sum(size for _, size in part) for part in parts] == [1_210, 1_110]


def test_fewer_partitions_than_tasks_are_all_told(java: Any) -> None:
    """And none at all are none."""
    assert sorted(map(len, _dealt(java, {"control": [1], "events": [7]}, 8))) == [0] * 6 + [1] * 2
    assert _dealt(java, {}, 2) == [[], []]


def test_bytes_reach_python_as_they_are(java: Any) -> None:
    """Spark writes each byte above 127 as two, and Python makes them bytes again by three copies."""
    data = bytes(range(256)) * 300
    spark = java.org.apache.spark.sql.execution.python
    wrapped = getattr(spark, "EvaluatePython$BytesWrapper")(data)

    java.groupwatch.PlainBytes.register()
    spark.EvaluatePython.registerPicklers()  # as each of its rows does
    pickled = java.net.razorvine.pickle.Pickler().dumps(wrapped)

    assert pickle.loads(pickled) == data  # noqa: S301 - of the JVM above
    assert data in pickled


def _as_rows(batches: list[pa.RecordBatch]) -> list[Record]:
    for one in batches:
        one.validate(full=True)
    return [tuple(row.values()) for one in batches for row in one.to_pylist()]


def test_records_come_out_of_blocks_as_they_went_in(java: Any) -> None:
    """Of several topics; without a key, without a value, and with empty ones; of any time."""
    records: list[Record] = [
        (1, 3, 70, 1_700_000_000_000, b"1", b"[2026-11-21 06:28:53,001] a line"),
        (1, 3, 71, -1, None, b""),
        (0, 49, 2**40, 2**63 - 1, b"", None),
        (2, 0, 0, -(2**63), None, None),
        (0, 1, 5, 0, bytes(range(256)), bytes(range(255, -1, -1)) * 300),
    ] * 5
    assert _as_rows(packed(java, records)) == records


def test_many_values_are_compressed(java: Any) -> None:
    """Log lines are alike, and each copy on their way costs as much as their bytes."""
    records: list[Record] = [
        (1, 0, i // 100, i // 100, None, b"[2026-11-21 06:28:53,001] a line") for i in range(4_000)
    ]
    [block] = blocks(java, records)
    assert len(block) < 4_000 * 32 // 2 + 4_000 * (8 + 8 + 4 + 4 + 4 + 1 + 1)
    assert _as_rows(packed(java, records)) == records


def test_values_that_do_not_shrink_stay_as_they_are(java: Any) -> None:
    """Those that a client compressed or encrypted, say."""
    noise = Random(7).randbytes(200_000)
    records: list[Record] = [(1, 0, 1, 2, None, noise), (1, 0, 2, 2, b"k", b"and one more")]
    assert _as_rows(packed(java, records)) == records


@pytest.mark.parametrize(
    ("records", "sizes"),
    [
        pytest.param([(1, 0, i // 100, i // 100, None, b"x") for i in range(16_003)], [16_000, 3], id="many"),
        pytest.param([(1, 0, i, i, b"k", bytes(3 << 20)) for i in range(4)], [3, 1], id="large"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_block_has_an_end(java: Any, records: list[Record], sizes: list[int]) -> None:
    """After 16,000 records, or 8 MiB of them."""
    batches = packed(java, records)
    assert [one.num_rows for one in batches] == sizes
    assert _as_rows(batches) == records


def test_a_batch_of_rows_is_no_block() -> None:
    """So Spark's own source gives them, on a Spark cluster."""
    rows = pa.RecordBatch.from_pydict({"feed": [1], "value": [b"x"]})
    assert list(unpacked(rows)) == [rows]


def test_a_stop_in_the_middle_of_a_question_is_a_stop(java: Any) -> None:
    """Spark knows it by its kind, and a proxy hides what its interface does not declare."""
    thread = java.java.lang.Thread
    sleep = thread.currentThread().getClass().getMethod("sleep", _long(java))
    thread.currentThread().interrupt()
    with pytest.raises(Py4JJavaError) as told:
        java.groupwatch.EvenKafka.ask(None, sleep, _objects(java, 60_000))
    assert told.value.java_exception.getClass().getName() == "java.io.UncheckedIOException"
    assert told.value.java_exception.getCause().getClass().getName() == "java.io.InterruptedIOException"


def _long(java: Any) -> Any:
    return _array(java, java.java.lang.Class, java.java.lang.Long.TYPE)


def _objects(java: Any, number: int) -> Any:
    return _array(java, java.java.lang.Object, java.java.lang.Long.valueOf(str(number)))


def _array(java: Any, kind: Any, one: Any) -> Any:
    made = java.java.lang.reflect.Array.newInstance(kind._java_lang_class, 1)
    java.java.lang.reflect.Array.set(made, 0, one)
    return made


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK")
def test_the_jar_is_compiled_from_the_source_beside_it(tmp_path: Path) -> None:
    """What nobody can read is held against what everybody can."""
    needed = os.pathsep.join(map(str, [_SPARK / "*", *ensure_jars("connector")]))
    command = ["javac", "--release", "17", "-g:none", "-d", str(tmp_path), "-cp", needed, *map(str, _SOURCES)]
    subprocess.run(command, check=True, capture_output=True)

    with zipfile.ZipFile(own_java.OWN_JAR) as jar:
        shipped = {name: jar.read(name) for name in jar.namelist() if not name.endswith("/")}

    made = {str(one.relative_to(tmp_path)): one.read_bytes() for one in tmp_path.rglob("*.class")}
    assert shipped == made
