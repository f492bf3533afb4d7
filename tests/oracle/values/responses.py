"""What the coordinator answers, with Kafka's field names in snake_case and its defaults."""

from typing import TypeAlias

import msgspec

from tests.oracle.values.errors import Errors


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of answers and their parts."""


class JoinedMember(_Answer, frozen=True):
    """A member, as the leader is told of it."""

    member_id: str
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(_Answer, frozen=True, tag="JoinGroupResponse"):
    """``members`` is for the leader alone."""

    error_code: Errors = Errors.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()


class SyncGroupResponse(_Answer, frozen=True, tag="SyncGroupResponse"):
    """A member's assignment."""

    error_code: Errors = Errors.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatResponse(_Answer, frozen=True, tag="HeartbeatResponse"):
    """27 asks the member to join again."""

    error_code: Errors = Errors.NONE


class LeftMember(_Answer, frozen=True):
    """What became of one member's leave."""

    member_id: str
    group_instance_id: str | None = None
    error_code: Errors = Errors.NONE


class LeaveGroupResponse(_Answer, frozen=True, tag="LeaveGroupResponse"):
    """Versions 0 to 2 have the member's error on top."""

    error_code: Errors = Errors.NONE
    members: tuple[LeftMember, ...] = ()


class PartitionResult(_Answer, frozen=True):
    """What became of one partition."""

    partition_index: int
    error_code: Errors = Errors.NONE


class TopicResult(_Answer, frozen=True):
    """What became of one topic's partitions."""

    name: str
    partitions: tuple[PartitionResult, ...]


class OffsetCommitResponse(_Answer, frozen=True, tag="OffsetCommitResponse"):
    """An error of the whole request stands at every partition."""

    topics: tuple[TopicResult, ...] = ()


class TxnOffsetCommitResponse(_Answer, frozen=True, tag="TxnOffsetCommitResponse"):
    """As ``OffsetCommitResponse``."""

    topics: tuple[TopicResult, ...] = ()


class OffsetDeleteResponse(_Answer, frozen=True, tag="OffsetDeleteResponse"):
    """An error of the whole request stands on top, without topics."""

    error_code: Errors = Errors.NONE
    topics: tuple[TopicResult, ...] = ()


class FetchedOffset(_Answer, frozen=True):
    """One stored offset; -1 if there is none."""

    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str = ""
    error_code: Errors = Errors.NONE


class FetchedTopic(_Answer, frozen=True):
    """The stored offsets of one topic."""

    name: str
    partitions: tuple[FetchedOffset, ...]


class OffsetFetchResponse(_Answer, frozen=True, tag="OffsetFetchResponse"):
    """Unknown groups have no offsets, which is no error."""

    error_code: Errors = Errors.NONE
    topics: tuple[FetchedTopic, ...] = ()


class DeletedGroup(_Answer, frozen=True):
    """What became of one group."""

    group_id: str
    error_code: Errors = Errors.NONE


class DeleteGroupsResponse(_Answer, frozen=True, tag="DeleteGroupsResponse"):
    """In the order in which the coordinator took them."""

    results: tuple[DeletedGroup, ...] = ()


class DescribedMember(_Answer, frozen=True):
    """A member; ``member_metadata`` is there in Stable only."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(_Answer, frozen=True):
    """A group as admins see it: never its generation, leader or pending members."""

    group_id: str
    error_code: Errors = Errors.NONE
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()


class DescribeGroupsResponse(_Answer, frozen=True, tag="DescribeGroupsResponse"):
    """In the order of the request."""

    groups: tuple[DescribedGroup, ...] = ()


class ListedGroup(_Answer, frozen=True):
    """One line of a listing."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str = "classic"


class ListGroupsResponse(_Answer, frozen=True, tag="ListGroupsResponse"):
    """The groups of this coordinator."""

    error_code: Errors = Errors.NONE
    groups: tuple[ListedGroup, ...] = ()


class EndTransactionResponse(_Answer, frozen=True, tag="EndTransactionResponse"):
    """The answer to the transaction coordinator."""

    error_code: Errors = Errors.NONE


Response: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | TxnOffsetCommitResponse
    | OffsetDeleteResponse
    | OffsetFetchResponse
    | DeleteGroupsResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | EndTransactionResponse
)
