"""Every observation of a group, with where it was seen.

An observation says what happened, never what to do about it.  Decoders make observations from bytes and
lines, ``ordering`` orders them, ``groups`` applies them.  They travel between Spark stages as msgpack, so
every class here is a small array with a tag: **add fields only at the end, with a default**, and never reuse
a tag.

Times are integers in epoch milliseconds on the clock of the broker that logged or answered, unless a name
says otherwise.
"""

import msgspec

from coordinator_model.observations.answers import (
    BrokerDescribed,
    EndOffsetsReported,
    GroupDescribed,
    LeadersDescribed,
    ReplicaMissed,
    RetentionReported,
    ShardLed,
    TopicsDescribed,
)
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import (
    Adopted,
    Clock,
    Contradicted,
    Counted,
    EventsClock,
    GroupQuarantined,
    GroupRebalancedByFailover,
    LogSeconds,
    PartitionAnew,
    RecordsLost,
    Settings,
    ShardRefilled,
    Undecodable,
)
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupConverted,
    GroupDied,
    GroupEmptied,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    InstanceFenced,
    InstanceRefused,
    JoinPhaseEnded,
    LeaderReplaced,
    LogNoted,
    MemberFailed,
    MemberIdHandedOut,
    MemberJoined,
    MemberLeft,
    MembersKicked,
    ModernMemberGone,
    NobodyRejoined,
    PendingMemberExpired,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
    ShardStalled,
    ShardUnloaded,
    SimpleGroupCreated,
    StaticMemberReplaced,
)
from coordinator_model.observations.records import (
    GroupRecorded,
    GroupTombstone,
    ModernRecord,
    ModernWrite,
    OffsetsCommitted,
)
from coordinator_model.observations.requests import (
    CommitsAnswered,
    DeleteAnswered,
    EpochAnswered,
    GroupHeard,
    Heartbeats,
    JoinAnswered,
    LeaveAnswered,
    SyncAnswered,
    TransactionalCommit,
    TransactionEnded,
)

# --- from the coordinator's INFO log -------------------------------------------------------------


# --- from __consumer_offsets -----------------------------------------------------------------------


# --- from the request log --------------------------------------------------------------------------


# --- in band, from the driver ----------------------------------------------------------------------


# --- in band, from the driver: what the brokers answered when they were asked ------------------------


AnyObservation = (
    MemberIdHandedOut
    | MemberJoined
    | StaticMemberReplaced
    | RebalanceStarted
    | JoinPhaseEnded
    | AssignmentReceived
    | GroupEmptied
    | MembersKicked
    | MemberFailed
    | PendingMemberExpired
    | MemberLeft
    | NobodyRejoined
    | SimpleGroupCreated
    | GroupLoaded
    | GroupUnloaded
    | LeaderReplaced
    | InstanceFenced
    | GroupsDeleted
    | ShardLoading
    | ShardLoaded
    | ShardUnloaded
    | LogNoted
    | OffsetsCommitted
    | GroupRecorded
    | GroupTombstone
    | ModernRecord
    | Heartbeats
    | JoinAnswered
    | SyncAnswered
    | LeaveAnswered
    | CommitsAnswered
    | DeleteAnswered
    | TransactionalCommit
    | TransactionEnded
    | Clock
    | EventsClock
    | Settings
    | Adopted
    | LogSeconds
    | Contradicted
    | Counted
    | Undecodable
    | ModernWrite
    | ModernMemberGone
    | EpochAnswered
    | GroupDescribed
    | ShardLed
    | LeadersDescribed
    | BrokerDescribed
    | TopicsDescribed
    | GroupDied
    | EndOffsetsReported
    | InstanceRefused
    | RetentionReported
    | GroupRebalancedByFailover
    | GroupConverted
    | ShardStalled
    | ReplicaMissed
    | GroupQuarantined
    | ShardRefilled
    | RecordsLost
    | PartitionAnew
    | GroupHeard
)


class Seen(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One observation with its place: its time, its broker, and its offset in its Kafka partition."""

    at_ms: int
    """When it happened, on the broker's clock (a coalesced run: its last time)."""
    source: Source
    partition: int
    """Partition of the input topic, not of the group."""
    offset: int
    index: int
    """Position within its record."""
    broker: int
    """The broker that logged or answered it; -1 where the source names none (offsets topic, control)."""
    recorded_at_ms: int
    """Timestamp of the Kafka record that carried it."""
    backlog: bool
    """Whether it lies before the end offsets at the first start: it sets states and emits nothing."""
    what: AnyObservation
    is_whole: bool = False
    """Whether its line had whole seconds: it may have happened at any time within the second of ``at_ms``."""
    is_ahead: bool = False
    """Whether its line had a time long after its append, for whatever reason: ``at_ms`` is the append's."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Seen])


def pack(seen: list[Seen]) -> bytes:
    """Return observations of one shard as one cell for Spark."""
    return _ENCODER.encode(seen)


def unpack(cell: bytes) -> list[Seen]:
    """Return the observations that ``pack`` was given.

    Raises:
        msgspec.DecodeError: the cell is not ours; a bug, since only our own stages write them.
    """
    return _DECODER.decode(cell)
