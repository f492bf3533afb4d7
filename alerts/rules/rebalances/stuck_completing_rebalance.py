"""StuckCompletingRebalance: the members have joined, but the leader's assignment does not arrive.

Kafka bounds one stay by the rebalance timeout (``ClassicGroup`` pending sync, KAFKA-12890), but each burned
generation starts a new one, so the stay is counted from the first of the loop.
"""

from typing import Annotated

from alerts.alert import Culprit, clock, some, span, times, who_is
from alerts.rules.engine import (
    NOTHING,
    Closing,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Sees,
    Situation,
    Stops,
    Thresholds,
    Verdict,
    culprit,
    culprits_equally,
    rebalance_timeout_ms,
)
from alerts.rules.rebalances import rebalance_costs, stuck
from alerts.rules.rebalances.stuck_preparing_rebalance import STUCK_PREPARING_REBALANCE
from coordinator_model.groups.core import LOOP_MEMORY_MS
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Basis, Departure, Group

NAME = "StuckCompletingRebalance"


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long a group may wait for its leader's assignment."""

    after_ms: Annotated[DurationMs, "time in the sync phase before it is stuck"] = 30_000


def since_ms(group: Group, thresholds: Thresholds, now_ms: int) -> int | None:
    """Return when the stay began; None if the group is not in one.

    The join phase of a loop (a generation was burned) belongs to the stay until StuckPreparingRebalance takes
    over: from then on, the members that do not rejoin are the trouble.
    """
    last = group.rebalance
    if group.state is GroupState.STABLE or last is None or last.completing_since_ms < 0:
        return None
    if group.state is GroupState.COMPLETING_REBALANCE:
        return last.completing_since_ms
    if _is_between_rounds(group, now_ms):
        return last.completing_since_ms
    if group.state is not GroupState.PREPARING_REBALANCE or not last.burned:
        return None
    preparing = thresholds.of(STUCK_PREPARING_REBALANCE.options)
    if preparing.enabled and now_ms >= group.state_since_ms + preparing.after_ms:
        return None
    return last.completing_since_ms


def _is_between_rounds(group: Group, now_ms: int) -> bool:
    """Say whether the group is Empty only because a sync timeout removed all members: they will return."""
    last = group.rebalance
    return (
        group.state is GroupState.EMPTY
        and last is not None
        and last.cause.kind is CauseKind.SYNC_TIMEOUT
        and 0 <= now_ms - group.state_since_ms < LOOP_MEMORY_MS
    )


def completing_due_ms(group: Group, thresholds: Thresholds, now_ms: int) -> int | None:
    """Return when the alert fires if nothing happens."""
    since = since_ms(group, thresholds, now_ms)
    if since is None or group.state is GroupState.EMPTY:
        return None
    return since + thresholds.of(Options).after_ms


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    group, now_ms, thresholds = situation.group, situation.now_ms, situation.thresholds
    rule = thresholds.of(Options)
    since = since_ms(group, thresholds, now_ms)
    if since is None:
        return _over(situation)
    fires_at_ms = stuck.graced_ms(situation, NAME, since, since + rule.after_ms)
    if not situation.opened(NAME) and group.state is GroupState.EMPTY:
        return Verdict(due_ms=completing_due_ms(group, thresholds, now_ms))
    if not situation.opened(NAME) and now_ms < fires_at_ms:
        return Verdict(due_ms=fires_at_ms)
    severity, critical_at_ms = stuck.severity(
        group, since_ms=since, now_ms=now_ms, after_ms=rule.after_ms, begins=rule.severity
    )
    gone = _did_not_sync(group, since)
    finding = Finding(
        starts_at_ms=since,
        severity=severity,
        summary=_summary(group, waited_ms=now_ms - since),
        cause=_cause(group, gone),
        culprits=_culprits(group, gone),
        evidence=_evidence(group, since, gone) + stuck.moves(situation, since),
        cost=f"No assignment for {span(now_ms - since)} ({times(len(group.members), 'member')}); "
        "each commit is refused until one is stored." + rebalance_costs.running(group, now_ms - since),
        advice=_advice(group, gone),
    )
    return Verdict(finding=finding, due_ms=_next_ms(situation, critical_at_ms))


def _next_ms(situation: Situation, critical_at_ms: int | None) -> int | None:
    # In the join phase of a loop, StuckPreparingRebalance takes over at its own time.
    group, preparing = situation.group, situation.thresholds.of(STUCK_PREPARING_REBALANCE.options)
    if group.state is GroupState.EMPTY:
        return group.state_since_ms + LOOP_MEMORY_MS
    if group.state is GroupState.PREPARING_REBALANCE and preparing.enabled:
        handover_ms = group.state_since_ms + preparing.after_ms
        return handover_ms if critical_at_ms is None else min(handover_ms, critical_at_ms)
    return critical_at_ms


