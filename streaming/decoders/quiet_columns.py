"""Reads the lines of a whole column at once that say nothing new: heartbeats and accepted commits.

It finds the lines of the shapes in ``quiet_lines``, by splitting each at words that occur once in every such
line, mostly at the same distance as in other lines.  The pieces between them repeat from line to line (of
measured times and offsets everything but the digits), so each distinct piece is matched once.  A row that is
not found here may still be such a line.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.decoders import quiet_lines as lines
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.envelope_shapes import Inside, Shapes
from streaming.decoders.known_texts import Known
from streaming.decoders.quiet_texts import (
    APIS,
    CODE_BITS,
    COMMITS,
    HEARTBEATS,
    MODERN_BEATS,
    Names,
    Texts,
    Writing,
)

_DATE_SIZE = len("[2026-11-21 06:28:53,123")
_ENVELOPE_SIZE_MAX = 1 << 14
"""Docker cuts lines of this size, and only their length tells."""
_OPENING, _ENDING = b'"[2', b'.logger)"'
"""Where a line in Kafka's own pattern begins and ends in the JSON around it."""
_CORRELATION_DIGITS_MAX = 10
_HEAD_SIZE_MAX = 256
"""Far longer than a head can be; longer text is not examined."""
_DISTANCES_MAX = 64
_SECOND_SIZE = len("2026-11-21 06:28:53")
_SLICE = 8_192
"""Rows split at once: their arrays stay in memory that is reused (with 130,000 at once: a third of the
speed)."""


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
        return self.those(slice(first, last))

    def those(self, wanted: Bools | slice) -> "Beats":
        """Return the wanted ones."""
        row, offset, stamp, second, millis, who, origin = (column[wanted] for column in self.columns)
        return Beats(row, offset, stamp, second, millis, who, origin, self.names)

    @property
    def columns(self) -> tuple[Ints, ...]:
        """The numbers, column by column."""
        return self[:7]

    @property
    def sender(self) -> Ints:
        """Sender of each with its answer: one code for each pair of client and origin."""
        return (self.who << CODE_BITS) | self.origin

    def sender_at(self, index: int) -> lines.Sender:
        """Return who sent one of the lines, and what it said."""
        return self.names.texts.sender(int(self.who[index]), int(self.origin[index]))

    @property
    def api(self) -> Ints:
        """Index of each one's API in ``APIS``."""
        return self.who % len(APIS)

    def counts(self, wanted: Bools) -> dict[int, int]:
        """Return of how many of the wanted ones each API is, by its key; at least one of each."""
        numbers = np.bincount(self.api[wanted], minlength=len(APIS)).tolist()
        return {api: number for api, number in zip(APIS, numbers, strict=True) if number}

    @property
    def is_classic(self) -> Bools:
        """Say of each whether it is of the classic protocol."""
        return np.asarray(self.api != MODERN_BEATS)

    @property
    def is_classic_beat(self) -> Bools:
        """Say of each whether it is a heartbeat of the classic protocol."""
        return np.asarray(self.api == HEARTBEATS)


class Reader:
    """Reads columns of lines, one after another."""

    def __init__(self) -> None:
        """Start without known texts."""
        self.names = Names()
        self._shapes = Shapes()

    def inside(self, values: pa.ChunkedArray, brokers: Ints) -> Inside:
        """Return the lines among ``values`` (binary) that stand in a JSON object and need nothing else of it.

        Args:
            values: rows of a topic, at least one.
            brokers: which one the key of each row names; -1: none.
        """
        texts = self.names.texts
        found = [_inside(part, first, brokers, self._shapes, texts) for part, first in _slices(values)]
        return Inside(*map(np.concatenate, zip(*found, strict=True)))

    def read(self, values: pa.ChunkedArray, offset: Ints, stamp: Ints, inside: Inside | None = None) -> Beats:
        """Return the heartbeats among ``values`` (binary) that begin with a date.

        Args:
            values: log lines, at least one.
            offset: of each in its partition.
            stamp: each record's timestamp, epoch ms.
            inside: lines of other rows, which are added.
        """
        slices = [_bare(part, first, self.names.texts) for part, first in _slices(values)]
        if inside is not None:
            slices.append(_Parts(inside.row, inside.second, inside.millis, inside.who, inside.origin))
        row, text, millis, who, origin = map(np.concatenate, zip(*slices, strict=True))
        second = _seconds(text, self.names.seconds)
        good = np.flatnonzero(second >= 0)
        if inside is not None and len(inside.row):
            good = good[np.argsort(row[good], kind="stable")]
        if inside is not None or len(good) < len(row):
            row, second, millis, who, origin = (one[good] for one in (row, second, millis, who, origin))
        return Beats(row, offset[row], stamp[row], second, millis, who, origin, self.names)


