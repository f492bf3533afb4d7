"""Rules about members: timeouts, instance ids, shared group ids, members without partitions."""

from alerts.rules.members.group_id_collision import GROUP_ID_COLLISION
from alerts.rules.members.idle_members import IDLE_MEMBERS
from alerts.rules.members.poll_interval_exceeded import POLL_INTERVAL_EXCEEDED
from alerts.rules.members.session_timeout import SESSION_TIMEOUT
from alerts.rules.members.session_timeout_imminent import (
    SESSION_TIMEOUT_IMMINENT,
    shortest_silence_ms,
    silence_due_ms,
    silent_share,
)
from alerts.rules.members.static_member_fenced import STATIC_MEMBER_FENCED
from alerts.rules.members.unsafe_timeouts import UNSAFE_TIMEOUTS
from alerts.rules.members.zombie_commit import ZOMBIE_COMMIT

__all__ = [
    "GROUP_ID_COLLISION",
    "IDLE_MEMBERS",
    "POLL_INTERVAL_EXCEEDED",
    "SESSION_TIMEOUT",
    "SESSION_TIMEOUT_IMMINENT",
    "STATIC_MEMBER_FENCED",
    "UNSAFE_TIMEOUTS",
    "ZOMBIE_COMMIT",
    "shortest_silence_ms",
    "silence_due_ms",
    "silent_share",
]
