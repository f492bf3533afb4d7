"""The vectorised decoder of offsets rows against reading them one by one."""

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.records import kind_of, observe
from coordinator_model.decoding.schemas import describe
from coordinator_model.decoding.wire import DecodeError
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.base import GroupObservation, Source
from coordinator_model.observations.records import Commit, GroupRecorded, GroupTombstone, OffsetsCommitted
from coordinator_model.observations.seen import Seen, pack, unpack
from streaming.decoders import known_shards
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_offsets import decode_offsets
from tests.unit.coordinator_model.kafka_bytes import commit_key, commit_value, group_key, group_value

SHARDS = 7
TOPIC_ID = int.from_bytes(b"\x01" * 8, "big")
"""First half of the id that ``commit_value`` writes in version 4."""
START_MS = 1_700_000_000_000
ALL_BACKLOG = 10**9


class Row(NamedTuple):
    """One record; its offset is its place in the batch."""

    key: bytes | None
    value: bytes | None
    at_ms: int = START_MS
    partition: int = 3


def _batch(rows: list[Row], binary: pa.DataType | None = None, first_offset: int = 0) -> pa.Table:
    binary = binary or pa.binary()
    columns = {
        "partition": pa.array([row.partition for row in rows], pa.int32()),
        "offset": pa.array(range(first_offset, first_offset + len(rows)), pa.int64()),
        "timestamp_ms": pa.array([row.at_ms for row in rows], pa.int64()),
        "key": pa.array([row.key for row in rows], binary),
        "value": pa.array([row.value for row in rows], binary),
    }
    return pa.table(columns)


def _decode(rows: list[Row], *, backlog: int = 0, **how: Any) -> Decoded:
    return decode_offsets(_batch(rows, **how), shard_count=SHARDS, backlog_ends={3: backlog})


def _seen(decoded: Decoded) -> list[Seen]:
    return sorted((seen for cell in decoded.cells.values() for seen in cell), key=lambda seen: seen.offset)


def _group(seen: Seen) -> str:
    assert isinstance(seen.what, GroupObservation)
    return seen.what.group


def _told(decoded: Decoded) -> list[object]:
    return [seen.what for seen in _seen(decoded)]


def _commit(
    offset: int, *, group: str = "g", partition: int = 0, at_ms: int = START_MS, version: int = 4
) -> Row:
    return Row(commit_key(group, "t", partition), commit_value(offset, at_ms - 2, version=version), at_ms)


def _deleted(partition: int = 0) -> Row:
    return Row(commit_key("g", "t", partition), None)


def test_a_run_is_folded_by_partition() -> None:
    """The last commit of each partition remains, with how many there were, at the run's last place."""
    rows = [_commit(1), _commit(5, partition=1), _commit(2, at_ms=START_MS + 9)]
    (seen,) = _seen(_decode(rows, backlog=ALL_BACKLOG))
    at_ms = START_MS + 9
    assert seen == Seen(
        at_ms=at_ms,
        source=Source.OFFSETS,
        partition=3,
        offset=2,
        index=0,
        broker=-1,
        recorded_at_ms=at_ms,
        backlog=True,
        what=OffsetsCommitted(
            group="g", commits=(Commit("t", 1, 5, START_MS - 2, 1), Commit("t", 0, 2, at_ms - 2, 2))
        ),
    )


def test_groups_go_to_their_own_shard() -> None:
    """The shard is the group's, whatever partition the record stood in."""
    decoded = _decode([_commit(1, group=f"group-{number}") for number in range(30)])
    for shard, cell in decoded.cells.items():
        assert {
            shard_of(seen.what.group, SHARDS) for seen in cell if isinstance(seen.what, OffsetsCommitted)
        } == {shard}
    assert len(decoded.cells) > 1