def by_sender(code: Ints, at_ms: Ints) -> Iterator[tuple[int, int, int, list[int]]]:
    """Yield each sender's code, the index of its first line and of its last, and the times of all its lines.

    Args:
        code: the sender of each line (``Beats.sender``).
        at_ms: the time of each.
    """
    order = np.argsort(code, kind="stable")
    ends = np.flatnonzero(np.diff(code[order], append=-1)) + 1
    times, last = at_ms[order].tolist(), order[ends - 1]
    begins = np.append(0, ends)[: len(ends)]
    columns = (code[last], order[begins], last, begins, ends)
    for sender, first, newest, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        yield sender, first, newest, times[begin:end]


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
    """The lines of a slice that say nothing new, and the contents of their parts."""

    row: Ints
    second: npt.NDArray[np.bytes_]
    millis: Ints
    who: Ints
    origin: Ints


def _bare(values: pa.Array, first: int, texts: Texts) -> _Parts:
    """Return the parts of the bare lines in a slice of the column that begins at row ``first``."""
    column = BinaryColumn(values)
    row: Ints = np.flatnonzero(column.present & (column.byte(column.start) == ord("[")))
    start = column.start[row]
    good, parts = _split_up(column, row, start, start + column.length[row], texts.bare)
    return parts._replace(row=first + row[good])


def _inside(values: pa.Array, first: int, named: Ints, shapes: Shapes, texts: Texts) -> Inside:
    """Return the parts of the lines that stand in a JSON object, and the broker of each."""
    column = BinaryColumn(values)
    is_object = column.present & (column.byte(column.start) == ord("{"))
    row: Ints = np.flatnonzero(is_object & (column.length < _ENVELOPE_SIZE_MAX))
    start = column.start[row]
    begin = _places(column, row, _OPENING, start, shapes.places[0]) + 1
    end = _places(column, row, _ENDING, start + column.length[row], shapes.places[1])
    good = (begin > start) & (begin + _DATE_SIZE < end)
    row, begin, end = row[good], begin[good], end[good] + len(_ENDING) - 1
    broker = shapes.brokers(column, row, begin, end, named[first + row])
    good = broker >= -1
    row, begin, end, broker = row[good], begin[good], end[good], broker[good]
    index, parts = _split_up(column, row, begin, end, texts.inside)
    place = first + row[index]
    return Inside(place, broker[index], named[place], *parts[1:])


def _split_up(
    column: BinaryColumn, row: Ints, start: Ints, end: Ints, writing: Writing
) -> tuple[Ints, _Parts]:
    """Return which of these lines say nothing new, and their parts.

    Args:
        column: in which they stand.
        row: of each.
        start: where it begins.
        end: where it ends.
        writing: the texts, as such lines have them.
    """
    words = writing.words
    index: Ints = np.arange(len(row))
    who = _places(column, row, words.who, start, writing.places[0])
    api = _apis(column, start + _DATE_SIZE, who, writing)
    good = api >= 0
    # Only these lines have few lengths in the rest.
    index, start, end, who, api = (place[good] for place in (index, start, end, who, api))
    origin = _places(column, row[index], words.origin, end, writing.places[1])
    times = _places(column, row[index], words.times, origin, writing.places[2])
    good = (who < times) & (times < origin) & (origin < end)
    index, start, who, times, origin, end, api = (
        place[good] for place in (index, start, who, times, origin, end, api)
    )
    sender, source = (
        _senders(column, row[index], (who, times), api, writing),
        writing.origins.codes_in(column, origin, end),
    )
    second, millis, dated = _dates(column, start)
    good = dated & (sender >= 0) & (source >= 0)
    good &= writing.times.codes_in(column, times, origin, digits=False) >= 0
    index = index[good]
    return index, _Parts(row[index], second[good], millis[good], sender[good], source[good])


