"""All rules: those about one group in the order in which they are asked, and why in this order."""

from typing import Any

from alerts.rules import endings, members, monitor, progress, rebalances
from alerts.rules.engine import ClusterRule, GroupRule, Rule, SupervisorRule

RULES: tuple[GroupRule[Any], ...] = (
    # A loop of burned generations passes through the join phase again and again.  Its alert keeps such a
    # group until the join phase itself is stuck; then it ends, and StuckPreparingRebalance takes over.
    rebalances.STUCK_COMPLETING_REBALANCE,
    rebalances.STUCK_PREPARING_REBALANCE,
    # The symptom before its causes: whoever gets a storm and the timeouts behind it reads the storm first.
    rebalances.REBALANCE_STORM,
    # The forecast must see the departure that ends it in the same judgement that makes it an event.
    members.SESSION_TIMEOUT_IMMINENT,
    members.SESSION_TIMEOUT,
    members.POLL_INTERVAL_EXCEEDED,
    # Two processes under one instance id are the cause, a fenced one's commits only a sign of it.
    members.STATIC_MEMBER_FENCED,
    members.ZOMBIE_COMMIT,
    members.GROUP_ID_COLLISION,
    members.IDLE_MEMBERS,
    # Nobody commits in a rebalance or after a timeout: those rules speak first, and these hold back.
    progress.COMMITS_STOPPED,
    progress.COMMITS_STALLED,
    progress.LAG_GROWING,
    progress.OFFSET_REWIND,
    # Advice comes after what happened.
    members.UNSAFE_TIMEOUTS,
    # After the storm, which tells the same cost and silences it.
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
"""Rules about the cluster as a whole."""

SUPERVISOR_RULES: tuple[SupervisorRule[Any], ...] = (monitor.CLUSTER_UNREACHABLE, monitor.MONITOR_STALLED)
"""Rules that the driver judges, beside the stream."""

DeclaredRule = Rule[Any]
"""Any rule, with options of its own."""

ALL_RULES: tuple[DeclaredRule, ...] = (*RULES, *CLUSTER_RULES, *SUPERVISOR_RULES)

_BY_NAME = {rule.name: rule for rule in ALL_RULES}


def nobody(alert_name: str) -> str:
    """Return what stands in place of culprits where an alert names none."""
    rule = _BY_NAME.get(alert_name)
    return Rule.blames_nobody if rule is None else rule.blames_nobody


def is_about_a_group(rule: DeclaredRule) -> bool:
    """Say whether the rule's alerts name a group."""
    return isinstance(rule, GroupRule)