def test_any_other_record_of_the_group_ends_its_run() -> None:
    """Commits before and after a generation, or a group's tombstone, stay before and after it."""
    rows = [
        _commit(1),
        Row(group_key("g"), group_value(4, members=0)),
        _commit(2),
        Row(group_key("g"), None),
        _commit(3),
    ]
    for backlog in (0, ALL_BACKLOG):
        kinds = [type(what) for what in _told(_decode(rows, backlog=backlog))]
        assert kinds == [OffsetsCommitted, GroupRecorded, OffsetsCommitted, GroupTombstone, OffsetsCommitted]


def test_records_of_other_groups_end_no_run() -> None:
    """Only the group's own records matter."""
    rows = [_commit(1), Row(group_key("h"), None), _commit(2), _commit(7, group="h")]
    assert _told(_decode(rows)) == [
        GroupTombstone(group="h"),
        OffsetsCommitted(group="g", commits=(Commit("t", 0, 2, START_MS - 2, 2, TOPIC_ID),)),
        OffsetsCommitted(group="h", commits=(Commit("t", 0, 7, START_MS - 2, 1, TOPIC_ID),)),
    ]


def test_the_backlogs_end_ends_runs() -> None:
    """What stood before the first start is not mixed with what came after."""
    told = _seen(_decode([_commit(1), _commit(2), _commit(3), _commit(4)], backlog=2))
    assert [(seen.offset, seen.backlog) for seen in told] == [(1, True), (3, False)]


def test_a_live_run_has_one_time() -> None:
    """A catch-up tells each commit at its own time, as if it came alone; a backlog needs only the last."""
    rows = [
        _commit(1),
        _commit(1, partition=1),
        _commit(2, at_ms=START_MS + 1),
        _commit(3, at_ms=START_MS + 2),
    ]
    told = _seen(_decode(rows))
    assert [(seen.at_ms - START_MS, seen.offset) for seen in told] == [(0, 1), (1, 2), (2, 3)]
    assert len(_told(_decode(rows, backlog=ALL_BACKLOG))) == 1


def test_time_that_goes_back_keeps_the_order() -> None:
    """A new leader's clock may be behind: runs stay in the order of the log, not of the clock."""
    rows = [_commit(1, at_ms=START_MS + 5), _commit(2, at_ms=START_MS), _commit(3, at_ms=START_MS + 5)]
    assert _offsets(_decode(rows)) == [[1], [2], [3]]


def _offsets(decoded: Decoded) -> list[list[int | None]]:
    return [
        [commit.offset for commit in what.commits]
        for what in _told(decoded)
        if isinstance(what, OffsetsCommitted)
    ]


def test_a_live_rewind_is_not_folded_away() -> None:
    """The offset that went back can be seen even if the group has moved on within the batch."""
    rows = [_commit(100), _commit(110), _commit(50), _commit(60), _commit(70)]
    assert _offsets(_decode(rows)) == [[110], [50], [70]]
    assert _offsets(_decode(rows, backlog=ALL_BACKLOG)) == [[70]]


def test_a_live_deletion_is_not_folded_away() -> None:
    """An offset that starts anew after its deletion is no rewind, and this can be seen."""
    assert _offsets(
        _decode([_commit(100), _commit(101), _deleted(), _commit(5), _commit(6), _commit(7)])
    ) == [
        [101],
        [None],
        [5],
        [7],
    ]
    assert _offsets(_decode([_commit(1), _deleted()], backlog=ALL_BACKLOG)) == [[None]]


CORRUPT = commit_value(9, 9)[:-1]


def test_a_corrupt_last_value_leaves_the_one_before() -> None:
    """The last readable commit counts, and the corrupt one is counted."""
    decoded = _decode([_commit(1), Row(commit_key("g", "t", 0), CORRUPT)])
    assert _offsets(decoded) == [[1]]
    assert [(bad.reason, bad.count) for bad in decoded.bad] == [("truncated", 1)]


