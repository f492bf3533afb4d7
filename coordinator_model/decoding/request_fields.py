"""The fields of request log lines that the model needs, as Kafka's schemas name them.

Fields that some versions lack have defaults; numbers have the ranges of Kafka's types, so that a
broken line is refused here and not when the observation is packed.
"""

from typing import Annotated

import msgspec

from coordinator_model.observations import INT32_MAX, INT64_MAX

Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), lt=2**15)]
Int32 = Annotated[int, msgspec.Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]
Millis = Annotated[float, msgspec.Meta(ge=0, le=INT32_MAX)]
"""A duration: no timeout of Kafka's is longer than an INT32 of milliseconds."""


class Part(msgspec.Struct, rename="camel", frozen=True):
    """Base of the parts of a line: names as Kafka's schemas spell them."""


class Header(Part, frozen=True):
    """The fields of the request header."""

    client_id: str | None = None


class Software(Part, frozen=True):
    """The client's name for its software."""

    software_name: str = ""


class RequestLine(Part, frozen=True):
    """The fields of every line beside request and response."""

    request_header: Header
    connection: str = ""
    total_time_ms: Millis = 0.0
    remote_time_ms: Millis = 0.0
    """The part of it in which the finished answer waited for a replica."""
    principal: str = ""
    client_information: Software = Software()


class Named(Part, frozen=True):
    """The fields with which most group requests begin."""

    group_id: str
    member_id: str = ""
    group_instance_id: str | None = None


class Answer(Part, frozen=True):
    """An answer that is an error code."""

    error_code: Int16 = 0


class MemberName(Part, frozen=True):
    """A member by its id."""

    member_id: str = ""


class Protocol(Part, frozen=True):
    """One assignor that a client offers."""

    name: str = ""


class JoinRequest(Named, frozen=True):
    """JoinGroup 0-9."""

    session_timeout_ms: Int32 = -1
    rebalance_timeout_ms: Int32 = -1
    protocol_type: str = ""
    reason: str | None = None
    protocols: tuple[Protocol, ...] = ()


class JoinAnswer(Answer, frozen=True):
    """Its answer; members in the leader's only."""

    generation_id: Int32 = -1
    protocol_name: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[MemberName, ...] = ()


class JoinLine(RequestLine, frozen=True, kw_only=True):
    """A JoinGroup line."""

    request: JoinRequest
    response: JoinAnswer


class SyncRequest(Named, frozen=True):
    """SyncGroup 0-5; assignments in the leader's only."""

    generation_id: Int32 = -1
    assignments: tuple[MemberName, ...] = ()


class SyncLine(RequestLine, frozen=True, kw_only=True):
    """A SyncGroup line."""

    request: SyncRequest
    response: Answer


class HeartbeatRequest(Named, frozen=True):
    """Heartbeat 0-4."""

    generation_id: Int32 = -1


class HeartbeatLine(RequestLine, frozen=True, kw_only=True):
    """A Heartbeat line."""

    request: HeartbeatRequest
    response: Answer


class Leaving(Part, frozen=True):
    """One member that leaves (versions 3-5), or its answer."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None
    error_code: Int16 = 0


class LeaveRequest(Named, frozen=True):
    """LeaveGroup 0-5."""

    members: tuple[Leaving, ...] | None = None


class LeaveAnswer(Answer, frozen=True):
    """Its answer."""

    members: tuple[Leaving, ...] = ()


class LeaveLine(RequestLine, frozen=True, kw_only=True):
    """A LeaveGroup line."""

    request: LeaveRequest
    response: LeaveAnswer


class CommitRequest(Named, frozen=True):
    """OffsetCommit 2-10, which name the generation differently."""

    generation_id_or_member_epoch: Int32 | None = None
    generation_id: Int32 = -1
    topics: msgspec.Raw = msgspec.Raw(b"[]")
    """Read only where the commit was refused (``AskedTopic``)."""


class CommittedTopic(Part, frozen=True):
    """The answer for one topic."""

    partitions: tuple[Answer, ...] = ()


class CommitAnswer(Part, frozen=True):
    """The answer for all topics."""

    topics: tuple[CommittedTopic, ...] = ()


class CommitLine(RequestLine, frozen=True, kw_only=True):
    """An OffsetCommit line."""

    request: CommitRequest
    response: CommitAnswer


class ClaimedPartition(Part, frozen=True):
    """One partition's offset in a TxnOffsetCommit."""

    partition_index: Int32
    committed_offset: Int64 = -1


