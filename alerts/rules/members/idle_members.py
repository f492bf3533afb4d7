"""IdleMembers: members have long had no partition, because the group has more members than partitions.

That is often a standby by design, so the severity is info.  A group in which nobody has a partition waits for
its topic; members of Kafka Streams without an active task may keep standby copies of state.
"""

from typing import Annotated

from alerts.alert import Severity, some, span, times, who_is
from alerts.rules.engine import (
    CULPRITS_MAX,
    MINUTE_MS,
    NOTHING,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Situation,
    Stops,
    Verdict,
    culprits_equally,
    over,
)
from alerts.rules.members.hygiene import ended, memory_of
from coordinator_model.kafka import WITHOUT_MEMBERS, GroupState
from coordinator_model.state import Basis, Group, Member

NAME = "IdleMembers"
_OVER = "every member has a partition"

IDLE = "idle"
_STREAMS = "stream"


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long members may be without a partition."""

    severity: Severity = Severity.INFO
    after_ms: Annotated[DurationMs, "time without a partition"] = 15 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    known, opened, step = situation.memory.hygiene, situation.opened(NAME), situation.step
    since_ms = None if known is None else known.since.get(IDLE)
    may_change = step.transitions or step.arrivals or step.departures or step.met
    if not (may_change or since_ms is not None or opened is not None):
        return NOTHING
    group = situation.group
    idle = _idle(group)
    if idle is None:
        # During a rebalance no assignment is known; what held before it continues to count.
        return NOTHING if since_ms is None else Verdict(due_ms=_next_ms(situation, since_ms))
    if not idle:
        ended(situation, IDLE)
        return NOTHING if opened is None else Verdict(closing=over(situation, _OVER))
    began_ms = situation.now_ms if opened is None else opened.alert.starts_at_ms
    since_ms = memory_of(situation).holds(IDLE, began_ms)
    fires_at_ms = since_ms + situation.thresholds.of(Options).after_ms
    if opened is None and situation.now_ms < fires_at_ms:
        return Verdict(due_ms=fires_at_ms)
    return Verdict(finding=_finding(situation, idle, since_ms))


def _next_ms(situation: Situation, since_ms: int) -> int | None:
    """Return when to look again during a rebalance: only for the due time, since its end is news."""
    fires_at_ms = since_ms + situation.thresholds.of(Options).after_ms
    return fires_at_ms if fires_at_ms > situation.now_ms else None


def _idle(group: Group) -> list[Member] | None:
    """Return the members without a partition; None while unknown."""
    if group.state in WITHOUT_MEMBERS:
        return []
    if group.state is not GroupState.STABLE:
        return None
    idle = []
    for member in group.members.values():
        if member.assigned is None:
            return None
        if not any(member.assigned.values()):
            idle.append(member)
    if group.protocol == _STREAMS or group.group_type not in {"classic", "consumer"}:
        return []
    return idle if len(idle) < len(group.members) else []


def _finding(situation: Situation, idle: list[Member], since_ms: int) -> Finding:
    group = situation.group
    count = sum(len(part) for one in group.members.values() for part in (one.assigned or {}).values())
    names = some([who_is(member) for member in idle])
    members = len(group.members)
    alone = len(idle) == 1
    culprits = culprits_equally(idle[:CULPRITS_MAX], Basis.OBSERVED)
    return Finding(
        starts_at_ms=since_ms,
        severity=situation.thresholds.of(Options).severity,
        summary=f"{times(len(idle), 'member')} of {members} in group {group.group} "
        f"{'has' if alone else 'have'} had no partition for "
        f"{span(situation.now_ms - since_ms)}: {names}.",
        cause=f"{times(members, 'member')} share {times(count, 'partition')}.",
        culprits=culprits,
        evidence=tuple(f"{who_is(member)} has no partition." for member in idle[:5]),
        cost="It takes memory and a connection and does no work; it still makes the group rebalance when it "
        "comes and goes."
        if alone
        else "They take memory and connections and do no work; each of them still makes the group rebalance "
        "when it comes and goes.",
        advice=f"Run {times(count, 'member')} at most, or add partitions to the topic (keys then go to other "
        "partitions). If these members stand by on purpose, raise idle_members.after for this group, or "
        "switch the rule off.",
        # Each rebalance may change who is idle; that is not news.
        culprit_keys=frozenset({IDLE}),
    )


IDLE_MEMBERS = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.NOTHING,
    remembers="hygiene",
)