def _senders(
    column: BinaryColumn, row: Ints, between: tuple[Ints, Ints], api: Ints, writing: Writing
) -> Ints:
    """Return the code of the client of each line, which tells also what it said; -1 for other lines.

    What tells it stands ``between`` two places of each row.
    """
    codes = np.full(len(row), -1)
    for index in np.flatnonzero(np.bincount(api)).tolist():
        some = np.flatnonzero(api == index)
        places = between[0][some], between[1][some]
        if index == COMMITS:
            found = _committers(column, row[some], places, writing)
        else:
            known = writing.whos if index == HEARTBEATS else writing.moderns
            found = known.codes_in(column, *places)
        codes[some] = np.where(found < 0, -1, found * len(APIS) + index)
    return codes


def _committers(column: BinaryColumn, row: Ints, places: tuple[Ints, Ints], writing: Writing) -> Ints:
    """Return the code of the client of each commit, -1 for one that needs to be read in full."""
    codes = np.full(len(row), -1)
    who, times = places
    asked, answered = _topics(column, writing.words.topics, who, times)
    connection = _places(column, row, writing.words.connection, times, writing.places[3])
    good = np.flatnonzero((who < asked) & (asked < answered) & (answered < connection) & (connection < times))
    who, asked, answered, connection, times = (
        place[good] for place in (who, asked, answered, connection, times)
    )
    found = writing.committers(
        writing.identities.codes_in(column, who, asked),
        writing.connections.codes_in(column, connection, times),
    )
    found[writing.offsets.codes_in(column, asked, answered, digits=False) < 0] = -1
    found[writing.answers.codes_in(column, answered, connection) < 0] = -1
    codes[good] = found
    return codes


def _topics(column: BinaryColumn, word: bytes, who: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Return where, between two places in each row, the topics begin, and those of the answer.

    Both are -1 where there are not exactly two such places; each begins behind ``word``.
    """
    last = len(word) - 1
    first, end = int(who[0]), int(times.max())
    hits = np.flatnonzero(column.data[first:end] == word[last]) + first
    hits = hits[column.text(hits - last, len(word)) == word]
    begin, stop = np.searchsorted(hits, who), np.searchsorted(hits, times)
    hits = np.append(hits, -1)
    is_pair = stop - begin == 2
    begin = np.where(is_pair, begin, 0)
    asked = np.where(is_pair, hits[begin] + 1, -1)
    return asked, np.where(is_pair, hits[np.minimum(begin + 1, len(hits) - 1)] + 1, -1)


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


def _apis(column: BinaryColumn, start: Ints, end: Ints, writing: Writing) -> Ints:
    """Return which API the text between each date and ``end``, a head with its correlation id, names.

    -1 for any other text.
    """
    size, running = np.zeros(len(end), np.int64), np.ones(len(end), np.bool_)
    for _ in range(_CORRELATION_DIGITS_MAX):
        running &= column.is_digit(end - size - 1)
        if not running.any():
            break
        size += running
    good = (size > 0) & (start < end - size) & (end - start < _HEAD_SIZE_MAX)
    apis = np.full(len(end), -1)
    codes = writing.heads.codes_in(column, start[good], (end - size)[good])
    apis[good] = np.array([*writing.apis, -1], np.int64)[codes]
    return apis


def _seconds(text: npt.NDArray[np.bytes_], known: Known[bytes]) -> Ints:
    """Return the code of each second; -1 if the text is none."""
    # Lines of one second mostly follow one another.
    turns = np.flatnonzero(np.append(True, text[1:] != text[:-1])[: len(text)])
    return np.repeat(known.codes(text[turns].tolist()), np.diff(np.append(turns, len(text))))