def test_corrupt_values_are_not_hidden_by_later_ones() -> None:
    """Each corrupt row counts once, by what is wrong with it."""
    key = commit_key("g", "t", 0)
    rows = [
        Row(key, CORRUPT),
        Row(key, commit_value(1, 1) + b"\0"),
        Row(key, CORRUPT),
        Row(key, b""),
        Row(None, b"x"),
        Row(None, None),
        Row(b"", None),
        Row(b"\0", None),
        Row(b"\0\1\0", None),
        Row(b"\0\1\0", CORRUPT),
        Row(b"\0\x09\0\1g", None),
        Row(group_key("g"), b"\0\7"),
        _commit(1),
    ]
    decoded = _decode(rows)
    assert {bad.reason: bad.count for bad in decoded.bad} == {
        "truncated": 5,
        "trailing_bytes": 1,
        "empty": 2,
        "null_key": 2,
        "unknown_type": 1,
        "unknown_version": 1,
    }
    assert {bad.origin for bad in decoded.bad} == {"offsets"}
    assert decoded.counts == {("offsets", "OffsetCommit"): 1}


def test_a_sample_can_be_given_to_decode() -> None:
    """The sample is a short line of JSON that names the same fault; the detail says where it stood."""
    (bad,) = _decode([_commit(1), Row(commit_key("g", "t", 0), CORRUPT)]).bad
    line = json.loads(bad.sample)
    assert describe(bytes.fromhex(line["key"]), bytes.fromhex(line["value"]))["error"].startswith(bad.reason)
    assert "partition 3, offset 1" in bad.detail
    (long,) = _decode([Row(b"\0\x09" + bytes(5000), bytes(5000))]).bad
    assert len(long.sample) <= 512


def test_rows_are_counted_by_kind() -> None:
    """Every readable row counts under Kafka's name, folded or not."""
    legacy = Row(commit_key("g", "t", 0, 0), commit_value(1, 1, version=0))
    rows = [_commit(1), _commit(2), _deleted(), legacy, Row(group_key("g"), None)]
    assert _decode(rows).counts == {
        ("offsets", "OffsetCommit"): 2,
        ("offsets", "OffsetCommitTombstone"): 1,
        ("offsets", "LegacyOffsetCommit"): 1,
        ("offsets", "GroupMetadataTombstone"): 1,
    }


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary()], ids=str)
def test_slices_and_wide_columns_read_alike(binary: pa.DataType) -> None:
    """A slice of a batch, with 32 or 64 bit places, is read from its own rows."""
    batch = _batch([_commit(1, group="a"), _commit(2), Row(None, None), _commit(4)], binary).slice(1, 3)
    decoded = decode_offsets(batch, shard_count=SHARDS, backlog_ends={})
    assert _offsets(decoded) == [[4]]
    assert [bad.reason for bad in decoded.bad] == ["null_key"]


def test_several_partitions_in_one_batch() -> None:
    """Each partition is read by itself, with its own backlog."""
    rows = [_commit(1, group="g"), Row(commit_key("h", "t", 0), commit_value(2, 2), START_MS, partition=4)]
    decoded = decode_offsets(_batch(rows), shard_count=SHARDS, backlog_ends={4: 2})
    assert [(seen.partition, seen.backlog) for seen in _seen(decoded)] == [(3, False), (4, True)]


def test_the_newest_commit_of_each_partition_is_told() -> None:
    """What a coordinator writes by itself (an expired offset, an emptied group) is no client's commit."""
    later = START_MS + 9
    rows = [
        _commit(1, at_ms=later),
        _commit(2),
        _deleted()._replace(at_ms=later + 9),
        Row(group_key("g"), group_value(1), later + 9),
        _commit(3)._replace(partition=4),
        _deleted()._replace(partition=5),
    ]

    assert _decode(rows).committed_ms == {3: later, 4: START_MS}


def test_nothing_gives_nothing() -> None:
    """An empty batch, and one of nulls only, are read."""
    assert _decode([]) == Decoded()
    assert _decode([Row(None, None)]).cells == {}


