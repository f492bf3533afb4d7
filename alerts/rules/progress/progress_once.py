"""Decides whether CommitsStopped or CommitsStalled reports a partition that both could report.

A consumer that fails at one record commits the same offset again and again (stalled), and later often nothing
(stopped).  That is one trouble and gets one alert: the one that reported the partition first continues, and
the other leaves the partition out as long as the first is open.
"""

from alerts.rules.engine import Situation
from alerts.rules.progress.verdicts import GroupPace, PartitionProgress, stalls_at, stops_at
from coordinator_model.state import Tracks

STOPPED = "CommitsStopped"
STALLED = "CommitsStalled"
_AT = {STOPPED: stops_at, STALLED: stalls_at}
TOLD = {STOPPED: "CommitsStalled reports it now", STALLED: "CommitsStopped reports it now"}
"""Why an alert ends when the other one reports its partitions."""


def not_told_by_other(
    name: str, situation: Situation, tracks: Tracks, pace: GroupPace, parts: list[PartitionProgress]
) -> list[PartitionProgress]:
    """Return those of ``parts``, at rest by rule ``name``, that the other rule did not report first."""
    other = STALLED if name == STOPPED else STOPPED
    opened, mine = situation.opened(other), situation.opened(name)
    if opened is None:
        return parts
    their_ms = tracks.since_base(opened.alert.detected_at_ms)
    my_ms = pace.now if mine is None else tracks.since_base(mine.alert.detected_at_ms)

    def is_theirs(part: PartitionProgress) -> bool:
        theirs, ours = _entry(other, part, pace, their_ms), _entry(name, part, pace, my_ms)
        if theirs is None or theirs > pace.now:
            return False
        # At equal times the open alert has it; if both are open, CommitsStopped has it.
        return ours is None or theirs < ours or (theirs == ours and (mine is None or other == STOPPED))

    return [part for part in parts if not is_theirs(part)]


def silent_too(pace: GroupPace, parts: list[PartitionProgress]) -> list[PartitionProgress]:
    """Return those of the stalled ``parts`` that no longer get any commit either."""
    return [
        part for part in parts if (at := stops_at(part, pace, is_open=True)) is not None and at <= pace.now
    ]


def _entry(name: str, part: PartitionProgress, pace: GroupPace, open_ms: int) -> int | None:
    """Return since when an alert, open since ``open_ms``, reports the partition."""
    at = _AT[name](part, pace, is_open=True)
    return None if at is None else max(at, open_ms)
