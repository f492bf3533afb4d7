"""Turns an Arrow batch of ``__consumer_offsets`` rows into observations, mostly without touching a row.

Nearly all rows are offset commits, and the next commit of the same partition overtakes nearly all of those.
So numpy checks each batch as a whole over Arrow's buffers, including every row's value, since a corrupt row
must be counted even if a later one hides it.  Rows that do not look like a plain commit are read one by one
(``coordinator_model.decoding``).  Plain ones are coalesced (``coalescing_commits``).
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from operator import itemgetter

import msgspec
import numpy as np
import pyarrow as pa

from coordinator_model.decoding import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    CommitValue,
    DecodeError,
    Fault,
    Recorded,
    kind_of,
    observe,
    read_commit_key,
    read_commit_value,
)
from coordinator_model.observations import TIME_MS_MAX, Seen, Source, Undecodable
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.coalescing_commits import Commits, Keys, Rows, coalesced_commits, first_of_each
from streaming.decoders.decoded import Decoded
from streaming.decoders.known_shards import known_shard
from streaming.decoders.plain_commits import KeyLayout, find_plain_values, key_layout

ORIGIN = "offsets"
_SAMPLE_BYTES_MAX = 110
"""Bytes of a sample's key and value each: as hex in one JSON object they stay below 512 bytes."""

AT_ONCE_ROWS = 20_000
"""Rows of a live batch: what is fixed for each block would cost more than the rows.  A backlog's partitions
are read one by one, as their columns fit into the processor's caches."""


class _Faults:
    """Unreadable rows, merged by fault, with the first one as sample."""

    def __init__(self) -> None:
        self._merged: dict[Fault, tuple[int, bytes, str]] = {}

    def add(self, rows: Rows, row: int, error: DecodeError, count: int = 1) -> None:
        """Count ``count`` rows with the same fault; ``row`` is one of them."""
        known = self._merged.get(error.fault)
        if known is not None:
            self._merged[error.fault] = (known[0] + count, known[1], known[2])
            return
        detail = f"{error.detail} (partition {rows.partition[row]}, offset {int(rows.offset[row])})"
        self._merged[error.fault] = (count, _sample(rows.key.at(row), rows.value.at(row)), detail.strip())

    def undecodable(self) -> list[Undecodable]:
        """Return one observation per fault."""
        return [
            Undecodable(origin=ORIGIN, reason=fault.value, count=count, sample=sample, detail=detail)
            for fault, (count, sample, detail) in sorted(self._merged.items())
        ]


def _sample(key: bytes | None, value: bytes | None) -> bytes:
    """Return a row as a line for ``groupwatch decode``; long ones are cut."""
    parts = {"key": key, "value": value}
    cut = {name: None if part is None else part[:_SAMPLE_BYTES_MAX].hex() for name, part in parts.items()}
    return msgspec.json.encode(cut)


def decode_offsets(
    table: pa.Table, *, shard_count: int, backlog_ends: Mapping[int, int], at_once: int = AT_ONCE_ROWS
) -> Decoded:
    """Return the observations in rows of ``__consumer_offsets``.

    Args:
        table: columns partition (int32), offset (int64), timestamp_ms (int64), key and value (binary
            or large_binary); rows of one partition in order of their offsets.
        shard_count: how many shards the groups are spread over.
        backlog_ends: Kafka partition -> end offset captured at the first start; a partition that is not
            named has no backlog.
        at_once: up to so many rows, those of all partitions are read together.
    """
    decoded, faults = Decoded(), _Faults()
    for rows in _in_blocks(table, backlog_ends, at_once):
        found: list[tuple[int, Recorded]] = []
        like_commit = _looks_like_commit(rows.key)
        _read_others(rows, np.flatnonzero(~like_commit), found, decoded, faults)
        commits = _read_commits(rows, np.flatnonzero(like_commit), decoded, faults)
        found.extend(coalesced_commits(rows, commits, [(row, what.group) for row, what in found]))
        for group, seen in _in_place(rows, sorted(found, key=itemgetter(0))):
            decoded.add(known_shard(group, shard_count), seen)
    decoded.bad = faults.undecodable()
    return decoded


