"""Commits and reads of offsets, with and without a transaction."""

from typing import Any

import pytest

from tests.oracle import (
    EndTransaction,
    Errors,
    FailAppends,
    MarkDead,
    OffsetCommit,
    OffsetCommitted,
    OffsetFetch,
    TopicPartitions,
    TransactionMarker,
)
from tests.oracle.values.responses import EndTransactionResponse, FetchedOffset, OffsetFetchResponse
from tests.unit.oracle.stage import (
    DELAY_MS,
    NOBODY,
    STATES,
    G,
    Stage,
    member_of,
    offsets,
)


def _fetched(stage: Stage, *, stable: bool = False, group: str = G, partition: int = 0) -> FetchedOffset:
    places = (TopicPartitions(name="orders", partition_indexes=(partition,)),)
    ticket = stage.send(OffsetFetch(group_id=group, topics=places, require_stable=stable))
    assert isinstance(ticket.response, OffsetFetchResponse)
    return ticket.response.topics[0].partitions[0]


def _in(state: str, *, static: bool = False) -> tuple[Stage, str]:
    """A group of one member in a state; its id."""
    stage = Stage()
    ticket = stage.join(group_instance_id="i") if static else stage.add()
    stage.wait(DELAY_MS)
    member = member_of(ticket)
    if state != "completing":
        stage.sync(member, None, member)
    if state == "preparing":
        stage.add()
    if state == "empty":
        stage.leave(member)
    if state == "dead":
        stage.happen(MarkDead(group_id=G))
    return stage, member


# --- who may commit -----------------------------------------------------------------------------------

SAYS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "all right": {"member_id": "me", "generation": 1},
    "old generation": {"member_id": "me", "generation": 0},
    "no generation": {"member_id": "me"},
    "stranger": {"member_id": NOBODY, "generation": 1},
    "stranger of an old generation": {"member_id": NOBODY, "generation": 0},
    "generation alone": {"generation": 1},
    "instance alone": {"group_instance_id": "i"},
}
N, U, X, R, D = (
    Errors.NONE,
    Errors.UNKNOWN_MEMBER_ID,
    Errors.ILLEGAL_GENERATION,
    Errors.REBALANCE_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
)
VERDICTS = {
    # What the request says -> plain, then in a transaction; in each the states as in _STATES.
    "nothing": ((N, U, U, U, D), (N, N, N, N, D)),
    "all right": ((U, N, R, N, D), (U, N, N, N, D)),
    "old generation": ((U, X, X, X, D), (U, X, X, X, D)),
    "no generation": ((N, X, X, X, D), (N, X, X, X, D)),
    "stranger": ((U, U, U, U, D), (U, U, U, U, D)),
    "stranger of an old generation": ((U, U, U, U, D), (U, U, U, U, D)),
    "generation alone": ((U, U, U, U, D), (U, U, U, U, D)),
    "instance alone": ((N, U, U, U, D), (N, U, U, U, D)),
}
_STATES = ("empty", "preparing", "completing", "stable", "dead")


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize("says", SAYS, ids=lambda one: one.replace(" ", "-"))
def test_who_may_commit(says: str, state: str, *, transactional: bool) -> None:
    """Member, then generation, then state; transactions do not mind the state, and old ones name nobody."""
    stage, member = _in(state)
    said: dict[str, Any] = {key: member if value == "me" else value for key, value in SAYS[says].items()}

    if transactional:
        renamed: dict[str, Any] = {
            "generation_id" if key == "generation" else key: value for key, value in said.items()
        }
        error = stage.commit_in_transaction(**renamed)
    else:
        error = stage.commit(**said)

    assert error is VERDICTS[says][transactional][_STATES.index(state)]


