"""The times in what stands around a message, read for many rows at once.

A row may have several: the line's own, its shipper's, its container runtime's.  Each stands at the same place
in all rows of one frame (``line_frames.py``).
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, permutations
from typing import NamedTuple

import numpy as np

from coordinator_model.decoding import local_second_ms, zoned_second_ms
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints

_SECOND_SIZE = len("2026-11-21 06:28:53")
_EPOCH_SIZE = len("1795218710")
_MILLIS_DIGITS, _NANOS_DIGITS = 3, 9
_DATED = re.compile(
    rb"(?<!\w)0000-00-00[ T]00:00:00(?:[.,:](0{1,9}))?(?: ?(Z|UTC|GMT|[+-]00(?::?00)?)(?![\w:.]))?"
)
_INSTANT = re.compile(rb'epochSecond\\*": ?(0{10}), ?\\*"nanoOfSecond\\*": ?(0{1,9})(?!0)')
_EPOCH = re.compile(rb"(?<![\w.])0{10}(?:[.,](0{1,6})|0{3}|0{6})?(?![\w-])")
_OTHER = re.compile(
    rb'(?<!0)00?:00(?!0)|"0000-(?:00-00|W00)|(?<!\w)0{8}[T ]0{4}|(?<!0)(?:0{14}|0{17,18}|0{20,23})(?!0)'
    rb"|: ?-?0[0.]*[eE][+-]?0"
)
"""Times that are not read here, and of which the digits of probes may make none."""
_COMPACT = re.compile(rb"(?<!0)0{8}[T ]0{6}")
"""A date and a time without separators: these digits are no epoch."""
_LONG = re.compile(rb"0{9}")
"""A number that may be a time in another unit."""
_NEXT_FIELD = re.compile(rb'["=]')
"""What stands between a time and the message only if the time is another field's."""
_SLOTS_MAX, _ORDERED_MAX = 24, 4
"""Of more none is tried, and not every order."""
_PROBE_ZONE = (b"0330", 12_600_000)


class Slot(NamedTuple):
    """A time in a frame, by its place."""

    is_behind: bool
    """Whether its places count from where the message ends, not from where the row begins."""
    second: int
    is_epoch: bool
    """Ten digits of an epoch second, not a date."""
    millis: int = 0
    digits: int = 0
    """How many digits the milliseconds have, 0 to 3."""
    scale: int = 1
    """Milliseconds of one in the last of these digits."""
    zone: int = 0
    zone_size: int = 0
    """0: a local time."""
    is_whole: bool = False
    """It is written in whole seconds."""
    may_be_whole: bool = False
    """With a fraction of zero it counts as one in whole seconds."""


class Rule(NamedTuple):
    """How the time of a line follows from the slots of its frame and from its record's timestamp."""

    own: Slot | None
    """None: the timestamp."""
    others: tuple[Slot | None, ...] = ()
    """Of which the milliseconds are, if its own are unknown; None: the timestamp."""
    is_only: bool = True
    """Whether nothing else tells a time: in an hour that comes twice, the timestamp says which is meant."""


def _slots_in(shape: bytes, *, is_behind: bool) -> tuple[list[Slot], bytes]:
    """Return the times in a text whose digits are 0, and the text without them."""
    left, slots = bytearray(shape), []
    for pattern, read in ((_DATED, _dated), (_INSTANT, _instant), (_EPOCH, _epoch)):
        for found in pattern.finditer(bytes(left)):
            slots.append(read(found, is_behind=is_behind))
            left[found.start() : found.end()] = b"x" * (found.end() - found.start())
    return sorted(slots, key=lambda slot: slot.second), bytes(left)


def _dated(found: re.Match[bytes], *, is_behind: bool) -> Slot:
    has_fraction, has_zone = found[1] is not None, found[2] is not None
    digits = min(len(found[1]), _MILLIS_DIGITS) if has_fraction else 0
    return Slot(
        is_behind,
        found.start(),
        is_epoch=False,
        millis=found.start(1) if has_fraction else 0,
        digits=digits,
        scale=10 ** (_MILLIS_DIGITS - digits),
        zone=found.start(2) if has_zone else 0,
        zone_size=len(found[2]) if has_zone else 0,
        is_whole=not has_fraction,
    )


def _instant(found: re.Match[bytes], *, is_behind: bool) -> Slot:
    digits = max(0, len(found[2]) - (_NANOS_DIGITS - _MILLIS_DIGITS))
    return Slot(is_behind, found.start(1), is_epoch=True, millis=found.start(2), digits=digits)


