"""Detects open transactions that hold up a group which reads only committed records.

The brokers give such a reader nothing beyond the partition's last stable offset, where the oldest open
transaction begins.  A group whose commits have come exactly that far waits for a producer. No source shows a
group's isolation level.  A group whose commits lie beyond or before it waits for nothing.
"""

from typing import TYPE_CHECKING

from coordinator_model.state import MARKERS, OpenTransaction

if TYPE_CHECKING:
    from coordinator_model.state import Track


def has_come_to(offset: int, *, stable: int, end: int) -> bool:
    """Return whether a group that committed ``offset`` has read all that is stable, and more is written."""
    return stable < end and stable - MARKERS <= offset <= stable


def waits(track: "Track", offset: int) -> bool:
    """Return whether a group that has committed ``offset`` waits for a transaction to end."""
    one = track.transaction
    return one is not None and has_come_to(offset, stable=one.offset, end=track.end)


def note_stable(track: "Track", *, stable: int, at: int, offset: int) -> None:
    """Apply a partition's last stable offset, asked for at ``at``; the group has committed ``offset``."""
    waited, one = waits(track, offset), track.transaction
    if one is None or one.offset != stable:
        track.transaction = OpenTransaction(stable, at, at)
    else:
        one.told = at
    if waits(track, offset):
        return
    track.transaction = None
    if waited and track.behind >= 0:
        track.behind = at  # until here no record waited that the group may read


def after_waiting(track: "Track", before: tuple[int, int]) -> tuple[int, int]:
    """Return a commit (offset, when) to compare the next one with: a wait is no part of the usual pace."""
    one = track.transaction
    if one is None or not waits(track, before[0]):
        return before
    if track.behind >= 0:
        track.behind = max(track.behind, one.told)
    return before[0], max(before[1], one.told)