def _over(situation: Situation) -> Verdict:
    opened = situation.opened(NAME)
    if opened is None:
        return NOTHING
    group, now_ms = situation.group, situation.now_ms
    lasted = span(now_ms - opened.alert.starts_at_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        how = "is back in the join phase and waits for members there"
    else:
        how = f"is {group.state} at generation {group.generation}"
    summary = f"Group {group.group} {how}; it waited {lasted} for its leader's assignment."
    return Verdict(
        closing=Closing(ends_at_ms=now_ms, summary=summary, cost=f"{lasted} without an assignment.")
    )


def _summary(group: Group, *, waited_ms: int) -> str:
    burned = group.rebalance.burned if group.rebalance else 0
    text = (
        f"Group {group.group} has been waiting {span(waited_ms)} for its leader's assignment "
        f"(generation {group.generation}, {times(len(group.members), 'member')})"
    )
    return f"{text}; {times(burned, 'generation')} ended without one." if burned else f"{text}."


def _leader(group: Group) -> str | None:
    leader = group.members.get(group.leader_id or "")
    return None if leader is None else who_is(leader)


def _leader_synced(group: Group) -> bool:
    leader = group.members.get(group.leader_id or "")
    return leader is not None and leader.synced and group.state is GroupState.COMPLETING_REBALANCE


def _did_not_sync(group: Group, since: int) -> list[Departure]:
    return [
        departure
        for departure in group.departures
        if departure.how is CauseKind.SYNC_TIMEOUT and departure.at_ms >= since
    ]


def _culprits(group: Group, gone: list[Departure]) -> tuple[Culprit, ...]:
    if gone:
        return tuple(culprit(member, share=1 / len(gone), basis=member.basis) for member in gone)
    if _leader_synced(group):
        return ()
    leader = group.members.get(group.leader_id or "")
    if leader is not None:
        return (culprit(leader, share=1, basis=group.leader_basis),)
    return culprits_equally(list(group.members.values()), Basis.CANDIDATE)


def _cause(group: Group, gone: list[Departure]) -> str:
    if gone:
        names = some([who_is(one) for one in gone])
        return f"The coordinator removed members that did not sync in time: {names}."
    leader = _leader(group)
    if _leader_synced(group):
        return (
            f"The leader {leader} delivered its assignment, but the broker has not stored it in the offsets "
            "topic."
        )
    if leader is None:
        return "The leader has not delivered its assignment; no source tells which member leads."
    sure = "" if group.leader_basis is Basis.OBSERVED else "probably "
    return f"The leader, {sure}{leader}, has not delivered its assignment."


def _evidence(group: Group, since: int, gone: list[Departure]) -> tuple[str, ...]:
    lines = [f"{clock(since)}: the join phase ended; the group has not been Stable since then."]
    if group.rebalance and group.rebalance.burned:
        ended = times(group.rebalance.burned, "generation")
        lines.append(f"{ended} ended without an assignment; the group is at generation {group.generation}.")
    lines += [
        f"{clock(one.at_ms)}: the coordinator removed {who_is(one)}, which did not sync." for one in gone[-5:]
    ]
    timeout_ms = rebalance_timeout_ms(group)
    known = "no source gives it" if timeout_ms < 0 else span(timeout_ms)
    lines.append(f"Rebalance timeout of the group: {known}.")
    return tuple(lines)


def _advice(group: Group, gone: list[Departure]) -> str:
    if _leader_synced(group):
        return (
            "Look at the brokers, not at the clients: is a partition of the offsets topic below "
            "min.insync.replicas, or is a disk full?"
        )
    if gone:
        return (
            "Take thread dumps of these clients and look at their logs: after they joined, they hung, paused "
            "(GC, CPU limit) or lost the network. Restart those that hang."
        )
    leader = _leader(group) or "the leader (the member that logs 'Finished assignment for group')"
    return (
        f"Take a thread dump of {leader}, then restart it: another member becomes leader. Look for a hanging "
        "assignor, slow metadata calls, GC or CPU throttling there."
    )


STUCK_COMPLETING_REBALANCE = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.A_LOG,
    stops=Stops.GROUP,
    timed=False,
    watched=True,
    end_is_logged=True,
    blames_nobody="no client: the broker has not stored the assignment, or no source tells who leads",
)
