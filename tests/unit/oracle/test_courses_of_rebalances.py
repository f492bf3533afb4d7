"""Courses of rebalances with pending members, sessions and syncs that do not come.

What they expect is what Kafka's own tests of its two coordinators expect, where both agree.
"""

from typing import Any

import pytest

from tests.oracle import Errors
from tests.unit.oracle.stage import STATES, G, Stage, error_of, joined, member_of

DELAY_MS = 50
SESSION_MS = 500
REBALANCE_MS = 500
TIMES: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}


def _stage() -> Stage:
    return Stage(
        group_min_session_timeout_ms=10,
        group_max_session_timeout_ms=600_000,
        group_initial_rebalance_delay_ms=DELAY_MS,
    )


def _one(stage: Stage, **fields: Any) -> str:
    """A Stable group of one dynamic member."""
    ticket = stage.add(**fields)
    stage.wait(DELAY_MS)
    return stage.assign([ticket])[0]


def _pending(stage: Stage) -> int:
    group = stage.coordinator.group(G)
    assert group is not None
    return len(group.pending_joins)


# --- pending members ------------------------------------------------------------------------------------


def _with_pending() -> tuple[Stage, str]:
    """Two members that have joined again, and one that only got its id (for 100 ms)."""
    stage = _stage()
    first = _one(stage, **TIMES)
    second = stage.join(api_version=3, **TIMES)
    stage.join(first, **TIMES)
    stage.sync(first, None, first)
    stage.join(first, **TIMES)
    pending = member_of(stage.join(**{**TIMES, "session_timeout_ms": 100}))
    stage.join(member_of(second), **TIMES)
    assert (stage.state(), _pending(stage)) == (STATES.PREPARING_REBALANCE, 1)
    return stage, pending


@pytest.mark.parametrize(("what", "size"), [("joins", 3), ("expires", 2), ("leaves", 2)])
def test_a_pending_member_ends_the_join_phase_however_it_goes_on(what: str, size: int) -> None:
    """The others had joined, and waited for it alone."""
    stage, pending = _with_pending()

    if what == "joins":
        stage.join(pending, **TIMES)
    elif what == "expires":
        stage.wait(120)
    else:
        stage.leave(pending)

    assert (stage.state(), len(stage.members()), _pending(stage)) == (STATES.COMPLETING_REBALANCE, size, 0)


def test_a_pending_member_that_never_comes_back_does_not_touch_a_stable_group() -> None:
    """Its id expires with the session it asked for."""
    stage = _stage()
    first = _one(stage, **TIMES)
    stage.wait(100)
    assert error_of(stage.join(**TIMES)) is Errors.MEMBER_ID_REQUIRED
    stage.wait(300)
    assert stage.beat(first) is Errors.NONE

    stage.wait(300)

    assert (stage.state(), stage.generation(), _pending(stage)) == (STATES.STABLE, 1, 0)
    assert stage.members() == {first}


# --- sessions during a rebalance ------------------------------------------------------------------------


def test_a_member_that_falls_silent_in_the_join_phase_lets_the_others_go_on() -> None:
    """It beats once more, is told 27, and is unknown when its session is over."""
    stage = _stage()
    first = _one(stage, session_timeout_ms=1_000, rebalance_timeout_ms=2_000)
    other = stage.join(api_version=3, **TIMES)
    stage.wait(500)
    assert stage.beat(first, 1) is Errors.REBALANCE_IN_PROGRESS

    stage.wait(1_100)

    assert stage.beat(first, 1) is Errors.UNKNOWN_MEMBER_ID
    assert joined(other).generation_id == 2


def test_heartbeats_alone_do_not_save_a_dynamic_member_from_the_rebalance_timeout() -> None:
    """It must join; the new generation does not know it."""
    stage = _stage()
    first = _one(stage, session_timeout_ms=1_000, rebalance_timeout_ms=1_200)
    other = stage.join(api_version=3, **TIMES)
    for _ in range(2):
        stage.wait(500)
        assert stage.beat(first, 1) is Errors.REBALANCE_IN_PROGRESS

    stage.wait(200)

    assert joined(other).generation_id == 2
    assert stage.beat(first, 1) is Errors.UNKNOWN_MEMBER_ID
    assert stage.members() == {member_of(other)}


# --- syncs that do not come -----------------------------------------------------------------------------


def _three() -> tuple[Stage, str, list[str]]:
    """Three members in the sync phase; its leader first."""
    stage = _stage()
    ids = [member_of(stage.join(**{**TIMES, "session_timeout_ms": 2_000})) for _ in range(3)]
    tickets = [stage.join(one, **{**TIMES, "session_timeout_ms": 2_000}) for one in ids]
    stage.wait(2 * DELAY_MS)
    leader = joined(tickets[0]).leader
    return stage, leader, [one for one in ids if one != leader]


def _beats(stage: Stage, members: list[str]) -> set[Errors]:
    return {stage.beat(one, 1) for one in members}


@pytest.mark.parametrize("who", ["nobody", "leader", "followers", "all"])
def test_who_does_not_sync_in_time_is_removed_although_it_beats(who: str) -> None:
    """And who did is told to join again; parked syncs are sent back."""
    stage, leader, followers = _three()
    stage.wait(REBALANCE_MS // 2)
    assert _beats(stage, [leader, *followers]) == {Errors.NONE}
    parked: list[Any] = []
    if who in {"followers", "all"}:
        parked = [stage.sync(one, 1) for one in followers]
    if who in {"leader", "all"}:
        assert error_of(stage.sync(leader, 1, leader, *followers)) is Errors.NONE
        assert stage.state() is STATES.STABLE
    before = stage.state()

    stage.wait(REBALANCE_MS // 2 + 1)

    gone, again, fine = {Errors.UNKNOWN_MEMBER_ID}, {Errors.REBALANCE_IN_PROGRESS}, {Errors.NONE}
    told = {"nobody": (gone, gone), "leader": (again, gone), "followers": (gone, again), "all": (fine, fine)}
    assert (_beats(stage, [leader]), _beats(stage, followers)) == told[who]
    assert {error_of(one) for one in parked} <= (fine if who == "all" else again)
    assert stage.state() is {"nobody": STATES.EMPTY, "all": before}.get(who, STATES.PREPARING_REBALANCE)
    assert stage.generation() == (2 if who == "nobody" else 1)


def test_a_leader_that_dies_in_the_sync_phase_sends_its_follower_back() -> None:
    """To a generation that it leads."""
    stage = _stage()
    first = _one(stage, **TIMES)
    other = stage.join(api_version=3, **TIMES)
    assert joined(stage.join(first, **TIMES)).leader == first
    parked = stage.sync(member_of(other), 2)

    stage.wait(SESSION_MS)

    assert error_of(parked) is Errors.REBALANCE_IN_PROGRESS
    again = joined(stage.join(member_of(other), **TIMES))
    assert (again.generation_id, again.leader) == (3, member_of(other))


def test_an_unchanged_follower_gets_its_generation_again_and_a_leader_a_new_one() -> None:
    """In Stable; the follower's answer lists nobody."""
    stage = _stage()
    first = _one(stage, **TIMES)
    other = stage.join(api_version=3, **TIMES)
    stage.join(first, **TIMES)
    follower = member_of(other)
    stage.sync(first, 2, first, follower)
    stage.sync(follower, 2)

    same = joined(stage.join(follower, **TIMES))
    assert (same.generation_id, same.leader, same.members) == (2, first, ())
    assert stage.state() is STATES.STABLE

    assert not stage.join(first, **TIMES).is_answered
    assert stage.state() is STATES.PREPARING_REBALANCE
