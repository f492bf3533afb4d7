"""Reads the heartbeat lines of a whole column at once.

It finds the same lines as ``heartbeat_lines.LINE``, by splitting each at words that occur once in every such
line, mostly at the same distance as in other lines.  The pieces between them repeat from line to line (of the
measured times everything but the digits), so each distinct piece is matched once.  A row that is not found
here may still be a heartbeat.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.decoders import heartbeat_lines as lines
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.known_texts import Known

_Who = tuple[bytes, bytes, bytes]
"""Client id, identity, connection."""
_Origin = tuple[bytes, bytes]
"""Principal, software."""

_SECOND = re.compile(lines.SECOND)
_HEAD = re.compile(lines.LEVEL + lines.HEAD)
_WHO = re.compile(lines.WHO_AFTER + lines.WHO)
_TIMED = re.compile(lines.TIMES_AFTER + lines.TIMES)
_FROM = re.compile(lines.FROM_AFTER + lines.FROM)
_DATE_SIZE = len("[2026-11-21 06:28:53,123")
_CORRELATION_DIGITS_MAX = 10
_HEAD_SIZE_MAX = 256
"""Far longer than a head can be; longer text is not examined."""
_DISTANCES_MAX = 64
_SECOND_SIZE = len("2026-11-21 06:28:53")
_SLICE = 8_192
"""Rows split at once: their arrays stay in memory that is reused (with 130,000 at once: a third of the
speed)."""


class Names:
    """The texts behind the codes of beats; the beats of one ``Reader`` share them."""

    def __init__(self) -> None:
        self.seconds = Known(_second)
        self.whos = Known(_who)
        self.origins = Known(_origin)
        self.heads = Known(_head)
        self.times = Known(_timed)
        self.places: tuple[list[int], list[int], list[int]] = ([], [], [])
        """How far the words between the parts stood from the places next to them."""

    @property
    def bytes(self) -> int:
        """Their rough cost in bytes."""
        known = (self.seconds, self.whos, self.origins, self.heads, self.times)
        return sum(one.bytes for one in known)


class Beats(NamedTuple):
    """The rows that are heartbeat lines, and their contents."""

    row: Ints
    """Row numbers, ascending."""
    offset: Ints
    stamp: Ints
    """Timestamp of the record, epoch ms."""
    second: Ints
    """Code of the second, in the names."""
    millis: Ints
    who: Ints
    """Code of the client, in the names."""
    origin: Ints
    """Code of the origin, in the names."""
    names: Names

    def between(self, start: int, end: int) -> "Beats":
        """Return the beats of rows ``start`` to ``end - 1``."""
        first, last = np.searchsorted(self.row, (start, end))
        return self.cut(int(first), int(last))

    def cut(self, first: int, last: int) -> "Beats":
        """Return the beats from index ``first`` to before ``last``."""
        row, offset, stamp, second, millis, who, origin = (column[first:last] for column in self.columns)
        return Beats(row, offset, stamp, second, millis, who, origin, self.names)

    @property
    def columns(self) -> tuple[Ints, ...]:
        """The numbers, column by column."""
        return self[:7]

    @property
    def sender(self) -> Ints:
        """Sender of each with its answer: one code for each pair of client and origin."""
        return self.who * max(1, len(self.names.origins.values)) + self.origin

    def sender_at(self, index: int) -> tuple[bytes, lines.ClientTexts]:
        """Return the identity and the client of one beat, as they stand in the line."""
        client_id, identity, connection = self.names.whos.values[self.who[index]]
        return identity, (client_id, connection, *self.names.origins.values[self.origin[index]])


class Reader:
    """Reads columns of lines, one after another."""

    def __init__(self) -> None:
        """Start without known texts."""
        self.names = Names()

    def read(self, values: pa.ChunkedArray, offset: Ints, stamp: Ints) -> Beats:
        """Return the heartbeats among ``values`` (binary) that begin with a date.

        Args:
            values: log lines, at least one.
            offset: of each in its partition.
            stamp: each record's timestamp, epoch ms.
        """
        slices = [_split_up(part, start, self.names) for part, start in _slices(values)]
        row, text, millis, who, origin = map(np.concatenate, zip(*slices, strict=True))
        second = _seconds(text, self.names.seconds)
        good = second >= 0
        if not good.all():
            row, second, millis, who, origin = (one[good] for one in (row, second, millis, who, origin))
        return Beats(row, offset[row], stamp[row], second, millis, who, origin, self.names)


def joined(parts: Sequence[Beats]) -> Beats:
    """Return the beats of several columns of one ``Reader`` as one; their ``row`` has no meaning any more."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    row, offset, stamp, second, millis, who, origin = map(np.concatenate, columns)
    return Beats(row, offset, stamp, second, millis, who, origin, parts[0].names)


def _slices(values: pa.ChunkedArray) -> Iterator[tuple[pa.Array, int]]:
    """Yield parts of a column, each with its first row."""
    first = 0
    for chunk in values.chunks:
        for start in range(0, len(chunk), _SLICE):
            yield chunk.slice(start, _SLICE), first + start
        first += len(chunk)


