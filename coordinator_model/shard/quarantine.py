"""Quarantined groups: those that our own code failed on, until they work again.

A failure costs only what it happened to: one observation, one rule, one report, or, if saved bytes cannot be
read, one group, which then begins again.  In each case the group's name stays here until nothing has failed
for a while.  The shard of the whole cluster is informed, which raises the alert (``GroupsQuarantined``).
"""

from collections.abc import Container
from typing import Final

import msgspec

from coordinator_model.observations import GroupQuarantined

QUIET_MS: Final = 10 * 60_000
"""So long after the last failure a group counts as sound again."""
LOST_MAX_MS: Final = 3_600_000
"""A group that began again, and of which no source has shown anything for so long, may be gone."""
GROUPS_MAX: Final = 1_000
"""Limit of names that one shard keeps; beyond it failures are only counted."""
ERROR_MAX: Final = 200
WHOLE_SHARD: Final = ""
"""In place of a group's name: the failure concerns the shard itself."""


class Quarantined(msgspec.Struct, array_like=True, kw_only=True):
    """One quarantined group; saved with the shard."""

    since_ms: int
    last_ms: int
    count: int = 0
    error: str = ""
    """The kind of failure, and its message."""
    lost: bool = False
    """Whether its saved state could not be read, so that it began again."""


Entries = dict[str, Quarantined]


def note(entries: Entries, group: str, at_ms: int, error: str, *, lost: bool = False) -> bool:
    """Note a failure on a group; True: the group's name is kept (and news)."""
    known = entries.get(group)
    if known is None:
        if len(entries) >= GROUPS_MAX:
            return False
        known = entries[group] = Quarantined(since_ms=at_ms, last_ms=at_ms)
    known.last_ms = max(known.last_ms, at_ms)
    known.count += 1
    known.error = error[:ERROR_MAX]
    known.lost |= lost
    return True


def due_ms(entries: Entries, now_ms: int, never_ms: int) -> int:
    """Return when, after ``now_ms``, the first quarantine may end without an observation."""
    return min((_over_ms(one, now_ms) for one in entries.values()), default=never_ms)


def _over_ms(one: Quarantined, now_ms: int) -> int:
    quiet_ms = one.last_ms + QUIET_MS
    return quiet_ms if now_ms < quiet_ms else one.last_ms + LOST_MAX_MS


def release(entries: Entries, now_ms: int, known: Container[str]) -> list[str]:
    """Remove and return the groups that are sound again, or that no source shows any more.

    Args:
        entries: of one shard.
        now_ms: the shard's time.
        known: the groups that the shard has.
    """
    over = [name for name, one in entries.items() if _is_over(one, now_ms, is_back=name in known)]
    for name in over:
        del entries[name]
    return over


def _is_over(one: Quarantined, now_ms: int, *, is_back: bool) -> bool:
    if now_ms < one.last_ms + QUIET_MS:
        return False
    return is_back or not one.lost or now_ms >= one.last_ms + LOST_MAX_MS


def told(entries: Entries, shard: int, group: str) -> GroupQuarantined:
    """Return what the shard of the whole cluster gets to know of a group; one that is not kept has ended."""
    one = entries.get(group)
    if one is None:
        return GroupQuarantined(group=group, partition=shard, since_ms=-1, over=True)
    return GroupQuarantined(
        group=group,
        partition=shard,
        since_ms=one.since_ms,
        last_ms=one.last_ms,
        count=one.count,
        error=one.error,
        lost=one.lost,
    )


def date(entries: Entries, now_ms: int) -> None:
    """Date the loss of a shard's bytes by the shard's own time, once it has one."""
    entry = entries.get(WHOLE_SHARD)
    if entry is not None:
        entry.since_ms = entry.last_ms = now_ms


def refilled(entries: Entries) -> None:
    """Note that a shard that began again has its groups back."""
    entries.pop(WHOLE_SHARD, None)
