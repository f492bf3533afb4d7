"""What is sent to the coordinator, and what happens to it: small frozen values.

Requests have Kafka's field names in snake_case and Kafka's defaults.  ``api_version`` matters only
where the coordinator's answer depends on it.  ``client_id`` and ``client_host`` come with the
connection.  As JSON, ``type`` is the class's name and bytes are base64.
"""

from typing import TypeAlias

import msgspec

from tests.oracle.values.config import Config
from tests.oracle.values.errors import Errors
from tests.oracle.values.stored import Record


class _Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: a field that does not exist is a mistake of the caller."""


class Protocol(_Value, frozen=True):
    """One assignment strategy that a member offers, with its subscription."""

    name: str
    metadata: bytes = b""


class JoinGroup(_Value, frozen=True, tag="JoinGroup"):
    """Version 4 and later get their member id first (79); version 0 has no rebalance timeout."""

    group_id: str
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[Protocol, ...] = (Protocol(name="range"),)
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    reason: str | None = None
    client_id: str = "client"
    client_host: str = "/127.0.0.1"
    api_version: int = 9

    @property
    def effective_rebalance_timeout_ms(self) -> int:
        """Version 0 has one timeout for both."""
        return self.session_timeout_ms if self.api_version == 0 else self.rebalance_timeout_ms

    @property
    def client_reason(self) -> str:
        """The client's reason as it stands at the end of the coordinator's."""
        return f"client reason: {self.reason or 'not provided'}"


class Assignment(_Value, frozen=True):
    """What the leader gives one member."""

    member_id: str
    assignment: bytes = b""


class SyncGroup(_Value, frozen=True, tag="SyncGroup"):
    """From version 5 on, protocol type and name must be there."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[Assignment, ...] = ()
    api_version: int = 4


class Heartbeat(_Value, frozen=True, tag="Heartbeat"):
    """A member says that it lives."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class MemberIdentity(_Value, frozen=True):
    """Who leaves: by member id, or by instance id alone with an empty member id."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroup(_Value, frozen=True, tag="LeaveGroup"):
    """Versions 0 to 2 have one ``member_id``; later ones a batch of ``members``."""

    group_id: str
    member_id: str = ""
    members: tuple[MemberIdentity, ...] = ()
    api_version: int = 5


class PartitionOffset(_Value, frozen=True):
    """One offset to be stored."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class TopicOffsets(_Value, frozen=True):
    """The offsets of one topic; ``topic_id`` is "" where it is not known."""

    name: str
    partitions: tuple[PartitionOffset, ...]
    topic_id: str = ""


class OffsetCommit(_Value, frozen=True, tag="OffsetCommit"):
    """Version 9 and later learn 69 of an unknown group, older ones 22."""

    group_id: str
    topics: tuple[TopicOffsets, ...]
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    api_version: int = 9


class TxnOffsetCommit(_Value, frozen=True, tag="TxnOffsetCommit"):
    """Offsets that become valid when the producer's transaction commits."""

    group_id: str
    producer_id: int
    topics: tuple[TopicOffsets, ...]
    producer_epoch: int = 0
    transactional_id: str = ""
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TopicPartitions(_Value, frozen=True):
    """Partitions of one topic."""

    name: str
    partition_indexes: tuple[int, ...]


class OffsetDelete(_Value, frozen=True, tag="OffsetDelete"):
    """Forget offsets of topics that the group does not subscribe to."""

    group_id: str
    topics: tuple[TopicPartitions, ...]


class OffsetFetch(_Value, frozen=True, tag="OffsetFetch"):
    """Read offsets; ``topics`` None means all of them."""

    group_id: str
    topics: tuple[TopicPartitions, ...] | None = None
    require_stable: bool = False


class DeleteGroups(_Value, frozen=True, tag="DeleteGroups"):
    """Delete empty groups."""

    groups_names: tuple[str, ...]


class DescribeGroups(_Value, frozen=True, tag="DescribeGroups"):
    """Version 6 and later learn 69 of an unknown group."""

    groups: tuple[str, ...]
    api_version: int = 6


class ListGroups(_Value, frozen=True, tag="ListGroups"):
    """Filters are case-insensitive; empty ones let everything through."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class EndTransaction(_Value, frozen=True, tag="EndTransaction"):
    """The transaction coordinator writes the marker of a producer's transaction."""

    producer_id: int
    committed: bool


Request: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TxnOffsetCommit
    | OffsetDelete
    | OffsetFetch
    | DeleteGroups
    | DescribeGroups
    | ListGroups
    | EndTransaction
)


# --- what happens without a client asking -------------------------------------------------------------


class Load(_Value, frozen=True, tag="Load"):
    """The broker becomes the coordinator; it reads the log for ``load_ms``.

    ``records`` replace what is in the log, for a test that begins in the middle of a group's life.
    """

    load_ms: int = 0
    records: tuple[Record, ...] | None = None


class Unload(_Value, frozen=True, tag="Unload"):
    """The broker is no longer the coordinator; what was not committed is lost unless kept."""

    keep_uncommitted: bool = False


class Failover(_Value, frozen=True, tag="Failover"):
    """Another broker takes over: ``Unload``, then ``Load``."""

    load_ms: int = 0
    keep_uncommitted: bool = False


class Stop(_Value, frozen=True, tag="Stop"):
    """The coordinator's service is shut down or not yet started: everything is answered 15."""


class Start(_Value, frozen=True, tag="Start"):
    """The service is there again; its partition has to be loaded."""


class Commit(_Value, frozen=True, tag="Commit"):
    """Records are replicated: all of them, or those before ``offset``."""

    offset: int | None = None


class FailAppends(_Value, frozen=True, tag="FailAppends"):
    """The next ``count`` writes cannot be appended to the log."""

    error: Errors
    count: int = 1


class FailPending(_Value, frozen=True, tag="FailPending"):
    """The writes that wait for replication fail; their records stay in the log."""

    error: Errors


class DeletedTopic(_Value, frozen=True):
    """A topic that is gone."""

    name: str
    topic_id: str = ""


class TopicsDeleted(_Value, frozen=True, tag="TopicsDeleted"):
    """The cluster deleted topics; the coordinator forgets their offsets."""

    topics: tuple[DeletedTopic, ...]


class MarkDead(_Value, frozen=True, tag="MarkDead"):
    """The instant between a group's death and its disappearance, which a request may meet."""

    group_id: str


class Configure(_Value, frozen=True, tag="Configure"):
    """The broker runs with another configuration from here on."""

    config: Config


Event: TypeAlias = (
    Load
    | Unload
    | Failover
    | Stop
    | Start
    | Commit
    | FailAppends
    | FailPending
    | TopicsDeleted
    | MarkDead
    | Configure
)