class _Parts(NamedTuple):
    """The heartbeat lines of a slice, and the contents of their parts."""

    row: Ints
    second: npt.NDArray[np.bytes_]
    millis: Ints
    who: Ints
    origin: Ints


def _split_up(values: pa.Array, first: int, names: Names) -> _Parts:
    """Return the parts of a slice of the column that begins at row ``first``."""
    column = BinaryColumn(values)
    row: Ints = np.flatnonzero(column.present)
    start = column.start[row]
    who = _places(column, row, lines.WHO_AFTER, start, names.places[0])
    good = _is_head(column, start + _DATE_SIZE, who, names.heads)
    # Only heartbeats have few lengths in the rest.
    row, start, who = row[good], start[good], who[good]
    end: Ints = start + column.length[row]
    origin = _places(column, row, lines.FROM_AFTER, end, names.places[1])
    times = _places(column, row, lines.TIMES_AFTER, origin, names.places[2])
    good = (who < times) & (times < origin)
    row, start, who, times, origin, end = (place[good] for place in (row, start, who, times, origin, end))
    sender, source = names.whos.codes_in(column, who, times), names.origins.codes_in(column, origin, end)
    second, millis, dated = _dates(column, start)
    good = dated & (sender >= 0) & (source >= 0)
    good &= names.times.codes_in(column, times, origin, digits=False) >= 0
    return _Parts(first + row[good], second[good], millis[good], sender[good], source[good])


def _places(column: BinaryColumn, row: Ints, word: bytes, anchor: Ints, distances: list[int]) -> Ints:
    """Return where ``word`` stands in each of these rows; -1 if it does not.

    Args:
        column: the lines.
        row: which of them.
        word: what stands in a heartbeat's line once.
        anchor: a place in each row from which it mostly is as far away as in other rows.
        distances: how far it was so far; new ones are added.
    """
    places = np.full(len(row), -1)
    for distance in distances:
        if not _look(column, row, word, anchor + distance, places):
            break
    _put_first(distances, places - anchor)
    for index in np.flatnonzero(places < 0).tolist():
        at = column.find(int(row[index]), word) if places[index] < 0 else -1
        if at >= 0:
            places[index] = at
            if len(distances) < _DISTANCES_MAX:
                distances.append(at - int(anchor[index]))
                _look(column, row, word, anchor + distances[-1], places)
    return places


def _look(column: BinaryColumn, row: Ints, word: bytes, place: Ints, places: Ints) -> bool:
    """Fill negative ``places`` with ``place`` where ``word`` stands; False: it stands at none of them."""
    left = np.flatnonzero(places < 0)
    if not len(left):
        return False
    hit = left[column.holds(row[left], place[left], word)]
    places[hit] = place[hit]
    return True


def _put_first(distances: list[int], newest: Ints) -> None:
    """Move the distance of most lines to the front: the next lines try it first."""
    if len(distances) > 1 and len(newest):
        middle = int(newest[len(newest) // 2])
        if middle in distances:
            distances.remove(middle)
            distances.insert(0, middle)


def _dates(column: BinaryColumn, start: Ints) -> tuple[npt.NDArray[np.bytes_], Ints, Bools]:
    """Return each row's leading second and milliseconds, and whether it begins with them."""
    dated = (column.byte(start) == ord("[")) & (column.byte(start + 20) == ord(","))
    millis = np.zeros(len(start), np.int64)
    for place in (21, 22, 23):
        digit = column.byte(start + place) - ord("0")
        dated &= (digit >= 0) & (digit <= 9)
        millis = millis * 10 + digit
    return column.text(start + 1, _SECOND_SIZE), millis, dated


def _is_head(column: BinaryColumn, start: Ints, end: Ints, known: Known[bool]) -> Bools:
    """Say for the text between each date and ``end`` whether it is a head with its correlation id."""
    size, running = np.zeros(len(end), np.int64), np.ones(len(end), np.bool_)
    for _ in range(_CORRELATION_DIGITS_MAX):
        running &= column.is_digit(end - size - 1)
        if not running.any():
            break
        size += running
    good = (size > 0) & (start < end - size) & (end - start < _HEAD_SIZE_MAX)
    good[good] = known.codes_in(column, start[good], (end - size)[good]) >= 0
    return good


def _seconds(text: npt.NDArray[np.bytes_], known: Known[bytes]) -> Ints:
    """Return the code of each second; -1 if the text is none."""
    # Lines of one second mostly follow one another.
    turns = np.flatnonzero(np.append(True, text[1:] != text[:-1])[: len(text)])
    return np.repeat(known.codes(text[turns].tolist()), np.diff(np.append(turns, len(text))))


def _head(text: bytes) -> bool | None:
    return True if _HEAD.fullmatch(text) else None


def _second(text: bytes) -> bytes | None:
    return text if _SECOND.fullmatch(text) else None


def _timed(text: bytes) -> bool | None:
    return True if _TIMED.fullmatch(text) else None


def _who(text: bytes) -> _Who | None:
    found = _WHO.fullmatch(text)
    return None if found is None else (found[1], found[2], found[3])


def _origin(text: bytes) -> _Origin | None:
    found = _FROM.fullmatch(text)
    return None if found is None else (found[1], found[2])