class ClaimedTopic(Part, frozen=True):
    """The offsets of one topic in a TxnOffsetCommit."""

    name: str = ""
    partitions: tuple[ClaimedPartition, ...] = ()


class AskedTopic(Part, frozen=True):
    """The offsets of one topic in an OffsetCommit; version 10 names its id."""

    name: str = ""
    topic_id: str = ""
    partitions: tuple[ClaimedPartition, ...] = ()


class ClaimRequest(Named, frozen=True, kw_only=True):
    """TxnOffsetCommit 0-6; no member or generation before version 3."""

    producer_id: Int64
    generation_id: Int32 = -1
    topics: tuple[ClaimedTopic, ...] = ()


class AnsweredPartition(Part, frozen=True):
    """The answer for one partition."""

    partition_index: Int32
    error_code: Int16 = 0


class AnsweredTopic(Part, frozen=True):
    """The answer for one topic."""

    name: str = ""
    partitions: tuple[AnsweredPartition, ...] = ()


class ClaimAnswer(Part, frozen=True):
    """The answer for all topics."""

    topics: tuple[AnsweredTopic, ...] = ()


class ClaimLine(RequestLine, frozen=True, kw_only=True):
    """A TxnOffsetCommit line."""

    request: ClaimRequest
    response: ClaimAnswer


class MarkedTopic(Part, frozen=True):
    """The partitions of one topic that get a marker."""

    name: str = ""
    partition_indexes: tuple[Int32, ...] = ()


class Marker(Part, frozen=True):
    """How one producer's transaction ends, and where."""

    producer_id: Int64
    transaction_result: bool
    topics: tuple[MarkedTopic, ...] = ()


class MarkersRequest(Part, frozen=True):
    """WriteTxnMarkers 1-2, from the transaction's coordinator to the leaders of its partitions."""

    markers: tuple[Marker, ...] = ()


class Marked(Part, frozen=True):
    """The answer for one producer's marker."""

    producer_id: Int64
    topics: tuple[AnsweredTopic, ...] = ()


class MarkersAnswer(Part, frozen=True):
    """The answer for all markers."""

    markers: tuple[Marked, ...] = ()


class MarkersLine(RequestLine, frozen=True, kw_only=True):
    """A WriteTxnMarkers line."""

    request: MarkersRequest
    response: MarkersAnswer


class DeleteRequest(Part, frozen=True):
    """DeleteGroups 0-2."""

    groups_names: tuple[str, ...]


class Deleted(Answer, frozen=True, kw_only=True):
    """The answer for one group."""

    group_id: str


class DeleteAnswer(Part, frozen=True):
    """The answer for all groups."""

    results: tuple[Deleted, ...] = ()


class DeleteLine(RequestLine, frozen=True, kw_only=True):
    """A DeleteGroups line."""

    request: DeleteRequest
    response: DeleteAnswer


class EpochRequest(Part, frozen=True):
    """ConsumerGroupHeartbeat 0-1, ShareGroupHeartbeat 0-1 and StreamsGroupHeartbeat 0."""

    group_id: str
    member_epoch: Int32 | None = None
    member_id: str = ""
    instance_id: str | None = None


class EpochAnswer(Answer, frozen=True):
    """Their answer."""

    member_id: str | None = None
    member_epoch: Int32 = -1
    heartbeat_interval_ms: Int32 = -1


class EpochLine(RequestLine, frozen=True, kw_only=True):
    """A heartbeat line of a consumer, share or streams group."""

    request: EpochRequest
    response: EpochAnswer


class RenderedLine(Part, frozen=True):
    """Distinguishes a line whose request was not rendered from a broken one."""

    request: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
