"""Whole courses of events, each with more than one request or timer that could go wrong.

What they expect is what Kafka's own tests of its two coordinators expect, where both agree.
"""

from typing import Any

import pytest

from tests.oracle import Errors, GroupMetadata, Ticket
from tests.unit.oracle.stage import (
    STATES,
    G,
    Stage,
    error_of,
    joined,
    member_of,
    offers,
)

SIZE_MAX = 4
DELAY_MS = 50
SESSION_MS = 500
REBALANCE_MS = 500
NEW_MEMBER_MS = 300_000
TIMES: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}
BOTH: dict[str, Any] = {**TIMES, "protocols": offers("range", "roundrobin")}


def _stage(**options: Any) -> Stage:
    return Stage(
        group_min_session_timeout_ms=10,
        group_max_session_timeout_ms=600_000,
        group_initial_rebalance_delay_ms=DELAY_MS,
        **options,
    )


def _pair(**fields: Any) -> tuple[Stage, str, str]:
    """A Stable group of the static members "leader" and "follower" that offer two strategies."""
    stage = _stage()
    tickets = [stage.join(group_instance_id=one, **{**BOTH, **fields}) for one in ("leader", "follower")]
    stage.wait(2 * DELAY_MS)
    if joined(tickets[0]).leader != member_of(tickets[0]):  # Java's map decides whose answer lists whom
        tickets.reverse()
    stage.assign(tickets)
    return stage, member_of(tickets[0]), member_of(tickets[1])


def _one(stage: Stage, **fields: Any) -> str:
    """A Stable group of one dynamic member."""
    ticket = stage.add(**fields)
    stage.wait(DELAY_MS)
    return stage.assign([ticket])[0]


def _instance(stage: Stage, member: str) -> str:
    group = stage.coordinator.group(G)
    assert group is not None
    return str(group.members[member].group_instance_id)


# --- group.max.size, with the accepted ones coming again ----------------------------------------------


def _crowd(stage: Stage, how: str) -> list[Ticket]:
    """One member too many joins an empty group."""
    everybody = range(SIZE_MAX + 1)
    if how == "static":
        return [stage.join(group_instance_id=f"i{one}", **TIMES) for one in everybody]
    if how == "old":
        return [stage.join(api_version=3, **TIMES) for _ in everybody]
    ids = [member_of(stage.join(**TIMES)) for _ in everybody]
    return [stage.join(one, **TIMES) for one in ids]


@pytest.mark.parametrize("how", ["static", "old", "two-step"])
def test_who_was_taken_in_can_join_again_and_who_was_not_cannot(how: str) -> None:
    """The same verdicts in the sync phase as in the first join phase; nobody else's place is lost."""
    stage = _stage(group_max_size=SIZE_MAX)
    tickets = _crowd(stage, how)
    stage.wait(2 * DELAY_MS)
    verdicts = [error_of(one) for one in tickets]
    asked: list[Any] = [one.request for one in tickets]

    again = [
        stage.join(member_of(one), group_instance_id=request.group_instance_id, api_version=3, **TIMES)
        for one, request in zip(tickets, asked, strict=True)
    ]

    assert verdicts == [Errors.NONE] * SIZE_MAX + [Errors.GROUP_MAX_SIZE_REACHED]
    assert [error_of(one) for one in again] == verdicts
    assert (stage.state(), len(stage.members())) == (STATES.COMPLETING_REBALANCE, SIZE_MAX)


def test_a_join_repeated_in_the_join_phase_keeps_its_place() -> None:
    """The fifth is turned away both times."""
    stage = _stage(group_max_size=SIZE_MAX)
    ids = [member_of(stage.join(**TIMES)) for _ in range(SIZE_MAX + 1)]
    for one in ids:
        stage.join(one, **TIMES)

    again = [stage.join(one, **TIMES) for one in ids]
    stage.wait(2 * DELAY_MS)

    assert [error_of(one) for one in again] == [Errors.NONE] * SIZE_MAX + [Errors.GROUP_MAX_SIZE_REACHED]


