"""What timers bring: values, so that who sets a timer need not know who serves it.

``key`` is Kafka's: a timer replaces the one that has the same.
"""

from typing import NamedTuple, TypeAlias


class SessionDue(NamedTuple):
    """A member or a pending id was not heard of in time."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """Kafka: ``classicGroupHeartbeatKey``."""
        return f"heartbeat-{self.group_id}-{self.member_id}"


class JoinDue(NamedTuple):
    """The join phase is over, whoever came."""

    group_id: str

    @property
    def key(self) -> str:
        """Kafka: ``classicGroupJoinKey``."""
        return f"join-{self.group_id}"


class InitialJoinDue(NamedTuple):
    """The first join phase is over, unless somebody came during the last ``delay_ms``."""

    group_id: str
    delay_ms: int
    remaining_ms: int

    @property
    def key(self) -> str:
        """The same as that of ``JoinDue``: a group has one join timer."""
        return f"join-{self.group_id}"


class SyncDue(NamedTuple):
    """The sync phase is over for those who have not sent SyncGroup."""

    group_id: str

    @property
    def key(self) -> str:
        """Kafka: ``classicGroupSyncKey``."""
        return f"sync-{self.group_id}"


class CleanupDue(NamedTuple):
    """Time to look for expired offsets."""

    @property
    def key(self) -> str:
        """Kafka: ``GROUP_EXPIRATION_KEY``."""
        return "expire-group-metadata"


Due: TypeAlias = SessionDue | JoinDue | InitialJoinDue | SyncDue | CleanupDue
