"""CommitsStalled: records wait, and the group commits the same offset again and again.

Or a hanging transaction blocks it: then the group may commit nothing at all, and is not to blame.
"""

from alerts.alert import clock, some, span, times
from alerts.rules.engine import EVIDENCE_MAX, NOTHING, Finding, GroupRule, Sees, Situation, Verdict, over
from alerts.rules.progress.group_pace import (
    EXCUSES,
    REBALANCING,
    WIDE_CAUSES,
    is_excused,
    names,
    owners,
    progress_of,
    sentences,
    split,
    waiting,
)
from alerts.rules.progress.progress_once import STALLED, TOLD, not_told_by_other, silent_too
from alerts.rules.progress.verdicts import (
    REPEATS_MIN,
    WAITS,
    CommitsStalledOptions,
    GroupPace,
    PartitionProgress,
    hangs_at,
    stalls_at,
)
from alerts.rules.progress.whole import out_of_turn
from coordinator_model.state import WINDOW, Tracks

NAME = STALLED
_OVER = "its committed offsets move again, or no records wait"

RECHECK_MS = 10_000
"""Two equal commits may have nothing between them that triggers a judgement."""


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    opened, tracks = situation.opened(NAME), situation.group.tracks
    if tracks is None:
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    pace, known = progress_of(situation, tracks)
    repeating = [part for part in known if part.track.repeats and not part.waits]

    def at(part: PartitionProgress) -> int | None:
        return stalls_at(part, pace, is_open=opened is not None)

    resting, _ = split(repeating, at, pace.now)
    within_ms = situation.thresholds.of(CommitsStalledOptions).after_ms
    parts = out_of_turn(situation.group, known, resting, pace, within_ms)
    at_rest, parts = parts, not_told_by_other(NAME, situation, tracks, pace, parts)
    due_ms = situation.now_ms + RECHECK_MS if len(repeating) > len(parts) else None
    waiting = [part for part in known if part.waits and _is_read(situation, part)]
    hanging, due = split(waiting, lambda part: hangs_at(part, pace, is_open=opened is not None), pace.now)
    if due is not None:
        due_ms = min(tracks.base_ms + due, due_ms or tracks.base_ms + due)
    if not (parts or hanging):
        why = TOLD[NAME] if at_rest else WAITS if waiting else _OVER
        return Verdict(closing=over(situation, why) if opened else None, due_ms=due_ms)
    if is_excused(situation):
        return Verdict(due_ms=due_ms)
    make = _finding if parts else _hanging
    return Verdict(finding=make(situation, tracks, pace, parts or hanging), due_ms=due_ms)


def _is_read(situation: Situation, part: PartitionProgress) -> bool:
    """Say whether anybody reads the partition: a member, or a client that commits without membership."""
    return bool(situation.group.members) or part.track.repeats >= REPEATS_MIN


def _finding(
    situation: Situation, tracks: Tracks, pace: GroupPace, parts: list[PartitionProgress]
) -> Finding:
    group = situation.group.group
    first = min(max(part.track.moved, part.track.behind) for part in parts)
    stood, lag = pace.now - first, sum(part.lag for part in parts)
    repeats = max(part.track.repeats for part in parts)
    offsets, have, them = ("offset", "has", "it") if len(parts) == 1 else ("offsets", "have", "them")
    silent = silent_too(pace, parts)
    often = f"{repeats} times or more" if repeats == WINDOW else times(repeats, "time")
    return Finding(
        starts_at_ms=tracks.base_ms + first,
        severity=situation.thresholds.of(CommitsStalledOptions).severity,
        summary=f"Group {group}: the committed {offsets} of {some(names(parts))} {have} not moved for "
        f"{span(stood)} while {waiting(lag)}; the group committed {them} again {often}.",
        cause="The consumer is alive and commits, but it does not get past this offset. Usual reasons: one "
        "record fails and the consumer tries it again, the partition is paused, or a transaction does not "
        "end.",
        culprits=owners(situation.group, parts),
        evidence=(*_silence(tracks, silent), *sentences(tracks, parts))[:EVIDENCE_MAX],
        cost=f"The group does not consume {times(len(parts), 'partition')}; {waiting(lag)}.",
        advice="Read the record at the committed offset, and look for it in the owner's log. If the "
        "consumer cannot process it, store the record elsewhere and commit the next offset.",
        # An end of all commits is news for this alert: CommitsStopped leaves such partitions out.
        aspect=str(len(str(len(parts)))) + ("/silent" if silent else ""),
    )


def _silence(tracks: Tracks, silent: list[PartitionProgress]) -> tuple[str, ...]:
    """Return a line of evidence about partitions without any further commit."""
    if not silent:
        return ()
    last = max(part.last for part in silent)
    return (
        f"No commit on {some(names(silent))} since {clock(tracks.base_ms + last)}: until then the consumer "
        "committed the same offset, and now it seems to have stopped.",
    )


def _hanging(
    situation: Situation, tracks: Tracks, pace: GroupPace, parts: list[PartitionProgress]
) -> Finding:
    """Return the finding about transactions that have been open for too long."""
    group = situation.group.group
    since = {part.name: part.track.transaction.since for part in parts if part.track.transaction}
    first, lag = min(since.values()), sum(part.lag for part in parts)
    where = some(names(parts))
    limit = span(pace.transaction)
    return Finding(
        starts_at_ms=tracks.base_ms + first,
        severity=situation.thresholds.of(CommitsStalledOptions).severity,
        summary=f"Group {group} has waited for an open transaction in {where} since "
        f"{clock(tracks.base_ms + first)}, for {span(pace.now - first)}, while {waiting(lag)}.",
        cause=f"A producer's transaction in {where} hangs: nobody committed or aborted it within {limit}, "
        "when the brokers should have aborted it (transaction.max.timeout.ms). The group has read all "
        "records "
        "before it; consumers with isolation.level=read_committed get no records after it.",
        evidence=(*_stable(tracks, parts), *sentences(tracks, parts))[:EVIDENCE_MAX],
        cost=f"The group does not consume {times(len(parts), 'partition')}; {waiting(lag)}. All other "
        "consumers with isolation.level=read_committed wait as well.",
        advice="Do not restart the consumer: it works. Find the producer with kafka-transactions.sh "
        "find-hanging and describe-producers. If the producer is gone, abort its transaction with "
        "kafka-transactions.sh abort.",
        aspect=f"transaction/{len(str(len(parts)))}",
    )


def _stable(tracks: Tracks, parts: list[PartitionProgress]) -> tuple[str, ...]:
    return tuple(
        f"{part.name}: the last stable offset has been {one.offset} since "
        f"{clock(tracks.base_ms + one.since)} or earlier, and still was at "
        f"{clock(tracks.base_ms + one.told)}."
        for part in parts
        if (one := part.track.transaction) is not None
    )


COMMITS_STALLED = GroupRule(
    name=NAME,
    options=CommitsStalledOptions,
    evaluate=evaluate,
    needs=Sees.ENDS,
    effect_of=(*REBALANCING, *WIDE_CAUSES),
    excused_by=EXCUSES,
    blames_nobody="no member: no source tells who owns these partitions",
)
