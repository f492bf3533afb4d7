"""Reads the lines of a whole column at once that say nothing new: heartbeats and accepted commits.

It finds the messages of the shapes in ``quiet_lines``, by splitting each at words that occur once in every
such message, mostly at the same distance as in others.  The pieces between them repeat from row to row (of
measured times and offsets everything but the digits), so each distinct piece is matched once, and so is what
stands around a message (``line_frames``).  Where the JVM has cut the lines (``cut_lines``), no word is looked
for.  A row that is not found here may still be such a line.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.decoders import quiet_lines as lines
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.cut_lines import CutLines, cut_lines
from streaming.decoders.frame_times import Clock
from streaming.decoders.line_frames import Rows, known_frames
from streaming.decoders.quiet_texts import (
    APIS,
    CODE_BITS,
    COMMITS,
    HEARTBEATS,
    MODERN_BEATS,
    Names,
    Writing,
)

_CORRELATION_DIGITS_MAX = 10
_HEAD_SIZE_MAX = 256
"""Far longer than a head can be; longer text is not examined."""
_DISTANCES_MAX = 64
_SLICE = 8_192
"""Rows split at once: their arrays stay in memory that is reused (with 130,000 at once: a third of the
speed)."""
_QUOTE = ord('"')


class Beats(NamedTuple):
    """The rows that are heartbeat lines, and their contents."""

    row: Ints
    """Row numbers, ascending."""
    offset: Ints
    stamp: Ints
    """Timestamp of the record, epoch ms."""
    at_ms: Ints
    """Time that the line tells, epoch ms."""
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
        row, offset, stamp, at_ms, who, origin = (column[wanted] for column in self.columns)
        return Beats(row, offset, stamp, at_ms, who, origin, self.names)

    @property
    def columns(self) -> tuple[Ints, ...]:
        """The numbers, column by column."""
        return self[:6]

    @property
    def sender(self) -> Ints:
        """Sender of each with its answer: one code for each pair of client and origin."""
        return (self.who << CODE_BITS) | self.origin

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


class Found(NamedTuple):
    """Rows that say nothing new, with what stands around their lines."""

    row: Ints
    """Row numbers, ascending."""
    at_ms: Ints
    who: Ints
    origin: Ints
    names_broker: Bools
    """Whether its envelope names the broker, so that its key must."""
    is_alone: Bools
    """Whether it needs no rows beside it: it is in no envelope, and no container runtime's."""

    def those(self, wanted: Bools | Ints) -> "Found":
        """Return the wanted ones."""
        row, at_ms, who, origin = (column[wanted] for column in self[:4])
        return Found(row, at_ms, who, origin, self.names_broker[wanted], self.is_alone[wanted])

    def in_rows(self, row: Ints) -> "Found":
        """Return what was found in a part of the rows, as found in all of them.

        Args:
            row: which rows those are, ascending.
        """
        return self._replace(row=row[self.row])


