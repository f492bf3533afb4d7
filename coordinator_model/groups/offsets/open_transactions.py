"""Open transactions that hold up a group which reads only what is committed.

The brokers show such a reader nothing beyond the partition's last stable offset, which is where the oldest
open transaction begins.  So a group whose commits have come that far, and no further, waits for a producer.
Nobody tells what a group reads.  One that has gone beyond, or stands still before it, waits for nothing.
"""

from typing import TYPE_CHECKING

from coordinator_model.state import MARKERS, OpenTransaction

if TYPE_CHECKING:
    from coordinator_model.state import Track


def has_come_to(offset: int, *, stable: int, end: int) -> bool:
    """Say whether a group that has committed ``offset`` has read all that is stable, and more is written."""
    return stable < end and stable - MARKERS <= offset <= stable


def waits(track: "Track", offset: int) -> bool:
    """Say whether a group that has committed ``offset`` waits for a transaction to end."""
    one = track.transaction
    return one is not None and has_come_to(offset, stable=one.offset, end=track.end)


def note_stable(track: "Track", *, stable: int, at: int, offset: int) -> None:
    """Take in a partition's last stable offset, told at ``at`` to a group that has committed ``offset``."""
    waited, one = waits(track, offset), track.transaction
    if one is None or one.offset != stable:
        track.transaction = OpenTransaction(stable, at, at)
    else:
        one.told = at
    if waits(track, offset):
        return
    track.transaction = None
    if waited and track.behind >= 0:
        track.behind = at  # until now nothing waited that the group may read


def after_waiting(track: "Track", before: tuple[int, int]) -> tuple[int, int]:
    """Return a commit (offset, when) as the next one is held against it: to wait is no habit."""
    one = track.transaction
    if one is None or not waits(track, before[0]):
        return before
    if track.behind >= 0:
        track.behind = max(track.behind, one.told)
    return before[0], max(before[1], one.told)
