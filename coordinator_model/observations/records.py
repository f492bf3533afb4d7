"""Observations from records of __consumer_offsets."""

import msgspec

from coordinator_model.observations.base import GroupObservation
from coordinator_model.observations.modern_records import AnyPart


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """The last commit of one partition within a run of records; ``offset`` None is a tombstone."""

    topic: str
    partition: int
    offset: int | None
    committed_at_ms: int
    count: int = 1
    topic_id: int = 0
    """First half of the id of the topic; 0: unknown (backlog, older brokers, transactions)."""


class OffsetsCommitted(GroupObservation, tag="oc", frozen=True, kw_only=True):
    """Commits of one group that are next to one another in the topic, coalesced by partition."""

    commits: tuple[Commit, ...]


class MemberRecord(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One member in a GroupMetadata record; timeouts in milliseconds, -1 unknown."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    """Subscribed topics, None if the opaque bytes do not parse."""
    assigned: dict[str, tuple[int, ...]] | None = None
    """Topic -> partitions, None if the opaque bytes do not parse."""


class GroupRecorded(GroupObservation, tag="gm", frozen=True, kw_only=True):
    """A GroupMetadata record (type 2): a completed generation, or an Empty group without members.

    ``state_since_ms`` is ``currentStateTimestamp`` (-1 unknown): for a record with members the time
    the group entered CompletingRebalance.
    """

    generation: int
    protocol_type: str
    protocol: str | None
    leader_id: str | None
    state_since_ms: int
    members: tuple[MemberRecord, ...]
    uncommitted_ms: int = -1
    """The brokers' last answer by which the record, long appended, was not replicated yet (-1: none);

    set when the shard orders it.  The coordinator acts on a record once it is replicated.
    """


class GroupTombstone(GroupObservation, tag="gt", frozen=True, kw_only=True):
    """The GroupMetadata record was deleted: group deleted, expired, cleaned up or converted."""


class ModernRecord(GroupObservation, tag="modern", frozen=True, kw_only=True):
    """A record of a KIP-848, share or streams group (types 3-23)."""

    group_type: str
    record_type: int
    name: str
    tombstone: bool
    member_id: str = ""
    """The member in the key, for types that have one."""
    part: AnyPart | None = None
    """Its content; None for a tombstone, and for types that the model does not need."""
    expression: str = ""
    """The regular expression in the key (type 16)."""
    uncommitted_ms: int = -1
    """The last time at which its partition's leader reported it as not replicated; -1: it was at once."""


class ModernWrite(GroupObservation, tag="mwrite", frozen=True, kw_only=True):
    """Records that the coordinator wrote as one: no state of the group between two of them ever existed.

    The shard combines them from neighbours in the topic, in order.
    """

    records: "tuple[ModernRecord | GroupTombstone | GroupRecorded, ...]"
