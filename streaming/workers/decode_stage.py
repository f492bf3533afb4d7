"""The stateless stage: takes rows of Kafka, yields one cell of packed observations per shard.

Spark's Python workers run it with ``mapInArrow``.  The decoders decide what a row means; this module only
hands them their rows, and makes sure that neither a row's content nor a decoder's bug stops the query.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.observations import CLUSTER_SHARD, Counted, Seen, Source, Undecodable, is_time_ms
from streaming.decoders import (
    CUT,
    BufferedLines,
    Decoded,
    LineReader,
    RowBlock,
    decode_control,
    decode_lines,
    decode_offsets,
    pack_cells,
    plain,
)
from streaming.workers.blocks import unpacked
from streaming.workers.collector import collector_paused
from streaming.workers.worker_memory import keep_memory

SCHEMA = "shard int, payload binary"
"""The stage's output columns."""

OFFSETS, EVENTS, CONTROL = 0, 1, 2
"""Values of the column ``feed``: which input a row came from."""

_SAMPLE_BYTES = 512
_ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("payload", pa.binary())])

_YIELDED_BYTES_MAX = 2**30
"""Most bytes of cells in one Arrow batch: a column cannot have 2 GiB."""
_BYTES_AT_ONCE = 128 * 2**20
"""Rows that are coalesced together: each member's heartbeats in such a heap become one observation."""


class _Rows(Protocol):
    """The buffered rows of one feed."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> Self: ...


@dataclass(frozen=True)
class DecodeStage:
    """The function for ``mapInArrow``: small, and pickled by reference to this module."""

    shard_count: int
    run: str = ""
    timezone: str = "UTC"
    offsets_ends: Mapping[int, int] = field(default_factory=dict)
    """Ends of the offsets partitions at the first start; rows before them are backlog."""
    events_ends: Mapping[int, int] = field(default_factory=dict)
    secret: str = ""
    """The seal of our run's clocks; "" for a checkpoint without one."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield shards and their cells for what ``streaming.pipeline.read_sources`` reads, rows or blocks."""
        keep_memory()
        heaps = self._heaps()
        for batch in chain.from_iterable(map(unpacked, batches)):
            for feed, rows in _by_feed(batch):
                heaps[feed].take(rows)
            if sum(heap.size for heap in heaps.values()) >= _BYTES_AT_ONCE:
                yield from _packed(heaps)
                heaps = self._heaps()
        yield from _packed(heaps)

    def _heaps(self) -> dict[int, "_Heap[Any]"]:
        offsets = partial(decode_offsets, shard_count=self.shard_count, backlog_ends=self.offsets_ends)
        lines = partial(
            decode_lines,
            shard_count=self.shard_count,
            timezone=self.timezone,
            run=self.run,
            secret=self.secret,
            puts_together=True,
        )
        reader = LineReader(self.events_ends, self.timezone)
        control = partial(
            decode_control,
            shard_count=self.shard_count,
            backlog_ends={},
            run=self.run,
            secret=self.secret,
        )
        return {
            OFFSETS: _Tables("offsets", Source.OFFSETS, offsets),
            EVENTS: _EventLines("events", Source.COORDINATOR_LOG, lines, reader),
            CONTROL: _Tables("control", Source.CONTROL, control),
        }


_RowsT = TypeVar("_RowsT", bound=_Rows)


class _Heap(ABC, Generic[_RowsT]):
    """Rows of one feed, buffered until there are enough or no more."""

    def __init__(self, name: str, source: Source, decode: Callable[[_RowsT], Decoded]) -> None:
        self.name = name
        self._source = source
        self._decode = decode
        self._last = (-1, -1)
        self._newest_ms = -1
        self._not_held: list[Undecodable] = []

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the buffered rows."""

    def take(self, rows: pa.Table) -> None:
        """Buffer some more rows."""
        last = rows.num_rows - 1
        self._last = rows.column("partition")[last].as_py(), rows.column("offset")[last].as_py()
        newest_ms = pc.max(rows.column("timestamp_ms")).as_py()
        # A topic with its writers' times may have any; a time in the year 40000 must not date the counts.
        if newest_ms is not None and is_time_ms(newest_ms):
            self._newest_ms = max(self._newest_ms, newest_ms)
        with collector_paused():
            self._hold_safely(rows)

    def into(self, cells: dict[int, list[Seen]]) -> None:
        """Decode the buffered rows."""
        decoded = self._decode_safely(self._held()) if self.size else Decoded()
        decoded.bad.extend(self._not_held)
        for shard, seen in decoded.cells.items():
            cells.setdefault(shard, []).extend(seen)
        accounts = list(self._account(decoded))
        if accounts:
            cells.setdefault(CLUSTER_SHARD, []).extend(accounts)

    def _hold_safely(self, rows: pa.Table) -> None:
        """Buffer rows; if that fails, halve them until the row that fails stands alone."""
        try:
            self._hold(rows)
        except Exception as error:
            if rows.num_rows == 1:
                value = rows.column("value")[0].as_py() or b""
                self._not_held.append(self._internal_error(value, error))
                return
            middle = rows.num_rows // 2
            self._hold_safely(rows.slice(0, middle))
            self._hold_safely(rows.slice(middle))

    @abstractmethod
    def _hold(self, rows: pa.Table) -> None:
        """Buffer rows."""

    @abstractmethod
    def _held(self) -> _RowsT:
        """Return the buffered rows."""

    @abstractmethod
    def _sample(self, row: _RowsT) -> bytes:
        """Return the value of one row."""

    def _decode_safely(self, rows: _RowsT) -> Decoded:
        """Decode; if the decoder fails, halve the rows until the row that fails stands alone."""
        count = rows.num_rows
        try:
            return self._decode(rows)
        except Exception as error:
            if count == 1:
                return Decoded(cells={}, counts={}, bad=[self._internal_error(self._sample(rows), error)])
        result = Decoded(cells={}, counts={}, bad=[])
        middle = count // 2
        for half in (rows.slice(0, middle), rows.slice(middle, count - middle)):
            _merge(result, self._decode_safely(half))
        return result

    def _internal_error(self, value: bytes, error: Exception) -> Undecodable:
        return Undecodable(
            origin=self.name,
            reason="internal_error",
            count=1,
            sample=value[:_SAMPLE_BYTES],
            detail=plain(f"{type(error).__name__}: {error}"[:200]),
        )

    def _account(self, decoded: Decoded) -> Iterator[Seen]:
        """Yield the facts about these rows for the cluster's shard: counts by kind, and the bad rows."""
        notes: list[Counted | Undecodable] = merged(decoded.bad)
        if decoded.counts:
            counts = tuple((name, kind, count) for (name, kind), count in sorted(decoded.counts.items()))
            committed = tuple(sorted(decoded.committed_ms.items()))
            notes.append(Counted(counts=counts, committed=committed))
        for index, what in enumerate(notes):
            yield Seen(
                at_ms=self._newest_ms,
                source=self._source,
                partition=self._last[0],
                offset=self._last[1],
                index=index,
                broker=-1,
                recorded_at_ms=self._newest_ms,
                backlog=False,
                what=what,
            )


