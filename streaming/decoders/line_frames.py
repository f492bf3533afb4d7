"""What stands around a line's message in its row: a layout's header and tail, a shipper's envelope.

It repeats from row to row in all but its digits (times, thread numbers, offsets in a file), so each frame is
learned once: ``decoding.open_lines`` opens rows made of it with other digits, times and time zones, which
show whether any row in this frame is one line, and which time it tells.  No layout needs to be known here.
Where digits may mean what those of no such row do, ``frame_times`` knows no rule, and rows are opened one by
one.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from coordinator_model import decoding
from coordinator_model.decoding import Moment, Opened, refined_ms
from streaming.decoders import frame_times
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.escaped_texts import escaped
from streaming.decoders.frame_times import Clock, Rule, Slot
from streaming.decoders.known_texts import Known

SIZE_MAX = 4_096
"""Longer text before or behind a message is not examined."""
ROW_SIZE_MAX = 1 << 14
"""Docker cuts lines of this size, and only their length tells."""
_TEXTS_MAX = 4_000
"""More of them are not kept: something else than digits differs in each row."""
_NEW_MAX, _NEW_EACH = 200, 20
"""Frames that are learned: at first, and more for each reader."""
_DIGITS = re.compile(rb"\d+")
_CODE_BITS, _DEPTH_BITS = 28, 2
_PROBES, _PROBES_MAX = 12, 48
"""More than the least only while several rules explain all."""
_SAYS = b'Completed request:{"isForwarded":false,"clientInformation":{"softwareVersion":"4.3.1"}}'
_FORTNIGHT_S = 1_209_600
_SINCE_S = 1_795_218_710
_AWAY_S = (0, 0, 0, 1, -1, -7, 7_200)
"""How far the times in a probe are apart: most are in one second, so that rules for whole seconds differ."""


class Frame(NamedTuple):
    """What a row says in this frame, whatever its digits."""

    rule: Rule
    """How the time of its line is told."""
    names_broker: bool
    """A digit of it names the broker."""
    is_alone: bool
    """It is no envelope and no container runtime's: what stands in it is never a part of a line."""


class Around(NamedTuple):
    """What stands around some lines."""

    is_good: Bools
    """Whether the rest is known."""
    at_ms: Ints
    names_broker: Bools
    is_alone: Bools


class Rows(NamedTuple):
    """Rows with a line in each."""

    column: BinaryColumn
    row: Ints
    """Which of the column they are."""
    end: Ints
    """Where each message ends."""
    stamp: Ints
    """The timestamp of each record, epoch ms."""


