"""The coordinator comes, goes, loads and fails."""

from typing import Any

import pytest

from tests.oracle import (
    Config,
    Configure,
    DeleteGroups,
    DescribeGroups,
    Errors,
    Failover,
    GroupMember,
    GroupMetadata,
    GroupTombstone,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Load,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitted,
    OffsetDelete,
    OffsetFetch,
    Request,
    Start,
    Stop,
    SyncGroup,
    TopicPartitions,
    TransactionMarker,
    Truncated,
    TxnOffsetCommit,
    Unload,
)
from tests.unit.oracle.stage import (
    DELAY_MS,
    SESSION_MS,
    STATES,
    G,
    Stage,
    error_of,
    joined,
    member_of,
    offers,
    offsets,
)

EVERY_REQUEST: dict[str, Request] = {
    "join": JoinGroup(group_id=G, member_id="m"),
    "sync": SyncGroup(group_id=G, generation_id=1, member_id="m"),
    "heartbeat": Heartbeat(group_id=G, generation_id=1, member_id="m"),
    "leave": LeaveGroup(group_id=G, members=(MemberIdentity(member_id="m"),)),
    "commit": OffsetCommit(group_id=G, topics=offsets()),
    "transaction": TxnOffsetCommit(group_id=G, producer_id=1, topics=offsets()),
    "offset-delete": OffsetDelete(
        group_id=G, topics=(TopicPartitions(name="orders", partition_indexes=(0,)),)
    ),
    "fetch": OffsetFetch(group_id=G),
    "stable-fetch": OffsetFetch(group_id=G, require_stable=True),
    "delete": DeleteGroups(groups_names=(G,)),
    "describe": DescribeGroups(groups=(G,)),
    "list": ListGroups(),
}


def _error(stage: Stage, name: str) -> Errors:
    response: Any = stage.send(EVERY_REQUEST[name]).response
    if name in ("commit", "transaction"):
        response = response.topics[0].partitions[0]
    elif name in ("delete", "describe"):
        response = (response.results if name == "delete" else response.groups)[0]
    error = response.error_code
    assert isinstance(error, Errors)
    return error


# --- not the coordinator ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_a_broker_that_is_not_the_coordinator_says_so(name: str) -> None:
    """16; only a listing is simply empty."""
    stage = Stage(loaded=False)

    assert _error(stage, name) is (Errors.NONE if name == "list" else Errors.NOT_COORDINATOR)


@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_while_it_loads_it_asks_for_patience(name: str) -> None:
    """14; only heartbeats are answered as if all were well."""
    stage = Stage(loaded=False)
    stage.happen(Load(load_ms=500))

    expected = Errors.NONE if name == "heartbeat" else Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert _error(stage, name) is expected


@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_a_service_that_does_not_run_is_not_available(name: str) -> None:
    """15."""
    stage = Stage()
    stage.happen(Stop())

    assert _error(stage, name) is Errors.COORDINATOR_NOT_AVAILABLE


def test_a_stopped_service_comes_back_with_everything_it_wrote() -> None:
    """After a load."""
    stage = Stage()
    stage.stable()
    stage.happen(Stop())
    stage.happen(Start())
    stage.happen(Load())

    assert (stage.state(), stage.generation()) == (STATES.STABLE, 1)


# --- loading ------------------------------------------------------------------------------------------


def _record(*members: str, **fields: Any) -> GroupMetadata:
    listed = tuple(GroupMember(member_id=one, rebalance_timeout=60_000) for one in members)
    leader, protocol = (members[0], "range") if members else (None, None)
    return GroupMetadata(
        **{"group": G, "generation": 7, "protocol": protocol, "leader": leader, "members": listed, **fields}
    )


def _loaded(*records: Any, **options: Any) -> Stage:
    stage = Stage(loaded=False, **options)
    stage.happen(Load(records=records))
    return stage


