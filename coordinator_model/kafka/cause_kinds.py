"""Why a group makes a transition: the kinds of cause in the contract, and the traits of each.

Source: ``GroupMetadataManager`` of Apache Kafka 4.3.1: the callers of ``maybePrepareRebalanceOrCompleteJoin``
and ``prepareRebalance``, and in modern groups whatever raises the group epoch.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import NamedTuple


class CauseKind(StrEnum):
    """Why a group made a transition; the contract's list."""

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


class By(Enum):
    """Which side ended a membership."""

    CLIENT = "client"
    """The client sent LeaveGroup."""
    COORDINATOR = "coordinator"
    """The coordinator removed the member without being asked."""


class Traits(NamedTuple):
    """The traits of a kind of cause, in any group."""

    departure: By | None = None
    """Which side ended a membership; None: no member left."""
    timeout: bool = False
    """Whether the member's process missed a deadline."""
    rejoin: bool = False
    """Whether a JoinGroup alone began the rebalance: of a new member, or of one that stayed."""
    raises_epoch: bool = False
    """Whether it begins a rebalance in modern groups: the group epoch grows."""
    may_follow_failover: bool = True
    """Whether it may be only the echo of a failover, which members noticed one by one."""


_ELSEWHERE = Traits(may_follow_failover=False)
TRAITS: Mapping[CauseKind, Traits] = {
    CauseKind.MEMBER_JOINED: Traits(rejoin=True, raises_epoch=True),
    CauseKind.MEMBER_LEFT: Traits(departure=By.CLIENT, raises_epoch=True, may_follow_failover=False),
    CauseKind.SESSION_TIMEOUT: Traits(departure=By.COORDINATOR, timeout=True, raises_epoch=True),
    CauseKind.POLL_TIMEOUT: Traits(
        departure=By.CLIENT, timeout=True, raises_epoch=True, may_follow_failover=False
    ),
    CauseKind.REBALANCE_TIMEOUT: Traits(departure=By.COORDINATOR, timeout=True, raises_epoch=True),
    CauseKind.SYNC_TIMEOUT: Traits(departure=By.COORDINATOR, timeout=True),
    CauseKind.SUBSCRIPTION_CHANGED: Traits(rejoin=True, raises_epoch=True, may_follow_failover=False),
    CauseKind.LEADER_REJOINED: Traits(rejoin=True),
    CauseKind.STATIC_MEMBER_REPLACED: Traits(raises_epoch=True, may_follow_failover=False),
    CauseKind.PARTITIONS_CHANGED: Traits(rejoin=True, raises_epoch=True, may_follow_failover=False),
    CauseKind.PROTOCOL_CHANGED: Traits(raises_epoch=True, may_follow_failover=False),
    CauseKind.COORDINATOR_MOVED: Traits(),
    CauseKind.JOIN_COMPLETED: _ELSEWHERE,
    CauseKind.ASSIGNMENT_STORED: _ELSEWHERE,
    CauseKind.ALL_MEMBERS_LEFT: Traits(departure=By.CLIENT, raises_epoch=True, may_follow_failover=False),
    CauseKind.GROUP_CREATED: _ELSEWHERE,
    CauseKind.GROUP_DELETED: _ELSEWHERE,
    CauseKind.OFFSETS_EXPIRED: _ELSEWHERE,
    # An unknown cause may be any of them.
    CauseKind.UNKNOWN: _ELSEWHERE,
}

DEPARTURES = frozenset(kind for kind, one in TRAITS.items() if one.departure)
TIMEOUTS = frozenset(kind for kind, one in TRAITS.items() if one.timeout)
"""The member's process missed a deadline, whichever side noticed it."""
REMOVALS = frozenset(kind for kind, one in TRAITS.items() if one.departure is By.COORDINATOR)
MAYBE_LEAVES = frozenset(
    kind for kind, one in TRAITS.items() if one.departure is By.CLIENT and not one.timeout
) | {CauseKind.UNKNOWN}
"""A leave by choice, or an unknown cause: most members that leave for an unknown reason left by choice."""
REJOINS = frozenset(kind for kind, one in TRAITS.items() if one.rejoin)
RAISE_EPOCH = frozenset(kind for kind, one in TRAITS.items() if one.raises_epoch)
MAY_FOLLOW_FAILOVER = frozenset(kind for kind, one in TRAITS.items() if one.may_follow_failover)
