"""GroupDeleted: a group that was in use until lately is gone, with its offsets.

A group ends in one of four ways: somebody deletes it while it is empty; its offsets expire; its last
offsets were deleted (alone or with their topics) and the next cleanup removes it; or its coordinator hands it
over, which deletes nothing and fires no alert.  A group with a name for one run (a console consumer's, one
with a UUID) is cleaned up, not lost.
"""

import re
from typing import Annotated

from alerts.alert import Severity, clock, span, times
from alerts.rules.engine import (
    MINUTE_MS,
    NOTHING,
    QUIET_MS,
    Closing,
    DurationMs,
    EndingMemory,
    Finding,
    GroupRule,
    RuleOptions,
    Situation,
    Stops,
    Verdict,
)
from coordinator_model.groups.core import DELETION_TOLD_LATE_MS
from coordinator_model.groups.offsets import retention_of
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Ended, Transition

NAME = "GroupDeleted"

_CLOCKS_MS = 5_000
"""Commits and deletions are timed by the same broker, but at two points of its work."""

_ENDS = {CauseKind.GROUP_DELETED, CauseKind.OFFSETS_EXPIRED}
_EPHEMERAL = re.compile(
    r"console-consumer-\d+|.*[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}.*",
    re.DOTALL,
)


class Options(RuleOptions, frozen=True, kw_only=True):
    """How recently a group must have been in use."""

    severity: Severity = Severity.INFO
    within_ms: Annotated[DurationMs, "how long before its end a group was in use"] = 24 * 60 * MINUTE_MS


def is_ephemeral(group: str) -> bool:
    """Say whether a group's name is for one run only, so that nobody will come back to its offsets."""
    return _EPHEMERAL.fullmatch(group) is not None


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    _note(situation)
    ending, opened = situation.memory.ending, situation.opened(NAME)
    if ending is None:
        if opened is None:
            return NOTHING
        ends_at_ms = max(opened.touched_ms, opened.alert.starts_at_ms) + QUIET_MS
        if situation.now_ms < ends_at_ms:
            return Verdict(due_ms=ends_at_ms)
        return Verdict(closing=_closing(situation, ends_at_ms))
    if situation.now_ms < ending.settled_ms:
        return Verdict(due_ms=ending.settled_ms)
    ends_at_ms = ending.at_ms + QUIET_MS
    if situation.now_ms >= ends_at_ms:
        situation.memory.ending = None
        return Verdict(closing=_closing(situation, ends_at_ms)) if opened else NOTHING
    return Verdict(finding=_finding(situation, ending), due_ms=ends_at_ms)


def _note(situation: Situation) -> None:
    """Remember an end that matters; a better reason replaces the one remembered."""
    memory, step = situation.memory, situation.step
    for transition in step.transitions:
        if transition.to_state is not GroupState.DEAD:
            if memory.ending is not None and situation.opened(NAME) is None:
                memory.ending = None  # it is back before anybody was told
            continue
        how = transition.cause.kind
        if step.ended is not None:
            memory.ending = _ending(situation, transition, step.ended) if how in _ENDS else None
        elif memory.ending is not None and transition.replaces and how in _ENDS:
            memory.ending.how, memory.ending.detail = how, transition.cause.detail
            memory.ending.settled_ms = situation.now_ms


def _ending(situation: Situation, transition: Transition, ended: Ended) -> EndingMemory | None:
    has_lost = ended.partitions > 0 or ended.offsets_gone_ms >= 0
    last_use_ms = max(ended.last_commit_ms, ended.state_since_ms)
    lately_ms = transition.at_ms - situation.thresholds.of(Options).within_ms
    if not has_lost or last_use_ms < lately_ms or is_ephemeral(situation.group.group):
        return None
    too_young = ended.guessed and _is_too_young(situation, transition.at_ms, ended)
    # The tombstone may come before the DeleteGroups line or answer that explains it.
    wait_ms = DELETION_TOLD_LATE_MS + 1 if ended.guessed and not too_young else 0
    return EndingMemory(
        at_ms=transition.at_ms,
        how=CauseKind.GROUP_DELETED if too_young else transition.cause.kind,
        detail=transition.cause.detail,
        last_use_ms=last_use_ms,
        partitions=ended.partitions,
        settled_ms=situation.now_ms + wait_ms,
    )


def _is_too_young(situation: Situation, at_ms: int, ended: Ended) -> bool:
    """Say whether the offsets were unused for less than the retention, so that somebody deleted them.

    Without a source that shows DeleteGroups, the tombstone is the only sign.
    """
    told = situation.evidence.retention_ms
    since_ms = ended.state_since_ms if ended.protocol_type else ended.last_commit_ms
    return bool(told) and at_ms - since_ms + _CLOCKS_MS < retention_of(told, -1)


def _finding(situation: Situation, ending: EndingMemory) -> Finding:
    group = situation.group.group
    unused_ms = ending.at_ms - ending.last_use_ms
    used = f"{span(unused_ms)} before" if unused_ms >= 1_000 else "that moment"
    if ending.how is CauseKind.OFFSETS_EXPIRED:
        way = "expired: the brokers keep offsets for a limited time, and its time was over"
        cause = "offsets.retention.minutes ran out while the group was empty."
        advice = (
            "If the service will run again, set its offsets (kafka-consumer-groups.sh --reset-offsets) "
            "before "
            "it starts, and raise offsets.retention.minutes above its longest pause."
        )
    elif ending.detail:
        way = "was cleaned up after its last offsets had been deleted"
        cause = "Its offsets were deleted while it was empty (OffsetDelete, or their topics were deleted)."
        advice = "Find out who deleted the offsets or the topics: look in the audit log of the brokers."
    else:
        way = "was deleted while it was empty"
        cause = (
            "Somebody called DeleteGroups (kafka-consumer-groups.sh --delete, an admin tool, an operator)."
        )
        advice = (
            "Was it on purpose? If not, set its offsets (kafka-consumer-groups.sh --reset-offsets "
            "--to-datetime) before its consumers start again, and restrict DELETE on the group."
        )
    return Finding(
        starts_at_ms=ending.at_ms,
        severity=situation.thresholds.of(Options).severity,
        summary=f"Group {group} {way}. The group was in use until {used}.",
        cause=cause,
        evidence=(
            f"{clock(ending.last_use_ms)}: last commit, or last member gone.",
            f"{clock(ending.at_ms)}: the coordinator deleted the group.",
        ),
        cost=_cost(ending),
        advice=advice,
        aspect=f"{ending.how}/{ending.detail}",
    )


def _cost(ending: EndingMemory) -> str:
    offsets = f"Offsets of {times(ending.partitions, 'partition')}" if ending.partitions else "Its offsets"
    where = "consumers that start again begin where auto.offset.reset says, so they skip or repeat records"
    return f"{offsets} are gone: {where}."


def _closing(situation: Situation, ends_at_ms: int) -> Closing:
    group = situation.group
    now = "is still gone" if group.state is GroupState.DEAD else f"exists again and is {group.state}"
    summary = f"Group {group.group} {now}; the alert about its deletion ends."
    return Closing(ends_at_ms=ends_at_ms, summary=summary)


GROUP_DELETED = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.NOTHING,
    remembers="ending",
    blames_nobody="no member: somebody deleted the group, or its retention ended",
)
