"""AssignmentChurn: rebalances move many more partitions than necessary.

It counts rebalances that nothing explains (``storm_history``): a rolling restart moves everything twice, and
is over.  Each count of moved partitions is compared with what Kafka's sticky assignor would have moved.
While RebalanceStorm fires this alert is held back (``inhibition``): the storm gives the same cost.
"""

from collections.abc import Sequence
from typing import Annotated

from alerts.alert import Severity, clock, span, times
from alerts.rules.engine import (
    MINUTE_MS,
    NOTHING,
    Closing,
    CostEntry,
    Count,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Situation,
    Stops,
    Verdict,
)
from alerts.rules.rebalances import rebalance_costs, storm_history
from alerts.rules.rebalances.rebalance_storm import REBALANCE_STORM
from coordinator_model.groups.core import counts_of, partitions_of, subscribers
from coordinator_model.kafka.assignors import ASSIGNORS, kept
from coordinator_model.state import RebalanceCost

NAME = "AssignmentChurn"

_FACTOR = 1.5
"""This many times the necessary number of moves is much more than necessary."""
_SAME_START_MS = 1_000
"""A rebalance and its start are reported no further apart than this."""
_COMPUTED_MAX = 50_000
"""Largest product of members and partitions for which the assignors are run."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """How many rebalances in the window, with how many needless moves."""

    severity: Severity = Severity.INFO
    rebalances: Annotated[Count, "rebalances within the window that moved too much"] = 3
    partitions: Annotated[Count, "partitions that they moved for nothing"] = 10
    window_ms: Annotated[DurationMs, "how far back they are counted, an hour at most"] = 60 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    rule, memory = situation.thresholds.of(Options), situation.memory
    finished = situation.step.cost.finished if situation.step.cost else None
    if finished is not None and memory.costs is not None:
        _explain(situation, memory.costs.entries[-1], finished)
        _explain_since(situation)
    opened = situation.opened(NAME)
    if finished is None and opened is None:
        return NOTHING
    since_ms = situation.now_ms - rule.window_ms
    churning = [entry for entry in rebalance_costs.since(memory, since_ms) if entry.churns]
    if not _is_churn(churning, rule.rebalances, rule.partitions):
        if opened is None:
            return NOTHING
        return Verdict(closing=_closing(situation, opened.alert.starts_at_ms))
    over_ms = churning[-1].ended_ms + rule.window_ms
    if opened is not None:
        return Verdict(due_ms=over_ms)
    if finished is None:
        return NOTHING
    return Verdict(finding=_finding(situation, churning, finished), due_ms=over_ms)


def _explain(situation: Situation, entry: CostEntry, finished: RebalanceCost) -> None:
    """Record whether a rebalance counts: nothing explains it, and there was an assignment to keep."""
    storm, window_ms = situation.memory.storm, situation.thresholds.of(REBALANCE_STORM.options).window_ms
    if storm is None or finished.initial or not finished.before or entry.moved < 0 or entry.least < 0:
        return
    counted = storm_history.counted(storm, now_ms=situation.now_ms, window_ms=window_ms)
    first_ms, last_ms = finished.started_ms - _SAME_START_MS, finished.ended_ms
    entry.churns |= any(first_ms <= trigger.at_ms <= last_ms for trigger in counted)


def _explain_since(situation: Situation) -> None:
    """Remove rebalances explained since: many deployments start the new instance before the old one stops."""
    storm, window_ms = situation.memory.storm, situation.thresholds.of(REBALANCE_STORM.options).window_ms
    lately_ms = situation.now_ms - window_ms + _SAME_START_MS
    entries = [one for one in rebalance_costs.since(situation.memory, lately_ms) if one.churns]
    if storm is None or not entries:
        return
    counted = storm_history.counted(storm, now_ms=situation.now_ms, window_ms=window_ms)
    for one in entries:
        began_ms = one.started_ms - _SAME_START_MS
        if one.started_ms > lately_ms:
            one.churns = any(began_ms <= trigger.at_ms <= one.ended_ms for trigger in counted)


def _is_churn(churning: Sequence[CostEntry], rebalances: int, partitions: int) -> bool:
    moved, least = sum(entry.moved for entry in churning), sum(entry.least for entry in churning)
    wasteful = sum(entry.moved > entry.least for entry in churning)
    return wasteful >= rebalances and moved - least >= partitions and moved >= _FACTOR * least


def _finding(situation: Situation, churning: Sequence[CostEntry], finished: RebalanceCost) -> Finding:
    group = situation.group
    moved, least = sum(entry.moved for entry in churning), sum(entry.least for entry in churning)
    assignor = group.protocol or "an unknown assignor"
    elapsed = span(churning[-1].ended_ms - churning[0].started_ms)
    return Finding(
        starts_at_ms=churning[0].started_ms,
        severity=situation.thresholds.of(Options).severity,
        summary=f"{times(len(churning), 'rebalance')} of group {group.group} in {elapsed} moved {moved} "
        f"partitions; {least} moves would have been enough.",
        cause=f"The group assigns its {finished.partitions} partitions to "
        f"{times(len(group.members), 'member')} by {assignor}, which does not keep partitions at their "
        "members.",
        evidence=(*_lines(churning), *_compared(situation, finished)),
        cost=_cost(churning).strip(),
        advice=_advice(situation, churning),
    )


def _lines(churning: Sequence[CostEntry]) -> list[str]:
    return [
        f"{clock(entry.started_ms)}: moved {entry.moved} of {entry.partitions} partitions; "
        f"{entry.least} would have been enough."
        for entry in churning[-6:]
    ]


def _compared(situation: Situation, finished: RebalanceCost) -> list[str]:
    """Return how many partitions each of Kafka's assignors would have moved in the last rebalance."""
    members = list(situation.group.members.values())
    if any(one.assigned is None or one.topics is None for one in members):
        return []
    all_now = {p for one in members for p in partitions_of(one.assigned or {})}
    if len(members) * len(all_now) > _COMPUTED_MAX:
        return []
    shown, counts = subscribers(members, finished.before), counts_of(all_now)
    moves = {
        name: len(all_now) - kept(shown, assign(shown, counts))
        for name, assign in ASSIGNORS.items()
        if name != "cooperative-sticky"
    }
    told = ", ".join(f"{name} {count}" for name, count in moves.items())
    return [
        f"In the last rebalance Kafka's own assignors would have moved: {told}. cooperative-sticky moves as "
        "many as sticky, and does not stop the other partitions."
    ]


