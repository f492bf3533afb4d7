"""The answer to a request that failed as a whole, in the form of each API.

Kafka: ``GroupCoordinatorService``, and what ``KafkaApis`` checks before it.
"""

from collections.abc import Callable

from tests.oracle import commits, leaves
from tests.oracle.values.errors import Errors, operation_error
from tests.oracle.values.requests import (
    DeleteGroups,
    DescribeGroups,
    EndTransaction,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)
from tests.oracle.values.responses import (
    DeletedGroup,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsResponse,
    EndTransactionResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    Response,
    SyncGroupResponse,
    TxnOffsetCommitResponse,
)

_NAMED = (JoinGroup, SyncGroup, Heartbeat, LeaveGroup, TxnOffsetCommit, OffsetDelete)
"""Requests whose group must have a name; commits and reads of the group "" are as old as Kafka."""


def invalid(request: Request, *, session_min_ms: int, session_max_ms: int) -> Errors:
    """Return what is wrong with a request before any group is looked at, or NONE."""
    if isinstance(request, _NAMED) and not request.group_id:
        return Errors.INVALID_GROUP_ID
    if isinstance(request, JoinGroup) and not session_min_ms <= request.session_timeout_ms <= session_max_ms:
        return Errors.INVALID_SESSION_TIMEOUT
    if isinstance(request, SyncGroup) and _lacks_protocol(request):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    return Errors.NONE


def _lacks_protocol(request: SyncGroup) -> bool:
    return request.api_version >= 5 and None in (request.protocol_type, request.protocol_name)


def early(request: Request, error: Errors) -> Response:
    """Return the answer of what ``invalid`` refused, or of a coordinator that is not running."""
    if isinstance(request, JoinGroup):
        return JoinGroupResponse(error_code=error, member_id=request.member_id)
    return _shaped(request, error)


def failed(request: Request, error: Errors) -> Response:
    """Return the answer of an operation that failed."""
    if isinstance(request, Heartbeat) and error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
        # A member should not give up because its coordinator is still reading.
        return HeartbeatResponse()
    if isinstance(request, ListGroups) and error is Errors.NOT_COORDINATOR:
        return ListGroupsResponse()
    told = operation_error(error)
    if isinstance(request, OffsetFetch) and told is Errors.COORDINATOR_NOT_AVAILABLE:
        # Consumers before 3.9 retry after this one.
        told = Errors.NOT_COORDINATOR
    return _shaped(request, told)


def _shaped(request: Request, error: Errors) -> Response:
    match request:
        case LeaveGroup():
            return leaves.refused(request, error)
        case OffsetCommit():
            return OffsetCommitResponse(topics=commits.every_partition(request.topics, error))
        case TxnOffsetCommit():
            return TxnOffsetCommitResponse(topics=commits.every_partition(request.topics, error))
        case DeleteGroups():
            names = dict.fromkeys(request.groups_names)
            return DeleteGroupsResponse(
                results=tuple(DeletedGroup(group_id=name, error_code=error) for name in names)
            )
        case DescribeGroups():
            return DescribeGroupsResponse(
                groups=tuple(DescribedGroup(group_id=name, error_code=error) for name in request.groups)
            )
        case _:
            return _ON_TOP[type(request)](error_code=error)


_ON_TOP: dict[type, Callable[..., Response]] = {
    JoinGroup: JoinGroupResponse,
    SyncGroup: SyncGroupResponse,
    Heartbeat: HeartbeatResponse,
    OffsetDelete: OffsetDeleteResponse,
    OffsetFetch: OffsetFetchResponse,
    ListGroups: ListGroupsResponse,
    EndTransaction: EndTransactionResponse,
}
