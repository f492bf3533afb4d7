"""How offsets and groups end: DeleteGroups, OffsetDelete, expiry, deleted topics."""

from typing import Any

import pytest

from tests.oracle import (
    DeletedTopic,
    DeleteGroups,
    EndTransaction,
    Errors,
    GroupMember,
    GroupMetadata,
    GroupTombstone,
    Load,
    MarkDead,
    OffsetDelete,
    OffsetTombstone,
    Protocol,
    TopicPartitions,
    TopicsDeleted,
)
from tests.oracle.values.responses import DeleteGroupsResponse, OffsetDeleteResponse
from tests.unit.oracle.stage import (
    STATES,
    G,
    Stage,
    error_of,
    first_error,
    member_of,
    offsets,
    subscription,
)

MINUTE_MS = 60_000
CHECK_MS = 600_000
UNREADABLE = (Protocol(name="range", metadata=b""),)
TOMBSTONE = OffsetTombstone(group=G, topic="orders", partition=0)


def _delete(stage: Stage, *groups: str) -> dict[str, Errors]:
    ticket = stage.send(DeleteGroups(groups_names=groups))
    assert isinstance(ticket.response, DeleteGroupsResponse)
    return {one.group_id: one.error_code for one in ticket.response.results}


def _forget(stage: Stage, topic: str = "orders", *partitions: int, **fields: Any) -> OffsetDeleteResponse:
    places = (TopicPartitions(name=topic, partition_indexes=partitions or (0,)),)
    ticket = stage.send(OffsetDelete(**{"group_id": G, "topics": places, **fields}))
    assert isinstance(ticket.response, OffsetDeleteResponse)
    return ticket.response


def _emptied(**options: Any) -> Stage:
    """An empty group that had a member and has an offset."""
    stage = Stage(**options)
    (member,) = stage.stable()
    stage.commit(member, 1)
    stage.leave(member)
    return stage


# --- DeleteGroups -------------------------------------------------------------------------------------


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    """Tombstones of the offsets, then of the group, in one write."""
    stage = _emptied()

    assert _delete(stage, G) == {G: Errors.NONE}

    assert stage.written()[-2:] == [TOMBSTONE, GroupTombstone(group=G)]
    assert stage.moves()[-1] == (stage.now_ms, STATES.DEAD, 2, "group_deleted")
    assert stage.line("groups_deleted") == (
        "The following groups were deleted: g. A total of 1 offsets were removed."
    )


def test_a_simple_group_leaves_a_tombstone_although_it_had_no_record() -> None:
    """Readers have to expect that."""
    stage = Stage()
    stage.commit()

    _delete(stage, G)

    assert stage.written()[-1] == GroupTombstone(group=G)


@pytest.mark.parametrize("state", ["preparing", "completing", "stable"])
def test_a_group_with_members_cannot_be_deleted(state: str) -> None:
    """68."""
    stage = Stage()
    ticket = stage.add()
    if state != "preparing":
        stage.wait(3_000)
    if state == "stable":
        stage.sync(member_of(ticket), None, member_of(ticket))

    assert _delete(stage, G) == {G: Errors.NON_EMPTY_GROUP}
    assert stage.kinds()[-1] == "groups_deleted"


def test_a_group_that_is_not_there_cannot_be_deleted() -> None:
    """69, dead or unknown; the log tells of an empty deletion."""
    stage = _emptied()
    stage.happen(MarkDead(group_id=G))

    assert _delete(stage, G, "other") == {G: Errors.GROUP_ID_NOT_FOUND, "other": Errors.GROUP_ID_NOT_FOUND}
    assert stage.line("groups_deleted").startswith("The following groups were deleted: . A total of 0")


def test_each_group_has_its_own_result() -> None:
    """One that cannot go does not hold the others back."""
    stage = _emptied()
    stage.commit(group_id="simple")
    stage.add(group_id="busy")

    found = _delete(stage, "busy", G, "simple")

    assert found == {"busy": Errors.NON_EMPTY_GROUP, G: Errors.NONE, "simple": Errors.NONE}


def test_a_handed_out_id_goes_with_its_empty_group() -> None:
    """A pending member is no member."""
    stage = Stage()
    pending = member_of(stage.join())

    assert _delete(stage, G) == {G: Errors.NONE}
    assert error_of(stage.join(pending)) is Errors.UNKNOWN_MEMBER_ID


def test_offsets_of_open_transactions_are_deleted_too() -> None:
    """The marker that comes later finds nothing."""
    stage = Stage()
    stage.commit_in_transaction()

    _delete(stage, G)
    stage.send(EndTransaction(producer_id=1, committed=True))

    assert stage.written()[1:3] == [TOMBSTONE, GroupTombstone(group=G)]
    assert stage.state() is STATES.DEAD


def test_an_offset_that_is_both_committed_and_pending_has_one_tombstone() -> None:
    """Two would say no more."""
    stage = Stage()
    stage.commit()
    stage.commit_in_transaction()

    _delete(stage, G)

    assert stage.written()[2:] == [TOMBSTONE, GroupTombstone(group=G)]


def test_a_deleted_group_can_be_made_again() -> None:
    """From generation 0."""
    stage = _emptied()
    _delete(stage, G)

    stage.join()

    assert (stage.state(), stage.generation()) == (STATES.EMPTY, 0)


# --- OffsetDelete -------------------------------------------------------------------------------------


