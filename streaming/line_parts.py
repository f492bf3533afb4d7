"""Puts lines together that a container runtime has cut.

A runtime cuts lines at 16 KiB and says of each part whether another follows.  Parts stand one after
another in their partition, so those that were read together become one line again.  What is left at the
end of a batch is counted and not remembered: a line that lies across two batches is lost (only lists of
hundreds of members are that long), and most shippers put parts together themselves.
"""

from coordinator_model.line_text import Opened, open_text
from coordinator_model.log_envelope import LENGTH_MAX

_Key = tuple[int, bytes | None, int, str]
"""Partition, record key, broker where the envelope names it, stream."""


class LineParts:
    """The parts of each stream that wait for more."""

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: dict[_Key, list[Opened]] = {}

    @property
    def is_waiting(self) -> bool:
        """Say whether a line goes on."""
        return bool(self._waiting)

    def whole(self, partition: int, key: bytes | None, part: Opened) -> tuple[Opened | None, int]:
        """Take in a line or a part of one.

        Returns:
            the whole line, None while it goes on; and of how many other parts it was made.
        """
        if part.carrier.part is None:
            return part, 0
        stream, goes_on = part.carrier.part
        where = (partition, key, part.carrier.broker, stream)
        if goes_on:
            self._waiting.setdefault(where, []).append(part)
            return None, 0
        before = self._waiting.pop(where, None)
        if before is None:
            return part, 0
        text = "".join(one.text for one in (*before, part))
        # What the parts carry is no longer cut, whatever its length.
        carrier = before[0].carrier._replace(part=None)
        return open_text(text[:LENGTH_MAX], carrier), len(before)

    def left(self) -> list[Opened]:
        """Return the parts whose rest did not come."""
        return [part for parts in self._waiting.values() for part in parts]