def test_a_group_with_members_is_loaded_stable() -> None:
    """With its generation, leader and members; every session begins anew."""
    stage = _loaded(_record("m", "n"))
    assert (stage.state(), stage.generation(), stage.leader()) == (STATES.STABLE, 7, "m")

    stage.wait(SESSION_MS - 1)
    assert stage.members() == {"m", "n"}
    stage.wait(1)

    assert stage.state() is STATES.EMPTY


def test_a_group_without_members_is_loaded_empty() -> None:
    """Its protocol type is known all the same."""
    stage = _loaded(_record())

    assert stage.moves() == [(0, STATES.EMPTY, 7, "coordinator_moved")]
    assert stage.line("group_loaded") == "Loaded classic group g with 0 members."


def test_the_last_record_counts() -> None:
    """Tombstones included."""
    stage = _loaded(_record("m"), _record("n", generation=8), _record(group="h"), GroupTombstone(group="h"))

    assert (stage.generation(), stage.members(), stage.state("h")) == (8, {"n"}, STATES.DEAD)


def test_without_a_rebalance_timeout_the_session_timeout_counts() -> None:
    """Records of version 0 have none."""
    member = GroupMember(member_id="m", session_timeout=9_000)
    stage = _loaded(GroupMetadata(group=G, generation=1, protocol="range", leader="m", members=(member,)))

    group = stage.coordinator.group(G)

    assert group is not None
    assert group.rebalance_timeout_ms == 9_000


def test_offsets_without_a_group_make_a_simple_one() -> None:
    """And a record of the group that comes later replaces it."""
    offset = OffsetCommitted(group=G, topic="orders", partition=0, offset=5)

    assert _loaded(offset).state() is STATES.EMPTY
    assert _loaded(offset, _record("m")).state() is STATES.STABLE


@pytest.mark.parametrize(("committed", "found"), [(True, 5), (False, -1)])
def test_transactions_are_loaded_with_their_markers(*, committed: bool, found: int) -> None:
    """As if they had happened now."""
    stage = _loaded(
        OffsetCommitted(group=G, topic="orders", partition=0, offset=5, producer_id=3),
        TransactionMarker(producer_id=3, committed=committed),
    )

    places = (TopicPartitions(name="orders", partition_indexes=(0,)),)
    response: Any = stage.send(OffsetFetch(group_id=G, topics=places)).response

    assert response.topics[0].partitions[0].committed_offset == found


def test_a_group_that_is_too_large_rebalances_at_once() -> None:
    """The limit came down before the load."""
    stage = _loaded(_record("m", "n"), group_max_size=1)

    assert stage.last_move().reason == (
        "Freshly-loaded group g (size 2) is over capacity 1. "
        "Rebalancing in order to give a chance for consumers to commit offsets"
    )
    first = stage.join("m", protocols=offers("range"))
    second = stage.join("n", protocols=offers("range"))
    assert error_of(second) is Errors.GROUP_MAX_SIZE_REACHED
    stage.wait(SESSION_MS)
    stage.wait(60_000)
    assert joined(first).generation_id == 8


def test_a_group_that_is_just_large_enough_stays_stable() -> None:
    """The limit itself is allowed."""
    assert _loaded(_record("m", "n"), group_max_size=2).state() is STATES.STABLE


def test_a_load_without_end_never_answers_better() -> None:
    """Until it has ended."""
    stage = Stage(loaded=False)
    stage.happen(Load(load_ms=500))
    stage.wait(499)
    assert error_of(stage.join()) is Errors.COORDINATOR_LOAD_IN_PROGRESS

    stage.wait(1)

    assert error_of(stage.join()) is Errors.MEMBER_ID_REQUIRED


# --- unloading and failover ---------------------------------------------------------------------------


