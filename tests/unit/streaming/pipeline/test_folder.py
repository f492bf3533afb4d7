"""Small files beside a checkpoint on a local disk."""

from pathlib import Path

from streaming.pipeline.beginning import replace_locally


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
