"""Between the model's requests and answers and those that travel to a broker."""

from typing import Any

from kafka.protocol.admin.groups import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer import group as wire

from tests import oracle as ora
from tests.oracle.values import responses as res


def asked(request: ora.Request) -> Any:
    """Return the request for the wire, in the version that the model's has."""
    match request:
        case ora.JoinGroup():
            return _join(request)
        case ora.SyncGroup():
            return _sync(request)
        case ora.Heartbeat():
            return wire.HeartbeatRequest(
                version=4,
                group_id=request.group_id,
                generation_id=request.generation_id,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
            )
        case ora.LeaveGroup():
            return _leave(request)
        case _:
            return _asked_of_offsets(request)


def _join(request: ora.JoinGroup) -> Any:
    return wire.JoinGroupRequest(
        version=request.api_version,
        group_id=request.group_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=[(one.name, one.metadata) for one in request.protocols],
        reason=request.reason,
    )


def _sync(request: ora.SyncGroup) -> Any:
    return wire.SyncGroupRequest(
        version=request.api_version,
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[(one.member_id, one.assignment) for one in request.assignments],
    )


def _leave(request: ora.LeaveGroup) -> Any:
    if request.api_version < 3:
        return wire.LeaveGroupRequest(
            version=request.api_version, group_id=request.group_id, member_id=request.member_id
        )
    members = [(one.member_id, one.group_instance_id, one.reason) for one in request.members]
    return wire.LeaveGroupRequest(version=request.api_version, group_id=request.group_id, members=members)


def _asked_of_offsets(request: ora.Request) -> Any:
    match request:
        case ora.OffsetCommit():
            topics = [
                (topic.name, [(p.partition_index, p.committed_offset, -1, "") for p in topic.partitions])
                for topic in request.topics
            ]
            return wire.OffsetCommitRequest(
                version=request.api_version,
                group_id=request.group_id,
                generation_id_or_member_epoch=request.generation_id_or_member_epoch,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                topics=topics,
            )
        case ora.OffsetDelete():
            places = [
                (topic.name, [(index,) for index in topic.partition_indexes]) for topic in request.topics
            ]
            return wire.OffsetDeleteRequest(version=0, group_id=request.group_id, topics=places)
        case ora.DeleteGroups():
            return DeleteGroupsRequest(version=2, groups_names=list(request.groups_names))
        case ora.DescribeGroups():
            return DescribeGroupsRequest(
                version=5, groups=list(request.groups), include_authorized_operations=False
            )
        case _:
            raise TypeError(type(request))


def told(request: ora.Request, answer: Any) -> Any:
    """Return the broker's answer in the model's form."""
    match request:
        case ora.JoinGroup():
            return _joined(answer, request.api_version)
        case ora.SyncGroup():
            return res.SyncGroupResponse(
                error_code=ora.Errors(answer.error_code), assignment=bytes(answer.assignment or b"")
            )
        case ora.Heartbeat():
            return res.HeartbeatResponse(error_code=ora.Errors(answer.error_code))
        case ora.LeaveGroup():
            left = [] if request.api_version < 3 else answer.members
            return res.LeaveGroupResponse(
                error_code=ora.Errors(answer.error_code),
                members=tuple(
                    res.LeftMember(member_id=one.member_id, error_code=ora.Errors(one.error_code))
                    for one in left
                ),
            )
        case _:
            return _told_of_offsets(request, answer)


def _joined(answer: Any, version: int) -> res.JoinGroupResponse:
    return res.JoinGroupResponse(
        error_code=ora.Errors(answer.error_code),
        generation_id=answer.generation_id,
        protocol_name=answer.protocol_name or None,
        leader=answer.leader,
        skip_assignment=bool(answer.skip_assignment) if version >= 9 else False,
        member_id=answer.member_id,
        members=tuple(
            res.JoinedMember(member_id=one.member_id, metadata=bytes(one.metadata)) for one in answer.members
        ),
    )


def _results(answer: Any) -> tuple[res.TopicResult, ...]:
    return tuple(
        res.TopicResult(
            name=topic.name,
            partitions=tuple(
                res.PartitionResult(partition_index=p.partition_index, error_code=ora.Errors(p.error_code))
                for p in topic.partitions
            ),
        )
        for topic in answer.topics
    )


def _told_of_offsets(request: ora.Request, answer: Any) -> Any:
    match request:
        case ora.OffsetCommit():
            return res.OffsetCommitResponse(topics=_results(answer))
        case ora.OffsetDelete():
            error = ora.Errors(answer.error_code)
            return res.OffsetDeleteResponse(error_code=error, topics=_results(answer))
        case ora.DeleteGroups():
            return res.DeleteGroupsResponse(
                results=tuple(
                    res.DeletedGroup(group_id=one.group_id, error_code=ora.Errors(one.error_code))
                    for one in answer.results
                )
            )
        case _:
            return res.DescribeGroupsResponse(groups=tuple(_described(one) for one in answer.groups))


def _described(one: Any) -> res.DescribedGroup:
    return res.DescribedGroup(
        group_id=one.group_id,
        error_code=ora.Errors(one.error_code),
        group_state=one.group_state,
        protocol_type=one.protocol_type,
        protocol_data=one.protocol_data,
        members=tuple(
            res.DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                member_assignment=bytes(member.member_assignment),
            )
            for member in one.members
        ),
    )


def essence(answer: Any) -> object:
    """Return what both sides must agree on; what only some versions carry is left out."""
    match answer:
        case res.JoinGroupResponse():
            told_of = tuple((one.member_id, one.metadata) for one in answer.members)
            head = answer.error_code, answer.generation_id, answer.protocol_name, answer.leader
            return (*head, answer.skip_assignment, answer.member_id, told_of)
        case res.SyncGroupResponse():
            return answer.error_code, answer.assignment
        case res.LeaveGroupResponse():
            return answer.error_code, tuple((one.member_id, one.error_code) for one in answer.members)
        case res.DescribeGroupsResponse():
            return tuple(
                (
                    one.group_state,
                    one.protocol_type,
                    one.protocol_data,
                    tuple((m.member_id, m.group_instance_id, m.member_assignment) for m in one.members),
                )
                for one in answer.groups
            )
        case _:
            return answer
