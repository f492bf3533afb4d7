"""Why a group moves: the kinds of cause that the contract lists."""

from enum import StrEnum


class CauseKind(StrEnum):
    """Why a group moved; the contract's list."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    SESSION_TIMEOUT = "session_timeout"
    POLL_TIMEOUT = "poll_timeout"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    PARTITIONS_CHANGED = "partitions_changed"
    PROTOCOL_CHANGED = "protocol_changed"
    COORDINATOR_MOVED = "coordinator_moved"
    JOIN_COMPLETED = "join_completed"
    ASSIGNMENT_STORED = "assignment_stored"
    ALL_MEMBERS_LEFT = "all_members_left"
    GROUP_CREATED = "group_created"
    GROUP_DELETED = "group_deleted"
    OFFSETS_EXPIRED = "offsets_expired"
    UNKNOWN = "unknown"