def _cost(churning: Sequence[CostEntry]) -> str:
    lost_ms = [entry.partition_ms for entry in churning]
    if min(lost_ms) < 0:
        return f"{times(_moved_for_nothing(churning), 'partition')} moved for nothing."
    least_ms = sum(entry.least * (entry.ended_ms - entry.started_ms) for entry in churning)
    saved = max(0, sum(lost_ms) - least_ms)
    return (
        f"{times(_moved_for_nothing(churning), 'partition')} moved for nothing; "
        f"{rebalance_costs.partition_time(sum(lost_ms))} without an owner, of which a cooperative, sticky "
        f"assignor would have saved {rebalance_costs.partition_time(saved)}."
    )


def _moved_for_nothing(churning: Sequence[CostEntry]) -> int:
    return sum(max(0, entry.moved - entry.least) for entry in churning)


def _advice(situation: Situation, churning: Sequence[CostEntry]) -> str:
    if churning[-1].eager == 1:
        return (
            "Set partition.assignment.strategy to cooperative-sticky in all members (Java: deploy once "
            "with [CooperativeStickyAssignor, the present one], then once without the present one; "
            "librdkafka: stop all first), or move to group.protocol=consumer. If members come and go by "
            "restarts, group.instance.id avoids these rebalances."
        )
    return (
        f"The assignor {situation.group.protocol} does not keep partitions at their members: look at its "
        "code, or replace it by cooperative-sticky."
    )


def _closing(situation: Situation, since_ms: int) -> Closing:
    window = span(situation.thresholds.of(Options).window_ms)
    lasted = span(situation.now_ms - since_ms)
    summary = (
        f"Group {situation.group.group} has not moved many more partitions than it had to for {window}, "
        f"after {lasted}."
    )
    return Closing(ends_at_ms=situation.now_ms, summary=summary)


ASSIGNMENT_CHURN = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.NOTHING,
    remembers="costs",
    effect_of=(REBALANCE_STORM,),
    blames_nobody="no single member: the assignor that they all use",
)
