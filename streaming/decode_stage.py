"""The stateless stage: rows of Kafka in, one cell of packed observations per shard out.

Runs in Spark's Python workers by ``mapInArrow``.  The decoders decide what a row means; this file
only hands them their rows and sees to it that nothing in a row, and no bug in a decoder, stops the
query.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.observations import CLUSTER_SHARD, Counted, Seen, Source, Undecodable, pack
from streaming.decoded import Decoded
from streaming.decoding_control import decode_control
from streaming.decoding_events import decode_events
from streaming.decoding_offsets import decode_offsets

SCHEMA = "shard int, payload binary"
"""What the stage yields."""

OFFSETS, EVENTS, CONTROL = 0, 1, 2
"""Values of the column ``feed``: which input a row came from."""

_NAMES = {OFFSETS: "offsets", EVENTS: "events", CONTROL: "control"}
_SOURCES = {OFFSETS: Source.OFFSETS, EVENTS: Source.COORDINATOR_LOG, CONTROL: Source.CONTROL}
_SAMPLE_BYTES = 512
_ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("payload", pa.binary())])

_BYTES_AT_ONCE = 128 * 2**20
"""What is folded together: a member's heartbeats become one observation for each such heap of rows."""

_Decode = Callable[[pa.Table], Decoded]


@dataclass(frozen=True)
class DecodeStage:
    """The function for ``mapInArrow``: small, and pickled by reference to this module."""

    shard_count: int
    run: str = ""
    timezone: str = "UTC"
    offsets_ends: Mapping[int, int] = field(default_factory=dict)
    """Ends of the offsets partitions at the first start: what stood before is backlog."""
    events_ends: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield shards and their cells for raw rows (``sources.read``)."""
        decoders = self._decoders()
        for heap in _heaps(batches):
            cells: dict[int, list[Seen]] = {}
            for feed, rows in _by_feed(heap):
                decoded = _decode_safely(decoders[feed], rows, _NAMES[feed])
                for shard, seen in decoded.cells.items():
                    cells.setdefault(shard, []).extend(seen)
                cells.setdefault(CLUSTER_SHARD, []).extend(_account(decoded, rows, _SOURCES[feed]))
            if cells:
                yield _packed(cells)

    def _decoders(self) -> dict[int, _Decode]:
        return {
            OFFSETS: partial(decode_offsets, shard_count=self.shard_count, backlog_ends=self.offsets_ends),
            EVENTS: partial(
                decode_events,
                shard_count=self.shard_count,
                backlog_ends=self.events_ends,
                timezone=self.timezone,
            ),
            CONTROL: partial(decode_control, shard_count=self.shard_count, backlog_ends={}, run=self.run),
        }


def _heaps(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of as many batches at once as memory allows."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _by_feed(heap: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each feed, in their order."""
    feeds = heap.column("feed").to_numpy()
    present = np.unique(feeds)
    for feed in present:
        rows = heap if len(present) == 1 else heap.filter(pa.array(feeds == feed))
        yield int(feed), rows


def _decode_safely(decode: _Decode, rows: pa.Table, origin: str) -> Decoded:
    """Decode; where the decoder itself fails, halve until the row that makes it fail stands alone."""
    try:
        return decode(rows)
    except Exception as error:
        if rows.num_rows == 1:
            return Decoded(cells={}, counts={}, bad=[_internal_error(rows, origin, error)])
    middle = rows.num_rows // 2
    result = Decoded(cells={}, counts={}, bad=[])
    for half in (rows.slice(0, middle), rows.slice(middle)):
        _merge(result, _decode_safely(decode, half, origin))
    return result


def _merge(into: Decoded, other: Decoded) -> None:
    for shard, seen in other.cells.items():
        into.cells.setdefault(shard, []).extend(seen)
    for key, count in other.counts.items():
        into.counts[key] = into.counts.get(key, 0) + count
    into.bad.extend(other.bad)


def _internal_error(row: pa.Table, origin: str, error: Exception) -> Undecodable:
    value = row.column("value")[0].as_py() or b""
    return Undecodable(
        origin=origin,
        reason="internal_error",
        count=1,
        sample=value[:_SAMPLE_BYTES],
        detail=f"{type(error).__name__}: {error}"[:200],
    )


def _account(decoded: Decoded, rows: pa.Table, source: Source) -> Iterator[Seen]:
    """Yield what the cluster-wide shard must know of these rows: how many of what, and the bad ones."""
    notes: list[Counted | Undecodable] = list(decoded.bad)
    if decoded.counts:
        counts = tuple((name, kind, count) for (name, kind), count in sorted(decoded.counts.items()))
        notes.append(Counted(counts=counts))
    if not notes:
        return
    last = rows.num_rows - 1
    newest_ms = pc.max(rows.column("timestamp_ms")).as_py()
    for index, what in enumerate(notes):
        yield Seen(
            at_ms=newest_ms,
            source=source,
            partition=rows.column("partition")[last].as_py(),
            offset=rows.column("offset")[last].as_py(),
            index=index,
            broker=-1,
            recorded_at_ms=newest_ms,
            backlog=False,
            what=what,
        )


def _packed(cells: Mapping[int, list[Seen]]) -> pa.RecordBatch:
    shards = pa.array(list(cells), pa.int32())
    payloads = pa.array([pack(seen) for seen in cells.values()], pa.binary())
    return pa.RecordBatch.from_arrays([shards, payloads], schema=_ARROW_SCHEMA)