class Reader:
    """Reads columns of lines, one after another."""

    def __init__(self, timezone: str) -> None:
        """Start without known texts; times in lines that name no zone are in ``timezone``."""
        self.names = Names()
        self._frames = known_frames()
        self._size_before = self._frames.size
        self._clock = Clock(timezone)

    @property
    def bytes(self) -> int:
        """Rough cost in bytes of all texts that it met first."""
        return self.names.bytes + self._frames.size - self._size_before

    def found(
        self, values: pa.ChunkedArray, stamp: Ints, named: Ints, cut: pa.ChunkedArray | None = None
    ) -> Found:
        """Return the rows among ``values`` (binary) whose lines say nothing new.

        Args:
            values: rows of a topic, at least one.
            stamp: each record's timestamp, epoch ms.
            named: which broker the key of each row names; -1: none, less: the row is no line.
            cut: what the JVM has told of each row; None: it has told nothing.
        """
        if cut is None:
            found = joined_rows([self._slice(part, first, stamp) for part, first in _slices(values)])
        else:
            found = joined_rows([self._cut(part, first, stamp) for part, first in cut_lines(values, cut)])
        broker = named[found.row]
        return found.those((broker >= 0) | ((broker == -1) & ~found.names_broker))

    def beats(self, found: Found, offset: Ints, stamp: Ints) -> Beats:
        """Return rows that were found, with the offset and the timestamp of each row."""
        row = found.row
        return Beats(row, offset[row], stamp[row], found.at_ms, found.who, found.origin, self.names)

    def _slice(self, values: pa.Array, first: int, stamp: Ints) -> Found:
        """Return what is found in a slice that begins at row ``first``, whoever their keys name."""
        column, texts = BinaryColumn(values), self.names.texts
        row: Ints = np.flatnonzero(column.present)
        begin = _places(column, row, lines.BEGIN, column.start[row], texts.begins)
        depth = _depths(column, begin + len(lines.BEGIN))
        depth[begin < 0] = -1
        parts = []
        for writing in texts.writings:
            some = np.flatnonzero(depth == writing.depth)
            if len(some):
                parts.append(self._lines(column, row[some], begin[some], writing, stamp[first:]))
        found = joined_rows(parts)
        return found._replace(row=first + found.row)

    def _lines(self, column: BinaryColumn, row: Ints, begin: Ints, writing: Writing, stamp: Ints) -> Found:
        """Return which of these lines, whose messages begin there, say nothing new."""
        word = writing.words.end
        stop = column.start[row] + column.length[row]
        end = _places(column, row, word, stop, writing.places[4], is_last=True)
        good = end > begin
        row, begin, end = row[good], begin[good], end[good] + len(word)
        index, who, origin = _split_up(column, row, begin, end, writing)
        row, message = row[index], (begin[index], end[index])
        rows = Rows(column, row, message[1], stamp[row])
        return self._framed(rows, self._frames.codes(column, row, message), (who, origin), writing.depth)

    def _cut(self, lines: CutLines, first: int, stamp: Ints) -> Found:
        """Return what is found in lines that were cut, of a part of the column that begins at ``first``."""
        index, who, origin = _known_senders(lines, self.names.texts.writings[lines.depth])
        row = lines.row[index]
        rows = Rows(lines.column, row, lines.end[index], stamp[first + row])
        around = lines.around(self._frames.before, self._frames.behind, index)
        found = self._framed(rows, around, (who, origin), lines.depth)
        return found._replace(row=first + found.row)

    def _framed(self, rows: Rows, around: tuple[Ints, Ints], codes: tuple[Ints, Ints], depth: int) -> Found:
        """Return those of some lines around which known texts stand."""
        found = self._frames.around(rows, around, self._clock, depth)
        return Found(rows.row, found.at_ms, *codes, found.names_broker, found.is_alone).those(found.is_good)


def joined_rows(parts: Sequence[Found]) -> Found:
    """Return rows that were found in several steps as one, in their order."""
    if not parts:
        none: Ints = np.zeros(0, np.int64)
        return Found(none, none, none, none, none.astype(np.bool_), none.astype(np.bool_))
    whole = Found(*map(np.concatenate, zip(*parts, strict=True)))
    is_sorted = len(parts) == 1 or bool((np.diff(whole.row) > 0).all())
    return whole if is_sorted else whole.those(np.argsort(whole.row, kind="stable"))


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
    row, offset, stamp, at_ms, who, origin = map(np.concatenate, columns)
    return Beats(row, offset, stamp, at_ms, who, origin, parts[0].names)


def _slices(values: pa.ChunkedArray) -> Iterator[tuple[pa.Array, int]]:
    """Yield parts of a column, each with its first row."""
    first = 0
    for chunk in values.chunks:
        for start in range(0, len(chunk), _SLICE):
            yield chunk.slice(start, _SLICE), first + start
        first += len(chunk)


def _depths(column: BinaryColumn, place: Ints) -> Ints:
    """Return in how many JSON strings the quote at each place stands; -1: it is none, or in more than two."""
    depth = np.where(column.byte(place) == _QUOTE, 0, -1)
    for escapes, number in ((1, 1), (3, 2)):
        left = np.flatnonzero(depth < 0)
        if len(left):
            quote = column.text(place[left], escapes + 1) == b"\\" * escapes + b'"'
            depth[left[quote]] = number
    return depth


