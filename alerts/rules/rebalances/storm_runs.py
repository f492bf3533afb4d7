"""Runs of a batch job: a client that joins, reads everything and leaves is no crash loop, however often.

A run lasts from the first member that joins an empty group to the last that leaves it.  It counts as done if
all members left voluntarily, no records that the group is known to read were waiting then, and no member
returned at once.  A client that crashes but closes its consumer leaves records behind, or is restarted
immediately.  A batch job also disturbs nobody: the group has no other members.
"""

from typing import Final

from alerts.rules.engine import ENDS_TOLD_LATE_MS, Leave, StormMemory
from coordinator_model.kafka import GroupState
from coordinator_model.state import Group, Track

PAUSE_SHARE: Final = 20
"""A member back within this part of the window (30 s of 10 min) was restarted, not scheduled."""


def explains(memory: StormMemory, leave: Leave | None, window_ms: int) -> bool:
    """Say whether a departure ended a run whose work was done, and the next run did not start at once."""
    if leave is None or not leave.done:
        return False
    back_ms = next((one.at_ms for one in memory.triggers if one.initial and one.at_ms >= leave.at_ms), None)
    return back_ms is None or back_ms - leave.at_ms >= window_ms // PAUSE_SHARE


def note(memory: StormMemory, group: Group) -> None:
    """Mark the departures of the run that has just ended, if its work was done."""
    if group.state is not GroupState.EMPTY or not memory.leaves or memory.leaves[-1].done:
        return
    began_ms = next((one.at_ms for one in reversed(memory.triggers) if one.initial), None)
    ended_ms = max(one.at_ms for one in memory.leaves)
    if began_ms is None or any(one.at_ms >= began_ms for one in memory.losses):
        return
    if not _is_done(group, ended_ms):
        return
    for one in memory.leaves:
        one.done = one.done or one.at_ms >= began_ms


def _is_done(group: Group, ended_ms: int) -> bool:
    """Say whether the group has ever progressed, and had read all known records when the run ended."""
    tracks = group.tracks
    if tracks is None:
        return False
    known = [track for partitions in tracks.partitions.values() for track in partitions.values()]
    ended = tracks.since_base(ended_ms)
    return any(one.records > 0 for one in known) and all(_is_read(one, ended) for one in known)


def _is_read(track: Track, ended: int) -> bool:
    """Say whether nothing had waited for long: records written while a run ends belong to the next."""
    return track.end >= 0 and (track.behind < 0 or track.behind >= ended - ENDS_TOLD_LATE_MS)
