"""The first rebalance of a group, which waits for more members: ``group.initial.rebalance.delay.ms``."""

from tests.oracle import Errors
from tests.unit.oracle.stage import (
    DELAY_MS,
    SESSION_MS,
    STATES,
    Stage,
    error_of,
    joined,
    member_of,
)


def test_a_group_that_was_empty_waits_for_the_delay() -> None:
    """Although everybody has joined."""
    stage = Stage()
    ticket = stage.add()

    stage.wait(DELAY_MS - 1)
    assert not ticket.is_answered
    stage.wait(1)

    assert ticket.answered_at_ms == DELAY_MS
    assert stage.state() is STATES.COMPLETING_REBALANCE


def test_whoever_comes_meanwhile_prolongs_it() -> None:
    """By one more delay after the first one is over."""
    stage = Stage()
    first = stage.add()
    stage.wait(DELAY_MS - 1)
    second = stage.add()

    stage.wait(DELAY_MS)
    assert not first.is_answered
    stage.wait(1)

    assert (first.answered_at_ms, second.answered_at_ms) == (2 * DELAY_MS, 2 * DELAY_MS)


def test_a_rejoin_does_not_prolong_it() -> None:
    """Only members that are new do."""
    stage = Stage()
    member = member_of(stage.join())
    stage.join(member)
    stage.wait(DELAY_MS - 1)

    ticket = stage.join(member)
    stage.wait(1)

    assert ticket.answered_at_ms == DELAY_MS


def test_it_is_never_longer_than_the_rebalance_timeout() -> None:
    """7 s: two delays of 3 s, and the rest of 1 s."""
    stage = Stage()
    first = stage.add(rebalance_timeout_ms=7_000)
    for _ in range(3):
        stage.wait(2_000)
        stage.add(rebalance_timeout_ms=7_000)

    stage.wait(999)
    assert not first.is_answered
    stage.wait(1)

    assert first.answered_at_ms == 7_000


def test_a_rebalance_timeout_shorter_than_the_delay_does_not_shorten_it() -> None:
    """But nothing prolongs it then."""
    stage = Stage()
    first = stage.add(rebalance_timeout_ms=1_000)
    stage.wait(500)
    stage.add(rebalance_timeout_ms=1_000)

    stage.wait(2_500)

    assert first.answered_at_ms == DELAY_MS


def test_without_a_delay_it_ends_in_the_same_millisecond() -> None:
    """As many a test cluster is configured."""
    stage = Stage(group_initial_rebalance_delay_ms=0)
    ticket = stage.add()

    stage.wait(0)

    assert ticket.answered_at_ms == 0


def test_a_member_that_leaves_does_not_end_it() -> None:
    """It goes on with whoever remains."""
    stage = Stage()
    first, second = stage.join(api_version=3), stage.join(api_version=3)
    gone = next(iter(stage.members() - {stage.leader()}))

    stage.leave(gone)

    tickets = sorted((first, second), key=lambda one: one.is_answered)
    assert error_of(tickets[1]) is Errors.UNKNOWN_MEMBER_ID
    assert not tickets[0].is_answered


def test_a_pending_member_that_expires_ends_it() -> None:
    """Of all departures only an expiry does."""
    stage = Stage(group_initial_rebalance_delay_ms=50_000)
    first = stage.add()
    stage.join()

    stage.wait(SESSION_MS)

    assert joined(first).generation_id == 1
    assert first.answered_at_ms == SESSION_MS


def test_if_all_leave_during_it_the_group_is_empty_at_its_end() -> None:
    """With the next generation and a record."""
    stage = Stage()
    stage.join(api_version=3)
    stage.leave(*stage.members())
    assert stage.state() is STATES.PREPARING_REBALANCE

    stage.wait(DELAY_MS)

    assert stage.moves()[-1] == (DELAY_MS, STATES.EMPTY, 1, "all_members_left")


def test_a_group_that_became_empty_waits_again() -> None:
    """Every rebalance from Empty is a first one."""
    stage = Stage()
    (member,) = stage.stable()
    stage.leave(member)
    stage.wait(100_000)

    ticket = stage.add()
    stage.wait(DELAY_MS)

    assert joined(ticket).generation_id == 3
    assert ticket.answered_at_ms == ticket.arrived_at_ms + DELAY_MS
