"""Joins lines that a container runtime or journald has cut.

A runtime cuts lines at 16 KiB, journald at 48 KiB, and each marks a part that another follows; journald and
some shippers do not mark the last part.  Parts follow one another in their partition, so parts that were read
together are joined again if they belong together:

- Record key, broker and stream are equal, and so are host, process, container and file in the envelopes.
- If nothing names the writer, two writers may share a partition.  A part that begins like a line, while
  another line is open, shows that: nobody can tell whose rest comes next.  So nothing is joined until both
  rests have come, and all of it is counted.  Nor is such a part read as a line of its own: a client that
  chooses a long name chooses the text after the cut.

Parts left at the end of a batch are counted and not remembered: a line across two batches is lost (only lists
of hundreds of members are that long).  Its parts in the first batch are counted here.  The rest in the second
is read by itself, does not begin like a sentence, and is counted like other lines that are not understood.
Most shippers join parts themselves.
"""

from typing import NamedTuple

from coordinator_model.decoding import LENGTH_MAX, Opened, begins_anew, marks_no_end, open_text, origin_of

_TORN_MAX = 100
"""Parts set aside while it is unknown whose rest comes; after them the line's end counts as lost."""


class _Where(NamedTuple):
    """What the parts of one line have in common."""

    partition: int
    key: bytes | None
    broker: int
    """Named by the key or the envelope."""
    stream: str
    words: tuple[tuple[str, str], ...]
    ends_unmarked: bool
    """The last part of a line has no mark."""


class _Torn:
    """A stream in which nobody knows whose rest comes next."""

    def __init__(self) -> None:
        self.left = _TORN_MAX
        self.open = 1
        """Lines whose rest is still to come."""

    def take(self, *, goes_on: bool, is_anew: bool) -> None:
        """Take a part that is set aside."""
        self.left -= 1
        if goes_on == is_anew:  # the beginning of one more line, or the end of one
            self.open += 1 if goes_on else -1

    @property
    def is_over(self) -> bool:
        """Say whether the next line is read again."""
        return self.open <= 0 or self.left <= 0


class LineParts:
    """The parts of each stream that wait for further parts."""

    def __init__(self) -> None:
        """Start without any."""
        self._waiting: dict[_Where, list[Opened]] = {}
        self._torn: dict[_Where, _Torn] = {}
        self._lost: list[Opened] = []

    @property
    def is_waiting(self) -> bool:
        """Say whether a line is incomplete."""
        return bool(self._waiting or self._torn)

    def whole(self, partition: int, key: bytes | None, part: Opened) -> tuple[Opened | None, int]:
        """Take a line or a part of one.

        Returns:
            the whole line (None if it is incomplete or lost), and the number of its other parts.
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
        """Return the parts whose rest did not come, or could not be identified."""
        return [*self._lost, *(part for parts in self._waiting.values() for part in parts)]

    def _begin(self, where: _Where, part: Opened, *, goes_on: bool) -> Opened | None:
        if not goes_on:
            return part
        self._waiting[where] = [part]
        return None

    def _tear(self, where: _Where, part: Opened, *, goes_on: bool, is_named: bool) -> None:
        """Give up the open line, and the part that came in place of its rest."""
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
    """Return what a part shares with others of its line, and whether that names the writer."""
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
    # The envelope no longer counts as cut, whatever the text's length.
    return open_text(text[:LENGTH_MAX], before[0].carrier._replace(part=None))
