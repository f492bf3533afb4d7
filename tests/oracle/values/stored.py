"""What the coordinator writes to ``__consumer_offsets``, with Kafka's field names in snake_case."""

from typing import TypeAlias

import msgspec


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of records and their parts."""


class GroupMember(_Stored, frozen=True):
    """One member in a ``GroupMetadata`` record."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = "client"
    client_host: str = "/127.0.0.1"
    rebalance_timeout: int = -1
    session_timeout: int = 10_000
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadata(_Stored, frozen=True, tag="GroupMetadata"):
    """A group at the end of a rebalance (record type 2, value version 3)."""

    group: str
    protocol_type: str = "consumer"
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: tuple[GroupMember, ...] = ()


class GroupTombstone(_Stored, frozen=True, tag="GroupTombstone"):
    """The group is no more."""

    group: str


class OffsetCommitted(_Stored, frozen=True, tag="OffsetCommitted"):
    """A committed offset (record type 1; value version 1 with an expiry, else 4).

    ``producer_id`` is that of the batch: -1 outside a transaction.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int = -1
    topic_id: str = ""
    producer_id: int = -1


class OffsetTombstone(_Stored, frozen=True, tag="OffsetTombstone"):
    """The offset is forgotten."""

    group: str
    topic: str
    partition: int


class TransactionMarker(_Stored, frozen=True, tag="TransactionMarker"):
    """The control record that ends a producer's transaction."""

    producer_id: int
    committed: bool


Record: TypeAlias = GroupMetadata | GroupTombstone | OffsetCommitted | OffsetTombstone | TransactionMarker
