"""Rows of the events topic as they are held until they are decoded: heartbeats as numbers, others as lines.

A heartbeat's line is 800 bytes and says a handful of numbers.  So the lines themselves need not be held to
fold all the heartbeats that a member sent in minutes into one observation.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.decoders import heartbeat_columns
from streaming.decoders.binary_column import Bools, Ints
from streaming.decoders.heartbeat_columns import Beats
from streaming.decoders.stretches import Place

_ROW_BYTES, _BEAT_BYTES = 200, 100
"""What a row costs beside its value, and a heartbeat beside the names of its sender."""
_LOG = logging.getLogger(__name__)


class Piece(NamedTuple):
    """Neighbouring rows of one partition with one key, all in the backlog or all behind it."""

    partition: int
    key: bytes | None
    backlog: bool
    offsets: Sequence[int]
    stamps: Sequence[int]
    values: Sequence[bytes | None]
    beats: Beats | None = None
    """What of the piece's rows was read as columns; the other fields are about the other rows."""

    def place(self, index: int) -> Place:
        """Return where a row stands."""
        return Place(self.partition, self.offsets[index], self.stamps[index], self.backlog)

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return len(self.values) + (0 if self.beats is None else len(self.beats.row))

    def slice(self, start: int, length: int) -> "Piece":
        """Return some of its rows, of which the heartbeats are the first."""
        beats, count = self.beats, 0
        if beats is not None:
            count = len(beats.row)
            beats = beats.cut(start, start + length)
        cut = slice(max(0, start - count), max(0, start + length - count))
        return self._replace(
            offsets=self.offsets[cut], stamps=self.stamps[cut], values=self.values[cut], beats=beats
        )


class Lines(NamedTuple):
    """Rows in the order of their partitions, from one ``LineReader``."""

    pieces: Sequence[Piece]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return sum(piece.num_rows for piece in self.pieces)

    @property
    def sample(self) -> bytes:
        """Value of the first row that is held as it is."""
        return next((value or b"" for piece in self.pieces for value in piece.values), b"")

    def slice(self, start: int, length: int) -> "Lines":
        """Return some of the rows."""
        found, first = [], 0
        for piece in self.pieces:
            low, high = max(start - first, 0), min(start + length - first, piece.num_rows)
            if low < high:
                found.append(piece.slice(low, high - low))
            first += piece.num_rows
        return Lines(found)


class LineReader:
    """Reads the heartbeats among the rows that it is given."""

    def __init__(self, backlog_ends: Mapping[int, int]) -> None:
        """Begin; rows before a partition's ``backlog_ends`` are backlog."""
        self._backlog_ends = backlog_ends
        self._columns = heartbeat_columns.Reader()
        self._size = 0

    @property
    def size(self) -> int:
        """What all that it has read costs to hold, in bytes, roughly."""
        return self._size + self._columns.names.bytes

    def lines(self, rows: pa.Table) -> Lines:
        """Return the rows; heartbeats that cannot be read as a column are left as they are."""
        return Lines(list(self._pieces(rows)) if rows.num_rows else [])

    def _pieces(self, rows: pa.Table) -> Iterator[Piece]:
        """Yield rows cut where what is the same for many of them changes."""
        partition, offset, stamp = (
            rows.column(name).to_numpy() for name in ("partition", "offset", "timestamp_ms")
        )
        keys = rows.column("key").combine_chunks().dictionary_encode()
        code = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        texts = [*keys.dictionary.to_pylist(), None]
        backlog = np.zeros(rows.num_rows, np.bool_)
        for one in np.unique(partition).tolist():
            backlog |= (partition == one) & (offset < self._backlog_ends.get(one, 0))
        differs = (np.diff(partition) != 0) | (np.diff(code) != 0) | (np.diff(backlog) != 0)
        edges = [0, *(np.flatnonzero(differs) + 1).tolist(), rows.num_rows]
        beats = self._beats(rows.column("value"), offset, stamp)
        other = _without(rows.num_rows, beats)
        others = np.flatnonzero(other)
        values = rows.column("value").filter(pa.array(other)).to_pylist()
        self._size += sum(_ROW_BYTES + len(value or b"") for value in values)
        self._size += _BEAT_BYTES * (rows.num_rows - len(others))
        for start, end in pairwise(edges):
            first, last = np.searchsorted(others, (start, end))
            mine = others[first:last]
            yield Piece(
                partition=int(partition[start]),
                key=texts[code[start]],
                backlog=bool(backlog[start]),
                offsets=offset[mine].tolist(),
                stamps=stamp[mine].tolist(),
                values=values[first:last],
                beats=None if beats is None else beats.between(start, end),
            )

    def _beats(self, values: pa.ChunkedArray, offset: Ints, stamp: Ints) -> Beats | None:
        try:
            return self._columns.read(values, offset, stamp)
        except Exception:
            # Whichever row it is: line by line, only that one will fail.
            _LOG.exception("heartbeats are read line by line")
            return None


def _without(rows: int, beats: Beats | None) -> Bools:
    other = np.ones(rows, np.bool_)
    if beats is not None:
        other[beats.row] = False
    return other