# --- a new member's five minutes ------------------------------------------------------------------------


def test_a_new_member_that_waits_too_long_is_sent_away_and_the_rest_stays() -> None:
    """The rebalance goes on without it: whoever holds it up still has a session."""
    stage = _stage()
    long: dict[str, Any] = {
        "session_timeout_ms": NEW_MEMBER_MS + 5_000,
        "rebalance_timeout_ms": 2 * NEW_MEMBER_MS,
    }
    first = _one(stage, **long)
    new = stage.join(api_version=3, **long)

    stage.wait(NEW_MEMBER_MS)

    assert error_of(new) is Errors.UNKNOWN_MEMBER_ID
    assert (stage.state(), stage.members()) == (STATES.PREPARING_REBALANCE, {first})


def test_five_minutes_are_of_no_account_once_a_member_has_synced() -> None:
    """Only its session counts, although it is longer."""
    stage = _stage()
    session_ms = NEW_MEMBER_MS + 5_000
    member = _one(stage, session_timeout_ms=session_ms)

    stage.wait(NEW_MEMBER_MS + 100)
    assert stage.members() == {member}
    stage.wait(session_ms - NEW_MEMBER_MS - 100)

    assert stage.moves()[-1][1:] == (STATES.EMPTY, 2, "session_timeout")


@pytest.mark.parametrize("synced", [False, True])
def test_a_member_that_joined_a_running_group_has_a_session_like_the_others(*, synced: bool) -> None:
    """Nobody beats: all are gone when the sessions are over, whether or not they have synced."""
    stage = _stage()
    first = _one(stage, **TIMES)
    other = stage.join(api_version=3, **TIMES)
    stage.join(first, **TIMES)
    if synced:
        stage.sync(member_of(other))
        stage.sync(first, None, first, member_of(other))

    stage.wait(SESSION_MS)

    assert (stage.state(), stage.members()) == (STATES.EMPTY, set())


# --- static members that stay away ----------------------------------------------------------------------


def _stuck() -> tuple[Stage, str]:
    """A join phase that waits for nobody but a static leader whose session is twice the rebalance's."""
    stage, leader, follower = _pair(session_timeout_ms=2 * SESSION_MS)
    dynamic = stage.join(api_version=3, **{**BOTH, "session_timeout_ms": 2 * SESSION_MS})
    stage.wait(REBALANCE_MS + 1)
    assert joined(dynamic).leader == member_of(dynamic)
    assert len(joined(dynamic).members) == 3
    assert (stage.state(), stage.generation()) == (STATES.COMPLETING_REBALANCE, 2)

    stage.leave(follower)
    assert stage.state() is STATES.PREPARING_REBALANCE
    stage.wait(REBALANCE_MS + 1)
    assert (stage.state(), stage.generation()) == (STATES.PREPARING_REBALANCE, 2)
    assert stage.members() == {leader}
    return stage, leader


def test_a_leader_that_never_comes_back_leaves_an_empty_generation() -> None:
    """Its session ends before the join timer rings once more."""
    stage, _ = _stuck()

    stage.wait(REBALANCE_MS + 1)

    assert (stage.state(), stage.generation(), stage.leader()) == (STATES.EMPTY, 3, None)


def test_a_leader_that_comes_back_ends_the_join_phase() -> None:
    """Under another id, at once, and it leads again."""
    stage, leader = _stuck()

    back = joined(stage.join(group_instance_id=_instance(stage, leader), **BOTH))

    assert (back.error_code, back.generation_id, back.leader) == (Errors.NONE, 3, back.member_id)
    assert stage.members() == {back.member_id}


