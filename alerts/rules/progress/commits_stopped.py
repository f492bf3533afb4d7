"""CommitsStopped: records wait, and the group has committed nothing for longer than it usually does."""

from alerts.alert import clock, some, span, times, who_is
from alerts.rules.engine import NOTHING, Finding, GroupRule, Sees, Situation, Stops, Verdict, over
from alerts.rules.members import POLL_INTERVAL_EXCEEDED
from alerts.rules.progress.group_pace import (
    EXCUSES,
    REBALANCING,
    WIDE_CAUSES,
    is_excused,
    is_parked,
    names,
    owners,
    progress_of,
    sentences,
    split,
    waiting,
)
from alerts.rules.progress.progress_once import STOPPED, TOLD, not_told_by_other
from alerts.rules.progress.verdicts import (
    WAITS,
    CommitsStoppedOptions,
    GroupPace,
    PartitionProgress,
    is_young,
    stops_at,
)
from alerts.rules.progress.whole import out_of_turn
from coordinator_model.kafka import CauseKind
from coordinator_model.state import Group, Tracks

NAME = STOPPED
_OVER = "it commits again, or no records wait"


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    opened, tracks = situation.opened(NAME), situation.group.tracks
    if opened is not None and opened.adopted and not _has_committed(situation.group):
        return NOTHING  # an earlier job saw it, and nothing has happened since
    if tracks is None:
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    pace, known = progress_of(situation, tracks)

    def at(part: PartitionProgress) -> int | None:
        return stops_at(part, pace, is_open=opened is not None)

    resting, due = split(known, at, pace.now)
    within_ms = situation.thresholds.of(CommitsStoppedOptions).after_ms
    parts = out_of_turn(situation.group, known, resting, pace, within_ms)
    if len(parts) < len(resting):
        due = pace.now + within_ms if due is None else min(due, pace.now + within_ms)
    at_rest, parts = parts, not_told_by_other(NAME, situation, tracks, pace, parts)
    if due is None and any(is_young(part, pace) for part in known):
        due = pace.now + within_ms
    due_ms = None if due is None else tracks.base_ms + due
    if not parts:
        why = _why_over(known, is_told=bool(at_rest))
        return Verdict(closing=over(situation, why) if opened else None, due_ms=due_ms)
    if is_excused(situation):
        return Verdict(due_ms=due_ms)  # what excuses it ends with news, and then it is asked again
    return Verdict(finding=_finding(situation, tracks, pace, parts), due_ms=due_ms)


def _why_over(known: list[PartitionProgress], *, is_told: bool) -> str:
    if is_told:
        return TOLD[NAME]
    return WAITS if any(part.waits for part in known) else _OVER


def _has_committed(group: Group) -> bool:
    """Say whether any commit was seen since the backlog, or the group has none left."""
    tracks = group.tracks
    known = [] if tracks is None else [one for known in tracks.partitions.values() for one in known.values()]
    return not group.commits or any(track.commits for track in known)


def _finding(
    situation: Situation, tracks: Tracks, pace: GroupPace, parts: list[PartitionProgress]
) -> Finding:
    group = situation.group
    first = min(max(part.last, part.track.behind) for part in parts)
    silent, lag = pace.now - first, sum(part.lag for part in parts)
    gap = max(part.track.span // max(1, part.track.commits - 1) for part in parts)
    return Finding(
        starts_at_ms=tracks.base_ms + first,
        severity=situation.thresholds.of(CommitsStoppedOptions).severity,
        summary=f"Group {group.group} has committed nothing on {some(names(parts))} for {span(silent)} "
        f"while {waiting(lag)}; it usually commits every {span(gap)}.",
        cause=_cause(situation),
        culprits=owners(group, parts),
        evidence=sentences(tracks, parts),
        cost=f"The group does not consume {times(len(parts), 'partition')}; {waiting(lag)}, some for "
        f"{span(silent)} or longer.",
        advice=_advice(situation),
        # Partitions and owners are culprits of one incident: a revision only when their number grows tenfold.
        aspect=str(len(str(len(parts)))),
    )


def _cause(situation: Situation) -> str:
    group = situation.group
    if not group.members:
        if group.generation:
            return f"The group has no members: the last member {_went(group)}."
        return "The consumer commits without being a member of the group, and it has stopped to commit."
    return (
        f"The group is {group.state} with {times(len(group.members), 'member')}, so heartbeats arrive, but "
        "nobody commits: processing hangs, commits fail, or the application does not commit."
    )


def _went(group: Group) -> str:
    """Return how the last member left, and which member it was if that is known."""
    last = group.departures[-1] if group.departures else None
    how = "left by itself" if is_parked(group) else "is gone"
    if last is None:
        return how
    return f"{_FAILED.get(last.how, how)} ({who_is(last)}, at {clock(last.at_ms)})"


_FAILED = {
    CauseKind.SESSION_TIMEOUT: "fell silent for its session timeout",
    CauseKind.POLL_TIMEOUT: "did not poll in time",
    CauseKind.REBALANCE_TIMEOUT: "did not rejoin in time",
    CauseKind.SYNC_TIMEOUT: "did not fetch its assignment in time",
}


def _advice(situation: Situation) -> str:
    if not situation.group.members:
        return "Start the consumer again. If nobody needs it any more, delete the group."
    return (
        "Take a thread dump of the owner before you restart it: does it hang on one record? Look for failed "
        "commits in its log. A restart gives its partitions to other members."
    )


COMMITS_STOPPED = GroupRule(
    name=NAME,
    options=CommitsStoppedOptions,
    evaluate=evaluate,
    needs=Sees.ENDS,
    stops=Stops.GROUP,
    watched=True,
    effect_of=(*REBALANCING, POLL_INTERVAL_EXCEEDED, *WIDE_CAUSES),
    excused_by=EXCUSES,
    blames_nobody="no member: nobody is left, or no source tells who owns these partitions",
)