def _split_up(
    column: BinaryColumn, row: Ints, start: Ints, end: Ints, writing: Writing
) -> tuple[Ints, Ints, Ints]:
    """Return which of these messages say nothing new, and the codes of the client and the origin of each.

    Args:
        column: in which they stand.
        row: of each.
        start: where it begins.
        end: where it ends.
        writing: the texts, as such messages have them.
    """
    words = writing.words
    index: Ints = np.arange(len(row))
    who = _places(column, row, words.who, start, writing.places[0])
    api = _apis(column, start, who, writing)
    good = api >= 0
    # Only these lines have few lengths in the rest.
    index, end, who, api = (place[good] for place in (index, end, who, api))
    origin = _places(column, row[index], words.origin, end, writing.places[1])
    times = _places(column, row[index], words.times, origin, writing.places[2])
    good = (who < times) & (times < origin) & (origin < end)
    index, who, times, origin, end, api = (place[good] for place in (index, who, times, origin, end, api))
    sender = _senders(column, row[index], (who, times), api, writing)
    source = writing.origins.codes_in(column, origin, end)
    good = (sender >= 0) & (source >= 0)
    good &= writing.times.codes_in(column, times, origin, digits=False) >= 0
    return index[good], sender[good], source[good]


def _known_senders(cut: CutLines, writing: Writing) -> tuple[Ints, Ints, Ints]:
    """Return which of the lines say nothing new, and the codes of the client and the origin of each."""
    every: Ints = np.arange(len(cut.row))
    head = cut.codes(writing.heads, every, "heads", ("begin", "head_end"))
    api = np.array([*writing.apis, -1])[head]  # which it knows only now
    source = cut.codes(writing.origins, every, "origins", ("origin", "end"))
    times = cut.codes(writing.times, every, "timed", ("times", "origin"), digits=False)
    sender = np.full(len(every), -1)
    good = (api >= 0) & (source >= 0) & (times >= 0)
    for index in np.unique(api[good]).tolist():
        some = np.flatnonzero(good & (api == index))
        if index == COMMITS:
            found = _known_committers(cut, some, writing)
        else:
            known = writing.whos if index == HEARTBEATS else writing.moderns
            found = cut.codes(known, some, "whos", ("who", "times"))
        sender[some] = np.where(found < 0, -1, found * len(APIS) + index)
    some = np.flatnonzero(sender >= 0)
    return some, sender[some], source[some]


def _known_committers(cut: CutLines, some: Ints, writing: Writing) -> Ints:
    """Return the code of the client of each of some commits, -1 for one that needs to be read in full."""
    found = writing.committers(
        cut.codes(writing.identities, some, "whos", ("who", "asked")),
        cut.codes(writing.connections, some, "connections", ("connection", "times")),
    )
    found[cut.codes(writing.offsets, some, "offsets", ("asked", "answered"), digits=False) < 0] = -1
    found[cut.codes(writing.answers, some, "answers", ("answered", "connection")) < 0] = -1
    return found


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


def _places(
    column: BinaryColumn,
    row: Ints,
    word: bytes,
    anchor: Ints,
    distances: list[int],
    *,
    is_last: bool = False,
) -> Ints:
    """Return where ``word`` stands in each of these rows; -1 if it does not.

    Args:
        column: the lines.
        row: which of them.
        word: what stands in such a line once.
        anchor: a place in each row from which it mostly is as far away as in other rows.
        distances: how far it was so far; new ones are added.
        is_last: look for the last such word, not for the first.
    """
    places = np.full(len(row), -1)
    for distance in distances:
        if not _look(column, row, word, anchor + distance, places):
            break
    _put_first(distances, places - anchor)
    for index in np.flatnonzero(places < 0).tolist():
        at = column.find(int(row[index]), word, is_last=is_last) if places[index] < 0 else -1
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


def _apis(column: BinaryColumn, start: Ints, end: Ints, writing: Writing) -> Ints:
    """Return which API the text from ``start`` to before ``end``, a head with its correlation id, names.

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
