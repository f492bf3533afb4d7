"""zstd for saved shards."""

import pytest

from coordinator_model.shard import Shard
from streaming.workers.zstd import ZSTD


def test_what_is_packed_comes_back() -> None:
    """Any bytes, also none, and few bytes for much of the same."""
    for raw in (b"", b"x", bytes(range(256)) * 400):
        assert ZSTD.unpack(ZSTD.pack(raw), len(raw)) == raw
    assert len(ZSTD.pack(b"member " * 10_000)) < 1_000


@pytest.mark.parametrize("packed", [b"", b"never packed", ZSTD.pack(b"x" * 99)[:-5]])
def test_other_bytes_are_refused(packed: bytes) -> None:
    """As the shard expects it: its groups then begin anew."""
    with pytest.raises(ValueError, match=r"(?i)zstd|size|bytes"):
        ZSTD.unpack(packed, 99)


def test_a_job_reads_what_tools_saved_and_saves_it_with_zstd() -> None:
    """The standard library's form is read by everybody; the job's own by the job."""
    plain = Shard.load(None, cluster="c", shard=1, shard_count=2).save()
    packed = Shard.load(plain, cluster="c", shard=1, shard_count=2, codec=ZSTD).save()

    assert b"zstd" in packed
    assert Shard.load(packed, cluster="c", shard=1, shard_count=2, codec=ZSTD).save() == packed