@pytest.mark.parametrize("group", ["😀", "消費者", "a[b], c", "", "x" * 300, "\u00e9"])
@pytest.mark.parametrize("metadata", ["", "plain", "grüße 😀", "y" * 126, "y" * 127, "y" * 128, "z" * 4096])
@pytest.mark.parametrize("version", range(5))
def test_odd_texts(group: str, metadata: str, version: int) -> None:
    """Group ids and metadata of any length and script survive in every version."""
    value = commit_value(8, 9, version=version, metadata=metadata)
    decoded = _decode([Row(commit_key(group, "tøpic", 2), value), _commit(1)])
    topic_id = TOPIC_ID if version == 4 else 0
    assert OffsetsCommitted(group=group, commits=(Commit("tøpic", 2, 8, 9, 1, topic_id),)) in _told(decoded)
    assert not decoded.bad


def test_metadata_that_is_not_utf8_is_counted() -> None:
    """Bytes that the plain layout alone would pass are still looked at."""
    for version in range(5):
        value = commit_value(8, 9, version=version, metadata="abcd").replace(b"abcd", b"ab\xff\xfe")
        decoded = _decode([Row(commit_key("g", "t", 2), value)])
        assert [(bad.reason, bad.count) for bad in decoded.bad] == [("bad_utf8", 1)]


def _near_misses() -> list[tuple[str, bytes]]:
    """Return values that are almost of a plain layout, each with what is odd about it."""
    odd = []
    for version in range(5):
        for topic_id in (None, b"\x07" * 16):
            whole = commit_value(-2, 0x0101_0101_0101_0101, version=version, metadata="mm", topic_id=topic_id)
            odd += [(f"v{version} cut by {cut}", whole[:-cut]) for cut in range(1, len(whole))]
            odd += [(f"v{version} longer by {more}", whole + b"\x01" * more) for more in range(1, 20)]
    whole = commit_value(1, 1)
    odd.append(("topic id of 15 bytes and one left over", whole.replace(b"\1\0\x10", b"\1\0\x0f")))
    odd.append(("two tags announced", whole.replace(b"\1\0\x10", b"\2\0\x10")))
    odd.append(("another tag of 16 bytes", whole.replace(b"\1\0\x10", b"\1\1\x10")))
    long = commit_value(1, 1, metadata="m" * 120)
    odd.append(("one byte for a length that takes two", long.replace(b"\x79m", b"\xc9m" + b"m" * 80)))
    return odd


@pytest.mark.parametrize("follower", [b"", b"\0" * 40, b"\1\0\x10" * 20], ids=["last", "zeros", "tags"])
def test_what_is_almost_a_plain_commit(follower: bytes) -> None:
    """A value is judged by its own bytes alone, whatever the next row's value begins with."""
    for oddity, value in _near_misses():
        rows = [Row(commit_key("g", "t", 0), value), Row(None, follower)]
        expected, _, faults = _one_by_one(rows, 0)
        decoded = _decode(rows)
        assert {bad.reason: bad.count for bad in decoded.bad} == dict(faults), oddity
        assert _apply([(seen.offset, seen.what) for seen in _seen(decoded)]) == _apply(expected), oddity


@pytest.mark.parametrize(
    "key",
    [
        b"\0\1\0\1g\xff\xff\0\0\0",
        b"\0\1\xff\xff\0\1t\0\0\0",
        b"\0\1\0\1g\0\1t\0\0\0",
        b"\0\1\0\1g\0\1t\0\0\0\0\0",
        b"\0\1\0\1\xff\0\1t\0\0\0\0",
        b"\0\1\x7f\xffg\0\1t\0\0\0\0",
    ],
)
def test_what_is_almost_a_commits_key(key: bytes) -> None:
    """Such a key is refused in every row that has it, as the table refuses it."""
    rows = [Row(key, commit_value(1, 1)), _commit(5), Row(key, None), Row(key, CORRUPT)]
    decoded = _decode(rows)
    ((reason, count),) = [(bad.reason, bad.count) for bad in decoded.bad]
    assert describe(key, None)["error"].startswith(reason)
    assert count == 3
    assert _offsets(decoded) == [[5]]


