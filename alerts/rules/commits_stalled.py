"""CommitsStalled: records wait, and the group commits the same offset again and again."""

from alerts.lifecycle import Finding
from alerts.rules.progress import Part, Scene, stalls_at
from alerts.rules.progress_scene import is_excused, names, owners, parts_of, scene_of, sentences, split
from alerts.rules.progress_whole import out_of_turn
from alerts.rules.situation import NOTHING, Situation, Verdict, over
from alerts.wording import some, span, times
from coordinator_model.tracks import WINDOW, Tracks

NAME = "CommitsStalled"
_OVER = "it reads on, or nothing waits"

RECHECK_MS = 10_000
"""Between two commits that say the same nothing else may come that asks the rules."""


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    opened, tracks = situation.opened(NAME), situation.group.tracks
    if tracks is None:
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    scene = scene_of(situation, tracks)
    known = list(parts_of(situation.group, tracks))
    repeating = [part for part in known if part.track.repeats]

    def at(part: Part) -> int | None:
        return stalls_at(part, scene, is_open=opened is not None)

    resting, _ = split(iter(repeating), at, scene.now)
    within_ms = situation.thresholds.commits_stalled.after_ms
    parts = out_of_turn(situation.group, known, resting, scene, within_ms)
    due_ms = situation.now_ms + RECHECK_MS if len(repeating) > len(parts) else None
    if not parts:
        return Verdict(closing=over(situation, _OVER) if opened else None, due_ms=due_ms)
    if is_excused(situation):
        return Verdict(due_ms=due_ms)
    return Verdict(finding=_finding(situation, tracks, scene, parts), due_ms=due_ms)


def _finding(situation: Situation, tracks: Tracks, scene: Scene, parts: list[Part]) -> Finding:
    group = situation.group.group
    first = min(max(part.track.moved, part.track.behind) for part in parts)
    stood, lag = scene.now - first, sum(part.lag for part in parts)
    repeats = max(part.track.repeats for part in parts)
    has = "has" if len(parts) == 1 else "have"
    often = f"{repeats} times and more" if repeats == WINDOW else times(repeats, "time")
    return Finding(
        starts_at_ms=tracks.base_ms + first,
        severity=situation.thresholds.commits_stalled.severity,
        summary=f"Group {group}: {some(names(parts))} {has} stood still for {span(stood)} while "
        f"{times(lag, 'record')} wait; the same offset was committed again {often}.",
        cause="The consumer lives and commits, but what it reads next does not get through: one record "
        "that fails and is tried again, a partition that is paused, or a transaction that does not end.",
        culprits=owners(situation.group, parts),
        evidence=sentences(tracks, parts),
        cost=f"{times(len(parts), 'partition')} not consumed, {times(lag, 'record')} waiting.",
        advice="Read the record at the committed offset; look for it in the owner's log. If it cannot be "
        "processed, set it aside and commit the next offset.",
        aspect=str(len(str(len(parts)))),
    )
