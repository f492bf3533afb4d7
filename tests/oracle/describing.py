"""What admins are told (Kafka: ``describeGroups``, ``listGroups``).

Whether a group exists is read at the last commit; what it is like is read live.
"""

from coordinator_model.kafka.states import GroupState
from tests.oracle.group import Group
from tests.oracle.shard import Shard
from tests.oracle.values.errors import Errors
from tests.oracle.values.requests import DescribeGroups, ListGroups
from tests.oracle.values.responses import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)

_NOT_FOUND_SINCE = 6


def describe(shard: Shard, request: DescribeGroups) -> DescribeGroupsResponse:
    """Describe groups; one that does not exist is Dead."""
    return DescribeGroupsResponse(
        groups=tuple(_described(shard, group_id, request.api_version) for group_id in request.groups)
    )


def _described(shard: Shard, group_id: str, api_version: int) -> DescribedGroup:
    group = shard.groups.committed.get(group_id)
    if group is None:
        error = Errors.GROUP_ID_NOT_FOUND if api_version >= _NOT_FOUND_SINCE else Errors.NONE
        return DescribedGroup(group_id=group_id, error_code=error, group_state=GroupState.DEAD.value)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if group.state is GroupState.STABLE else "",
        members=_members(group),
    )


def _members(group: Group) -> tuple[DescribedMember, ...]:
    is_stable = group.state is GroupState.STABLE
    return tuple(
        DescribedMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    )


def list_groups(shard: Shard, request: ListGroups) -> ListGroupsResponse:
    """List groups by state and type; an unknown state or type matches nothing."""
    states = {name.strip().lower() for name in request.states_filter}
    types = {name.strip().lower() for name in request.types_filter}
    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
            )
            for group in shard.groups.committed.values()
            if (not states or group.state.lower() in states) and (not types or "classic" in types)
        )
    )