# --- the same as one by one -----------------------------------------------------------------------------

_KEYS = st.builds(
    commit_key,
    st.sampled_from(["g", "h", "😀"]),
    st.sampled_from(["t", "ü"]),
    st.integers(0, 1),
    st.integers(0, 1),
)
_VALUES = st.builds(
    commit_value,
    st.integers(0, 3),
    st.integers(0, 10),
    version=st.integers(0, 5),
    metadata=st.sampled_from(["", "m", "é", "l" * 130]),
    topic_id=st.none() | st.just(b"\x01" * 16),
    extra_tags=st.sampled_from([(), ((1, b""),), ((0, b"x"),)]),
)
_GROUP_KEYS = st.builds(group_key, st.sampled_from(["g", "h"]))
_GROUP_VALUES = st.builds(
    group_value, st.integers(0, 3), version=st.integers(0, 5), members=st.integers(0, 2)
)


def _torn(whole: bytes, cut: int, flip: int) -> bytes:
    damaged = bytearray(whole)
    if damaged:
        damaged[flip // 8 % len(damaged)] ^= 1 << flip % 8
    return bytes(damaged[: len(damaged) - cut])


_DAMAGED = st.builds(
    _torn, _KEYS | _VALUES | _GROUP_KEYS | _GROUP_VALUES, st.integers(0, 2), st.integers(0, 400)
)
_AT = st.integers(START_MS, START_MS + 1)
_ROWS = st.lists(
    st.builds(Row, _KEYS, st.none() | _VALUES, _AT, st.just(3))
    | st.builds(Row, _GROUP_KEYS, st.none() | _GROUP_VALUES, _AT, st.just(3))
    | st.builds(Row, st.none() | _KEYS | _DAMAGED, st.none() | _VALUES | _DAMAGED, _AT, st.just(3)),
    max_size=25,
)


def _one_by_one(
    rows: list[Row], first_offset: int
) -> tuple[list[tuple[int, Any]], Counter[tuple[str, str]], Counter[str]]:
    """Return what each readable row tells with its offset, the counts, and the faults."""
    told: list[tuple[int, Any]] = []
    counts: Counter[tuple[str, str]] = Counter()
    faults: Counter[str] = Counter()
    for offset, row in enumerate(rows, first_offset):
        try:
            told.append((offset, observe(row.key, row.value, recorded_at_ms=row.at_ms)))
        except DecodeError as error:
            faults[error.fault.value] += 1
        else:
            kind = kind_of(int.from_bytes((row.key or b"")[:2], "big"), tombstone=row.value is None)
            counts["offsets", kind] += 1
    return told, counts, faults


def _apply(told: list[tuple[int, Any]]) -> dict[tuple[str, str, int], tuple[int | None, int]]:
    """Return the last commit of each partition, as a group's mirror would keep it."""
    kept = {}
    for _, what in told:
        if isinstance(what, OffsetsCommitted):
            for commit in what.commits:
                kept[what.group, commit.topic, commit.partition] = (commit.offset, commit.committed_at_ms)
    return kept


@settings(deadline=None, max_examples=200)
@given(_ROWS, st.integers(0, 30), st.integers(0, 5))
def test_folding_tells_what_one_by_one_tells(rows: list[Row], backlog: int, first_offset: int) -> None:
    """Same counts, faults and other records; between those the same offsets, from as many commits."""
    expected, counts, faults = _one_by_one(rows, first_offset)
    decoded = _decode(rows, backlog=backlog, first_offset=first_offset)
    told: list[tuple[int, Any]] = [(seen.offset, seen.what) for seen in _seen(decoded)]
    assert decoded.counts == dict(counts)
    assert {bad.reason: bad.count for bad in decoded.bad} == dict(faults)
    places = [offset for offset, what in expected if not isinstance(what, OffsetsCommitted)]
    assert [(o, w) for o, w in told if o in places] == [(o, w) for o, w in expected if o in places]
    for name in ("g", "h", "😀"):
        own = [(offset, what) for offset, what in expected if what.group == name]
        ours = [(offset, what) for offset, what in told if what.group == name]
        others = [offset for offset, _ in own if offset in places]
        for end in [*others, backlog - 1, ALL_BACKLOG]:
            before = [(o, w) for o, w in own if o <= end]
            assert _apply([(o, w) for o, w in ours if o <= end]) == _apply(before)
        assert _commits_in(ours) == _commits_in(own)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(_ROWS, st.sampled_from([1, 3])), max_size=6), st.integers(0, 60))
