"""When what several members were heard to do may be applied at once: only while it restarts timers."""

from typing import Any

import msgspec
import pytest

from coordinator_model import groups
from coordinator_model.kafka import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.requests import Client, GroupHeard, MemberHeard
from coordinator_model.ordering.buffered import Run, taken_apart
from coordinator_model.ordering.order import Order
from coordinator_model.shard.awake_groups import AwakeGroups
from coordinator_model.shard.coalescing import FirstBeat, are_quiet, in_time
from coordinator_model.shard.slots import Slots
from coordinator_model.shard.snapshot import Header
from coordinator_model.state.group import Group, Member
from tests.unit.made_seen import seen

SESSION_MS = 10_000


def group() -> Group:
    members = {
        name: Member(
            member_id=name,
            session_timeout_ms=SESSION_MS,
            session_base_ms=1_000,
            last_heartbeat_ms=1_000,
            first_beat_ms=1_000,
        )
        for name in ("a", "b")
    }
    return Group(
        group="g", state=GroupState.STABLE, generation=5, coordinator=1, members=members, last_seen_ms=1_000
    )


def heard(*members: MemberHeard, generation: int = 5, broker: int = 1) -> Run:
    times = [time for one in members for time in one.beats + one.commits]
    what = GroupHeard(group="g", generation=generation, since_ms=min(times), members=members)
    return Run(0, seen(max(times), what, Source.REQUEST_LOG, broker=broker))


A = MemberHeard("a", Client(client_id="c", host="/h", connection="x"), (2_000, 4_000), (3_000,))
B = MemberHeard("b", Client(), (), (4_500,))
BEATS = MemberHeard("a", Client(client_id="c", host="/h", connection="x"), (2_000, 4_000))


def test_members_that_beat_and_commit_are_quiet() -> None:
    """They are applied as each by itself would be."""
    at_once, singly = group(), group()
    run = heard(A, B)
    assert are_quiet(at_once, [run])
    assert groups.beat(at_once, run.seen)
    for one in taken_apart([run]):
        assert are_quiet(singly, [one])
        assert groups.beat(singly, one.seen)

    assert msgspec.to_builtins(at_once) == msgspec.to_builtins(singly)
    assert at_once.members["a"].last_heartbeat_ms == 4_000
    assert at_once.members["b"].progressed_at_ms == 4_500
    assert at_once.last_seen_ms == 4_500


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(heard(A, B, generation=6), id="generation"),
        pytest.param(heard(A, B, broker=2), id="coordinator"),
        pytest.param(heard(A, MemberHeard("c", Client(), (2_000,))), id="stranger"),
        pytest.param(heard(MemberHeard("a", Client(), (1_500, 5_600))), id="pause"),
        pytest.param(heard(MemberHeard("a", Client(), (5_100,))), id="pause-before"),
    ],
)
def test_whoever_is_news_makes_all_of_it_news(run: Run) -> None:
    """As each of them by itself is."""
    assert not are_quiet(group(), [run])
    assert not are_quiet(group(), taken_apart([run]))


def test_pauses_are_measured_across_observations() -> None:
    """A member's lines may stand in several partitions."""
    first, second = heard(MemberHeard("a", Client(), (4_000,))), heard(MemberHeard("a", Client(), (7_000,)))
    assert are_quiet(group(), [first, second])
    assert not are_quiet(group(), [second])


def unheard(**changes: Any) -> Group:
    """Return the group before anything was heard of member a."""
    found = msgspec.structs.replace(group(), **changes)
    found.members["a"].last_heartbeat_ms = found.members["a"].first_beat_ms = -1
    return found


def test_a_first_heartbeat_tells_when_to_look() -> None:
    """The rules look at the member once its silence may be too long; nobody asks for it before."""
    found, firsts = unheard(), list[FirstBeat]()
    assert not are_quiet(found, [heard(BEATS, B)])
    assert are_quiet(found, [heard(BEATS, B)], firsts)
    assert firsts == [(found.members["a"], 2_000)]


@pytest.mark.parametrize(
    "times",
    [pytest.param((999,), id="before-its-session"), pytest.param((5_100,), id="late-in-its-session")],
)
def test_a_first_heartbeat_may_be_news(times: tuple[int, ...]) -> None:
    """One of an earlier session shows nothing of this one, and a late one shows a pause."""
    run = heard(MemberHeard("a", Client(), times))
    assert not are_quiet(unheard(), [run], [])
    assert not are_quiet(unheard(), taken_apart([run]), [])


@pytest.mark.parametrize("session_ms", [SESSION_MS, 0])
def test_a_first_heartbeat_comes_before_the_second(session_ms: int) -> None:
    """A run of several members begins with one of them, and may have the second heartbeat of another."""
    found = unheard()
    found.members["a"].session_timeout_ms = session_ms
    first = heard(MemberHeard("a", Client(), (2_500,)))
    both = heard(MemberHeard("b", Client(), (2_000,)), MemberHeard("a", Client(), (3_000,)))
    assert in_time([first, both]) == [both, first]
    assert not are_quiet(found, [both, first], [])