@pytest.mark.parametrize(("version", "error"), [(8, X), (9, Errors.GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_with_a_generation(version: int, error: Errors) -> None:
    """69 since version 9."""
    assert Stage().commit(NOBODY, 3, api_version=version) is error


def test_an_unknown_group_with_a_generation_in_a_transaction() -> None:
    """22."""
    assert Stage().commit_in_transaction(generation_id=3) is X


def test_a_static_member_needs_no_more_than_its_own_names() -> None:
    """Instance, id and generation."""
    stage, member = _in("stable", static=True)

    assert stage.commit(member, 1, group_instance_id="i") is N


# --- what is stored -----------------------------------------------------------------------------------


def test_a_manual_commit_makes_a_simple_group() -> None:
    """Empty, without a protocol type and without a record of its own."""
    stage = Stage()
    stage.wait(5)

    assert stage.commit() is N

    assert (stage.state(), stage.kinds()) == (STATES.EMPTY, ["simple_group_created"])
    assert stage.written() == [
        OffsetCommitted(group=G, topic="orders", partition=0, offset=100, commit_timestamp=5)
    ]


def test_a_transaction_makes_one_without_a_line() -> None:
    """Only OffsetCommit tells of it."""
    stage = Stage()

    stage.commit_in_transaction()

    assert (stage.state(), stage.kinds()) == (STATES.EMPTY, [])


def test_manual_commits_to_an_empty_group_ask_for_no_member() -> None:
    """Even if they name one."""
    stage, _ = _in("empty")

    assert stage.commit(NOBODY, -1, group_instance_id="nobody") is N


def test_the_group_without_a_name_can_commit() -> None:
    """As in Kafka 0.9; transactions cannot."""
    stage = Stage()

    assert stage.commit(group_id="") is N
    assert stage.commit_in_transaction(group_id="") is Errors.INVALID_GROUP_ID


def test_a_retention_time_of_old_clients_is_stored() -> None:
    """As the instant at which the offset expires."""
    stage = Stage()
    stage.wait(10)

    stage.commit(retention_time_ms=1_234)

    record = stage.written()[0]
    assert isinstance(record, OffsetCommitted)
    assert record.expire_timestamp == 1_244


@pytest.mark.parametrize(
    ("length", "error"), [(4_096, N), (4_097, Errors.OFFSET_METADATA_TOO_LARGE)], ids=["fits", "too-long"]
)
@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
def test_metadata_has_a_limit(length: int, error: Errors, *, transactional: bool) -> None:
    """12 for that partition; nothing is written of it."""
    stage = Stage()
    send = stage.commit_in_transaction if transactional else stage.commit

    assert send(topics=offsets(committed_metadata="x" * length)) is error
    assert len(stage.written()) == (error is N)


def test_characters_are_counted_as_java_does() -> None:
    """An emoji is two."""
    stage = Stage(offset_metadata_max_bytes=1)

    assert stage.commit(topics=offsets(committed_metadata="é")) is N
    assert stage.commit(topics=offsets(committed_metadata="😀")) is Errors.OFFSET_METADATA_TOO_LARGE


def test_topic_ids_are_stored_outside_of_transactions_only() -> None:
    """A monitor can tell the two apart by that."""
    stage = Stage()

    stage.commit(topics=offsets(topic_id="T"))
    stage.commit_in_transaction(topics=offsets(topic_id="T"))

    assert [getattr(one, "topic_id", None) for one in stage.written()] == ["T", ""]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
        (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
        (Errors.MESSAGE_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
        (Errors.NETWORK_EXCEPTION, Errors.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_a_commit_that_cannot_be_stored(error: Errors, told: Errors) -> None:
    """The mapped error; the simple group it made is gone again."""
    stage = Stage()
    stage.happen(FailAppends(error=error))

    assert stage.commit() is told
    assert (stage.state(), stage.written()) == (STATES.DEAD, [])


# --- reads --------------------------------------------------------------------------------------------


def test_what_was_committed_can_be_read() -> None:
    """The latest one."""
    stage = Stage()
    stage.commit(topics=offsets(offset=1, committed_leader_epoch=4, committed_metadata="m"))
    stage.commit(topics=offsets(offset=2, committed_leader_epoch=5, committed_metadata="n"))

    assert _fetched(stage) == FetchedOffset(
        partition_index=0, committed_offset=2, committed_leader_epoch=5, metadata="n"
    )


@pytest.mark.parametrize("group", [G, "other"])
def test_what_was_never_committed_is_minus_one(group: str) -> None:
    """No error, whether the group is there or not."""
    stage = Stage()
    stage.commit()

    assert _fetched(stage, group=group, partition=9) == FetchedOffset(partition_index=9)


def test_a_dead_group_has_no_offsets() -> None:
    """They are somebody else's now."""
    stage = Stage()
    stage.commit()
    stage.happen(MarkDead(group_id=G))

    assert _fetched(stage).committed_offset == -1


def test_all_offsets_can_be_read_at_once() -> None:
    """By asking for no topic in particular."""
    stage = Stage()
    stage.commit(topics=offsets(0, 1))
    stage.commit(topics=offsets(1, 2) + offsets(0, 3, "payments"))

    ticket = stage.send(OffsetFetch(group_id=G))

    assert isinstance(ticket.response, OffsetFetchResponse)
    assert [
        (topic.name, [(one.partition_index, one.committed_offset) for one in topic.partitions])
        for topic in ticket.response.topics
    ] == [("orders", [(0, 1), (1, 2)]), ("payments", [(0, 3)])]


def test_reads_see_what_is_replicated() -> None:
    """One that insists on stable offsets waits and sees everything."""
    stage = Stage(commit_delay_ms=None)
    places = (TopicPartitions(name="orders", partition_indexes=(0,)),)
    committing = stage.send(OffsetCommit(group_id=G, topics=offsets()))
    seen = _fetched(stage).committed_offset
    waiting = stage.send(OffsetFetch(group_id=G, require_stable=True, topics=places))
    assert (seen, waiting.is_answered, committing.is_answered) == (-1, False, False)

    stage.replicate()

    assert isinstance(waiting.response, OffsetFetchResponse)
    assert waiting.response.topics[0].partitions[0].committed_offset == 100
    assert _fetched(stage).committed_offset == 100


# --- transactions -------------------------------------------------------------------------------------


def _end(stage: Stage, producer_id: int = 1, *, committed: bool = True) -> None:
    ticket = stage.send(EndTransaction(producer_id=producer_id, committed=committed))
    assert ticket.response == EndTransactionResponse()


def test_a_transactional_offset_is_invisible_until_its_transaction_commits() -> None:
    """Who insists on stable offsets is told that there is one."""
    stage = Stage()
    stage.commit_in_transaction()
    assert _fetched(stage).committed_offset == -1
    assert _fetched(stage, stable=True).error_code is Errors.UNSTABLE_OFFSET_COMMIT

    _end(stage)

    assert _fetched(stage, stable=True).committed_offset == 100
    assert stage.written()[-1] == TransactionMarker(producer_id=1, committed=True)


def test_an_aborted_offset_never_was() -> None:
    """The one before it is the one that counts."""
    stage = Stage()
    stage.commit(topics=offsets(offset=1))
    stage.commit_in_transaction()

    _end(stage, committed=False)

    assert _fetched(stage, stable=True).committed_offset == 1


def test_a_marker_of_a_stranger_does_nothing() -> None:
    """No pending offsets, nothing to commit."""
    stage = Stage()
    stage.commit_in_transaction()

    _end(stage, producer_id=9)
    _end(stage)
    _end(stage, committed=False)

    assert _fetched(stage).committed_offset == 100


def test_one_producer_can_commit_for_many_groups() -> None:
    """One marker for all."""
    stage = Stage()
    stage.commit_in_transaction()
    stage.commit_in_transaction(group_id="other", topics=offsets(offset=7))

    _end(stage)

    assert [_fetched(stage, group=one).committed_offset for one in (G, "other")] == [100, 7]


def test_many_producers_can_commit_for_one_group() -> None:
    """Each transaction ends alone; a partition is unstable until the last one did."""
    stage = Stage()
    stage.commit_in_transaction(1, topics=offsets(offset=1))
    stage.commit_in_transaction(2, topics=offsets(offset=2))

    _end(stage, 1)
    assert _fetched(stage, stable=True).error_code is Errors.UNSTABLE_OFFSET_COMMIT
    _end(stage, 2, committed=False)

    assert _fetched(stage, stable=True).committed_offset == 1


def test_the_later_record_wins() -> None:
    """A transaction that commits late does not overwrite what was committed after its own record."""
    stage = Stage()
    stage.commit_in_transaction(topics=offsets(offset=1))
    stage.commit(topics=offsets(offset=2))

    _end(stage)

    assert _fetched(stage).committed_offset == 2
    assert stage.kinds()[-1] == "transactional_commit_skipped"


def test_a_transaction_overwrites_what_was_committed_before_it() -> None:
    """Its record is the later one."""
    stage = Stage()
    stage.commit(topics=offsets(offset=2))
    stage.commit_in_transaction(topics=offsets(offset=1))

    _end(stage)

    assert _fetched(stage).committed_offset == 1
