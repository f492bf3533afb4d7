"""The rules about one group, in the order in which they are asked, and why in this order."""

from alerts.rules.endings import GROUP_DELETED, OFFSETS_EXPIRING
from alerts.rules.engine import GroupRule
from alerts.rules.members import (
    GROUP_ID_COLLISION,
    IDLE_MEMBERS,
    POLL_INTERVAL_EXCEEDED,
    SESSION_TIMEOUT,
    SESSION_TIMEOUT_IMMINENT,
    STATIC_MEMBER_FENCED,
    UNSAFE_TIMEOUTS,
    ZOMBIE_COMMIT,
)
from alerts.rules.progress import COMMITS_STALLED, COMMITS_STOPPED, LAG_GROWING, OFFSET_REWIND
from alerts.rules.rebalances import (
    ASSIGNMENT_CHURN,
    REBALANCE_STORM,
    STUCK_COMPLETING_REBALANCE,
    STUCK_PREPARING_REBALANCE,
)

RULES: tuple[GroupRule, ...] = (
    # A loop of burned generations passes through the join phase again and again.  Its alert keeps such a
    # group until the join phase itself is stuck; then it ends, and StuckPreparingRebalance takes over.
    STUCK_COMPLETING_REBALANCE,
    STUCK_PREPARING_REBALANCE,
    # The symptom before its causes: whoever gets a storm and the timeouts behind it reads the storm first.
    REBALANCE_STORM,
    # The forecast must see the departure that ends it in the same judgement that makes it an event.
    SESSION_TIMEOUT_IMMINENT,
    SESSION_TIMEOUT,
    POLL_INTERVAL_EXCEEDED,
    # Two processes under one instance id are the cause, a fenced one's commits only a sign of it.
    STATIC_MEMBER_FENCED,
    ZOMBIE_COMMIT,
    GROUP_ID_COLLISION,
    IDLE_MEMBERS,
    # Nobody commits in a rebalance or after a timeout: those rules speak first, and these hold back.
    COMMITS_STOPPED,
    COMMITS_STALLED,
    LAG_GROWING,
    OFFSET_REWIND,
    # Advice comes after what happened.
    UNSAFE_TIMEOUTS,
    # After the storm, which tells the same cost and silences it.
    ASSIGNMENT_CHURN,
    # The forecast before the event that ends it.
    OFFSETS_EXPIRING,
    GROUP_DELETED,
)
