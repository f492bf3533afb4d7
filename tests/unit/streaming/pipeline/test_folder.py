"""Small files beside a checkpoint on a local disk."""

from pathlib import Path

import pytest

from streaming.pipeline.folders import LocalFolder, local_path, replace_locally


def test_a_replaced_file_loses_hadoops_checksum_of_what_stood_there(tmp_path: Path) -> None:
    """Hadoop would refuse the new content; and nothing is left beside it."""
    (tmp_path / "mark").write_bytes(b"old")
    (tmp_path / ".mark.crc").write_bytes(b"sum of old")
    (tmp_path / ".other.crc").write_bytes(b"sum of another")
    replace_locally(tmp_path, "mark", b"new")

    assert (tmp_path / "mark").read_bytes() == b"new"
    assert sorted(one.name for one in tmp_path.iterdir()) == [".other.crc", "mark"]


def test_the_first_file_of_a_checkpoint_makes_its_folder(tmp_path: Path) -> None:
    """The lease is claimed before anything else is written."""
    replace_locally(tmp_path / "checkpoint" / "prod", "mark", b"new")

    assert (tmp_path / "checkpoint" / "prod" / "mark").read_bytes() == b"new"


def test_a_file_in_a_sub_folder_is_replaced(tmp_path: Path) -> None:
    """As Spark's log of offsets, with its checksum beside it."""
    offsets = tmp_path / "query" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".17.crc").write_bytes(b"of the old")

    replace_locally(tmp_path, "query/offsets/17", b"new")

    assert {one.name: one.read_bytes() for one in offsets.iterdir()} == {"17": b"new"}


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/groupwatch", "/data/groupwatch"),
        ("file:/data/a b#1", "/data/a b#1"),
        ("file:///data/a%20b", "/data/a%20b"),
        ("file://localhost/data", "/data"),
        ("hdfs://namenode/data", None),
        ("s3a://bucket/data", None),
    ],
)
def test_a_checkpoint_on_a_local_disk_is_read_without_spark(uri: str, path: str | None) -> None:
    """Its address says so, and is read as Hadoop reads it."""
    assert local_path(uri, {}) == (None if path is None else Path(path))


def test_a_path_without_file_system_may_be_elsewhere() -> None:
    """Hadoop's own configuration can name another default."""
    assert local_path("/data", {"HADOOP_CONF_DIR": "/etc/hadoop"}) is None
    assert local_path("file:/data", {"HADOOP_CONF_DIR": "/etc/hadoop"}) == Path("/data")


def test_a_local_folder_has_the_files_that_hadoop_left_there(tmp_path: Path) -> None:
    """Its checksums are none of them; what is missing is no failure."""
    (tmp_path / "query" / "commits").mkdir(parents=True)
    folder = LocalFolder(tmp_path)
    assert (folder.has_files("query/commits"), folder.has_files("query/offsets")) == (False, False)
    (tmp_path / "query" / "commits" / "0").write_bytes(b"v1")
    (tmp_path / "query" / "commits" / ".0.crc").write_bytes(b"sum")

    assert (folder.names("query/commits"), folder.read("query/commits/0")) == (["0"], b"v1")
    assert (folder.names("query/offsets"), folder.read("query/offsets/0")) == ([], None)


def test_a_local_folder_deletes_a_file_with_its_checksum(tmp_path: Path) -> None:
    """Hadoop would refuse the next content for it; a folder goes with all that is in it."""
    folder = LocalFolder(tmp_path)
    folder.write("query/offsets/0", b"v1")
    folder.write("mark", b"mine")
    (tmp_path / ".mark.crc").write_bytes(b"sum")
    for _ in range(2):
        folder.delete("mark")
        folder.delete("query")

    assert list(tmp_path.iterdir()) == []