class _Tables(_Heap[pa.Table]):
    """Rows buffered as they came."""

    def __init__(self, name: str, source: Source, decode: Callable[[pa.Table], Decoded]) -> None:
        super().__init__(name, source, decode)
        self._tables: list[pa.Table] = []
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes of the buffered rows."""
        return self._size

    def _hold(self, rows: pa.Table) -> None:
        if CUT in rows.column_names:
            rows = rows.drop_columns([CUT])  # of lines beside them in the block
        self._tables.append(rows)
        self._size += rows.nbytes

    def _held(self) -> pa.Table:
        return pa.concat_tables(self._tables)

    def _sample(self, row: pa.Table) -> bytes:
        return row.column("value")[0].as_py() or b""


class _EventLines(_Heap[BufferedLines]):
    """Lines; heartbeats among them are read when they are buffered."""

    def __init__(
        self, name: str, source: Source, decode: Callable[[BufferedLines], Decoded], reader: LineReader
    ) -> None:
        super().__init__(name, source, decode)
        self._reader = reader
        self._blocks: list[RowBlock] = []

    @property
    def size(self) -> int:
        """Bytes of the buffered lines."""
        return self._reader.size

    def _hold(self, rows: pa.Table) -> None:
        self._blocks += self._reader.lines(rows).blocks

    def _held(self) -> BufferedLines:
        return BufferedLines(self._blocks)

    def _sample(self, row: BufferedLines) -> bytes:
        return row.sample


def _by_feed(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each feed, in their order."""
    rows = pa.Table.from_batches([batch])
    feeds = batch.column("feed")
    present = pc.unique(feeds).to_pylist()
    for feed in sorted(present):
        yield feed, rows if len(present) == 1 else rows.filter(pc.equal(feeds, feed))


def _merge(into: Decoded, other: Decoded) -> None:
    for shard, seen in other.cells.items():
        into.cells.setdefault(shard, []).extend(seen)
    for key, count in other.counts.items():
        into.counts[key] = into.counts.get(key, 0) + count
    into.bad.extend(other.bad)
    for partition, at_ms in other.committed_ms.items():
        into.committed_ms[partition] = max(into.committed_ms.get(partition, at_ms), at_ms)


def merged(bad: Iterable[Undecodable]) -> list[Counted | Undecodable]:
    """Return one per reason, with the number of its rows and the first sample: there may be a million."""
    found: dict[tuple[str, str], Undecodable] = {}
    counts: dict[tuple[str, str], int] = {}
    for one in bad:
        key = (one.origin, one.reason)
        found.setdefault(key, one)
        counts[key] = counts.get(key, 0) + one.count
    return [msgspec.structs.replace(one, count=counts[key]) for key, one in found.items()]


def _packed(heaps: Mapping[int, _Heap[Any]]) -> Iterator[pa.RecordBatch]:
    # The pause ends with the cells: the collector examines what is left when it resumes.
    with collector_paused():
        packed = _packed_cells(heaps)
    while packed:
        some: list[tuple[int, bytes]] = []
        size = 0
        while packed and (not some or size + len(packed[0][1]) <= _YIELDED_BYTES_MAX):
            some.append(packed.popleft())
            size += len(some[-1][1])
        shards = pa.array([shard for shard, _ in some], pa.int32())
        payloads = pa.array([payload for _, payload in some], pa.binary())
        yield pa.RecordBatch.from_arrays([shards, payloads], schema=_ARROW_SCHEMA)


def _packed_cells(heaps: Mapping[int, _Heap[Any]]) -> deque[tuple[int, bytes]]:
    cells: dict[int, list[Seen]] = {}
    for heap in heaps.values():
        heap.into(cells)
    return deque(pack_cells(cells))
