"""The input of the rules about progress: a group's partitions, its usual pace, and what excuses it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from alerts.alert import Culprit, clock, times
from alerts.rules.engine import (
    CULPRITS_MAX,
    EVIDENCE_MAX,
    Situation,
    culprits_equally,
    rebalance_timeout_ms,
)
from alerts.rules.members import POLL_INTERVAL_EXCEEDED, SESSION_TIMEOUT, SESSION_TIMEOUT_IMMINENT
from alerts.rules.monitor import CLUSTER_UNREACHABLE, MONITOR_STALLED, SOURCE_SILENT
from alerts.rules.progress.verdicts import HANGS_MS, GroupPace, PartitionProgress, habit
from alerts.rules.rebalances import REBALANCE_STORM, STUCK_COMPLETING_REBALANCE, STUCK_PREPARING_REBALANCE
from coordinator_model.groups.core import partitions_of
from coordinator_model.kafka import MAX_POLL_INTERVAL_MS, TIMEOUTS, GroupState
from coordinator_model.state import Basis, Group, Member, Tracks

REBALANCING: Final = (STUCK_COMPLETING_REBALANCE, STUCK_PREPARING_REBALANCE, REBALANCE_STORM)
WIDE_CAUSES: Final = (SOURCE_SILENT, CLUSTER_UNREACHABLE, MONITOR_STALLED)
"""While end offsets or commits do not arrive, groups only seem to stand still."""

EXCUSES: Final = (*REBALANCING, SESSION_TIMEOUT_IMMINENT, SESSION_TIMEOUT, POLL_INTERVAL_EXCEEDED)
"""If one of these explains missing commits, only that alert is sent."""

PARKED_MS: Final = 26 * 3_600_000
"""A group whose members all left in good order was stopped on purpose, or is a job that runs now and then.
After a little more than a day somebody should hear of the waiting records."""


class Progress(NamedTuple):
    """What the rules about progress look at."""

    pace: GroupPace
    parts: list[PartitionProgress]
    """The partitions that the group commits to and still reads."""


def progress_of(situation: Situation, tracks: Tracks) -> Progress:
    """Return the group's progress at this moment, found once for all rules."""
    found: Progress | None = situation.shared.get("progress")
    if found is None:
        parts = list(_each_partition(situation.group, tracks))
        found = situation.shared["progress"] = Progress(_pace_of(situation, tracks), parts)
    return found


def _pace_of(situation: Situation, tracks: Tracks) -> GroupPace:
    """Return the facts that hold for all partitions of the group."""
    steady_ms = max(situation.group.state_since_ms, situation.evidence.live_since_ms)
    return GroupPace(
        now=tracks.since_base(situation.now_ms),
        thresholds=situation.thresholds,
        waits=habit(tracks.waits),
        stands=habit(tracks.stands),
        steady=max(tracks.since_base(steady_ms), tracks.asked),
        patience=_patience(situation),
        is_live=tracks.asked >= 0,
        transaction=tracks.transaction_ms if tracks.transaction_ms > 0 else HANGS_MS,
    )


def _patience(situation: Situation) -> int:
    group, evidence = situation.group, situation.evidence
    if is_parked(group):
        return PARKED_MS
    sees_rebalances = evidence.info_live or evidence.requests_live or group.group_type != "classic"
    if sees_rebalances or not group.members:
        return 0
    told_ms = rebalance_timeout_ms(group)
    # Without logs of rebalances, one may be running unseen; without a known timeout it may take this long.
    return told_ms if told_ms >= 0 else MAX_POLL_INTERVAL_MS


def has_lived(group: Group) -> bool:
    """Say whether the group ever had members, as far as is known."""
    return bool(group.members or group.departures or group.protocol_type) or group.generation > 0


def is_parked(group: Group) -> bool:
    """Say whether the group is empty because all members left in good order."""
    if group.state is not GroupState.EMPTY or not has_lived(group):
        return False
    last = group.departures[-1] if group.departures else None
    return last is None or last.how not in TIMEOUTS


def is_excused(situation: Situation) -> bool:
    """Say whether another alert, or a rebalance, explains why nothing is committed."""
    if situation.group.state not in (GroupState.STABLE, GroupState.EMPTY):
        return True
    return any(situation.opened(cause.name) is not None for cause in EXCUSES)


def _each_partition(group: Group, tracks: Tracks) -> Iterator[PartitionProgress]:
    subscribed = _subscribed(group)
    for topic, known in tracks.partitions.items():
        if subscribed is not None and topic not in subscribed:
            continue
        committed = group.commits.get(topic, {})
        for partition, track in known.items():
            commit = committed.get(partition)
            if commit is not None:
                yield PartitionProgress(topic, partition, track, commit[0], tracks.since_base(commit[1]))


def _subscribed(group: Group) -> set[str] | None:
    """Return the topics that members subscribe to or own; None if that is not known of all members.

    A new member has nothing yet: the record of its first generation shows what it subscribes to.
    """
    topics: set[str] = set()
    for member in group.members.values():
        if not member.topics and member.joined_at_ms >= group.state_since_ms:
            continue
        if not member.topics:
            return None
        topics.update(member.topics)
        topics.update(member.assigned or ())
    return topics or None


def owners(group: Group, parts: list[PartitionProgress]) -> tuple[Culprit, ...]:
    """Return the owners of these partitions by the last assignment (inferred: a commit names no member)."""
    wanted = {(part.topic, part.partition) for part in parts}

    def has_one(member: Member) -> bool:
        return not wanted.isdisjoint(partitions_of(member.assigned or {}))

    found = [member for member in group.members.values() if has_one(member)]
    return culprits_equally(found[:CULPRITS_MAX], Basis.INFERRED)


def waiting(count: int) -> str:
    """Return how many records wait, as a clause: ``1 record waits``, ``2,300 records wait``."""
    return f"{times(count, 'record')} {'waits' if count == 1 else 'wait'}"


def sentences(tracks: Tracks, parts: list[PartitionProgress]) -> tuple[str, ...]:
    """Return one line of evidence for each of the worst partitions."""
    worst = sorted(parts, key=lambda part: (-part.lag, part.name))[:EVIDENCE_MAX]
    return tuple(
        f"{part.name}: offset {part.offset} committed at {clock(tracks.base_ms + part.last)}, "
        f"end offset {part.track.end} reported at {clock(tracks.base_ms + part.track.told)}: "
        f"{part.lag:,} behind."
        for part in worst
    )


def names(parts: list[PartitionProgress]) -> list[str]:
    """Return the partitions' names, worst first."""
    return [part.name for part in sorted(parts, key=lambda part: (-part.lag, part.name))]


def split(
    parts: Iterable[PartitionProgress], at: Callable[[PartitionProgress], int | None], now: int
) -> tuple[list[PartitionProgress], int | None]:
    """Return the partitions that are due, and when the next one is."""
    due, found = None, []
    for part in parts:
        when = at(part)
        if when is None:
            continue
        if when <= now:
            found.append(part)
        elif due is None or when < due:
            due = when
    return found, due
