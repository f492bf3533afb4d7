"""StuckPreparingRebalance: the join phase does not end, because members do not rejoin.

The coordinator waits for each known member up to the largest rebalance timeout of the group.  An initial
rebalance (from Empty) is extended while members keep arriving, which is no trouble.  It is stuck when no
member has arrived for ``after``, or when its legal bound is over.
"""

from typing import Annotated

from alerts.alert import clock, clock_time, some, span, times, who_is
from alerts.rules.engine import (
    MINUTE_MS,
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
    culprits_equally,
    rebalance_timeout_ms,
)
from alerts.rules.rebalances import rebalance_costs, stuck
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Basis, Group, Member

NAME = "StuckPreparingRebalance"

_BOUND_UNKNOWN_MS = 5 * 60_000
"""Bound of an initial rebalance if no source gave the timeout: the Java client's default."""

_LATE_SHARE = 0.5
"""A single refused heartbeat proves absence only in the later part of the join phase: every healthy member
gets one before it rejoins."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long a join phase may last."""

    after_ms: Annotated[DurationMs, "time in the join phase before it is stuck"] = MINUTE_MS


def preparing_due_ms(group: Group, thresholds: Thresholds) -> int | None:
    """Return when the alert fires if nothing happens."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.state_since_ms < 0:
        return None
    after_ms = thresholds.of(Options).after_ms
    since_ms = group.state_since_ms
    if group.rebalance is None or not group.rebalance.initial:
        return since_ms + after_ms
    arrived_ms = max((member.joined_at_ms for member in group.members.values()), default=-1)
    timeout_ms = rebalance_timeout_ms(group)
    bound_ms = _BOUND_UNKNOWN_MS if timeout_ms < 0 else timeout_ms
    return min(max(arrived_ms, since_ms) + after_ms, since_ms + max(bound_ms, after_ms))


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    group, now_ms = situation.group, situation.now_ms
    rule = situation.thresholds.of(Options)
    fires_at_ms = preparing_due_ms(group, situation.thresholds)
    if fires_at_ms is None:
        return _over(situation)
    since_ms = group.state_since_ms
    fires_at_ms = stuck.graced_ms(situation, NAME, since_ms, fires_at_ms)
    if now_ms < fires_at_ms and not situation.opened(NAME):
        return Verdict(due_ms=fires_at_ms)
    severity, critical_at_ms = stuck.severity(
        group, since_ms=since_ms, now_ms=now_ms, after_ms=rule.after_ms, begins=rule.severity
    )
    missing, basis = _missing(group, now_ms)
    finding = Finding(
        starts_at_ms=since_ms,
        severity=severity,
        summary=_summary(group, missing, basis, waited_ms=now_ms - since_ms),
        cause=_cause(group, missing, basis),
        culprits=culprits_equally(missing, basis),
        evidence=_evidence(group, missing, basis) + stuck.moves(situation, since_ms),
        cost=f"A rebalance of {times(len(group.members), 'member')} for {span(now_ms - since_ms)}; those "
        f"that have rejoined consume nothing until it ends{_at_the_latest(group)}."
        + rebalance_costs.running(group, now_ms - since_ms),
        advice=_advice(group, missing, basis),
    )
    return Verdict(finding=finding, due_ms=critical_at_ms)


def _over(situation: Situation) -> Verdict:
    opened = situation.opened(NAME)
    if opened is None:
        return NOTHING
    group, now_ms = situation.group, situation.now_ms
    lasted = span(now_ms - opened.alert.starts_at_ms)
    now = f"Group {group.group} is {group.state} at generation {group.generation}"
    summary = f"{now}; its join phase lasted {lasted}."
    return Verdict(closing=Closing(ends_at_ms=now_ms, summary=summary, cost=f"A join phase of {lasted}."))


def _missing(group: Group, now_ms: int) -> tuple[list[Member], Basis]:
    """Return the members that the join phase waits for, and how sure that is."""
    absent = [member for member in group.members.values() if not member.rejoined]
    most = max((member.heartbeats_refused for member in absent), default=0)
    refused = [member for member in absent if _keeps_being_refused(member, most, group, now_ms)]
    if refused:
        return refused, Basis.INFERRED
    if len(absent) == 1 and len(group.members) > 1:
        return absent, Basis.INFERRED
    return absent, Basis.CANDIDATE


def _keeps_being_refused(member: Member, most: int, group: Group, now_ms: int) -> bool:
    """Say whether the member keeps sending heartbeats although each answer tells it to rejoin."""
    if member.heartbeats_refused >= 2:
        return member.heartbeats_refused * 2 >= most
    late_ms = group.state_since_ms + _LATE_SHARE * (now_ms - group.state_since_ms)
    return most == member.heartbeats_refused == 1 and member.session_base_ms >= late_ms


def _names(missing: list[Member]) -> str:
    return some([who_is(member) for member in missing])


def _summary(group: Group, missing: list[Member], basis: Basis, *, waited_ms: int) -> str:
    text = f"Group {group.group} has been in the join phase for {span(waited_ms)}"
    left = _left(group, len(missing) if basis is Basis.INFERRED else 0, waited_ms)
    if basis is not Basis.INFERRED:
        members = times(len(group.members), "member")
        return f"{text}; no source tells which of its {members} has not rejoined{left}."
    if len(missing) == 1:
        return f"{text}: {_names(missing)} has not rejoined{left}."
    have_not = f"{len(missing)} of {len(group.members)} members have not rejoined: {_names(missing)}"
    return f"{text}: {have_not}{left}."


def _left(group: Group, missing: int, waited_ms: int) -> str:
    """Return when the coordinator stops waiting, if a source gave the timeout.

    An initial rebalance removes no member when its time is over.
    """
    timeout_ms = rebalance_timeout_ms(group)
    if timeout_ms < 0 or (group.rebalance and group.rebalance.initial):
        return ""
    known = f"rebalance timeout of {span(timeout_ms)}"
    if waited_ms >= timeout_ms:
        return f"; that is longer than its {known}"
    whom = {0: "the missing members", 1: "it"}.get(missing, "them")
    at = clock_time(group.state_since_ms + timeout_ms)
    return f"; the coordinator removes {whom} in {span(timeout_ms - waited_ms)}, at {at} UTC ({known})"


def _cause(group: Group, missing: list[Member], basis: Basis) -> str:
    kind = group.rebalance.cause.kind if group.rebalance else CauseKind.UNKNOWN
    known = f"Cause of the rebalance: {kind}"
    started = "No source tells what started the rebalance" if kind is CauseKind.UNKNOWN else known
    if not missing:
        return f"At least one member did not rejoin; no source tells which. {started}."
    if basis is Basis.INFERRED:
        return f"{_names(missing)} did not rejoin. {started}."
    return f"At least one member did not rejoin ({times(len(missing), 'candidate')}). {started}."


def _evidence(group: Group, missing: list[Member], basis: Basis) -> tuple[str, ...]:
    lines = [f"{clock(group.state_since_ms)}: the join phase began, generation {group.generation} ended."]
    if group.rebalance and group.rebalance.cause.detail:
        lines.append(f"Coordinator's reason: {group.rebalance.cause.detail[:200]}")
    lines += [
        f"{who_is(member)}: {times(member.heartbeats_refused, 'heartbeat')} answered with "
        "REBALANCE_IN_PROGRESS, but no join."
        for member in missing[:5]
        if member.heartbeats_refused
    ]
    if basis is Basis.CANDIDATE and missing:
        lines.append(
            "No log shows who waits in the join phase, and no heartbeats do: each member is a candidate."
        )
    return tuple(lines)


def _at_the_latest(group: Group) -> str:
    timeout_ms = rebalance_timeout_ms(group)
    return "" if timeout_ms < 0 else f", at the latest {span(timeout_ms)} after its start"


def _advice(group: Group, missing: list[Member], basis: Basis) -> str:
    if basis is Basis.INFERRED:
        return (
            f"Take a thread dump of {_names(missing)}: the heartbeat thread runs, but the application does "
            "not call poll(). Restart it so that the group can go on. Later lower max.poll.records or "
            "the work "
            "for each record, or move the work out of the poll loop."
        )
    return (
        "Find the client whose log has no '(Re-)joining group' since then, and restart it. If you set the "
        "request log of the coordinator to DEBUG, the next alert names the client."
    )


STUCK_PREPARING_REBALANCE = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.A_LOG,
    stops=Stops.GROUP,
    timed=False,
    watched=True,
    end_is_logged=True,
)
