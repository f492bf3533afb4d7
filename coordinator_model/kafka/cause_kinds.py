"""Why a group moves: the kinds of cause that the contract lists, and what holds for each.

Source: ``GroupMetadataManager`` of Apache Kafka 4.3.1: who calls ``maybePrepareRebalanceOrCompleteJoin`` and
``prepareRebalance``, and in newer groups what raises the group epoch.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import NamedTuple


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


class By(Enum):
    """Who ended a membership."""

    CLIENT = "client"
    """It sent LeaveGroup."""
    COORDINATOR = "coordinator"
    """It removed the member, which was not asked."""


class Traits(NamedTuple):
    """What holds for a kind of cause, whatever the group."""

    departure: By | None = None
    """A member went, and who ended its membership."""
    timeout: bool = False
    """The member's process failed to do in time what it owed."""
    rejoin: bool = False
    """A member that stays one joined again, or one came: JoinGroup by itself began the rebalance."""
    raises_epoch: bool = False
    """In newer groups it begins a rebalance: the group epoch grows."""
    may_follow_failover: bool = True
    """It may be no more than the echo of a move of the coordinator, which members noticed one by one."""


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
    # One that nobody has told may be any of them.
    CauseKind.UNKNOWN: _ELSEWHERE,
}

DEPARTURES = frozenset(kind for kind, one in TRAITS.items() if one.departure)
TIMEOUTS = frozenset(kind for kind, one in TRAITS.items() if one.timeout)
"""The member's process failed, whoever noticed it."""
REMOVALS = frozenset(kind for kind, one in TRAITS.items() if one.departure is By.COORDINATOR)
MAYBE_LEAVES = frozenset(
    kind for kind, one in TRAITS.items() if one.departure is By.CLIENT and not one.timeout
) | {CauseKind.UNKNOWN}
"""By choice, as far as anything tells: most of those of whom nothing does went by themselves."""
REJOINS = frozenset(kind for kind, one in TRAITS.items() if one.rejoin)
RAISE_EPOCH = frozenset(kind for kind, one in TRAITS.items() if one.raises_epoch)
MAY_FOLLOW_FAILOVER = frozenset(kind for kind, one in TRAITS.items() if one.may_follow_failover)