def test_partitions_read_together_tell_what_each_tells(
    parts: list[tuple[list[Row], int]], backlog: int
) -> None:
    """Also where a group has commits in several partitions, as in a mirrored topic: no run goes across."""
    rows = [row._replace(partition=partition) for some, partition in parts for row in some]
    how: dict[str, Any] = {"shard_count": SHARDS, "backlog_ends": {3: backlog}}
    together, apart = decode_offsets(_batch(rows), **how), decode_offsets(_batch(rows), **how, at_once=-1)
    assert (together.cells, together.counts) == (apart.cells, apart.counts)
    assert together.committed_ms == apart.committed_ms
    faults = [{bad.reason: bad.count for bad in one.bad} for one in (together, apart)]
    assert faults[0] == faults[1]


def _commits_in(told: list[tuple[int, Any]]) -> int:
    return sum(
        commit.count for _, what in told if isinstance(what, OffsetsCommitted) for commit in what.commits
    )


@settings(deadline=None)
@given(_ROWS, st.integers(0, 30))
def test_cells_are_in_order_and_travel(rows: list[Row], backlog: int) -> None:
    """A cell ascends by offset, carries the marks of its rows, and survives packing."""
    decoded = _decode(rows, backlog=backlog)
    for shard, cell in decoded.cells.items():
        assert [seen.offset for seen in cell] == sorted(seen.offset for seen in cell)
        assert all(seen.backlog == (seen.offset < backlog) for seen in cell)
        assert all(seen.at_ms == rows[seen.offset].at_ms for seen in cell)
        assert {shard_of(_group(seen), SHARDS) for seen in cell} == {shard}
        assert unpack(pack(cell)) == cell


@settings(deadline=None)
@given(_ROWS, st.integers(0, 30), st.integers(0, 25))
def test_a_live_cut_changes_nothing(rows: list[Row], backlog: int, cut: int) -> None:
    """Two batches tell, at each time, what one tells: live commits of one time only are ever folded."""
    cut = min(cut, len(rows))
    first, second = (
        _decode(rows[:cut], backlog=backlog),
        _decode(rows[cut:], backlog=backlog, first_offset=cut),
    )
    parts = [seen for part in (first, second) for seen in _seen(part) if not seen.backlog]
    whole = [seen for seen in _seen(_decode(rows, backlog=backlog)) if not seen.backlog]
    assert _by_time(parts) == _by_time(whole)


def _by_time(told: list[Seen]) -> dict[tuple[str, int], tuple[object, ...]]:
    """Return what was told of each group at each time, in total."""
    gathered: dict[tuple[str, int], list[tuple[int, Any]]] = {}
    for seen in told:
        gathered.setdefault((_group(seen), seen.at_ms), []).append((seen.offset, seen.what))
    return {place: (_apply(what), _commits_in(what), what[-1][0]) for place, what in gathered.items()}


