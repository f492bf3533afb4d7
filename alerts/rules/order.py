"""The rules about one group, in the order in which they are asked, and why in this order."""

from alerts.rules.assignment_churn import ASSIGNMENT_CHURN
from alerts.rules.commits_stalled import COMMITS_STALLED
from alerts.rules.commits_stopped import COMMITS_STOPPED
from alerts.rules.group_deleted import GROUP_DELETED
from alerts.rules.group_id_collision import GROUP_ID_COLLISION
from alerts.rules.idle_members import IDLE_MEMBERS
from alerts.rules.lag_growing import LAG_GROWING
from alerts.rules.offset_rewind import OFFSET_REWIND
from alerts.rules.offsets_expiring import OFFSETS_EXPIRING
from alerts.rules.poll_interval_exceeded import POLL_INTERVAL_EXCEEDED
from alerts.rules.rebalance_storm import REBALANCE_STORM
from alerts.rules.rule import GroupRule
from alerts.rules.session_timeout import SESSION_TIMEOUT
from alerts.rules.session_timeout_imminent import SESSION_TIMEOUT_IMMINENT
from alerts.rules.static_member_fenced import STATIC_MEMBER_FENCED
from alerts.rules.stuck_completing_rebalance import STUCK_COMPLETING_REBALANCE
from alerts.rules.stuck_preparing_rebalance import STUCK_PREPARING_REBALANCE
from alerts.rules.unsafe_timeouts import UNSAFE_TIMEOUTS
from alerts.rules.zombie_commit import ZOMBIE_COMMIT

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
