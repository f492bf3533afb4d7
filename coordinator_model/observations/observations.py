"""What can be learned about a group, and where it was seen.

An observation says what happened, never what to do about it.  Decoders make them from bytes and
lines, ``shard.py`` puts them in order, the group models apply them.  They travel between Spark
stages as msgpack, so every class here is a small array with a tag: **add fields only at the end,
with a default**, and never reuse a tag.

Times are integers in epoch milliseconds on the clock of the broker that spoke, unless a name says
otherwise.
"""

from enum import IntEnum

import msgspec

from coordinator_model.observations.newer_records import AnyPart


class Source(IntEnum):
    """Where an observation was seen.

    The number is its rank among observations of one millisecond: the coordinator logs before it
    appends, and appends before it answers.
    """

    COORDINATOR_LOG = 0
    OFFSETS = 1
    REQUEST_LOG = 2
    CONTROL = 3


CLUSTER_SHARD = -1
"""The shard of what concerns the whole cluster (source loss, decode counts, coordinator moves)."""


class Observation(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Base of everything that can be seen."""


class GroupObservation(Observation, frozen=True, array_like=True, kw_only=True):
    """An observation about one group."""

    group: str


# --- from the coordinator's INFO log -------------------------------------------------------------


class Reason(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Why a rebalance started, as the coordinator and the client put it (KIP-800).

    ``kind`` is a cause kind of the contract (``member_joined``, ``session_timeout`` …).
    ``text`` is the coordinator's whole reason, cut to 1,000 characters.
    """

    kind: str
    text: str
    member_ids: tuple[str, ...] = ()
    instance_id: str | None = None
    client_reason: str | None = None


class MemberIdHandedOut(GroupObservation, tag="id", frozen=True, kw_only=True):
    """A dynamic member got an id and must come back with it (error 79): a pending member."""

    member_id: str
    state: str = ""


class MemberJoined(GroupObservation, tag="join", frozen=True, kw_only=True):
    """A member was added to the group (second join step, an old client, or a new static member)."""

    member_id: str
    instance_id: str | None = None


class StaticMemberReplaced(GroupObservation, tag="repl", frozen=True, kw_only=True):
    """A static member came back under a new id; the log names only the old one."""

    instance_id: str
    old_member_id: str


class RebalanceStarted(GroupObservation, tag="prep", frozen=True, kw_only=True):
    """The line "Preparing to rebalance": the group is in PreparingRebalance, still at ``generation``."""

    generation: int
    reason: Reason


class JoinPhaseEnded(GroupObservation, tag="stab", frozen=True, kw_only=True):
    """The line "Stabilized": the group entered CompletingRebalance with this new generation."""

    generation: int
    member_count: int


class AssignmentReceived(GroupObservation, tag="asgn", frozen=True, kw_only=True):
    """The leader delivered its assignment; Stable follows when the record is committed."""

    generation: int
    leader_id: str
    member_count: int = -1


class GroupEmptied(GroupObservation, tag="empty", frozen=True, kw_only=True):
    """The join phase ended with nobody in the group."""

    generation: int


class MembersKicked(GroupObservation, tag="kick", frozen=True, kw_only=True):
    """Dynamic members that did not rejoin before the rebalance timeout were removed."""

    member_ids: tuple[str, ...]


class MemberFailed(GroupObservation, tag="fail", frozen=True, kw_only=True):
    """The coordinator removed a member whose session timed out."""

    member_id: str


class PendingMemberExpired(GroupObservation, tag="pexp", frozen=True, kw_only=True):
    """A pending member never came back with its id."""

    member_id: str


class MemberLeft(GroupObservation, tag="left", frozen=True, kw_only=True):
    """A member sent LeaveGroup; ``client_reason`` is None where the client gave none."""

    member_id: str
    client_reason: str | None = None
    pending: bool = False


class NobodyRejoined(GroupObservation, tag="nobody", frozen=True, kw_only=True):
    """Only static members are left and none rejoined; the join timer was armed again."""


class SimpleGroupCreated(GroupObservation, tag="simple", frozen=True, kw_only=True):
    """A manual commit created a group without members."""


class GroupLoaded(GroupObservation, tag="gload", frozen=True, kw_only=True):
    """A new coordinator loaded the group; ``group_type`` is classic, consumer, share or streams."""

    group_type: str
    member_count: int
    """-1: the line (3.x) tells none."""
    generation: int = -1
    """-1: the line (4.x) tells none."""


class GroupUnloaded(GroupObservation, tag="gunload", frozen=True, kw_only=True):
    """The broker gave the group up: its offsets partition moved."""

    generation: int


class GroupDied(GroupObservation, tag="died", frozen=True, kw_only=True):
    """The cleanup (3.x) found the group empty and without offsets.

    A group that was never more than a simple one leaves no tombstone there.
    """

    generation: int


class ModernMemberGone(GroupObservation, tag="mgone", frozen=True, kw_only=True):
    """A member of a consumer, share or streams group left or was fenced; the topic only says that it went."""

    member_id: str
    kind: str
    """A cause kind: member_left or one of the timeouts."""
    text: str
    client_reason: str | None = None
    """Only members that speak the classic protocol give one."""


class LeaderReplaced(Observation, tag="lead", frozen=True, kw_only=True):
    """The leader did not rejoin and another was elected (None: nobody); the line names no group."""

    old_leader_id: str
    new_leader_id: str | None


class InstanceFenced(Observation, tag="fence", frozen=True, kw_only=True):
    """A request of a static member was refused (error 82); the line names no group."""

    member_id: str
    instance_id: str
    by_member_id: str
    operation: str


class InstanceRefused(GroupObservation, tag="irefd", frozen=True, kw_only=True):
    """The same in a consumer group (KIP-848), where the line names the group."""

    member_id: str
    instance_id: str
    by_member_id: str
    fenced: bool
    """True: the sender was replaced; False: it would join, and the holder has not gone (error 111)."""


class GroupConverted(GroupObservation, tag="conv", frozen=True, kw_only=True):
    """The group's type changed: its classic members joined under a newer protocol, or back again."""

    to_classic: bool


class GroupsDeleted(Observation, tag="del", frozen=True, kw_only=True):
    """DeleteGroups: the names as logged, joined by ", ", which a group id may contain as well."""

    names: str


class ShardLoading(Observation, tag="loading", frozen=True, kw_only=True):
    """A broker begins to load this offsets partition, as leader of ``epoch``."""

    epoch: int


class ShardLoaded(Observation, tag="loaded", frozen=True, kw_only=True):
    """A broker has loaded this offsets partition."""

    epoch: int


class ShardUnloaded(Observation, tag="unloaded", frozen=True, kw_only=True):
    """A broker has given up this offsets partition."""


class ShardStalled(Observation, tag="stalled", frozen=True, kw_only=True):
    """The coordinator answered that a write to this offsets partition was not replicated in time."""

    group: str
    """Whose request it was; the partition's other groups wait as well."""
    since_ms: int
    """When the coordinator was asked."""


class LogNoted(Observation, tag="note", frozen=True, kw_only=True):
    """A coordinator line that is known and changes nothing in a classic group; ``kind`` names it."""

    kind: str
    group: str | None = None


# --- from __consumer_offsets -----------------------------------------------------------------------


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """The last commit of one partition within a run of records; ``offset`` None is a tombstone."""

    topic: str
    partition: int
    offset: int | None
    committed_at_ms: int
    count: int = 1
    topic_id: int = 0
    """First half of the id of the topic; 0: not told (backlog, older brokers, transactions)."""


class OffsetsCommitted(GroupObservation, tag="oc", frozen=True, kw_only=True):
    """Commits of one group that stand next to one another in the topic, folded by partition."""

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
    set when the shard orders it.  The coordinator acts on a record when it is."""


class GroupTombstone(GroupObservation, tag="gt", frozen=True, kw_only=True):
    """The GroupMetadata record was deleted: group deleted, expired, cleaned up or converted."""


class ModernRecord(GroupObservation, tag="modern", frozen=True, kw_only=True):
    """A record of a KIP-848, share or streams group (types 3-23)."""

    group_type: str
    record_type: int
    name: str
    tombstone: bool
    member_id: str = ""
    """Whose record it is, for types that have a member in their key."""
    part: AnyPart | None = None
    """What it holds; None for a tombstone, and for types that tell the model nothing."""
    expression: str = ""
    """The regular expression in the key (type 16)."""
    uncommitted_ms: int = -1
    """The last time at which its partition's leader told that it was not replicated yet; -1: at once."""


class ModernWrite(GroupObservation, tag="mwrite", frozen=True, kw_only=True):
    """Records that the coordinator wrote as one: nobody ever saw the group between two of them.

    Made in the shard, of neighbours in the topic; in order.
    """

    records: "tuple[ModernRecord | GroupTombstone | GroupRecorded, ...]"


# --- from the request log --------------------------------------------------------------------------


class Client(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Who sent a request, as the broker saw it."""

    client_id: str = ""
    host: str = ""
    """Spelled "/10.0.0.7", as in GroupMetadata records."""
    connection: str = ""
    principal: str = ""
    software: str = ""
    """clientInformation.softwareName, e.g. apache-kafka-java, librdkafka, "unknown"."""


class Heartbeats(GroupObservation, tag="hb", frozen=True, kw_only=True):
    """Heartbeats of one member with one generation and one answer, folded; ``times`` ascend."""

    member_id: str
    generation: int
    error_code: int
    times: tuple[int, ...]
    client: Client = Client()
    instance_id: str | None = None
    protocol: str = "classic"
    """The protocol that the request speaks; of the others ``generation`` is the member's epoch."""


class JoinAnswered(GroupObservation, tag="jr", frozen=True, kw_only=True):
    """A JoinGroup got its answer; a success is logged only when the join phase ends.

    ``member_id`` is the response's (the handed-out id for error 79); ``arrived_at_ms`` is line time
    minus totalTimeMs. ``member_ids`` is filled in the leader's answer only.
    """

    member_id: str
    error_code: int
    generation: int
    leader_id: str
    arrived_at_ms: int
    requested_member_id: str = ""
    instance_id: str | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    protocol_type: str = ""
    protocol: str | None = None
    reason: str | None = None
    member_ids: tuple[str, ...] = ()
    client: Client = Client()
    protocols: tuple[str, ...] = ()
    """The assignors that the client offers, by name, its favourite first."""


class SyncAnswered(GroupObservation, tag="sr", frozen=True, kw_only=True):
    """A SyncGroup got its answer; ``by_leader`` if the request carried assignments."""

    member_id: str
    error_code: int
    generation: int
    arrived_at_ms: int
    by_leader: bool = False
    instance_id: str | None = None
    client: Client = Client()


class LeaveAnswered(GroupObservation, tag="lr", frozen=True, kw_only=True):
    """One member's part of a LeaveGroup and its answer."""

    member_id: str
    error_code: int
    instance_id: str | None = None
    reason: str | None = None
    client: Client = Client()


class CommitsAnswered(GroupObservation, tag="cr", frozen=True, kw_only=True):
    """OffsetCommits of one member and generation with one answer, folded; ``times`` ascend."""

    member_id: str
    generation: int
    error_code: int
    times: tuple[int, ...]
    client: Client = Client()
    instance_id: str | None = None
    claims: tuple[tuple[str, int, int], ...] = ()
    """(topic or its id, partition, offset) of the last one, at most ``CLAIMS_MAX``, if it was refused."""


CLAIMS_MAX = 10
"""Partitions of a refused commit that are told."""


class OffsetsClaimed(GroupObservation, tag="claim", frozen=True, kw_only=True):
    """A TxnOffsetCommit got its answer: its offsets count once the producer's transaction commits."""

    member_id: str
    generation: int
    error_code: int
    producer_id: int
    offsets: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, offset) of those that were accepted."""
    client: Client = Client()
    instance_id: str | None = None


class TransactionEnded(Observation, tag="txend", frozen=True, kw_only=True):
    """A transaction's marker was written to this offsets partition (WriteTxnMarkers); it names no group."""

    producer_id: int
    committed: bool
    partition: int
    """Of ``__consumer_offsets``."""


class DeleteAnswered(GroupObservation, tag="dr", frozen=True, kw_only=True):
    """DeleteGroups answered for this group."""

    error_code: int


class EpochAnswered(GroupObservation, tag="epoch", frozen=True, kw_only=True):
    """A heartbeat of a consumer, share or streams group that was more than a sign of life.

    ``asked`` is the member's epoch in the request: 0 joins, -1 leaves, -2 is a static member that goes
    for a while; ``epoch`` the one in the answer.
    """

    protocol: str
    member_id: str
    asked: int
    epoch: int
    error_code: int
    arrived_at_ms: int
    interval_ms: int = -1
    """How often the coordinator wants to hear from the member; -1 not told."""
    instance_id: str | None = None
    client: Client = Client()


# --- in band, from the driver ----------------------------------------------------------------------


class Clock(Observation, tag="clock", frozen=True, kw_only=True):
    """The driver's time, with what was true of this shard's offsets partition then.

    ``end_offset`` was the partition's end at that time and ``position`` where the query stood
    (-1: unknown or source disabled; an end of -2: read, but no broker told it).  ``events_partitions``
    is how many partitions the events topic has (0: source disabled), so that a shard knows whom to wait
    for.  ``skew_ms`` maps a broker to (its clock minus the driver's).
    """

    sequence: int
    end_offset: int = -1
    position: int = -1
    events_partitions: int = 0
    skew_ms: dict[int, int] = {}
    ask: bool = False
    """True asks the shard to report every group it holds."""
    is_answer: bool = False
    """The end is a broker's answer to a question asked at that time, not just what has been read."""
    wrong_ms: int = 0
    """How far the clock of the partition's leader is ahead, where it is wrong; else 0."""
    zones_ms: dict[int, int] = {}
    """Broker -> how far its lines are ahead by their zone, as some shard has found."""


class EventsClock(Observation, tag="eclock", frozen=True, kw_only=True):
    """A copy of a clock record in one partition of the events topic: what was before it is read."""

    sequence: int
    skew_ms: dict[int, int] = {}
    """As in ``Clock``: how far each broker's clock is ahead of the driver's."""
    lead_ms: int = 0
    """How far the clock is ahead of the broker that appends to this partition."""


class Settings(Observation, tag="set", frozen=True, kw_only=True):
    """Rules, group filter and retention as canonical JSON; the shard applies them from here on."""

    settings: bytes


class Adopted(GroupObservation, tag="adopt", frozen=True, kw_only=True):
    """An alert (JSON, newest revision) that the alerts topic showed open to a job without checkpoint."""

    alert: bytes


class BrokerHeard(Observation, tag="heard", frozen=True, kw_only=True):
    """In these seconds (epoch seconds, ascending) the broker's log gave at least one line of this source."""

    broker: int
    heard: Source
    seconds: tuple[int, ...]


class Contradicted(Observation, tag="contra", frozen=True, kw_only=True):
    """A shard saw in the topic what the broker's log should have told: that log is losing lines."""

    broker: int
    lost: Source
    group: str


class Counted(Observation, tag="count", frozen=True, kw_only=True):
    """How many records of each kind a decoder met: (source name, kind) -> count."""

    counts: tuple[tuple[str, str, int], ...]
    committed: tuple[tuple[int, int], ...] = ()
    """(offsets partition, newest record time in epoch ms) of commits that clients made among them."""


class Undecodable(Observation, tag="bad", frozen=True, kw_only=True):
    """Records of one source that could not be read for one reason, with one bounded sample."""

    origin: str
    """offsets, events or control."""
    reason: str
    count: int
    sample: bytes
    detail: str = ""


# --- in band, from the driver: what the brokers answered when they were asked ------------------------


class DescribedMember(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One member as a broker describes it; subscription and assignment are known in Stable groups only."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    assigned: dict[str, tuple[int, ...]] | None = None


class GroupDescribed(GroupObservation, tag="desc", frozen=True, kw_only=True):
    """A coordinator's own answer about a group (DescribeGroups, ConsumerGroupDescribe and their kin).

    It held at some moment from ``asked_at_ms`` to ``Seen.at_ms``, both on the answering broker's clock.
    """

    asked_at_ms: int
    group_type: str
    state: str
    """As brokers spell it; Dead: the coordinator does not know the group."""
    protocol_type: str = ""
    protocol: str = ""
    """Assignment strategy, "" where the broker does not tell (a classic group that is not Stable)."""
    epoch: int = -1
    """Group epoch; classic groups do not tell their generation."""
    members: tuple[DescribedMember, ...] | None = None
    """None: too many to be carried."""


class ShardLed(Observation, tag="led", frozen=True, kw_only=True):
    """The metadata name this broker as leader of the shard's offsets partition."""

    leader: int
    epoch: int = -1
    """Leader epoch, which is the coordinator's; -1 where the broker does not tell."""


class ReplicaMissed(Observation, tag="missed", frozen=True, kw_only=True):
    """A broker with a replica of the shard's offsets partition has gone: until then, writes waited for it."""

    since_ms: int
    """Since when they may have waited."""


class LeadersDescribed(Observation, tag="leaders", frozen=True, kw_only=True):
    """The same for the whole cluster: offsets partition -> (leader, leader epoch), as far as changed."""

    leaders: dict[int, tuple[int, int]]


class BrokerDescribed(Observation, tag="broker", frozen=True, kw_only=True):
    """What a broker is set to, as far as groups depend on it (Kafka's names and spelling)."""

    broker: int
    settings: dict[str, str]


class TopicsDescribed(Observation, tag="topics", frozen=True, kw_only=True):
    """How many partitions topics have that groups read, as far as changed; 0: there is no such topic."""

    partitions: dict[str, int]


class EndsTold(GroupObservation, tag="ends", frozen=True, kw_only=True):
    """Where partitions that a group commits to ended when the brokers were asked, at ``Seen.at_ms``.

    Topic -> partition -> end offset, as far as it changed, or stayed and the group is behind.
    """

    ends: dict[str, dict[int, int]]
    since_ms: int = -1
    """Since when the brokers have been asked without a pause; -1: all the time (a capture)."""
    asked_ms: int = -1
    """When they were asked, if that was before: what stands in a capture before a group is met."""
    stable: dict[str, dict[int, int]] = {}
    """Topic -> partition -> last stable offset, where the group seems to wait for it to move,
    or did when it was told last."""
    transaction_ms: int = -1
    """How long brokers let a transaction last (``transaction.max.timeout.ms``); -1: not known."""


class RetentionTold(Observation, tag="retain", frozen=True, kw_only=True):
    """How long brokers keep the offsets of groups that do not use them, as far as changed."""

    retention_ms: dict[int, int]
    """Broker -> ``offsets.retention.minutes``, in milliseconds."""


class GroupUpset(Observation, tag="upset", frozen=True, kw_only=True):
    """A shard saw a group rebalance just after its coordinator had moved; for the whole cluster to count."""

    group: str
    rebalanced_ms: int
    partition: int
    """Of the offsets topic."""
    moved_ms: int
    came_from: int = -1
    """Broker that gave it up; -1 not told."""
    went_to: int = -1
    stood: bool = False
    """The coordinator did not move: its writes stalled."""


class GroupQuarantined(Observation, tag="quar", frozen=True, kw_only=True):
    """A shard's own code failed on a group ("": on the shard itself); for the whole cluster to know."""

    group: str
    partition: int
    """Of the offsets topic."""
    since_ms: int
    last_ms: int = -1
    count: int = 0
    error: str = ""
    lost: bool = False
    """Its saved state could not be read, so that it began anew."""
    over: bool = False
    """Nothing has failed on it for a while."""


class ShardRefilled(Observation, tag="refill", frozen=True, kw_only=True):
    """A shard that began anew knows its groups again, or has waited for them for long enough."""

    complete: bool
    """Every group that the brokers list there was told again."""


class RecordsLost(Observation, tag="lost", frozen=True, kw_only=True):
    """Records of an input were gone before they were read; for the whole cluster."""

    topic: str
    feed: str
    """offsets, events or control."""
    partitions: tuple[int, ...]
    records: int
    """At least so many."""
    is_anew: bool = False
    """The topic was made anew: nobody knows how many the old one held."""


class PartitionAnew(Observation, tag="anew", frozen=True, kw_only=True):
    """The shard's offsets partition was made anew: its offsets begin again."""


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
    | OffsetsClaimed
    | TransactionEnded
    | Clock
    | EventsClock
    | Settings
    | Adopted
    | BrokerHeard
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
    | EndsTold
    | InstanceRefused
    | RetentionTold
    | GroupUpset
    | GroupConverted
    | ShardStalled
    | ReplicaMissed
    | GroupQuarantined
    | ShardRefilled
    | RecordsLost
    | PartitionAnew
)


class Seen(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One observation with its place: when, from whom, and where it stood in its Kafka partition."""

    at_ms: int
    """When it happened, on the broker's clock (a folded run: its last time)."""
    source: Source
    partition: int
    """Partition of the input topic, not of the group."""
    offset: int
    index: int
    """Position within its record."""
    broker: int
    """Who said it; -1 where the source does not tell (offsets topic, control)."""
    recorded_at_ms: int
    """Timestamp of the Kafka record that carried it."""
    backlog: bool
    """It stood before the end offsets captured at the first start: sets states, makes no outputs."""
    what: AnyObservation
    is_whole: bool = False
    """Its line told whole seconds: it may have happened at any time within the second of ``at_ms``."""
    is_ahead: bool = False
    """Its line told a time long after its append, for whatever reason: ``at_ms`` is the append's."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Seen])


def pack(seen: list[Seen]) -> bytes:
    """Return observations of one shard as one cell for Spark."""
    return _ENCODER.encode(seen)


def unpack(cell: bytes) -> list[Seen]:
    """Return what ``pack`` was given.

    Raises:
        msgspec.DecodeError: the cell is not ours; a bug, since only our own stages write them.
    """
    return _DECODER.decode(cell)
