"""What waits for replication, what fails with it, and what admins see meanwhile."""

from typing import Any

import pytest

from tests.oracle import (
    Commit,
    DescribeGroups,
    Errors,
    FailAppends,
    Failover,
    FailPending,
    Heartbeat,
    ListGroups,
    OffsetCommit,
    OffsetFetch,
)
from tests.oracle.values.responses import (
    DescribedGroup,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
    OffsetFetchResponse,
)
from tests.unit.oracle.stage import (
    DELAY_MS,
    SESSION_MS,
    STATES,
    G,
    Stage,
    error_of,
    member_of,
    offsets,
)

# --- replication --------------------------------------------------------------------------------------


def test_a_group_is_invisible_until_its_record_is_replicated() -> None:
    """DescribeGroups calls it Dead; what it is like is read live afterwards."""
    stage = Stage(commit_delay_ms=None)
    stage.add()
    before = stage.send(DescribeGroups(groups=(G,))).response

    stage.replicate()
    after = stage.send(DescribeGroups(groups=(G,))).response

    assert before == DescribeGroupsResponse(
        groups=(DescribedGroup(group_id=G, error_code=Errors.GROUP_ID_NOT_FOUND, group_state="Dead"),)
    )
    assert isinstance(after, DescribeGroupsResponse)
    assert after.groups[0].group_state == "PreparingRebalance"


def test_requests_wait_for_the_writes_before_them() -> None:
    """Even a heartbeat that writes nothing; one that is refused does not wait."""
    stage = Stage(commit_delay_ms=None)
    (member,) = _committed_group(stage)
    stage.send(OffsetCommit(group_id="h", topics=offsets()))

    good = stage.send(Heartbeat(group_id=G, generation_id=1, member_id=member))
    bad = stage.send(Heartbeat(group_id=G, generation_id=9, member_id=member))
    assert (good.is_answered, bad.is_answered) == (False, True)
    stage.replicate()

    assert error_of(good) is Errors.NONE


def _committed_group(stage: Stage) -> list[str]:
    ticket = stage.add()
    stage.replicate()
    stage.wait(DELAY_MS)
    stage.sync(member_of(ticket), 1, member_of(ticket))
    stage.replicate()
    return [member_of(ticket)]


def test_records_are_replicated_in_order() -> None:
    """Up to an offset."""
    stage = Stage(commit_delay_ms=None)
    first = stage.send(OffsetCommit(group_id=G, topics=offsets()))
    second = stage.send(OffsetCommit(group_id=G, topics=offsets()))

    stage.happen(Commit(offset=1))

    assert (first.is_answered, second.is_answered) == (True, False)
    assert (stage.coordinator.committed, len(stage.coordinator.records)) == (1, 2)


def test_writes_under_way_can_fail() -> None:
    """Their records stay in the log."""
    stage = Stage(commit_delay_ms=None)
    ticket = stage.send(OffsetCommit(group_id=G, topics=offsets()))

    stage.happen(FailPending(error=Errors.REQUEST_TIMED_OUT))

    response: Any = ticket.response
    assert response.topics[0].partitions[0].error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert len(stage.coordinator.records) == 1


def test_a_timer_whose_write_fails_is_lost() -> None:
    """The group is Empty in memory; the log still has its members."""
    stage = Stage()
    stage.stable()
    stage.happen(FailAppends(error=Errors.NOT_ENOUGH_REPLICAS))

    stage.wait(SESSION_MS)

    assert stage.kinds()[-2:] == ["write_failed", "timer_failed"]
    assert stage.state() is STATES.EMPTY
    stage.happen(Failover())
    assert (stage.state(), stage.generation()) == (STATES.STABLE, 1)


# --- what admins see ----------------------------------------------------------------------------------


def test_a_stable_group_is_described_with_everything() -> None:
    """Protocol, subscriptions and assignments; in other states less."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stable: Any = stage.send(DescribeGroups(groups=(G,))).response
    stage.join(leader)
    rebalancing: Any = stage.send(DescribeGroups(groups=(G,))).response

    group = stable.groups[0]
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    assert {one.member_id: one.member_assignment for one in group.members} == {
        leader: leader.encode(),
        follower: follower.encode(),
    }
    assert all(one.member_metadata for one in group.members)
    group = rebalancing.groups[0]
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert not any(one.member_metadata for one in group.members)


@pytest.mark.parametrize(("version", "error"), [(5, Errors.NONE), (6, Errors.GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_is_dead(version: int, error: Errors) -> None:
    """69 since version 6."""
    response = Stage().send(DescribeGroups(groups=("x",), api_version=version)).response

    assert response == DescribeGroupsResponse(
        groups=(DescribedGroup(group_id="x", error_code=error, group_state="Dead"),)
    )


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        pytest.param({}, {"g", "h"}, id="all"),
        pytest.param({"states_filter": ("Stable",)}, {"g"}, id="a-state"),
        pytest.param({"states_filter": (" sTABLE ", "empty")}, {"g", "h"}, id="states-of-any-case"),
        pytest.param({"states_filter": ("Sleeping",)}, set(), id="an-unknown-state"),
        pytest.param({"types_filter": ("Classic",)}, {"g", "h"}, id="a-type"),
        pytest.param({"types_filter": ("consumer",)}, set(), id="another-type"),
    ],
)
def test_groups_are_listed_by_state_and_type(fields: dict[str, Any], listed: set[str]) -> None:
    """Without regard to case."""
    stage = Stage()
    stage.stable()
    stage.commit(group_id="h")

    response = stage.send(ListGroups(**fields)).response

    assert isinstance(response, ListGroupsResponse)
    assert {one.group_id for one in response.groups} == listed


def test_a_listing_names_protocol_and_state() -> None:
    """A simple group has no protocol type."""
    stage = Stage()
    stage.commit()

    response = stage.send(ListGroups()).response

    assert response == ListGroupsResponse(
        groups=(ListedGroup(group_id=G, protocol_type="", group_state="Empty"),)
    )
    assert isinstance(stage.send(OffsetFetch(group_id=G)).response, OffsetFetchResponse)
