"""Buffers rows of the events topic until they are decoded: heartbeats as numbers, others as lines.

A heartbeat's line has 800 bytes and carries a handful of numbers.  Without the lines, all heartbeats that a
member sent in minutes fit into memory and are coalesced into one observation.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.decoders import quiet_columns
from streaming.decoders.binary_column import Bools, Ints
from streaming.decoders.cut_lines import CUT
from streaming.decoders.envelopes import Envelopes, named_brokers
from streaming.decoders.quiet_columns import Beats, Found, joined_rows
from streaming.decoders.stretches import RowPlace

_ROW_BYTES, _BEAT_BYTES = 200, 100
"""The cost of a row besides its value, and of a heartbeat besides its sender's names."""
_LOG = logging.getLogger(__name__)


class RowBlock(NamedTuple):
    """Neighbouring rows of one partition with one key, all in the backlog or all after it."""

    partition: int
    key: bytes | None
    backlog: bool
    offsets: Sequence[int]
    stamps: Sequence[int]
    values: Sequence[bytes | None]
    beats: Beats | None = None
    """The rows that were read as columns; the other fields concern the other rows."""

    def place(self, index: int) -> RowPlace:
        """Return the place of a row."""
        return RowPlace(self.partition, self.offsets[index], self.stamps[index], self.backlog)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.values) + (0 if self.beats is None else len(self.beats.row))

    def slice(self, start: int, length: int) -> "RowBlock":
        """Return some of its rows; its heartbeats come first."""
        beats, count = self.beats, 0
        if beats is not None:
            count = len(beats.row)
            beats = beats.cut(start, start + length)
        cut = slice(max(0, start - count), max(0, start + length - count))
        return self._replace(
            offsets=self.offsets[cut], stamps=self.stamps[cut], values=self.values[cut], beats=beats
        )


class BufferedLines(NamedTuple):
    """Rows in the order of their partitions, from one ``LineReader``."""

    blocks: Sequence[RowBlock]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(block.num_rows for block in self.blocks)

    @property
    def sample(self) -> bytes:
        """Value of the first row that is buffered as a line."""
        return next((value or b"" for block in self.blocks for value in block.values), b"")

    def slice(self, start: int, length: int) -> "BufferedLines":
        """Return some of the rows."""
        found, first = [], 0
        for block in self.blocks:
            low, high = max(start - first, 0), min(start + length - first, block.num_rows)
            if low < high:
                found.append(block.slice(low, high - low))
            first += block.num_rows
        return BufferedLines(found)


class LineReader:
    """Reads the heartbeats among the rows that it gets."""

    def __init__(self, backlog_ends: Mapping[int, int], timezone: str) -> None:
        """Start.

        Args:
            backlog_ends: by partition; rows before them are backlog.
            timezone: of times in lines that give none.
        """
        self._backlog_ends = backlog_ends
        self._columns = quiet_columns.Reader(timezone)
        self._envelopes = Envelopes()
        self._size = 0

    @property
    def size(self) -> int:
        """Rough cost in bytes of all that it has read."""
        return self._size + self._columns.bytes

    def lines(self, rows: pa.Table) -> BufferedLines:
        """Return the rows; heartbeats that cannot be read as a column stay lines."""
        return BufferedLines(list(self._blocks(rows)) if rows.num_rows else [])

    def _blocks(self, rows: pa.Table) -> Iterator[RowBlock]:
        """Yield rows, cut wherever partition, key or backlog changes."""
        partition, offset, stamp = (
            rows.column(name).to_numpy() for name in ("partition", "offset", "timestamp_ms")
        )
        rows, found = self._found(rows, stamp)
        keys = rows.column("key").combine_chunks().dictionary_encode()
        code = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        texts = [*keys.dictionary.to_pylist(), None]
        backlog = np.zeros(rows.num_rows, np.bool_)
        for one in np.unique(partition).tolist():
            backlog |= (partition == one) & (offset < self._backlog_ends.get(one, 0))
        differs = (np.diff(partition) != 0) | (np.diff(code) != 0) | (np.diff(backlog) != 0)
        edges = [0, *(np.flatnonzero(differs) + 1).tolist(), rows.num_rows]
        beats = None if found is None else self._columns.beats(found, offset, stamp)
        other = _without(rows.num_rows, beats)
        others = np.flatnonzero(other)
        values = rows.column("value").filter(pa.array(other)).to_pylist()
        self._size += sum(_ROW_BYTES + len(value or b"") for value in values)
        self._size += _BEAT_BYTES * (rows.num_rows - len(others))
        for start, end in pairwise(edges):
            first, last = np.searchsorted(others, (start, end))
            mine = others[first:last]
            yield RowBlock(
                partition=int(partition[start]),
                key=texts[code[start]],
                backlog=bool(backlog[start]),
                offsets=offset[mine].tolist(),
                stamps=stamp[mine].tolist(),
                values=values[first:last],
                beats=None if beats is None else beats.between(start, end),
            )

    def _found(self, rows: pa.Table, stamp: Ints) -> tuple[pa.Table, Found | None]:
        """Return the rows without simple envelopes, and those that were read as columns."""
        found = self._read(rows, stamp)
        if CUT in rows.column_names:
            rows = rows.drop_columns([CUT])
        rows, taken = self._envelopes.opened(rows, found)
        if found is None:
            return rows, None
        if self._envelopes.may_have_parts:
            return rows, found.those(found.is_alone)
        if not len(taken):
            return rows, found
        again = self._read(rows.take(pa.array(taken)), stamp[taken])
        return rows, found if again is None else joined_rows([found, again.in_rows(taken)])

    def _read(self, rows: pa.Table, stamp: Ints) -> Found | None:
        try:
            cut = rows.column(CUT) if CUT in rows.column_names else None
            return self._columns.found(rows.column("value"), stamp, named_brokers(rows), cut)
        except Exception:
            # Whichever row it is: read line by line, only that one will fail.
            _LOG.exception("lines are read one by one")
            return None


def _without(rows: int, beats: Beats | None) -> Bools:
    other = np.ones(rows, np.bool_)
    if beats is not None:
        other[beats.row] = False
    return other
