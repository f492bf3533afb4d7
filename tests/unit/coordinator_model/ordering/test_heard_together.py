"""What the members of a group were heard to do waits as one, and is taken apart where that matters."""

import pytest

from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, EventsClock
from coordinator_model.observations.log import MemberFailed
from coordinator_model.observations.requests import (
    Client,
    CommitsAnswered,
    GroupHeard,
    Heartbeats,
    MemberHeard,
)
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering import order as ordering
from coordinator_model.ordering.buffered import Run
from coordinator_model.ordering.order import Order
from tests.unit.made_seen import seen


def heard(*members: MemberHeard, offset: int = 1) -> Seen:
    times = [time for one in members for time in one.beats + one.commits]
    what = GroupHeard(group="g", generation=1, since_ms=min(times), members=members)
    return seen(max(times), what, Source.REQUEST_LOG, offset=offset)


def member(name: str, beats: tuple[int, ...], commits: tuple[int, ...] = ()) -> MemberHeard:
    return MemberHeard(name, Client(client_id=name), beats, commits, f"static-{name}")


def clock(at_ms: int) -> Seen:
    return seen(at_ms, Clock(sequence=at_ms, events_partitions=1), Source.CONTROL, offset=at_ms)


def copy(at_ms: int, offset: int, skew_ms: int = 0) -> Seen:
    return seen(at_ms, EventsClock(sequence=at_ms, skew_ms={1: skew_ms}), Source.CONTROL, offset=offset)


def said(runs: list[Run]) -> list[tuple[type, str, tuple[int, ...]]]:
    found = []
    for run in runs:
        what = run.seen.what
        assert isinstance(what, Heartbeats | CommitsAnswered)
        assert what.client.client_id == what.member_id
        assert what.instance_id == f"static-{what.member_id}"
        assert run.seen.at_ms == what.times[-1]
        found.append((type(what), what.member_id, what.times))
    return found


def test_now_cuts_it_and_the_rest_waits_apart() -> None:
    """What is before now stays together; what waits for the next batch is of one member each."""
    order = Order()
    members = member("m", (100, 800), (200, 900)), member("n", (150,)), member("o", (), (160,))
    order.take([copy(50, 0), heard(*members), clock(550)])
    order.take([copy(850, 2)])
    order.advance()
    _, (run,) = order.release()

    assert run.seen.at_ms == 200
    assert run.seen.what == GroupHeard(
        group="g", generation=1, since_ms=100, members=(member("m", (100,), (200,)), *members[1:])
    )
    assert said(order.runs) == [(Heartbeats, "m", (800,)), (CommitsAnswered, "m", (900,))]


def test_it_is_taken_apart_where_times_are_in_doubt() -> None:
    """While a broker's clock is wrong, each run is dated by itself."""
    order = Order()
    order.take([copy(50, 0, skew_ms=7_000), heard(member("m", (100,), (200,)))])

    assert said(order.runs) == [(Heartbeats, "m", (100,)), (CommitsAnswered, "m", (200,))]


def test_the_clock_of_a_later_batch_bounds_what_waits() -> None:
    """A time long after the next clock is no true one: that clock's time counts."""
    order = Order()
    order.take([copy(1_000, 0), heard(member("m", (1_100, 10**9))), clock(1_200)])
    order.advance()
    order.release()
    order.take([copy(1_500, 2)])

    assert [run.times[-1] for run in order.runs] == [1_500]


def test_a_clock_of_the_same_batch_does_not() -> None:
    """Lines after that clock are in it, and the decoder has compared those before it."""
    order = Order()
    line = seen(50_000, MemberFailed(group="g", member_id="m"), offset=2)
    order.take([copy(1_000, 0), heard(member("m", (1_100, 15_000))), line, copy(1_500, 3)])

    assert [run.seen.at_ms for run in order.runs] == [15_000]
    assert [held.order_ms for held in order.held] == [1_500]


def test_the_first_clock_of_all_does_not_either() -> None:
    """A first batch that comes late has lines from before that clock, and from long after it, in one."""
    order = Order()
    order.take([heard(member("m", (900, 15_000)), offset=0), copy(1_000, 1), copy(16_000, 3), clock(16_000)])
    order.advance()
    _, (run,) = order.release()

    assert isinstance(run.seen.what, GroupHeard)
    assert run.seen.what.members[0].beats == (900, 15_000)


def test_too_many_waiting_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one of members, not of groups."""
    monkeypatch.setattr(ordering, "HELD_MAX", 2)
    order = Order()
    order.take([copy(50, 0), heard(member("m", (100,), (200,)), member("n", (300,)))])
    order.advance()
    _, runs = order.release()

    assert order.overflowed == 1
    assert said(runs) == [(Heartbeats, "m", (100,))]