def _rewinds(told: list[Any]) -> Counter[tuple[str, str, int, int]]:
    """Count each offset that is lower than the one before it, as the rule for rewinds would."""
    last: dict[tuple[str, str, int], int | None] = {}
    found: Counter[tuple[str, str, int, int]] = Counter()
    for what in told:
        for commit in what.commits if isinstance(what, OffsetsCommitted) else ():
            place = (what.group, commit.topic, commit.partition)
            before = last.get(place)
            if before is not None and commit.offset is not None and commit.offset < before:
                found[*place, commit.offset] += 1
            last[place] = commit.offset
    return found


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Row,
            st.builds(commit_key, st.just("g"), st.just("t"), st.integers(0, 1)),
            st.none() | _VALUES,
            _AT,
            st.just(3),
        )
    )
)
def test_live_rewinds_survive_folding(rows: list[Row]) -> None:
    """Behind the backlog every step back of a partition can still be seen, once, where it went."""
    expected, _, _ = _one_by_one(rows, 0)
    one_by_one = _rewinds([what for _, what in expected])
    assert _rewinds(_told(_decode(rows))) == one_by_one


# --- records of Kafka's own classes, and damaged ones -------------------------------------------------------


def test_golden_and_damaged_records_read_alike() -> None:
    """All of them at once, and in small batches, give what the table gives one by one."""
    rng = random.Random(1)
    rows = list(_golden_rows())
    rows += [Row(None if rng.random() < 0.01 else row.key, None) for row in rng.sample(rows, 200)]
    rng.shuffle(rows)
    for size in (len(rows), 500, 7):
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            expected, counts, faults = _one_by_one(part, 0)
            decoded = _decode(part, backlog=ALL_BACKLOG)
            told: list[tuple[int, Any]] = [(seen.offset, seen.what) for seen in _seen(decoded)]
            assert decoded.counts == dict(counts)
            assert {bad.reason: bad.count for bad in decoded.bad} == dict(faults)
            assert _apply(told) == _apply(expected)
            assert _commits_in(told) == _commits_in(expected)


def _golden_rows() -> Iterator[Row]:
    folder = Path(__file__).parents[3] / "golden" / "records"
    for file in sorted(folder.glob("*.jsonl*")):
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open() as lines:
            for line in lines:
                row = json.loads(line)
                yield Row(bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))


def test_topic_ids_are_told_behind_the_backlog() -> None:
    """Where a commit carries one; nobody asks for those of the backlog."""
    ids = (b"\x01" * 16, b"\x02" * 16, None)
    rows = [
        Row(commit_key("g", f"t{index}", 0), commit_value(5, 9, topic_id=one))
        for index, one in enumerate(ids)
    ]
    rows.append(Row(commit_key("g", "t3", 0), commit_value(5, 9, version=3)))
    rows.append(Row(commit_key("g", "t4", 0), None))
    for backlog, expected in ((0, [TOPIC_ID, 2 * TOPIC_ID, 0, 0, 0]), (ALL_BACKLOG, [0] * 5)):
        runs = [what for what in _told(_decode(rows, backlog=backlog)) if isinstance(what, OffsetsCommitted)]
        told = [commit for what in runs for commit in what.commits]
        assert [commit.topic_id for commit in sorted(told, key=lambda one: one.topic)] == expected


def test_nothing_is_decoded_of_no_rows() -> None:
    """A table without a single chunk is no fault."""
    empty = pa.Table.from_batches([], _batch([]).schema)
    decoded = decode_offsets(empty, shard_count=SHARDS, backlog_ends={})

    assert (_seen(decoded), decoded.bad) == ([], [])


def test_long_names_of_groups_are_not_kept() -> None:
    """Whoever is refused may name a new one of 32,767 characters with each request."""
    known_shards._kept.cache_clear()
    for name in ("short", "x" * 32_767):
        assert known_shards.known_shard(name, SHARDS) == shard_of(name, SHARDS)

    assert known_shards._kept.cache_info().currsize == 1
