"""Which record of an alert is its newest: one rule for all who follow alerts.

The job is the one writer of its alerts, so its last word counts, whatever the number of the revision: by
number, whoever writes one record with a high one would mute all that the job says after it.

- What was said before, byte for byte, is a repeat after a crash and no last word.
- A revision far beyond the one that is known is set aside.
- Records of different partitions have no order; of those, and only of those, the number decides.
"""

from typing import Final

import msgspec

from alerts.alert.alert import Alert

JUMP_MAX: Final = 100
"""Revisions that a reader may have missed of an alert it knows: what was compacted before it was read."""
_REMEMBERED_MAX = 8
"""A crash repeats what one batch said, which of one alert is little."""


class Said:
    """What was said of each alert lately."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._hashes: dict[str, tuple[int, ...]] = {}

    def is_repeat(self, alert: Alert) -> bool:
        """Say whether just this was said before, and remember it."""
        content, before = hash(msgspec.json.encode(alert)), self._hashes.get(alert.id, ())
        if content in before:
            return True
        self._hashes[alert.id] = (*before, content)[-_REMEMBERED_MAX:]
        return False

    def forget(self, alert_id: str) -> None:
        """Remember nothing of an alert."""
        self._hashes.pop(alert_id, None)

    def clear(self) -> None:
        """Remember nothing."""
        self._hashes.clear()


class Word(msgspec.Struct, frozen=True):
    """What of a record says whether another is newer."""

    revision: int
    partition: int


def is_jump(revision: int, known: int) -> bool:
    """Say whether a revision lies too far beyond the ``known`` one, -1 if none is."""
    return 0 <= known < revision - JUMP_MAX


def is_later(word: Word, before: Word | None) -> bool:
    """Say whether ``word``, which was read after ``before``, is the newer of the two."""
    return before is None or word.partition == before.partition or word.revision >= before.revision
