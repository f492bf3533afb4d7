"""Takes lines out of the JSON in which shippers send them, before the columns are read.

Most users' rows are JSON objects around one whole line in Kafka's own pattern.  Most lines are read where
they stand (``quiet_columns.Reader.found``); the others are taken out one by one, and then take the same way
as bare ones.  What an envelope says beside the line counts only for lines that are not so simple
(``decoding.open_lines``), which stay.

Parts of cut lines need their envelopes, and so do the lines between them: once a row may be such a part,
nothing is taken out any more.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from coordinator_model import decoding
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.quiet_columns import Found

_OPENING, _BRACKET, _TWO = ord("{"), ord("["), ord("2")
_REQUEST = b"Completed request:"
_NOT_TEXT = b'[{"\n'
_NONE: Ints = np.zeros(0, np.int64)
_broker_of = lru_cache(maxsize=4096)(decoding.key_broker)


class Envelopes:
    """Takes lines out of their envelopes, table after table."""

    def __init__(self) -> None:
        """Start without any row that may be a part of a line."""
        self.may_have_parts = False
        """Nothing is taken out of an envelope any more."""

    def opened(self, rows: pa.Table, found: Found | None = None) -> tuple[pa.Table, Ints]:
        """Return the rows with the lines of simple envelopes as values, and with their brokers as keys.

        The rows that were ``found`` keep their values.  The numbers of those that were taken out come with
        the rows, ascending.
        """
        if self.may_have_parts or not rows.num_rows:
            return rows, _NONE
        left = np.ones(rows.num_rows, np.bool_)
        if found is not None:
            left[found.row] = False
        other: Ints = np.flatnonzero(left)
        return self._taken_out(rows, other) if len(other) else (rows, _NONE)

    def _taken_out(self, rows: pa.Table, other: Ints) -> tuple[pa.Table, Ints]:
        values = rows.column("value").combine_chunks()
        keys = rows.column("key").combine_chunks().dictionary_encode()
        texts = [*keys.dictionary.to_pylist(), None]
        code: Ints = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        column = BinaryColumn(values)
        other = _not_own(column, other[~_is_clock(code[other], texts)])
        if not len(other):
            return rows, _NONE
        # All at once cost little more than these, and most are needed again.
        whole = values.to_pylist() if 2 * len(other) > rows.num_rows else None
        those = column.those(other) if whole is None else [whole[row] for row in other.tolist()]
        found = [
            self._line(value, texts[one]) for value, one in zip(those, code[other].tolist(), strict=True)
        ]
        if self.may_have_parts:
            return rows, _NONE
        rows = _replaced(rows, values.to_pylist() if whole is None else whole, other, found)
        return rows, other[[one is not None for one in found]]

    def _line(self, value: bytes | None, key: bytes | None) -> tuple[bytes, int] | None:
        """Return the line and the broker of a simple envelope; None for anything else."""
        if not value:
            return None
        if value[:1] == b"{":
            simple = decoding.whole_line(value, _broker_of(key))
            self.may_have_parts |= simple is decoding.MAY_BE_PART
            return simple if isinstance(simple, tuple) else None
        is_text = value[:1] not in _NOT_TEXT
        self.may_have_parts |= not is_text or decoding.may_hold_parts(value.decode(errors="replace"))
        return None


def named_brokers(rows: pa.Table) -> Ints:
    """Return the broker that the key of each row names, -1: none, -2: the row is a copy of the clock."""
    keys = rows.column("key").combine_chunks().dictionary_encode()
    texts = keys.dictionary.to_pylist()
    named = np.array([*(-2 if key == CLOCK_KEY else _broker_of(key) for key in texts), -1], np.int64)
    return np.asarray(named[keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


def _is_clock(code: Ints, texts: Sequence[bytes | None]) -> Bools:
    """Say for each row whether it is a copy of the clock."""
    return np.asarray(code == texts.index(CLOCK_KEY)) if CLOCK_KEY in texts else np.zeros(len(code), np.bool_)


def _not_own(column: BinaryColumn, row: Ints) -> Ints:
    """Return those of these rows that are neither bare lines in Kafka's own pattern nor empty."""
    row = row[column.present[row] & (column.length[row] > 0)]
    start = column.start[row]
    is_own = (column.byte(start) == _BRACKET) & (column.byte(start + 1) == _TWO) & (column.length[row] > 1)
    row = row[~is_own]
    return row[~column.holds(row, column.start[row], _REQUEST)]


def _replaced(
    rows: pa.Table, texts: list[bytes | None], other: Ints, found: Sequence[tuple[bytes, int] | None]
) -> pa.Table:
    """Return the rows, whose values are ``texts``, with what was found in place of the envelopes."""
    if all(one is None for one in found):
        return rows
    keys = None
    for row, one in zip(other.tolist(), found, strict=True):
        if one is None:
            continue
        texts[row], broker = one
        if broker >= 0:
            keys = keys or rows.column("key").to_pylist()
            if _broker_of(keys[row]) != broker:
                keys[row] = b"%d" % broker
    rows = _with(rows, "value", texts)
    return rows if keys is None else _with(rows, "key", keys)


def _with(rows: pa.Table, name: str, values: Sequence[bytes | None]) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, name, pa.array(values, rows.schema.field(name).type))