def _in_place(rows: Rows, found: list[tuple[int, Recorded]]) -> Iterator[tuple[str, Seen]]:
    """Yield the observations up to each row with that row's place, and their group."""
    row = np.array([row for row, _ in found], np.int64)
    columns = rows.partition, rows.timestamp_ms, rows.offset, rows.backlog
    places = [column[row].tolist() for column in columns]
    for (_, what), partition, at_ms, offset, backlog in zip(found, *places, strict=True):
        yield (
            what.group,
            Seen(
                at_ms=at_ms,
                source=Source.OFFSETS,
                partition=partition,
                offset=offset,
                index=0,
                broker=-1,
                recorded_at_ms=at_ms,
                backlog=backlog,
                what=what,
            ),
        )


def _in_blocks(table: pa.Table, backlog_ends: Mapping[int, int], at_once: int) -> Iterator[Rows]:
    """Yield the rows of each Kafka partition, in their order; few rows all in one block."""
    if not table.num_rows:
        return
    stretches = sorted(_stretches(table).items())
    if table.num_rows <= at_once:
        yield _block(table, [stretch for _, some in stretches for stretch in some], backlog_ends)
    else:
        for _, some in stretches:
            yield _block(table, some, backlog_ends)


def _block(table: pa.Table, stretches: list[tuple[int, int]], backlog_ends: Mapping[int, int]) -> Rows:
    part = pa.concat_tables(table.slice(start, end - start) for start, end in stretches)
    columns = {name: _whole(part.column(name)) for name in ("key", "value")}
    partition, offset, timestamp_ms = (
        part.column(name).to_numpy().astype(np.int64) for name in ("partition", "offset", "timestamp_ms")
    )
    present, index = np.unique(partition, return_inverse=True)
    ends = np.array([backlog_ends.get(one, 0) for one in present.tolist()], np.int64)
    return Rows(
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=BinaryColumn(columns["key"]),
        value=BinaryColumn(columns["value"]),
        backlog=offset < ends[index],
    )


def _stretches(table: pa.Table) -> dict[int, list[tuple[int, int]]]:
    """Return where each Kafka partition's rows begin and end; mostly once, as Spark reads one by one."""
    partitions = table.column("partition").to_numpy()
    begins = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist()] if len(partitions) else []
    found: dict[int, list[tuple[int, int]]] = {}
    for start, end in pairwise([*begins, len(partitions)]):
        found.setdefault(int(partitions[start]), []).append((start, end))
    return found


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


# --- everything but commits, row by row ---------------------------------------------------------------


def _looks_like_commit(key: BinaryColumn) -> Bools:
    """Say for each row whether its key announces record type 0 or 1."""
    first, second = key.byte(key.start), key.byte(key.start + 1)
    return np.asarray(key.present & (key.length >= 2) & (first == 0) & (second <= OFFSET_COMMIT))


def _read_others(
    rows: Rows,
    places: Ints,
    found: list[tuple[int, Recorded]],
    decoded: Decoded,
    faults: _Faults,
) -> None:
    """Read the rows at ``places`` one by one and put their observations into ``found``."""
    columns = (rows.key.those(places), rows.value.those(places), rows.timestamp_ms[places].tolist())
    for row, key, value, at_ms in zip(places.tolist(), *columns, strict=True):
        try:
            what = observe(key, value, recorded_at_ms=at_ms)
        except DecodeError as error:
            faults.add(rows, row, error)
            continue
        found.append((row, what))
        decoded.count(ORIGIN, kind_of(int.from_bytes((key or b"")[:2], "big"), tombstone=value is None))


# --- commits, all rows at once ------------------------------------------------------------------------


def _read_commits(rows: Rows, row: Ints, decoded: Decoded, faults: _Faults) -> Commits:
    """Return the readable rows among the commit rows ``row``; count them and the others."""
    row, code, keys = _read_keys(rows, row, faults)
    tombstone = ~rows.value.present[row]
    time_at, good = find_plain_values(rows.value, row, legacy=keys.legacy[code])
    good &= _are_sane(rows, row, time_at)
    good |= tombstone
    odd = {}
    for index in np.flatnonzero(~good).tolist():
        read = _read_odd_value(rows, int(row[index]), faults)
        if read is not None:
            odd[int(row[index])], time_at[index], good[index] = read, -1, True
    commits = Commits(row[good], time_at[good], tombstone[good], code[good], keys, odd)
    _count_commits(commits, decoded)
    _note_newest(rows, commits.row[~commits.tombstone], decoded)
    return commits


