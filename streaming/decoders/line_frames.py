"""What stands around a line's message in its row: a layout's header and tail, a shipper's envelope.

It repeats from row to row in all but its digits (times, thread numbers, offsets in a file), so each frame is
learned once: ``decoding.open_lines`` opens a few rows made of it with other digits, which show what a row in
this frame says of its broker and its time.  No layout needs to be known here.
"""

import random
import re
from collections.abc import Iterator
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
_FRAMES_MAX = 4_000
"""More of them are no frames: something else than digits differs in each row."""
_NEW_MAX, _NEW_EACH = 200, 20
"""Frames that are learned: at first, and more for each reader."""
_DIGIT = re.compile(rb"\d")
_CODE_BITS, _DEPTH_BITS = 28, 2
_VARIES = -2
_PROBES = 12
_SAYS = b'Completed request:{"isForwarded":false,"clientInformation":{"softwareVersion":"4.3.1"}}'
_FORTNIGHT_S = 1_209_600
_SINCE_S = 1_795_218_710
_AWAY_S = (0, 0, 0, 1, -1, -7, 7_200)
"""How far the times in a probe are from one another."""


class Frame(NamedTuple):
    """What a row says in this frame, whatever its digits."""

    rule: Rule
    """How the time of its line is told."""
    broker: int
    """The broker that it names, -1: none, -2: some digit names it."""
    is_alone: bool
    """It is no envelope and no container runtime's: what stands in it is never a part of a line."""


class Around(NamedTuple):
    """What stands around some lines."""

    is_good: Bools
    """Whether the rest is known."""
    at_ms: Ints
    broker: Ints
    """-1: it names none."""
    is_alone: Bools


class Frames:
    """The frames that this process has met."""

    def __init__(self) -> None:
        self._before = Known(bytes)
        self._behind = Known(bytes)
        self._frames: dict[int, Frame | None] = {}
        """By the codes of what stands before and behind, and the depth; None: to be opened one by one."""
        self._left = _NEW_MAX - _NEW_EACH

    def begin(self) -> None:
        """Let one more reader use and learn frames; what was known is forgotten if it was too much."""
        if self._is_full:
            self._before, self._behind, self._frames = Known(bytes), Known(bytes), {}
        self._left = min(self._left + _NEW_EACH, _NEW_MAX)

    @property
    def _is_full(self) -> bool:
        return max(len(self._before.values), len(self._behind.values)) > _FRAMES_MAX

    def around(
        self,
        column: BinaryColumn,
        row: Ints,
        message: tuple[Ints, Ints],
        stamp: Ints,
        clock: Clock,
        *,
        depth: int,
    ) -> Around:
        """Return what stands around lines.

        Args:
            column: of the rows.
            row: which of them.
            message: where it begins in each, and where it ends.
            stamp: the timestamp of each record, epoch ms.
            clock: reads their times.
            depth: in how many JSON strings the message stands.
        """
        start = column.start[row]
        # A text must not be empty, so both have a byte of the message.
        begin, end = message[0] + 1, message[1] - 1
        stop = start + column.length[row]
        flags, numbers = np.zeros((2, len(row)), np.bool_), np.full((2, len(row)), -1)
        around = Around(flags[0], numbers[0], numbers[1], flags[1])
        near = np.flatnonzero((begin - start <= SIZE_MAX) & (stop - end <= SIZE_MAX))
        if not len(near) or self._is_full:
            return around
        before = self._before.codes_in(column, start[near], begin[near], digits=False)
        behind = self._behind.codes_in(column, end[near], stop[near], digits=False)
        codes = (((before << _CODE_BITS) | behind) << _DEPTH_BITS) | depth
        for code in np.unique(codes).tolist():
            frame = self._frame(code)
            if frame is not None:
                some = near[codes == code]
                at_ms, known = clock.times(frame.rule, column, start[some], message[1][some], stamp[some])
                around.at_ms[some], around.is_good[some] = at_ms, known
                around.broker[some], around.is_alone[some] = frame.broker, frame.is_alone
        around.is_good[:] &= around.is_alone | (column.length[row] < ROW_SIZE_MAX)
        return around

    def _frame(self, code: int) -> Frame | None:
        if code not in self._frames:
            if not self._left:
                return None
            self._left -= 1
            pair, depth = code >> _DEPTH_BITS, code & ((1 << _DEPTH_BITS) - 1)
            before, behind = pair >> _CODE_BITS, pair & ((1 << _CODE_BITS) - 1)
            texts = self._before.values[before][:-1], self._behind.values[behind][1:]
            self._frames[code] = learned(*texts, depth)
        return self._frames[code]


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
    brokers, alone = set(), set()
    for probe in _probes(before, behind, depth):
        opened = _opened(probe)
        if opened is None and probe.is_optional:
            continue
        rules = [] if opened is None else [one for one in rules if _told(one, probe) == opened.line.at_ms]
        if opened is None or not rules:
            return None
        brokers.add(opened.line.broker)
        alone.add(opened.carrier.part is None and not opened.carrier.around)
    broker = brokers.pop() if len(brokers) == 1 else _VARIES
    return Frame(rules[0], broker, alone == {True})


def _probes(before: bytes, behind: bytes, depth: int) -> Iterator[_Probe]:
    """Yield rows in this frame."""
    chance = random.Random(0)
    slots = frame_times.slots_of(before, behind)
    says = escaped(_SAYS, depth) if depth else _SAYS
    for number in range(_PROBES):
        digit = b"120"[number : number + 1]
        texts = [_filled(text, digit, chance) for text in (before, behind)]
        second_ms = (_SINCE_S + chance.randrange(_FORTNIGHT_S)) * 1000
        times = {}
        for slot in slots:
            away_ms = chance.choice(_AWAY_S) * 1000 + chance.randrange(1000)
            times[slot] = frame_times.nearest(slot, second_ms + away_ms)
            frame_times.write(texts[slot.is_behind], slot, times[slot])
        stamp_ms = second_ms + chance.choice(_AWAY_S) * 1000 + chance.randrange(1000)
        # JSON has no number that begins with zeros, so nothing may be known in such a row.
        yield _Probe(says.join(texts), times, stamp_ms, is_optional=digit == b"0")


def _filled(text: bytes, digit: bytes, chance: random.Random) -> bytearray:
    """Return a text with other digits: this one, or "" for any."""
    return bytearray(_DIGIT.sub(lambda _: digit or b"%d" % chance.randrange(1, 10), text))


def _opened(probe: _Probe) -> Opened | None:
    """Return the whole line that is all that a row holds; None: it does not hold just one."""
    try:
        found = list(decoding.open_lines(probe.value, key=None, timestamp_ms=probe.stamp_ms, timezone="UTC"))
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
