"""CoordinatorMoved: a failover of coordinators made many groups rebalance; one alert for the cluster.

Each shard reports groups that began to rebalance just after a failover (``groups/core/failovers.py``).
Failovers close together are one: a broker that stops gives up all its partitions, and partitions with a
replica on it wait for that replica.  Groups that continue undisturbed, as they should, are not in the alert.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from alerts.alert import Severity, clock, some, span, times
from alerts.rules.engine import (
    EVIDENCE_MAX,
    NOTHING,
    QUIET_MS,
    Closing,
    ClusterMemory,
    ClusterRule,
    Count,
    Finding,
    RuleOptions,
    Sees,
    Stops,
    Thresholds,
    Verdict,
    quiet_at_ms,
)
from coordinator_model.shard import ClusterState, FailoverRebalance

NAME = "CoordinatorMoved"

SAME_MOVE_MS = 60_000
"""Failovers no further apart than this are one."""
SETTLED_MS = 5_000
"""It ends when no further group has rebalanced, or been reported, for this long."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """How many groups must rebalance because of one failover."""

    severity: Severity = Severity.INFO
    affected: Annotated[Count, "groups that rebalanced because of one move"] = 3


def evaluate(state: ClusterState, memory: ClusterMemory, thresholds: Thresholds, now_ms: int) -> Verdict:
    """Return the verdict on the cluster's coordinators."""
    rule, opened = thresholds.of(Options), memory.open.get(NAME)
    upsets = [one for one in state.upsets if now_ms < one.rebalanced_ms + QUIET_MS]
    worst = max(_together(upsets), key=lambda one: len(_groups(one)), default=[])
    newest_ms = max((one.rebalanced_ms for one in state.upsets), default=-1)
    ends_at_ms = quiet_at_ms(newest_ms, opened)
    if opened is not None and now_ms >= ends_at_ms:
        summary = f"No further group rebalanced because of a coordinator move for {span(QUIET_MS)}."
        return Verdict(closing=Closing(ends_at_ms=ends_at_ms, summary=summary))
    if len(_groups(worst)) < rule.affected:
        return Verdict(due_ms=ends_at_ms) if opened is not None else NOTHING
    settled_ms = max(max(one.rebalanced_ms, one.told_ms) for one in worst) + SETTLED_MS
    if opened is None and now_ms < settled_ms:
        return Verdict(due_ms=settled_ms)
    return Verdict(finding=_finding(worst, thresholds), due_ms=ends_at_ms)


def _groups(upsets: Sequence[FailoverRebalance]) -> list[str]:
    return sorted({one.group for one in upsets})


def _together(upsets: Sequence[FailoverRebalance]) -> list[list[FailoverRebalance]]:
    """Return runs of failovers that lie close together, oldest first."""
    runs: list[list[FailoverRebalance]] = []
    for one in sorted(upsets, key=lambda one: (one.moved_ms, one.rebalanced_ms, one.group)):
        if runs and one.moved_ms - runs[-1][-1].moved_ms <= SAME_MOVE_MS:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _finding(upsets: Sequence[FailoverRebalance], thresholds: Thresholds) -> Finding:
    groups = _groups(upsets)
    first_ms = upsets[0].moved_ms
    whence = sorted({one.came_from for one in upsets if one.came_from >= 0 and not one.stood})
    blame = f" from broker {', '.join(map(str, whence[:3]))}" if whence else ""
    has_moved = any(not one.stood for one in upsets)
    what = f"Coordinators moved{blame}" if has_moved else "Coordinators waited for a replica"
    return Finding(
        starts_at_ms=first_ms,
        severity=thresholds.of(Options).severity,
        summary=f"{what} at {clock(first_ms)}, and {times(len(groups), 'group')} rebalanced because of it.",
        cause=_cause(upsets),
        evidence=tuple(_line(one) for one in upsets[:EVIDENCE_MAX]),
        cost=f"One rebalance each: {some(groups, at_most=5)}. Rebalances that ran at that moment were lost.",
        advice="Look for a restart or failure of that broker at that time. The groups need no action. "
        "If this "
        "happens at each rolling restart, let leaders move before a broker stops "
        "(controlled.shutdown.enable) and keep the offsets topic small enough to load quickly.",
        # More groups are news, but not each one of hundreds.
        aspect=f"{first_ms}/{len(groups).bit_length()}",
    )


def _cause(upsets: Sequence[FailoverRebalance]) -> str:
    gone = [one for one in upsets if not one.stood]
    stood = {one.partition for one in upsets if one.stood} - {one.partition for one in gone}
    causes = []
    if gone:
        partitions = times(len({one.partition for one in gone}), "partition")
        causes.append(
            f"{partitions} of the offsets topic went {_routes(gone)}: a broker was restarted, failed, or its "
            "leaders were moved."
        )
    if stood:
        causes.append(
            f"{times(len(stood), 'partition')} of the offsets topic kept the leader but could not be "
            "written: a replica had failed, and the leader waited for it until the controller removed that "
            "broker. Meanwhile the coordinator answered no heartbeat, and clients gave up their sessions."
        )
    return " ".join(causes)


def _routes(upsets: Sequence[FailoverRebalance]) -> str:
    routes = Counter((one.came_from, one.went_to) for one in upsets)
    return some([f"from {_broker(came)} to {_broker(went)}" for came, went in sorted(routes)])


def _broker(broker: int) -> str:
    return "an unknown broker" if broker < 0 else f"broker {broker}"


def _line(one: FailoverRebalance) -> str:
    return (
        f"{clock(one.rebalanced_ms)}: {one.group} rebalanced, {span(one.rebalanced_ms - one.moved_ms)} after."
    )


COORDINATOR_MOVED = ClusterRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.A_LOG,
    stops=Stops.NOTHING,
    blames_nobody="no member: the broker that the coordinator moved from",
)