def test_parked_requests_are_sent_to_the_new_coordinator() -> None:
    """16 to joins and to syncs; the groups are Dead."""
    stage = Stage()
    joining = stage.add()
    other = stage.add(group_id="h")
    stage.coordinator.advance(DELAY_MS)
    stage.now_ms = DELAY_MS
    follower = stage.add(group_id="h")
    syncing = stage.sync(member_of(joining), 1)
    late = stage.add(group_id="k")

    stage.happen(Unload())

    assert [error_of(one) for one in (follower, late)] == [Errors.NOT_COORDINATOR] * 2
    assert error_of(syncing) is Errors.NONE
    assert other.is_answered
    assert {stage.state(one) for one in (G, "h", "k")} == {STATES.DEAD}
    assert stage.kinds()[-1] == "shard_unloaded"


def test_a_follower_that_waits_for_its_assignment_is_sent_away_too() -> None:
    """16."""
    stage = Stage()
    tickets = [stage.add(), stage.add()]
    stage.wait(2 * DELAY_MS)
    follower = next(one.member_id for one in map(joined, tickets) if one.leader != one.member_id)
    waiting = stage.sync(follower)

    stage.happen(Unload())

    assert error_of(waiting) is Errors.NOT_COORDINATOR
    assert stage.moves()[-1] == (stage.now_ms, STATES.DEAD, 1, "coordinator_moved")


def test_a_rebalance_on_its_way_is_lost_with_the_coordinator() -> None:
    """The last record is what counts: the group is Stable at the old generation."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.join(leader)
    stage.join(follower)
    assert (stage.state(), stage.generation()) == (STATES.COMPLETING_REBALANCE, 2)

    stage.happen(Failover())

    assert (stage.state(), stage.generation()) == (STATES.STABLE, 1)
    assert stage.beat(leader, 2) is Errors.ILLEGAL_GENERATION
    assert stage.beat(leader, 1) is Errors.NONE


def test_a_first_rebalance_on_its_way_leaves_an_empty_group() -> None:
    """Which the next cleanup removes; its members are unknown."""
    stage = Stage()
    member = member_of(stage.join())
    stage.join(member)
    stage.wait(DELAY_MS)

    stage.happen(Failover())

    assert (stage.state(), stage.generation()) == (STATES.EMPTY, 0)
    assert error_of(stage.join(member)) is Errors.UNKNOWN_MEMBER_ID
    stage.wait(600_000)
    assert stage.state() is STATES.DEAD


def test_handed_out_ids_are_lost_with_the_coordinator() -> None:
    """They stand in no record."""
    stage = Stage()
    stage.stable()
    pending = member_of(stage.join())

    stage.happen(Failover())

    assert error_of(stage.join(pending)) is Errors.UNKNOWN_MEMBER_ID


def test_old_timers_do_not_outlive_the_coordinator() -> None:
    """Sessions begin anew when the next one has loaded."""
    stage = Stage()
    (member,) = stage.stable()
    stage.wait(SESSION_MS - 1)

    stage.happen(Failover(load_ms=5_000))
    stage.wait(5_000 + SESSION_MS - 1)

    assert stage.members() == {member}


@pytest.mark.parametrize("keep", [False, True])
def test_what_was_not_replicated_can_be_lost(*, keep: bool) -> None:
    """The assignment that nobody has seen committed; its sync is answered 16 in any case."""
    stage = Stage(commit_delay_ms=None)
    joining = stage.add()
    stage.replicate()
    stage.wait(DELAY_MS)
    syncing = stage.sync(member_of(joining), 1, member_of(joining))

    stage.happen(Failover(keep_uncommitted=keep))

    assert error_of(syncing) is Errors.NOT_COORDINATOR
    assert stage.generation() == (1 if keep else 0)
    assert any(isinstance(one, Truncated) for one in stage.coordinator.outcomes) is not keep


def test_a_configuration_that_changes_counts_from_then_on() -> None:
    """Running timers keep their old value."""
    stage = Stage()
    ticket = stage.add()
    stage.happen(Configure(config=Config(group_initial_rebalance_delay_ms=50)))

    stage.wait(DELAY_MS - 1)
    assert not ticket.is_answered
    stage.wait(1)

    assert ticket.is_answered
