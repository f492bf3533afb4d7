"""OffsetsExpiring: nobody uses the group, so the broker will delete its offsets at a known time (KIP-211).

Fires when a third of the retention is left, or 24 h if that is less.  The severity is info if the brokers
gave no ``offsets.retention.minutes`` (the default is assumed), or if no records wait.  Groups with a name for
one run are left out.
"""

from typing import Annotated

from alerts.alert import Severity, clock, span, times
from alerts.rules.endings.group_deleted import is_ephemeral
from alerts.rules.engine import (
    MINUTE_MS,
    NOTHING,
    Closing,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Situation,
    Stops,
    Verdict,
)
from coordinator_model.groups.offsets import retention_of, unused_since
from coordinator_model.kafka import GroupState
from coordinator_model.state import Group

NAME = "OffsetsExpiring"

_LEFT_SHARE = 3
"""With a short retention, the alert fires when this part of it is left."""
_OVER_MS = 3_600_000
"""Offsets that still exist this long after the forecast will stay: the forecast was wrong."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long before the deletion it fires."""

    left_ms: Annotated[DurationMs, "time left, or a third of the retention if that is less"] = (
        24 * 60 * MINUTE_MS
    )


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    group, now_ms = situation.group, situation.now_ms
    since_ms = unused_since(group)
    if since_ms is None or is_ephemeral(group.group):
        return _over(situation)
    kept_ms = retention_of(situation.evidence.retention_ms, group.coordinator)
    left_ms = min(situation.thresholds.of(Options).left_ms, kept_ms // _LEFT_SHARE)
    gone_ms = since_ms + kept_ms
    # If offsets that should be gone exist, the retention is longer than we think: fire no alert.
    if now_ms >= gone_ms + (_OVER_MS if situation.opened(NAME) else 0):
        return _over(situation)
    if now_ms < gone_ms - left_ms:
        return _over(situation, due_ms=gone_ms - left_ms)
    return Verdict(finding=_finding(situation, gone_ms, since_ms), due_ms=gone_ms + _OVER_MS)


def _finding(situation: Situation, gone_ms: int, since_ms: int) -> Finding:
    group = situation.group
    told = bool(situation.evidence.retention_ms)
    kept = span(gone_ms - since_ms)
    partitions = sum(map(len, group.commits.values()))
    waiting = waiting_records(group)
    severity = situation.thresholds.of(Options).severity
    if not told or waiting == 0:
        severity = Severity.INFO
    setting = f"offsets.retention.minutes is {kept}" if told else f"assuming the default retention of {kept}"
    return Finding(
        starts_at_ms=since_ms,
        severity=severity,
        summary=f"Group {group.group} is empty, and its offsets will be deleted from {clock(gone_ms)} on"
        f"{_behind(waiting)}.",
        cause=f"Nobody has used it since {clock(since_ms)}; {setting}.",
        evidence=(
            f"{clock(since_ms)}: {'became empty' if group.protocol_type else 'last commit'}.",
            f"Committed offsets: {times(partitions, 'partition')} of {times(len(group.commits), 'topic')}.",
        ),
        cost="Without its offsets the group begins where auto.offset.reset says: it skips or repeats "
        f"records of {times(partitions, 'partition')}.",
        advice="Start its consumers before that time, even for a moment. If nobody needs the group any more, "
        "delete it (kafka-consumer-groups.sh --delete). To keep such groups longer, raise "
        f"offsets.retention.minutes{_present(gone_ms - since_ms) if told else ''}.",
        # Another time of deletion is worth a revision.
        aspect=str(gone_ms),
    )


def _present(kept_ms: int) -> str:
    return f" above {kept_ms // 60_000}"


def waiting_records(group: Group) -> int | None:
    """Return how many records wait behind the group's offsets; None if an end offset is unknown."""
    total = 0
    for topic, offsets in group.commits.items():
        known = group.tracks.partitions.get(topic, {}) if group.tracks else {}
        for partition, (offset, _) in offsets.items():
            track = known.get(partition)
            if track is None or track.end < 0:
                return None
            total += max(0, track.end - offset)
    return total


def _behind(waiting: int | None) -> str:
    if waiting is None:
        return ""
    return (
        f"; {times(waiting, 'record')} {'waits' if waiting == 1 else 'wait'} to be read"
        if waiting
        else "; no record waits"
    )


def _over(situation: Situation, due_ms: int | None = None) -> Verdict:
    opened, group = situation.opened(NAME), situation.group
    if opened is None:
        return NOTHING if due_ms is None else Verdict(due_ms=due_ms)
    if group.state is GroupState.DEAD or not group.commits:
        how = "are gone"
    elif group.state is GroupState.EMPTY:
        how = "were committed again, or the brokers keep them longer"
    else:
        how = "are in use again"
    summary = f"The offsets of group {group.group} {how}."
    return Verdict(closing=Closing(ends_at_ms=situation.now_ms, summary=summary), due_ms=due_ms)


OFFSETS_EXPIRING = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.NOTHING,
    blames_nobody="no member: the group has none",
)