class Frames:
    """The frames that this process has met."""

    def __init__(self) -> None:
        self.before, self.behind = _texts(), _texts()
        """What stands before messages, with their first byte, and behind them, with their last."""
        self._frames: dict[int, Frame | None] = {}
        """By the codes of what stands before and behind, and the depth; None: to be opened one by one."""
        self._old: set[int] = set()
        """Those that a reader before this one has met."""
        self._again: set[int] = set()
        """Those that a later reader has met as well."""
        self._left = _NEW_MAX - _NEW_EACH

    @property
    def size(self) -> int:
        """Rough cost in bytes of what stands around messages."""
        return self.before.bytes + self.behind.bytes

    def begin(self) -> None:
        """Let one more reader use and learn frames; if there are too many, only those that recur are kept."""
        if max(len(self.before.values), len(self.behind.values), len(self._frames)) >= _TEXTS_MAX:
            self._keep_those(self._again)
        self._old = set(self._frames)
        self._left = min(self._left + _NEW_EACH, _NEW_MAX)

    def _keep_those(self, codes: Iterable[int]) -> None:
        kept = [(*self._parts(code), self._frames[code]) for code in codes]
        self.before, self.behind, self._frames, self._again = _texts(), _texts(), {}, set()
        for before, behind, depth, frame in kept:
            pair = self.before.codes([before]), self.behind.codes([behind])
            self._frames[int(_codes(*pair, depth)[0])] = frame

    def _parts(self, code: int) -> tuple[bytes, bytes, int]:
        """Return what stands before and behind, and the depth."""
        pair, depth = code >> _DEPTH_BITS, code & ((1 << _DEPTH_BITS) - 1)
        before, behind = pair >> _CODE_BITS, pair & ((1 << _CODE_BITS) - 1)
        return self.before.values[before], self.behind.values[behind], depth

    def codes(self, column: BinaryColumn, row: Ints, message: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        """Return the codes of what stands before messages, and behind; -1 where that is too long.

        Args:
            column: of the rows.
            row: which of them.
            message: where it begins in each, and where it ends.
        """
        start = column.start[row]
        # A text must not be empty, so both have a byte of the message.
        begin, end = message[0] + 1, message[1] - 1
        stop = start + column.length[row]
        before, behind = np.full((2, len(row)), -1)
        near = np.flatnonzero((begin - start <= SIZE_MAX) & (stop - end <= SIZE_MAX))
        before[near] = self.before.codes_in(column, start[near], begin[near], digits=False)
        behind[near] = self.behind.codes_in(column, end[near], stop[near], digits=False)
        return before, behind

    def around(self, rows: Rows, codes: tuple[Ints, Ints], clock: Clock, depth: int) -> Around:
        """Return what stands around lines.

        Args:
            rows: their rows.
            codes: of what stands before the message of each, and behind.
            clock: reads their times.
            depth: in how many JSON strings the messages stand.
        """
        column, row, end, stamp = rows
        before, behind = codes
        flags = np.zeros((3, len(row)), np.bool_)
        around = Around(flags[0], np.zeros(len(row), np.int64), flags[1], flags[2])
        whole = np.where((before < 0) | (behind < 0), -1, _codes(before, behind, depth))
        for code in np.unique(whole[whole >= 0]).tolist():
            frame = self._frame(code)
            if frame is not None:
                some = np.flatnonzero(whole == code)
                begin = column.start[row[some]]
                at_ms, known = clock.times(frame.rule, column, begin, end[some], stamp[some])
                around.at_ms[some], around.is_good[some] = at_ms, known
                around.names_broker[some], around.is_alone[some] = frame.names_broker, frame.is_alone
        around.is_good[:] &= around.is_alone | (column.length[row] < ROW_SIZE_MAX)
        return around

    def _frame(self, code: int) -> Frame | None:
        if code in self._old:
            self._again.add(code)
        if code not in self._frames and self._left:
            self._left -= 1
            self._frames[code] = None  # whatever happens now
            before, behind, depth = self._parts(code)
            self._frames[code] = learned(before[:-1], behind[1:], depth)
        return self._frames.get(code)


def _texts() -> Known[bytes]:
    """Return texts that are known, so many at most."""
    room = count()
    return Known(lambda text: text if next(room) < _TEXTS_MAX else None)


def _codes(before: Ints, behind: Ints, depth: int) -> Ints:
    return (((before << _CODE_BITS) | behind) << _DEPTH_BITS) | depth


_known = Frames()


def known_frames() -> Frames:
    """Return the frames that this process has met, to one more reader."""
    _known.begin()
    return _known


class _Probe(NamedTuple):
    """A row in a frame, and what its times are."""

    value: bytes
    times: dict[Slot, int]
    stamp_ms: int
    timezone: str
    is_optional: bool


def learned(before: bytes, behind: bytes, depth: int = 0) -> Frame | None:
    """Return the frame of these texts, whose digits are 0; None: its rows must be opened one by one.

    Args:
        before: what stands before a message.
        behind: what stands behind it.
        depth: in how many JSON strings the message stands.
    """
    if b"\\u" in before + behind:
        return None  # digits in it may mean any character
    rules = list(frame_times.rules_of(before, behind))
    alone, names_broker = set(), False
    for number, probe in enumerate(_probes(before, behind, depth)):
        if number >= _PROBES and len(rules) == 1:
            break
        opened = _opened(probe)
        if opened is None and probe.is_optional:
            continue
        rules = [] if opened is None else [one for one in rules if _told(one, probe) == opened.line.at_ms]
        if opened is None or not rules:
            return None
        names_broker |= opened.line.broker >= 0
        alone.add(opened.carrier.part is None and not opened.carrier.around)
    return Frame(rules[0], names_broker, alone == {True})


def _probes(before: bytes, behind: bytes, depth: int) -> Iterator[_Probe]:
    """Yield rows in this frame."""
    chance = random.Random(0)
    slots = frame_times.slots_of(before, behind)
    says = escaped(_SAYS, depth) if depth else _SAYS
    for number in range(_PROBES_MAX):
        fill = _FILLS[number] if number < len(_FILLS) else _any_digits(chance)
        texts = [bytearray(_DIGITS.sub(fill, text)) for text in (before, behind)]
        timezone, local_ms = _ZONES[number % len(_ZONES)]
        second_ms = (_SINCE_S + chance.randrange(_FORTNIGHT_S)) * 1000
        times = {}
        for slot in slots:
            away_ms = chance.choice(_AWAY_S) * 1000 + chance.randrange(1000)
            times[slot] = frame_times.nearest(slot, second_ms + away_ms)
            frame_times.write(texts[slot.is_behind], slot, times[slot], local_ms)
        stamp_ms = second_ms + chance.choice(_AWAY_S) * 1000 + chance.randrange(1000)
        # JSON has no number that begins with zeros, so nothing may be known in such a row.
        yield _Probe(says.join(texts), times, stamp_ms, timezone, is_optional=fill is _zeros)


_Fill = Callable[[re.Match[bytes]], bytes]
"""Returns digits in place of a run of zeros."""


def _any_digits(chance: random.Random) -> _Fill:
    def fill(run: re.Match[bytes]) -> bytes:
        return b"".join(b"%d" % chance.randrange(1, 10) for _ in run[0])

    return fill


def _ones(run: re.Match[bytes]) -> bytes:
    return b"1" * len(run[0])


def _twos(run: re.Match[bytes]) -> bytes:
    return b"2" * len(run[0])


def _zeros(run: re.Match[bytes]) -> bytes:
    return run[0]


def _dated(run: re.Match[bytes]) -> bytes:
    """Return digits that are a date or a part of one, wherever a date may stand."""
    size = len(run[0])
    if size in (5, 6, 7):
        return b"1627521"[:size]
    return b"2026" if size == 4 else b"11" if size == 2 else (b"20261111162752123" + size * b"1")[:size]


_FILLS: tuple[_Fill, ...] = (_ones, _twos, _zeros, _dated)
_ZONES = (("UTC", 0), ("Asia/Kathmandu", 20_700_000))
"""With what local times are ahead of UTC."""


def _opened(probe: _Probe) -> Opened | None:
    """Return the whole line that is all that a row holds; None: it does not hold just one."""
    try:
        found = list(
            decoding.open_lines(probe.value, key=None, timestamp_ms=probe.stamp_ms, timezone=probe.timezone)
        )
    except Exception:  # what opens rows one by one says what is wrong with them
        return None
    opened = found[0] if len(found) == 1 else None
    if not isinstance(opened, Opened) or opened.line.message.encode(errors="replace") != _SAYS:
        return None
    return None if opened.carrier.part is not None and opened.carrier.part[1] else opened


def _told(rule: Rule, probe: _Probe) -> int:
    """Return the time of a probe's line by a rule."""
    if rule.own is None:
        return probe.stamp_ms
    own_ms = probe.times[rule.own]
    others = (probe.stamp_ms if slot is None else probe.times[slot] for slot in rule.others)
    return refined_ms(Moment(own_ms, rule.own.is_whole), others)