def _epoch(found: re.Match[bytes], *, is_behind: bool) -> Slot:
    begin = found.start()
    if found[1] is not None:
        digits = min(len(found[1]), _MILLIS_DIGITS)
        scale = 10 ** (_MILLIS_DIGITS - digits)
        return Slot(is_behind, begin, True, found.start(1), digits, scale, may_be_whole=True)
    is_whole = found.end() - begin == _EPOCH_SIZE
    digits = 0 if is_whole else _MILLIS_DIGITS
    return Slot(is_behind, begin, True, begin + _EPOCH_SIZE, digits, is_whole=is_whole)


def slots_of(before: bytes, behind: bytes) -> list[Slot]:
    """Return the times in what stands before and behind a message; all digits in the texts are 0."""
    return _slots_in(before, is_behind=False)[0] + _slots_in(behind, is_behind=True)[0]


# --- rules -------------------------------------------------------------------------------------------


def rules_of(before: bytes, behind: bytes) -> Iterator[Rule]:
    """Yield how a line's time may follow from what stands before and behind it, the simplest rule first.

    All digits in the texts are 0.
    """
    if _COMPACT.search(before) or _COMPACT.search(behind):
        return
    first, left = _slots_in(before, is_behind=False)
    last, left_behind = _slots_in(behind, is_behind=True)
    others = [found.end() for found in _OTHER.finditer(left)]
    if others or _OTHER.search(left_behind):
        # Whatever those tell, the line's own time counts.
        if first and _is_own(first[-1], left, max(others, default=0)):
            yield Rule(first[-1], is_only=False)
        return
    slots = first + last
    yield Rule(None)
    is_only = len(slots) == 1 and not _LONG.search(left + left_behind)
    yield from (Rule(slot, is_only=is_only) for slot in slots if not slot.is_whole)
    if len(slots) > _SLOTS_MAX:
        return
    most = len(slots) if len(slots) <= _ORDERED_MAX else 1
    for own in slots:
        if own.is_whole:
            rest = [slot for slot in slots if slot is not own]
            orders = chain.from_iterable(permutations(rest, size) for size in range(most + 1))
            yield from (Rule(own, (*others, None), is_only) for others in orders)


def _is_own(slot: Slot, left: bytes, other: int) -> bool:
    """Say whether a time is in the header of the message itself, which ends ``left``, behind others."""
    return not slot.is_whole and slot.second >= other and not _NEXT_FIELD.search(left, slot.second)


# --- probes ------------------------------------------------------------------------------------------


