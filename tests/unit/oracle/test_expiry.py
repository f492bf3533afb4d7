"""Offsets and groups that expire."""

from typing import Any

import pytest

from tests.oracle import (
    EndTransaction,
    GroupMetadata,
    GroupTombstone,
    Load,
    OffsetCommitted,
    OffsetDelete,
    OffsetTombstone,
    Protocol,
    TopicPartitions,
)
from tests.unit.oracle.stage import STATES, G, Stage, offsets

MINUTE_MS = 60_000
CHECK_MS = 600_000
UNREADABLE = (Protocol(name="range", metadata=b""),)
TOMBSTONE = OffsetTombstone(group=G, topic="orders", partition=0)


def test_a_group_without_offsets_goes_at_the_next_pass() -> None:
    """However young it is."""
    stage = Stage()
    stage.wait(CHECK_MS - 1)
    stage.join()

    stage.wait(1)

    assert stage.moves()[-1] == (CHECK_MS, STATES.DEAD, 0, "offsets_expired")
    assert stage.last_move().reason == "it has no offsets"
    assert stage.line("groups_expired") == (
        "Generated 1 tombstone records while cleaning up group metadata in 0 milliseconds."
    )


def test_a_pass_that_finds_nothing_says_nothing() -> None:
    """And writes nothing."""
    stage = Stage()

    stage.wait(10 * CHECK_MS)

    assert stage.coordinator.outcomes == []


def test_offsets_of_an_empty_group_expire_after_it_became_empty() -> None:
    """Not after they were committed."""
    stage = Stage(offsets_retention_minutes=30)
    (member,) = stage.stable(session_timeout_ms=1_800_000)
    stage.commit(member, 1)
    stage.wait(25 * MINUTE_MS)
    stage.leave(member)
    emptied_ms = stage.now_ms

    stage.wait(30 * MINUTE_MS)
    assert stage.state() is STATES.EMPTY
    stage.wait(CHECK_MS)

    assert stage.written()[-2:] == [TOMBSTONE, GroupTombstone(group=G)]
    assert stage.last_move().at_ms >= emptied_ms + 30 * MINUTE_MS
    assert stage.last_move().reason == "its offsets expired"


def test_offsets_of_a_simple_group_expire_after_their_commit() -> None:
    """One by one; the group goes with the last."""
    stage = Stage(offsets_retention_minutes=10)
    stage.commit(topics=offsets(0))
    stage.wait(MINUTE_MS)
    stage.commit(topics=offsets(1))

    stage.wait(9 * MINUTE_MS)
    assert stage.written()[2:] == [TOMBSTONE]
    assert stage.state() is STATES.EMPTY
    stage.wait(CHECK_MS)

    assert stage.written()[3:] == [
        OffsetTombstone(group=G, topic="orders", partition=1),
        GroupTombstone(group=G),
    ]


def test_offsets_of_topics_that_a_stable_group_reads_do_not_expire() -> None:
    """Those of others do, after their commit."""
    stage = Stage(offsets_retention_minutes=10)
    (member,) = stage.stable(session_timeout_ms=1_800_000)
    stage.commit(member, 1, topics=offsets() + offsets(topic="old"))

    stage.wait(2 * CHECK_MS)

    assert stage.written()[-1] == OffsetTombstone(group=G, topic="old", partition=0)
    assert stage.state() is STATES.STABLE


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": UNREADABLE}], ids=["type", "bytes"]
)
def test_while_there_are_members_that_cannot_be_read_nothing_expires(fields: dict[str, Any]) -> None:
    """What they read is not known."""
    stage = Stage(offsets_retention_minutes=10)
    (member,) = stage.stable(session_timeout_ms=1_800_000, **fields)
    stage.commit(member, 1, topics=offsets(topic="old"))

    stage.wait(2 * CHECK_MS)

    assert not [one for one in stage.written() if isinstance(one, OffsetTombstone)]


def test_while_a_group_rebalances_nothing_expires() -> None:
    """Even of topics that nobody reads."""
    stage = Stage(offsets_retention_minutes=10)
    first, second = stage.stable(2, session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000)
    stage.commit(first, 1, topics=offsets(topic="old"))
    stage.wait(CHECK_MS // 2)
    stage.leave(second)

    stage.wait(CHECK_MS)

    assert stage.state() is STATES.PREPARING_REBALANCE
    assert not [one for one in stage.written() if isinstance(one, OffsetTombstone)]


def test_an_open_transaction_keeps_offset_and_group() -> None:
    """Until it ends."""
    stage = Stage(offsets_retention_minutes=10)
    stage.commit()
    stage.commit_in_transaction()
    stage.wait(2 * CHECK_MS)
    assert stage.state() is STATES.EMPTY

    stage.send(EndTransaction(producer_id=1, committed=False))
    stage.wait(CHECK_MS)

    assert stage.state() is STATES.DEAD


def test_a_group_that_has_nothing_but_an_open_transaction_stays() -> None:
    """Until its offsets are known not to be."""
    stage = Stage()
    stage.commit_in_transaction()

    stage.wait(CHECK_MS)

    assert stage.state() is STATES.EMPTY


def test_an_expiry_of_its_own_overrides_the_retention() -> None:
    """As old clients asked for."""
    stage = Stage()
    stage.commit(retention_time_ms=CHECK_MS)

    stage.wait(CHECK_MS)

    assert stage.state() is STATES.DEAD


def test_records_of_old_brokers_without_a_time_count_from_the_commit() -> None:
    """They did not store when the group became empty."""
    stage = Stage(loaded=False, offsets_retention_minutes=10)
    stage.happen(
        Load(
            records=(
                GroupMetadata(group=G, generation=3),
                OffsetCommitted(group=G, topic="orders", partition=0, offset=1, commit_timestamp=0),
            )
        )
    )

    stage.wait(CHECK_MS)

    assert stage.state() is STATES.DEAD


def test_a_group_whose_last_offset_was_deleted_goes_at_the_next_pass() -> None:
    """The tombstone of the offset is older than that of the group."""
    stage = Stage()
    (member,) = stage.stable()
    stage.commit(member, 1)
    stage.leave(member)
    places = (TopicPartitions(name="orders", partition_indexes=(0,)),)
    stage.send(OffsetDelete(group_id=G, topics=places))
    assert stage.state() is STATES.EMPTY

    stage.wait(CHECK_MS)

    assert stage.written()[-1] == GroupTombstone(group=G)
