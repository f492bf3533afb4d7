"""Puts lines together that a container runtime, or journald, has cut.

A runtime cuts lines at 16 KiB, journald at 48 KiB, and each says of a part that another follows; journald
and some shippers do not mark the last.  Parts stand one after another in their partition, so those that
were read together become one line again, if they belong together:

- Record key, broker, stream, and what the envelopes tell of host, process, container and file are equal.
- Where nothing names the writer, two may stand in one partition.  A part that begins as a line does, while
  another line is open, shows that: whose rest comes next nobody can tell, so nothing is joined until their
  rests have come, and all of it is counted.  Nor is such a part read as a line of its own: whoever chooses
  a long name chooses what stands behind the cut.

What is left at the end of a batch is counted and not remembered: a line that lies across two batches is
lost (only lists of hundreds of members are that long).  Its parts in the first batch are counted here; what
comes in the second is read by itself, begins as no sentence does, and is counted as other lines are that
are not understood.  Most shippers put parts together themselves.
"""

from typing import NamedTuple

from coordinator_model.decoding import LENGTH_MAX, Opened, begins_anew, marks_no_end, open_text, origin_of

_TORN_MAX = 100
"""Parts that are set aside while it is open whose rest comes; then its end is taken for lost."""


class _Where(NamedTuple):
    """What the parts of one line have in common."""

    partition: int
    key: bytes | None
    broker: int
    """Where the key or the envelope names it."""
    stream: str
    words: tuple[tuple[str, str], ...]
    ends_unmarked: bool
    """The last part of a line is not marked as one."""


class _Torn:
    """A stream of which nobody knows whose rest comes next."""

    def __init__(self) -> None:
        self.left = _TORN_MAX
        self.open = 1
        """Lines whose rest is to come."""

    def take(self, *, goes_on: bool, is_anew: bool) -> None:
        """Take note of a part that is set aside."""
        self.left -= 1
        if goes_on == is_anew:  # the beginning of one more line, or the end of one
            self.open += 1 if goes_on else -1

    @property
    def is_over(self) -> bool:
        """Say whether what comes next is read again."""
        return self.open <= 0 or self.left <= 0


class LineParts:
    """The parts of each stream that wait for more."""

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: dict[_Where, list[Opened]] = {}
        self._torn: dict[_Where, _Torn] = {}
        self._lost: list[Opened] = []

    @property
    def is_waiting(self) -> bool:
        """Say whether a line goes on."""
        return bool(self._waiting or self._torn)

    def whole(self, partition: int, key: bytes | None, part: Opened) -> tuple[Opened | None, int]:
        """Take in a line or a part of one.

        Returns:
            the whole line, None while it goes on or is lost; and of how many other parts it was made.
        """
        carrier = part.carrier
        if carrier.part is None and not (self.is_waiting and carrier.around):
            return part, 0
        stream, goes_on = carrier.part or (_stream_of(part), False)
        if not goes_on and not self.is_waiting:
            return part, 0
        where, is_named = _where(partition, key or None, part, stream)
        before = self._waiting.get(where)
        if where in self._torn:
            self._set_aside(where, part, goes_on=goes_on)
        elif before is None:
            return self._begin(where, part, goes_on=goes_on), 0
        elif (where.ends_unmarked or not is_named) and begins_anew(part.text):
            self._tear(where, part, goes_on=goes_on, is_named=is_named)
        elif goes_on:
            before.append(part)
        else:
            del self._waiting[where]
            return _joined(before, part), len(before)
        return None, 0

    def left(self) -> list[Opened]:
        """Return the parts whose rest did not come, or was not known for theirs."""
        return [*self._lost, *(part for parts in self._waiting.values() for part in parts)]

    def _begin(self, where: _Where, part: Opened, *, goes_on: bool) -> Opened | None:
        if not goes_on:
            return part
        self._waiting[where] = [part]
        return None

    def _tear(self, where: _Where, part: Opened, *, goes_on: bool, is_named: bool) -> None:
        """Give up the open line, and what came in place of its rest."""
        self._lost += self._waiting.pop(where)
        if is_named:
            self._lost.append(part)
        else:
            self._torn[where] = _Torn()
            self._set_aside(where, part, goes_on=goes_on)

    def _set_aside(self, where: _Where, part: Opened, *, goes_on: bool) -> None:
        self._lost.append(part)
        torn = self._torn[where]
        torn.take(goes_on=goes_on, is_anew=begins_anew(part.text))
        if torn.is_over:
            del self._torn[where]


def _where(partition: int, key: bytes | None, part: Opened, stream: str) -> tuple[_Where, bool]:
    """Return what a part has in common with others of its line, and whether that names the writer."""
    carrier = part.carrier
    words, is_told = origin_of(carrier.around)
    ends_unmarked = carrier.part is None or any(map(marks_no_end, carrier.around))
    where = _Where(partition, key, carrier.broker, stream, words, ends_unmarked)
    return where, is_told or key is not None or carrier.broker >= 0


def _stream_of(part: Opened) -> str:
    named = part.carrier.around[-1].get("stream") if part.carrier.around else None
    return named if isinstance(named, str) and named else "stdout"


def _joined(before: list[Opened], last: Opened) -> Opened:
    text = "".join(one.text for one in (*before, last))
    # What the parts carry is no longer cut, whatever its length.
    return open_text(text[:LENGTH_MAX], before[0].carrier._replace(part=None))
