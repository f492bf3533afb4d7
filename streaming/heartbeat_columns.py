"""Heartbeat lines of a whole column at once.

The same lines as ``heartbeat_lines.LINE``, split by Arrow at the words that stand once in each; what
is left between them repeats from line to line, so each distinct piece is matched once.  Only the
measured times differ everywhere.  A row that is not found here may still be a heartbeat.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

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
_NEW = -2
_NAME_BYTES = 400
_DIGITS = "0123456789"
_SECOND_SIZE = len("2026-11-21 06:28:53")
_SLICE = 8_192
"""Rows split up at once: what is made of them stays in memory that is used again (of 130,000 at once: a third
of the speed)."""


class Names:
    """What the codes of beats stand for; the beats of one ``Reader`` share them."""

    def __init__(self) -> None:
        self.seconds = Known(_second)
        self.whos = Known(_who)
        self.origins = Known(_origin)

    @property
    def bytes(self) -> int:
        """What they cost, roughly."""
        return self.seconds.bytes + self.whos.bytes + self.origins.bytes


class Known(Generic[T]):
    """Texts that were read, each once; its code is its place in ``values``."""

    def __init__(self, read: Callable[[bytes], T | None]) -> None:
        self.values: list[T] = []
        self.bytes = 0
        """What it all costs, roughly."""
        self._read = read
        self._codes: dict[bytes, int] = {}

    def codes(self, texts: Sequence[bytes]) -> Ints:
        """Return the code of each text; -1 where it cannot be read."""
        known = self._codes.get
        found = [known(text, _NEW) for text in texts]
        if _NEW in found:
            found = [
                self._learn(text) if code == _NEW else code for text, code in zip(texts, found, strict=True)
            ]
        return np.array(found, np.int64)

    def _learn(self, text: bytes) -> int:
        value = self._read(text)
        self.bytes += _NAME_BYTES + 2 * len(text)
        code = -1 if value is None else len(self.values)
        if value is not None:
            self.values.append(value)
        return self._codes.setdefault(text, code)


class Beats(NamedTuple):
    """The rows that are heartbeat lines, and what each says."""

    row: Ints
    """Ascending."""
    offset: Ints
    stamp: Ints
    """Timestamp of the record, epoch ms."""
    second: Ints
    """Which of the names' seconds."""
    millis: Ints
    who: Ints
    """Which of the names' clients."""
    origin: Ints
    """Which of the names' origins."""
    names: Names

    def between(self, start: int, end: int) -> "Beats":
        """Return those of the rows ``start`` to ``end - 1``."""
        first, last = np.searchsorted(self.row, (start, end))
        return self.cut(int(first), int(last))

    def cut(self, first: int, last: int) -> "Beats":
        """Return some of the beats."""
        row, offset, stamp, second, millis, who, origin = (column[first:last] for column in self.columns)
        return Beats(row, offset, stamp, second, millis, who, origin, self.names)

    @property
    def columns(self) -> tuple[Ints, ...]:
        """The numbers, column by column."""
        return self[:7]

    @property
    def sender(self) -> Ints:
        """Who sent each, with its answer: one code for each pair of client and origin."""
        return self.who * max(1, len(self.names.origins.values)) + self.origin

    def sender_at(self, index: int) -> tuple[bytes, lines.ClientTexts]:
        """Return the identity and the client of one beat, as the line has them."""
        client_id, identity, connection = self.names.whos.values[self.who[index]]
        return identity, (client_id, connection, *self.names.origins.values[self.origin[index]])


class Reader:
    """Reads columns of lines one after another."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.names = Names()

    def read(self, values: pa.ChunkedArray, offset: Ints, stamp: Ints) -> Beats:
        """Return the heartbeats among ``values`` (binary) that have a date before them.

        Args:
            values: log lines, at least one.
            offset: of each in its partition.
            stamp: each record's timestamp, epoch ms.
        """
        slices = [_split_up(part, start) for part, start in _slices(values)]
        row, text, millis = (np.concatenate([getattr(one, name) for one in slices]) for name in _NUMBERS)
        who = _codes(pa.chunked_array([one.who for one in slices]), self.names.whos)
        origin = _codes(pa.chunked_array([one.origin for one in slices]), self.names.origins)
        second = _seconds(text, self.names.seconds)
        good = (who >= 0) & (origin >= 0) & (second >= 0)
        if not good.all():
            row, second, millis, who, origin = (one[good] for one in (row, second, millis, who, origin))
        return Beats(row, offset[row], stamp[row], second, millis, who, origin, self.names)


def joined(parts: Sequence[Beats]) -> Beats:
    """Return the beats of several columns of one ``Reader`` as one; ``row`` is no row of them any more."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    row, offset, stamp, second, millis, who, origin = map(np.concatenate, columns)
    return Beats(row, offset, stamp, second, millis, who, origin, parts[0].names)


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
    code = _codes(pa.chunked_array([pc.cast(trimmed, pa.binary())]), Known(_head))
    size = pc.binary_length(trimmed).to_numpy(zero_copy_only=False)
    digits = column.length - _DATE_SIZE - size
    return np.asarray((code >= 0) & (digits >= 1) & (digits <= _CORRELATION_DIGITS_MAX))


def _seconds(text: npt.NDArray[np.bytes_], known: "Known[bytes]") -> Ints:
    """Return the code of each second; -1 where it is none."""
    # Lines of one second mostly follow one another.
    turns = np.flatnonzero(np.append(True, text[1:] != text[:-1])[: len(text)])
    return np.repeat(known.codes(text[turns].tolist()), np.diff(np.append(turns, len(text))))


def _codes(column: pa.ChunkedArray, known: "Known[T]") -> Ints:
    """Return the code of each text."""
    if not len(column):
        return np.zeros(0, np.int64)
    encoded = column.dictionary_encode()
    codes = known.codes(encoded.chunk(0).dictionary.to_pylist())
    places = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    found: Ints = codes[np.concatenate(places)]
    return found


def _head(text: bytes) -> bool | None:
    return True if _HEAD.fullmatch(text) else None


def _second(text: bytes) -> bytes | None:
    return text if _SECOND.fullmatch(text) else None


def _who(text: bytes) -> _Who | None:
    found = _WHO.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3])


def _origin(text: bytes) -> _Origin | None:
    found = _FROM.fullmatch(text)
    return None if found is None else (found[1], found[2])