@pytest.mark.parametrize("runs", [[heard(A)], [heard(A, B)], taken_apart([heard(A)])])
@pytest.mark.parametrize("turned", [False, True])
def test_a_first_heartbeat_beside_a_commit_is_news(runs: list[Run], *, turned: bool) -> None:
    """The commit restarts the session by which the heartbeat may show a pause."""
    assert not are_quiet(unheard(), runs[::-1] if turned else runs, [])


@pytest.mark.parametrize("change", [{"ended_ms": 2_000}, {"loaded_ms": 2_001}])
def test_an_older_line_is_news(change: dict[str, int]) -> None:
    """It is counted as old, though a newer one came with it."""
    found = msgspec.structs.replace(group(), **change)
    assert not are_quiet(found, [heard(BEATS, B)], [])
    assert not are_quiet(found, taken_apart([heard(BEATS, B)]), [])


def test_whoever_answers_first_coordinates_the_group() -> None:
    """No record names a broker."""
    at_once, singly = unheard(coordinator=-1), unheard(coordinator=-1)
    run = heard(BEATS, B)
    assert are_quiet(at_once, [run], [])
    assert groups.beat(at_once, run.seen)
    for one in taken_apart([run]):
        assert are_quiet(singly, [one], [])
        assert groups.beat(singly, one.seen)

    assert at_once.coordinator == 1
    assert msgspec.to_builtins(at_once) == msgspec.to_builtins(singly)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([heard(BEATS), heard(B, broker=2)], id="two-brokers"),
        pytest.param([heard(BEATS, broker=-1)], id="no-broker"),
    ],
)
def test_who_coordinates_a_group_may_be_news(runs: list[Run]) -> None:
    """Only one broker can."""
    assert not are_quiet(unheard(coordinator=-1), runs, [])


@pytest.mark.parametrize("change", [{"loaded_ms": 1_000}, {"taken": (1_000, 2)}])
def test_a_lost_coordinator_is_news(change: dict[str, Any]) -> None:
    """The next one loads the group, or takes it over."""
    assert not are_quiet(unheard(coordinator=-1, **change), [heard(BEATS, B)], [])


def test_a_late_line_bridges_no_pause() -> None:
    """It counts when it came, after the heartbeat that ended the pause."""
    late = heard(MemberHeard("a", Client(), (4_000,)))
    on_time = heard(MemberHeard("a", Client(), (6_000,)))
    assert are_quiet(group(), in_time([on_time, late]))
    late.floor_ms = 7_000
    assert not are_quiet(group(), in_time([on_time, late]))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("commits", "last_ms", "are"),
    [
        ((10_999,), 1_000, True),
        ((11_000,), 1_000, False),
        ((11_000,), -1, True),
        ((9_000, 20_000), 1_000, False),
    ],
)
def test_a_commit_after_the_session_is_news(
    commits: tuple[int, ...], last_ms: int, *, are: bool, apart: bool
) -> None:
    """The rules knew of no end that could be near; of a member that never beat they know none."""
    found = group()
    found.members["a"].last_heartbeat_ms = last_ms
    run = heard(MemberHeard("a", Client(), (), commits))
    assert are_quiet(found, taken_apart([run]) if apart else [run]) is are


def test_a_group_that_is_not_stable_is_not_quiet() -> None:
    """There each answer may prove something."""
    found = group()
    found.state = GroupState.PREPARING_REBALANCE
    assert not are_quiet(found, [heard(A, B)])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ended_ms": 2_000}, id="ended"),
        pytest.param({"loaded_ms": 2_001}, id="loaded"),
        pytest.param({"group_type": "consumer"}, id="type"),
    ],
)
def test_what_may_be_of_another_life_is_not_applied_at_once(change: dict[str, object]) -> None:
    """It is taken apart, and each line is looked at."""
    found = group()
    for name, value in change.items():
        setattr(found, name, value)
    before = msgspec.to_builtins(found)

    assert not groups.beat(found, heard(A, B).seen)
    assert msgspec.to_builtins(found) == before


def test_what_a_broker_says_after_it_lost_the_shard_is_dropped_member_by_member() -> None:
    """Of members that it answered only afterwards nothing counts before the segment's end."""
    header = Header(shard=0, shard_count=1, order=Order(), lost={1: 4_200})
    nothing: Any = None
    awake = AwakeGroups(header=header, slots=Slots(), timeline=nothing, verdicts=nothing, failures=nothing)
    awake.take([heard(A, B)])

    kept = awake._current_runs("g", 10_000)
    assert [(type(run.seen.what).__name__, run.times) for run in kept] == [
        ("Heartbeats", (2_000, 4_000)),
        ("CommitsAnswered", (3_000,)),
    ]


def test_what_other_brokers_say_after_a_failover_stays_together() -> None:
    """Only the broker that lost the shard is looked at line by line."""
    header = Header(shard=0, shard_count=1, order=Order(), lost={2: 4_200})
    nothing: Any = None
    awake = AwakeGroups(header=header, slots=Slots(), timeline=nothing, verdicts=nothing, failures=nothing)
    run = heard(A, B)
    awake.take([run])

    assert awake._current_runs("g", 10_000) == [run]