def test_offsets_of_an_empty_group_can_be_deleted() -> None:
    """What is not stored is no error and writes nothing."""
    stage = _emptied()

    response = _forget(stage, "orders", 0, 5)

    assert [one.error_code for one in response.topics[0].partitions] == [Errors.NONE, Errors.NONE]
    assert stage.written()[-1] == TOMBSTONE
    assert stage.state() is STATES.EMPTY


def test_topics_in_use_are_protected() -> None:
    """86 for what a member subscribes to; others can go."""
    stage = Stage()
    (member,) = stage.stable()
    stage.commit(member, 1, topics=offsets() + offsets(topic="old"))

    assert first_error(stage.send(_of("orders"))) is Errors.GROUP_SUBSCRIBED_TO_TOPIC
    assert first_error(stage.send(_of("old"))) is Errors.NONE
    assert stage.written()[-1] == OffsetTombstone(group=G, topic="old", partition=0)


def _of(topic: str) -> OffsetDelete:
    return OffsetDelete(group_id=G, topics=(TopicPartitions(name=topic, partition_indexes=(0,)),))


def test_of_consumers_that_cannot_be_read_every_topic_is_in_use() -> None:
    """Better too careful."""
    stage = Stage()
    stage.stable(protocols=UNREADABLE)

    assert first_error(stage.send(_of("anything"))) is Errors.GROUP_SUBSCRIBED_TO_TOPIC


@pytest.mark.parametrize("is_stable", [False, True], ids=["preparing", "stable"])
def test_of_other_protocols_nothing_can_be_deleted_while_there_are_members(*, is_stable: bool) -> None:
    """68: their subscriptions are not known."""
    stage = Stage()
    ticket = stage.add(protocol_type="connect")
    if is_stable:
        stage.settle([ticket])

    assert _forget(stage) == OffsetDeleteResponse(error_code=Errors.NON_EMPTY_GROUP)


def test_of_other_protocols_everything_can_be_deleted_when_nobody_is_left() -> None:
    """Nobody can be in the way."""
    stage = Stage()
    (member,) = stage.stable(protocol_type="connect")
    stage.commit(member, 1)
    stage.leave(member)

    assert first_error(stage.send(_of("orders"))) is Errors.NONE


@pytest.mark.parametrize("is_dead", [False, True], ids=["unknown", "dead"])
def test_a_group_that_is_not_there_has_nothing_to_delete(*, is_dead: bool) -> None:
    """69."""
    stage = Stage()
    if is_dead:
        stage.commit()
        stage.happen(MarkDead(group_id=G))

    assert _forget(stage) == OffsetDeleteResponse(error_code=Errors.GROUP_ID_NOT_FOUND)
    assert _forget(stage, group_id="").error_code is Errors.INVALID_GROUP_ID


def test_deleting_an_offset_forgets_what_transactions_hold_of_it() -> None:
    """Its marker commits nothing."""
    stage = Stage()
    stage.commit_in_transaction()

    _forget(stage)
    stage.send(EndTransaction(producer_id=1, committed=True))
    stage.wait(CHECK_MS)

    assert stage.written()[-1] == GroupTombstone(group=G)


# --- deleted topics -----------------------------------------------------------------------------------


def test_offsets_go_with_their_topic() -> None:
    """Of all groups, even of those that read it; the groups stay."""
    stage = Stage()
    (member,) = stage.stable()
    stage.commit(member, 1)
    stage.commit(group_id="simple", topics=offsets(topic="orders") + offsets(topic="other"))

    stage.happen(TopicsDeleted(topics=(DeletedTopic(name="orders", topic_id="T"),)))

    assert stage.written()[-2:] == [TOMBSTONE, OffsetTombstone(group="simple", topic="orders", partition=0)]
    assert stage.state() is STATES.STABLE
    assert stage.line("topics_deleted") == (
        "Generated 2 tombstone records in 0 milliseconds while deleting offsets for topics "
        "[DeletedTopic[id=T, name=orders]]."
    )


@pytest.mark.parametrize(("stored", "goes"), [("T", True), ("", True), ("new", False)])
def test_a_topic_made_again_keeps_its_offsets(stored: str, *, goes: bool) -> None:
    """The id decides; offsets without one are taken for the old topic's."""
    stage = Stage()
    stage.commit(topics=offsets(topic_id=stored))

    stage.happen(TopicsDeleted(topics=(DeletedTopic(name="orders", topic_id="T"),)))

    assert (stage.written()[-1] == TOMBSTONE) is goes


def test_offsets_of_open_transactions_go_with_their_topic() -> None:
    """The marker commits nothing."""
    stage = Stage()
    stage.commit_in_transaction()

    stage.happen(TopicsDeleted(topics=(DeletedTopic(name="orders"),)))

    assert stage.written()[-1] == TOMBSTONE


def test_what_is_subscribed_is_known_after_a_load() -> None:
    """From the records' own bytes."""
    stage = Stage(loaded=False)
    member = GroupMember(member_id="m", subscription=subscription("orders"))
    record = GroupMetadata(group=G, generation=1, protocol="range", leader="m", members=(member,))
    stage.happen(Load(records=(record,)))

    assert first_error(stage.send(_of("orders"))) is Errors.GROUP_SUBSCRIBED_TO_TOPIC
    assert first_error(stage.send(_of("other"))) is Errors.NONE
