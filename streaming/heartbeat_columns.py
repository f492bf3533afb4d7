"""Heartbeat lines of a whole column at once.

The same lines as ``heartbeat_lines.LINE``, split by Arrow at the words that stand once in each; what
is left between them repeats from line to line, so each distinct piece is matched once.  Only the
measured times differ everywhere.  A row that is not found here may still be a heartbeat.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming import heartbeat_lines as lines
from streaming.binary_column import BinaryColumn, Bools, Ints

T = TypeVar("T")
_Who = tuple[bytes, bytes, bytes]
"""Client id, identity, connection."""
_Origin = tuple[bytes, bytes]
"""Principal, software."""

_SECOND = re.compile(lines.SECOND)
_HEAD = re.compile(lines.LEVEL + lines.HEAD)
_WHO = re.compile(lines.WHO)
_FROM = re.compile(lines.FROM)
_TIMES = "^" + lines.TIMES.decode().replace("++", "+") + "$"
_DATE_SIZE = len("[2026-11-21 06:28:53,123")
_CORRELATION_DIGITS_MAX = 10
_DIGITS = "0123456789"
_SECOND_SIZE = len("2026-11-21 06:28:53")
_SLICE = 16_384
"""Rows split up at once: what is made of them stays in memory that is used again (of 130,000 at once: a third
of the speed)."""


class Sender(NamedTuple):
    """Who sent a heartbeat, with its answer, as the line has it."""

    identity: bytes
    client: lines.ClientTexts


class Beats(NamedTuple):
    """The rows that are heartbeat lines, and what each says."""

    row: Ints
    """Ascending."""
    offset: Ints
    stamp: Ints
    """Timestamp of the record, epoch ms."""
    second: Ints
    """Which of ``seconds``."""
    millis: Ints
    sender: Ints
    """Which of ``senders``."""
    seconds: list[bytes]
    senders: list[Sender]

    def between(self, start: int, end: int) -> "Beats":
        """Return those of the rows ``start`` to ``end - 1``."""
        first, last = np.searchsorted(self.row, (start, end))
        cut = slice(first, last)
        return Beats(
            self.row[cut],
            self.offset[cut],
            self.stamp[cut],
            self.second[cut],
            self.millis[cut],
            self.sender[cut],
            self.seconds,
            self.senders,
        )


def read(values: pa.ChunkedArray, offset: Ints, stamp: Ints) -> Beats:
    """Return the heartbeats among ``values`` (binary) that have a date before them.

    Args:
        values: log lines, at least one.
        offset: of each in its partition.
        stamp: each record's timestamp, epoch ms.
    """
    slices = [_split_up(part, start) for part, start in _slices(values)]
    row, second, millis = (np.concatenate([getattr(one, name) for one in slices]) for name in _NUMBERS)
    who_code, whos = _distinct(pa.chunked_array([one.who for one in slices]), _who)
    origin_code, origins = _distinct(pa.chunked_array([one.origin for one in slices]), _origin)
    seconds, dated = _seconds(second)
    good = (who_code >= 0) & (origin_code >= 0) & (dated >= 0)
    row, sender, senders = row[good], *_senders(who_code[good], origin_code[good], whos, origins)
    return Beats(row, offset[row], stamp[row], dated[good], millis[good], sender, seconds, senders)


def _slices(values: pa.ChunkedArray) -> Iterator[tuple[pa.Array, int]]:
    """Yield parts of a column, each with the row that it begins at."""
    first = 0
    for chunk in values.chunks:
        for start in range(0, len(chunk), _SLICE):
            yield chunk.slice(start, _SLICE), first + start
        first += len(chunk)


class _Parts(NamedTuple):
    """The parts of lines that may be heartbeats."""

    row: Ints
    second: npt.NDArray[np.bytes_]
    millis: Ints
    who: pa.Array
    origin: pa.Array


_NUMBERS = ("row", "second", "millis")


def _split_up(values: pa.Array, start: int) -> _Parts:
    """Return the parts of a slice of the column that begins at row ``start``."""
    row = np.arange(start, start + len(values))
    row, head, rest = _halves(row, values, lines.WHO_AFTER)
    row, who, rest, head = _halves(row, rest, lines.TIMES_AFTER, head)
    row, times, origin, head, who = _halves(row, rest, lines.FROM_AFTER, head, who)
    good = pc.match_substring_regex(times, _TIMES).to_numpy(zero_copy_only=False)
    second, millis, dated = _dates(head)
    good = good & dated
    if not good.all():
        keep = pa.array(good)
        row, second, millis, who, origin = (
            row[good],
            second[good],
            millis[good],
            who.filter(keep),
            origin.filter(keep),
        )
    return _Parts(row, second, millis, who, origin)


def _halves(row: Ints, column: pa.Array, words: bytes, *others: pa.Array) -> tuple[Any, ...]:
    """Return which rows hold ``words``, what stands before and behind them, and those rows of others."""
    halves, found = _split(column, words)
    kept = others if found.all() else [other.filter(pa.array(found)) for other in others]
    return row[found], pc.list_element(halves, 0), pc.list_element(halves, 1), *kept


def _split(column: pa.Array, words: bytes) -> tuple[pa.Array, Bools]:
    halves = pc.split_pattern(column, pattern=words, max_splits=1)
    found = pc.equal(pc.list_value_length(halves), 2).fill_null(False)
    places = found.to_numpy(zero_copy_only=False)
    return halves if places.all() else halves.filter(found), places


def _dates(head: pa.Array) -> tuple[npt.NDArray[np.bytes_], Ints, Bools]:
    """Return the second and the milliseconds that each head begins with, and whether it is a head."""
    column = BinaryColumn(head)
    start, digits = column.start, column.length - _DATE_SIZE
    dated = (digits > 0) & (column.byte(start) == ord("[")) & (column.byte(start + 20) == ord(","))
    millis = np.zeros(len(start), np.int64)
    for place in (21, 22, 23):
        digit = column.byte(start + place) - ord("0")
        dated &= (digit >= 0) & (digit <= 9)
        millis = millis * 10 + digit
    dated &= _is_head(head, column)
    return column.text(start + 1, _SECOND_SIZE), millis, dated


def _is_head(head: pa.Array, column: BinaryColumn) -> Bools:
    """Say of each head whether what follows its date is one, as far as the correlation id."""
    behind = pc.binary_slice(head, _DATE_SIZE, 4096)
    # A cast that does not look at the bytes: trimming works on any.
    texts = pc.cast(behind, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
    trimmed = pc.ascii_rtrim(texts, characters=_DIGITS)
    code, _ = _distinct(pa.chunked_array([pc.cast(trimmed, pa.binary())]), _head)
    size = pc.binary_length(trimmed).to_numpy(zero_copy_only=False)
    digits = column.length - _DATE_SIZE - size
    return np.asarray((code >= 0) & (digits >= 1) & (digits <= _CORRELATION_DIGITS_MAX))


def _seconds(text: npt.NDArray[np.bytes_]) -> tuple[list[bytes], Ints]:
    """Return the seconds named, and for each row which of them it names (-1: something else)."""
    # Lines of one second mostly follow one another.
    turns = np.flatnonzero(np.append(True, text[1:] != text[:-1])[: len(text)])
    numbers: dict[bytes, int] = {}
    names = [
        numbers.setdefault(one, len(numbers)) if _SECOND.fullmatch(one) else -1
        for one in text[turns].tolist()
    ]
    return list(numbers), np.repeat(np.array(names, np.int64), np.diff(np.append(turns, len(text))))


def _distinct(column: pa.ChunkedArray, read: Callable[[bytes], T | None]) -> tuple[Ints, list[T]]:
    """Return for each row which of the texts that ``read`` can read it has (-1: none), and those."""
    if not len(column):
        return np.zeros(0, np.int64), []
    encoded = column.dictionary_encode()
    parts = [read(text) for text in encoded.chunk(0).dictionary.to_pylist()]
    legible = np.array([part is not None for part in parts], np.bool_)
    number = np.where(legible, np.cumsum(legible) - 1, -1)
    code = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    return number[code].astype(np.int64), [part for part in parts if part is not None]


def _head(text: bytes) -> bool | None:
    return True if _HEAD.fullmatch(text) else None


@lru_cache(maxsize=1 << 16)
def _who(text: bytes) -> _Who | None:
    found = _WHO.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3])


def _origin(text: bytes) -> _Origin | None:
    found = _FROM.fullmatch(text)
    return None if found is None else (found[1], found[2])


def _senders(who: Ints, origin: Ints, whos: list[_Who], origins: list[_Origin]) -> tuple[Ints, list[Sender]]:
    """Return for each row which sender it names, and the senders."""
    pairs, sender = np.unique(who * max(len(origins), 1) + origin, return_inverse=True)
    found: list[Sender] = []
    for pair in pairs.tolist():
        client_id, identity, connection = whos[pair // len(origins)]
        found.append(Sender(identity, (client_id, connection, *origins[pair % len(origins)])))
    return sender, found
