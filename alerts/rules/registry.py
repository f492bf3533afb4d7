"""All rules; those about one group in the order in which they are asked, with the reasons for the order."""

from typing import Any

from alerts.rules import endings, members, monitor, progress, rebalances
from alerts.rules.engine import ClusterRule, GroupRule, Rule, Stops, SupervisorRule

RULES: tuple[GroupRule[Any], ...] = (
    # A loop of burned generations passes through the join phase repeatedly.  Its alert keeps such a group
    # until the join phase itself is stuck; then that alert ends, and StuckPreparingRebalance takes over.
    rebalances.STUCK_COMPLETING_REBALANCE,
    rebalances.STUCK_PREPARING_REBALANCE,
    # The symptom before its causes: readers of a storm and its timeouts should see the storm first.
    rebalances.REBALANCE_STORM,
    # The forecast sees the departure that ends it in the same judgement that makes the departure an event.
    members.SESSION_TIMEOUT_IMMINENT,
    members.SESSION_TIMEOUT,
    members.POLL_INTERVAL_EXCEEDED,
    # Two processes with one instance id are the cause; commits of the fenced one are only a sign.
    members.STATIC_MEMBER_FENCED,
    members.ZOMBIE_COMMIT,
    members.GROUP_ID_COLLISION,
    members.IDLE_MEMBERS,
    # No member commits in a rebalance or after a timeout: those rules come first, and these hold back.
    progress.COMMITS_STOPPED,
    progress.COMMITS_STALLED,
    progress.LAG_GROWING,
    progress.OFFSET_REWIND,
    # Advice comes after events.
    members.UNSAFE_TIMEOUTS,
    # After the storm, which gives the same cost and inhibits it.
    rebalances.ASSIGNMENT_CHURN,
    # The forecast before the event that ends it.
    endings.OFFSETS_EXPIRING,
    endings.GROUP_DELETED,
)

CLUSTER_RULES: tuple[ClusterRule[Any], ...] = (
    monitor.SOURCE_SILENT,
    rebalances.COORDINATOR_MOVED,
    monitor.GROUPS_QUARANTINED,
)
"""The rules about the cluster as a whole."""

SUPERVISOR_RULES: tuple[SupervisorRule[Any], ...] = (monitor.CLUSTER_UNREACHABLE, monitor.MONITOR_STALLED)
"""The rules that the driver judges, outside the stream."""

DeclaredRule = Rule[Any]
"""Any rule, with its own options."""

ALL_RULES: tuple[DeclaredRule, ...] = (*RULES, *CLUSTER_RULES, *SUPERVISOR_RULES)

_BY_NAME = {rule.name: rule for rule in ALL_RULES}


def nobody(alert_name: str) -> str:
    """Return the text in place of culprits if an alert names none."""
    rule = _BY_NAME.get(alert_name)
    return Rule.blames_nobody if rule is None else rule.blames_nobody


def stops(alert_name: str) -> Stops:
    """Return how much stands still while such an alert fires; of an unknown alert, nothing."""
    rule = _BY_NAME.get(alert_name)
    return Stops.NOTHING if rule is None else rule.stops


def is_about_a_group(rule: DeclaredRule) -> bool:
    """Say whether the rule's alerts name a group."""
    return isinstance(rule, GroupRule)
