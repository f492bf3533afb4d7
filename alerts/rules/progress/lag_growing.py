"""LagGrowing: for a whole window without a break, the group reads less than is written.

Lag is measured at each commit, so a group that commits rarely does not seem to fall behind between two
commits.  While offsets advance at a steady load, the unread share of the records is the rate at which the
lag, in seconds, grows.
"""

from alerts.alert import clock, some, span, times
from alerts.rules.engine import NOTHING, Finding, GroupRule, Sees, Situation, Verdict, over
from alerts.rules.members import POLL_INTERVAL_EXCEEDED
from alerts.rules.progress import whole
from alerts.rules.progress.commits_stalled import COMMITS_STALLED
from alerts.rules.progress.commits_stopped import COMMITS_STOPPED
from alerts.rules.progress.group_pace import (
    EXCUSES,
    REBALANCING,
    WIDE_CAUSES,
    is_excused,
    names,
    owners,
    progress_of,
    sentences,
    waiting,
)
from alerts.rules.progress.verdicts import (
    GroupPace,
    LagGrowingOptions,
    PartitionProgress,
    is_at_rest,
    is_growing,
)
from coordinator_model.state import Growth, Tracks

NAME = "LagGrowing"
_OVER = "its lag does not grow any more"


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group; every report of end offsets triggers it."""
    opened, tracks = situation.opened(NAME), situation.group.tracks
    if tracks is None:
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    progress = progress_of(situation, tracks)
    # Patience is for groups whose rebalances may be unseen; a partition without commits does not grow anyway.
    pace = progress.pace._replace(patience=0)
    if opened is not None:
        pace = pace._replace(steady=0)  # a rebalance in between does not end it
    # Records behind an open transaction cannot be read, so no group falls behind on them.
    known = [part for part in progress.parts if not part.waits]
    whole.note(situation, tracks, known)
    parts, series = _growing(situation, known, pace)
    if not parts:
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    if is_excused(situation):
        return NOTHING
    return Verdict(finding=_finding(situation, tracks, parts, series))


def _growing(
    situation: Situation, known: list[PartitionProgress], pace: GroupPace
) -> tuple[list[PartitionProgress], list[Growth]]:
    """Return the partitions on which the group falls behind, with their growth by topic or partition."""
    # CommitsStopped and CommitsStalled report partitions that do not advance at all.
    growing = [
        part
        for part in known
        if is_growing(part, pace) and not is_at_rest(part, pace) and not _had_caught_up(part)
    ]
    alone = whole.without_turns(situation.group, known, growing)
    parts: list[PartitionProgress] = []
    series: list[Growth] = []
    for growth, members in whole.growing(situation, known, pace):
        parts += members
        series.append(growth)
    told = {part.topic for part in parts}
    for part in alone:
        if part.topic not in told and part.track.growth is not None:
            parts.append(part)
            series.append(part.track.growth)
    return parts, series


def _had_caught_up(part: PartitionProgress) -> bool:
    """Say whether the newest commit reached the end known then: later records were no lag yet."""
    return part.track.behind < 0 or part.track.behind >= part.last


def _finding(
    situation: Situation, tracks: Tracks, parts: list[PartitionProgress], series: list[Growth]
) -> Finding:
    group = situation.group
    began, until = min(one.at for one in series), max(one.until for one in series)
    before, now = sum(one.lag for one in series), sum(one.peak for one in series)
    written = sum(one.top - one.end for one in series)
    read = max(0, written - (now - before))
    share = f"{read * 100 // written} %" if written else "nothing"
    return Finding(
        starts_at_ms=tracks.base_ms + began,
        severity=situation.thresholds.of(LagGrowingOptions).severity,
        summary=f"Group {group.group} falls behind on {some(names(parts))}: {times(now, 'record')}, "
        f"up from {before:,} in {span(until - began)}; it reads {share} of what is written.",
        cause=f"For {span(until - began)} without a break, the group has read less than producers write. "
        f"It has {times(len(group.members), 'member')}.",
        culprits=owners(group, parts),
        evidence=(*sentences(tracks, parts)[:-1], *_catch(tracks, series)),
        cost=f"Results come late: {waiting(now)}, and {_per_minute(series):,} more each minute.",
        advice="Add members (up to the number of partitions), or spend less time on each record. If only "
        "some partitions fall behind, look at their keys and their owners.",
        aspect=str(len(str(len(parts)))),
    )


def _per_minute(series: list[Growth]) -> int:
    return sum((one.peak - one.lag) * 60_000 // max(1, one.until - one.at) for one in series)


def _catch(tracks: Tracks, series: list[Growth]) -> tuple[str, ...]:
    worst = max(series, key=lambda one: one.peak)
    return (
        f"At {clock(tracks.base_ms + worst.at)} the group was {worst.lag:,} behind, "
        f"at {clock(tracks.base_ms + worst.until)} it was {worst.peak:,} behind.",
    )


LAG_GROWING = GroupRule(
    name=NAME,
    options=LagGrowingOptions,
    evaluate=evaluate,
    needs=Sees.ENDS,
    remembers="wholes",
    # When a cause that held it back ends, the last end offsets may be from before that end, and the group may
    # read on since: it waits for the next report, which comes every 10 s, rather than fire on the old one.
    timed=False,
    effect_of=(*REBALANCING, COMMITS_STOPPED, COMMITS_STALLED, POLL_INTERVAL_EXCEEDED, *WIDE_CAUSES),
    excused_by=EXCUSES,
    blames_nobody="no single member: the group as a whole",
)