def nearest(slot: Slot, at_ms: int) -> int:
    """Return a time of the same second that can be written into a slot of a probe."""
    second_ms, millis = at_ms // 1000 * 1000, at_ms % 1000
    if slot.digits == 0:
        return second_ms
    if slot.scale > 1:
        return second_ms + max(millis // slot.scale, 1) * slot.scale
    least, most = (1, 10, 100)[slot.digits - 1], (9, 99, 999)[slot.digits - 1]
    return second_ms + least + millis % (most - least + 1)


def write(text: bytearray, slot: Slot, at_ms: int, local_ms: int) -> None:
    """Write a time (from ``nearest``) into the text in which the slot is.

    ``local_ms`` is what local times are ahead of UTC.
    """
    zone = bytes(text[slot.zone : slot.zone + slot.zone_size])
    second_ms = at_ms
    if zone[:1] in (b"+", b"-"):
        digits, offset_ms = _PROBE_ZONE
        if len(zone) == len("+00"):
            digits, offset_ms = digits[:2], offset_ms - offset_ms % 3_600_000
        places = [slot.zone + place for place in range(1, len(zone)) if zone[place : place + 1] != b":"]
        for place, digit in zip(places, digits, strict=True):
            text[place] = digit
        second_ms += offset_ms if zone[:1] == b"+" else -offset_ms
    elif not zone:
        second_ms += local_ms
    if slot.is_epoch:
        text[slot.second : slot.second + _EPOCH_SIZE] = b"%d" % (at_ms // 1000)
    else:
        separator = chr(text[slot.second + len("2026-11-21")])
        written = datetime.fromtimestamp(second_ms // 1000, UTC).strftime(f"%Y-%m-%d{separator}%H:%M:%S")
        text[slot.second : slot.second + _SECOND_SIZE] = written.encode()
    if slot.digits:
        millis = at_ms % 1000 // slot.scale
        text[slot.millis : slot.millis + slot.digits] = b"%0*d" % (slot.digits, millis)


# --- rows --------------------------------------------------------------------------------------------


class Clock:
    """Reads times; those that name no zone are in ``timezone``."""

    def __init__(self, timezone: str) -> None:
        self._timezone = timezone
        self._known: dict[tuple[bytes, bytes], tuple[int, int]] = {}

    def times(
        self, rule: Rule, column: BinaryColumn, start: Ints, end: Ints, stamp: Ints
    ) -> tuple[Ints, Bools]:
        """Return the time of each line in epoch ms, and whether it is known.

        Args:
            rule: of the frame of all these lines.
            column: in which they stand.
            start: where the row of each begins.
            end: from where the places behind the message count.
            stamp: the timestamp of each record, epoch ms.
        """
        if rule.own is None:
            return stamp, np.ones(len(stamp), np.bool_)
        own_ms, good = self._slot(rule, rule.own, column, end if rule.own.is_behind else start, stamp)
        if not rule.own.is_whole:
            return own_ms, good
        others = []
        for slot in rule.others:
            if slot is None:
                others.append(stamp)
                continue
            other_ms, known = self._slot(rule, slot, column, end if slot.is_behind else start, stamp)
            others.append(other_ms)
            good &= known
        return refined(own_ms, others), good

    def _slot(
        self, rule: Rule, slot: Slot, column: BinaryColumn, base: Ints, stamp: Ints
    ) -> tuple[Ints, Bools]:
        millis = _number(column, base + slot.millis, slot.digits) * slot.scale
        if slot.is_epoch:
            seconds = _number(column, base + slot.second, _EPOCH_SIZE)
            good = seconds >= 10 ** (_EPOCH_SIZE - 1)
            if slot.may_be_whole:
                good &= millis > 0
            return seconds * 1000 + millis, good
        first, second = self._seconds(column, base, slot)
        # In an hour that comes twice a line's record, or what else is known of its time, decides.
        good = (first >= 0) & ((first == second) | rule.is_only)
        is_second = (stamp >= 0) & (np.abs(second - stamp) < np.abs(first - stamp))
        return np.where(is_second, second, first) + millis, good

    def _seconds(self, column: BinaryColumn, base: Ints, slot: Slot) -> tuple[Ints, Ints]:
        """Return both readings of the second of each row, epoch ms; -1: there is no such date."""
        text = column.text(base + slot.second, _SECOND_SIZE)
        # Lines of one second mostly follow one another.
        differs = text[1:] != text[:-1]
        if slot.zone_size:
            zone = column.text(base + slot.zone, slot.zone_size)
            differs |= zone[1:] != zone[:-1]
        turns = np.flatnonzero(np.append(True, differs)[: len(text)])
        zones: Sequence[bytes] = zone[turns].tolist() if slot.zone_size else [b""] * len(turns)
        readings = [self._reading(*one) for one in zip(text[turns].tolist(), zones, strict=True)]
        counts = np.diff(np.append(turns, len(text)))
        first, second = np.repeat(np.array(readings, np.int64).reshape(-1, 2), counts, axis=0).T
        return first, second

    def _reading(self, second: bytes, zone: bytes) -> tuple[int, int]:
        known = self._known.get((second, zone))
        if known is None:
            text = second.decode()
            if zone:
                known = (zoned_second_ms(text, zone.decode()),) * 2
            else:
                known = local_second_ms(text, self._timezone)
            self._known[second, zone] = known
        return known


def refined(own_ms: Ints, others: Sequence[Ints]) -> Ints:
    """Return times in whole seconds with the milliseconds of others, as ``decoding.refined_ms`` does."""
    last_ms = own_ms + 999
    found, nearest_ms = np.full(len(own_ms), -1), np.full(len(own_ms), -1)
    for one in others:
        known = (one >= 0) & (one != own_ms)
        found = np.where((found < 0) & known & (own_ms < one) & (one <= last_ms), one, found)
        nearest_ms = np.where((nearest_ms < 0) & known, one, nearest_ms)
    clipped = np.where(nearest_ms < 0, own_ms, np.minimum(np.maximum(nearest_ms, own_ms), last_ms))
    return np.where(found < 0, clipped, found)


def _number(column: BinaryColumn, place: Ints, digits: int) -> Ints:
    number = np.zeros(len(place), np.int64)
    for index in range(digits):
        number = number * 10 + (column.byte(place + index) - ord("0"))
    return number