@pytest.mark.parametrize("who", ["leader", "follower"])
def test_one_of_two_static_members_stays_away_when_a_third_comes(who: str) -> None:
    """All three are in the next generation; one that has joined leads, and only that one gets the list."""
    stage, leader, follower = _pair(session_timeout_ms=2 * REBALANCE_MS)
    third = stage.join(group_instance_id="third", **BOTH)
    back = stage.join(leader if who == "leader" else follower, **BOTH)

    stage.wait(REBALANCE_MS)

    answers = [joined(third), joined(back)]
    leads = {one.leader for one in answers}
    assert len(leads) == 1
    assert leads <= ({leader} if who == "leader" else {member_of(third), follower})
    lists = [one.members for one in answers if one.member_id in leads]
    assert {one.group_instance_id for one in lists[0]} == {"leader", "follower", "third"}
    assert [one.members for one in answers if one.member_id not in leads] == [()]


def test_a_static_leader_that_beats_but_never_joins_is_kept_and_goes_with_its_session() -> None:
    """Told 27, then 22 of the generation it missed; its end makes the other one join again, once."""
    stage = _stage()
    first = stage.join(group_instance_id="i", session_timeout_ms=1_000, rebalance_timeout_ms=1_200)
    stage.wait(DELAY_MS)
    leader = member_of(first)
    stage.sync(leader, None, leader)
    other = stage.join(api_version=3, **TIMES)
    for _ in range(2):
        stage.wait(SESSION_MS)
        assert stage.beat(leader, 1) is Errors.REBALANCE_IN_PROGRESS
    stage.wait(200)

    new = member_of(other)
    stage.sync(new, None, new)
    assert stage.beat(leader, 1) is Errors.ILLEGAL_GENERATION
    told = []
    for _ in range(3):
        stage.wait(SESSION_MS - 1)
        told.append(stage.beat(new))

    assert told == [Errors.NONE, Errors.NONE, Errors.REBALANCE_IN_PROGRESS]
    assert joined(stage.join(new, **TIMES)).generation_id == 3
    stage.sync(new, None, new)
    for _ in range(20):
        stage.wait(SESSION_MS - 1)
        assert stage.beat(new) is Errors.NONE


# --- two processes with one instance id -----------------------------------------------------------------


def test_a_rejoining_follower_is_fenced_by_its_duplicate() -> None:
    """At once, with no generation; the duplicate waits in its place."""
    stage, _, follower = _pair()
    stage.join(api_version=3, **BOTH)
    old = stage.join(follower, group_instance_id="x", **BOTH)
    assert error_of(old) is Errors.UNKNOWN_MEMBER_ID
    old = stage.join(follower, group_instance_id=_instance(stage, follower), **BOTH)

    duplicate = stage.join(group_instance_id=_instance(stage, follower), **BOTH)

    assert (error_of(old), joined(old).generation_id) == (Errors.FENCED_INSTANCE_ID, -1)
    assert not duplicate.is_answered
    assert stage.state() is STATES.PREPARING_REBALANCE


def test_a_syncing_follower_is_fenced_and_its_duplicate_leads_alone() -> None:
    """The leader does not come again, and is out when the join phase ends with its session."""
    stage, leader, follower = _pair()
    instance = _instance(stage, follower)
    first, second = stage.join(leader, **BOTH), stage.join(follower, **BOTH)
    assert joined(first).generation_id == joined(second).generation_id == 2
    parked = stage.sync(follower, None, group_instance_id=instance)

    duplicate = stage.join(group_instance_id=instance, **BOTH)
    assert error_of(parked) is Errors.FENCED_INSTANCE_ID
    assert stage.state() is STATES.PREPARING_REBALANCE
    stage.wait(REBALANCE_MS + DELAY_MS)

    back = joined(duplicate)
    assert (back.generation_id, back.leader) == (3, back.member_id)
    assert [one.group_instance_id for one in back.members] == [instance]


