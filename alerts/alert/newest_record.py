"""Decides which record of an alert is the newest; everybody who follows alerts uses this rule.

Only the job writes its alerts, so the record read last counts, whatever its revision number.  If the number
decided, anybody could write one record with a high revision and mute everything the job writes after it.

- A record that equals an earlier one byte for byte is a repeat after a crash and is ignored.
- A record is refused if its revision is far above the known one.
- Records of different partitions have no order; only there does the higher revision win.
"""

from typing import Final

import msgspec

from alerts.alert.alert import Alert

JUMP_MAX: Final = 100
"""How many revisions compaction may have removed before a reader saw them."""
_REMEMBERED_MAX = 8
"""How many recent records of an alert are kept; a crash repeats one batch, which has few of one alert."""


class RecentRecords:
    """The recent records of each alert, by which repeats are recognised."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._hashes: dict[str, tuple[int, ...]] = {}

    def is_repeat(self, alert: Alert) -> bool:
        """Say whether exactly this record was read before, and remember it."""
        content, before = hash(msgspec.json.encode(alert)), self._hashes.get(alert.id, ())
        if content in before:
            return True
        self._hashes[alert.id] = (*before, content)[-_REMEMBERED_MAX:]
        return False

    def forget(self, alert_id: str) -> None:
        """Forget one alert's records."""
        self._hashes.pop(alert_id, None)

    def clear(self) -> None:
        """Forget all records."""
        self._hashes.clear()


class RecordPosition(msgspec.Struct, frozen=True):
    """The parts of a record that decide whether it is newer than another."""

    revision: int
    partition: int


def is_jump(revision: int, known: int) -> bool:
    """Say whether ``revision`` is too far above the ``known`` one (-1: none is known)."""
    return 0 <= known < revision - JUMP_MAX


def is_later(word: RecordPosition, before: RecordPosition | None) -> bool:
    """Say whether ``word`` is modern than ``before``, which was read earlier."""
    return before is None or word.partition == before.partition or word.revision >= before.revision
