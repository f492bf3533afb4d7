"""Which of CommitsStopped and CommitsStalled tells of a partition that both could tell.

A consumer that fails at one record commits the same offset again and again (it stalls), and then often
nothing at all (it has stopped).  That is one trouble, so it is one alert: the one that told of the
partition first goes on, and the other leaves the partition out for as long as that one is open.
"""

from alerts.rules.engine import Situation
from alerts.rules.progress.verdicts import Part, Scene, stalls_at, stops_at
from coordinator_model.state import Tracks

STOPPED = "CommitsStopped"
STALLED = "CommitsStalled"
_AT = {STOPPED: stops_at, STALLED: stalls_at}
TOLD = {STOPPED: "CommitsStalled tells of it", STALLED: "CommitsStopped tells of it"}
"""Why an alert ends whose partitions the other one tells."""


def not_told_by_other(
    name: str, situation: Situation, tracks: Tracks, scene: Scene, parts: list[Part]
) -> list[Part]:
    """Return those of ``parts``, at rest by rule ``name``, of which the other rule has not told before."""
    other = STALLED if name == STOPPED else STOPPED
    opened, mine = situation.opened(other), situation.opened(name)
    if opened is None:
        return parts
    their_ms = tracks.since_base(opened.alert.detected_at_ms)
    my_ms = scene.now if mine is None else tracks.since_base(mine.alert.detected_at_ms)

    def is_theirs(part: Part) -> bool:
        theirs, ours = _entry(other, part, scene, their_ms), _entry(name, part, scene, my_ms)
        if theirs is None or theirs > scene.now:
            return False
        # In the same moment the one that is open already has it; of two that are open, CommitsStopped.
        return ours is None or theirs < ours or (theirs == ours and (mine is None or other == STOPPED))

    return [part for part in parts if not is_theirs(part)]


def silent_too(scene: Scene, parts: list[Part]) -> list[Part]:
    """Return those of ``parts``, which stall, on which nothing is committed any more either."""
    return [
        part for part in parts if (at := stops_at(part, scene, is_open=True)) is not None and at <= scene.now
    ]


def _entry(name: str, part: Part, scene: Scene, open_ms: int) -> int | None:
    """Return since when an alert that has been open since ``open_ms`` tells of the partition."""
    at = _AT[name](part, scene, is_open=True)
    return None if at is None else max(at, open_ms)