def test_a_follower_whose_id_is_taken_over_cannot_rejoin() -> None:
    """The duplicate was first, and ended the join phase; the old process is fenced, and so is its sync."""
    stage, leader, follower = _pair()
    instance = _instance(stage, follower)
    waiting = stage.join(leader, **BOTH)
    duplicate = stage.join(group_instance_id=instance, **BOTH)

    old = stage.join(follower, group_instance_id=instance, **BOTH)

    assert joined(waiting).generation_id == joined(duplicate).generation_id == 2
    assert (joined(duplicate).leader, joined(duplicate).members) == (leader, ())
    assert (error_of(old), stage.state()) == (Errors.FENCED_INSTANCE_ID, STATES.COMPLETING_REBALANCE)
    assert error_of(stage.sync(follower, None, group_instance_id=instance)) is Errors.FENCED_INSTANCE_ID
    assert error_of(stage.sync(follower)) is Errors.UNKNOWN_MEMBER_ID


def test_a_leader_whose_place_is_taken_cannot_assign() -> None:
    """82 under its instance, 25 under its old id alone; the group does not move."""
    stage, leader, _ = _pair()
    instance = _instance(stage, leader)
    stage.join(group_instance_id=instance, **BOTH)

    assert error_of(stage.join(leader, group_instance_id=instance, **BOTH)) is Errors.FENCED_INSTANCE_ID
    assert error_of(stage.sync(leader, 1, group_instance_id=instance)) is Errors.FENCED_INSTANCE_ID
    assert error_of(stage.sync(leader, 1)) is Errors.UNKNOWN_MEMBER_ID
    assert (stage.state(), stage.generation()) == (STATES.STABLE, 1)


# --- static members that offer something else -----------------------------------------------------------


@pytest.mark.parametrize("knows_its_id", [True, False])
def test_a_follower_that_offers_one_strategy_only_makes_it_the_groups(*, knows_its_id: bool) -> None:
    """The leader is silent: at the join phase's end the follower leads, and the leader still is in."""
    stage, leader, follower = _pair(session_timeout_ms=2 * SESSION_MS)
    fields: dict[str, Any] = {
        **TIMES,
        "protocols": offers("roundrobin"),
        "group_instance_id": _instance(stage, follower),
    }

    ticket = stage.join(follower if knows_its_id else "", **fields)
    stage.wait(REBALANCE_MS)

    back = joined(ticket)
    assert (back.member_id == follower) is knows_its_id
    assert (back.generation_id, back.leader, back.protocol_name) == (2, back.member_id, "roundrobin")
    assert len(back.members) == 2
    assert leader in stage.members()


def test_a_rejoin_with_other_strategies_in_the_sync_phase_rebalances_again() -> None:
    """The leader is not there for the third generation, and its session ends with the second."""
    stage, leader, follower = _pair()
    instance = _instance(stage, follower)
    waiting = stage.join(leader, group_instance_id=_instance(stage, leader), **BOTH)
    second = stage.join(follower, group_instance_id=instance, **BOTH)
    assert (joined(waiting).generation_id, len(joined(waiting).members)) == (2, 2)
    assert (joined(second).leader, joined(second).members) == (leader, ())

    third = stage.join(follower, group_instance_id=instance, **{**TIMES, "protocols": offers("range")})
    assert stage.state() is STATES.PREPARING_REBALANCE
    stage.wait(REBALANCE_MS + 1)

    assert (joined(third).generation_id, joined(third).leader) == (3, follower)
    assert [one.member_id for one in joined(third).members] == [follower]


def test_timeouts_of_comebacks_are_in_the_record() -> None:
    """Both members return with other ones; neither makes the group rebalance."""
    stage, leader, follower = _pair()
    changed: dict[str, Any] = {
        **BOTH,
        "session_timeout_ms": 2 * SESSION_MS,
        "rebalance_timeout_ms": 2 * REBALANCE_MS,
    }

    for member in (follower, leader):
        assert joined(stage.join(group_instance_id=_instance(stage, member), **changed)).generation_id == 1

    record = stage.written()[-1]
    assert isinstance(record, GroupMetadata)
    assert {(one.session_timeout, one.rebalance_timeout) for one in record.members} == {(1_000, 1_000)}
    assert stage.state() is STATES.STABLE