def _note_newest(rows: Rows, made: Ints, decoded: Decoded) -> None:
    """Note the time of the newest of these commits in each Kafka partition."""
    if not len(made):
        return
    partition = rows.partition[made]
    begin = np.concatenate(([0], np.flatnonzero(np.diff(partition)) + 1))
    newest = np.maximum.reduceat(rows.timestamp_ms[made], begin)
    decoded.committed_ms.update(zip(partition[begin].tolist(), newest.tolist(), strict=True))


def _read_keys(rows: Rows, row: Ints, faults: _Faults) -> tuple[Ints, Ints, Keys]:
    """Return the rows with a readable key, the key of each of them, and the keys."""
    encoded = rows.key.column.dictionary_encode()
    code = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)[row]
    key = BinaryColumn(encoded.dictionary)
    layout = key_layout(key)
    count = np.bincount(code, minlength=len(key.start))
    first = first_of_each(code, row, len(count))
    legible = count > 0  # the others are keys of other records
    for number in np.flatnonzero(~layout.plain & legible).tolist():
        try:
            read_commit_key(key.at(number) or b"")
        except DecodeError as error:
            legible[number] = False
            faults.add(rows, int(first[number]), error, int(count[number]))
    keep = legible[code]
    row, code = row[keep], code[keep]
    return row, *_by_lane(rows.partition[row], code, _parts(key, layout, legible))


def _by_lane(lane: Ints, code: Ints, keys: Keys) -> tuple[Ints, Keys]:
    """Return codes and keys with the Kafka partition of each group, in which its runs begin and end."""
    of_group = np.full(len(keys.groups), -1, np.int64)
    of_group[keys.group[code]] = lane
    if (of_group[keys.group[code]] == lane).all():
        keys.lane = of_group.tolist()
        return code, keys
    # Only a mirrored or foreign topic has a group's commits in several partitions.
    keyed, code = np.unique(lane * len(keys.topic) + code, return_inverse=True)
    lane, old = np.divmod(keyed, len(keys.topic))
    grouped, group = np.unique(lane * len(keys.groups) + keys.group[old], return_inverse=True)
    lane, named = np.divmod(grouped, len(keys.groups))
    return code, Keys(
        groups=[keys.groups[number] for number in named.tolist()],
        group=group,
        lane=lane.tolist(),
        topic=[keys.topic[number] for number in old.tolist()],
        partition=[keys.partition[number] for number in old.tolist()],
        legacy=keys.legacy[old],
    )


def _are_sane(rows: Rows, row: Ints, time_at: Ints) -> Bools:
    """Say for plain values whether offset and time are possible; the others are refused one by one."""
    offset, committed_at_ms = rows.value.number(rows.value.start[row] + 2, 8), rows.value.number(time_at, 8)
    return np.asarray((offset >= 0) & (committed_at_ms >= -1) & (committed_at_ms <= TIME_MS_MAX))


def _parts(key: BinaryColumn, layout: KeyLayout, legible: Bools) -> Keys:
    """Return the parts of readable keys."""
    group_end, topic_end = layout.group_end * legible, layout.topic_end * legible
    group = key.texts(key.start + 4, np.maximum(group_end - 4, 0)).dictionary_encode()
    return Keys(
        groups=group.dictionary.to_pylist(),
        group=group.indices.to_numpy().astype(np.int64),
        lane=[],
        topic=key.texts(key.start + group_end + 2, np.maximum(topic_end - group_end - 2, 0)).to_pylist(),
        partition=layout.partition.tolist(),
        legacy=key.byte(key.start + 1) == LEGACY_OFFSET_COMMIT,
    )


def _read_odd_value(rows: Rows, row: int, faults: _Faults) -> CommitValue | None:
    """Return the content of a value without a plain layout, or count it as a fault."""
    key, value = rows.key.at(row), rows.value.at(row)
    try:
        return read_commit_value((key or b"")[1], value or b"")
    except DecodeError as error:
        faults.add(rows, row, error)
        return None


def _count_commits(commits: Commits, decoded: Decoded) -> None:
    legacy = commits.keys.legacy[commits.code]
    for record_type, typed in ((LEGACY_OFFSET_COMMIT, legacy), (OFFSET_COMMIT, ~legacy)):
        for tombstone, alike in ((False, typed & ~commits.tombstone), (True, typed & commits.tombstone)):
            size = int(np.count_nonzero(alike))
            if size:
                decoded.count(ORIGIN, kind_of(record_type, tombstone=tombstone), size)
