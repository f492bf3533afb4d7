"""Which broker's request log spoke when."""

import pytest

from coordinator_model import observations as on
from coordinator_model.observations.answers import ShardLed
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import LogSeconds
from coordinator_model.observations.log import ShardLoaded, ShardLoading, ShardUnloaded
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.order import Order
from coordinator_model.shard.live_sources import (
    hear,
    move_shard,
    note_leader,
    note_stall,
    requests_heard_ms,
    requests_live,
)
from coordinator_model.shard.snapshot import Header
from coordinator_model.state.last_failover import LastFailover
from tests.unit.made_seen import seen


@pytest.fixture
def header() -> Header:
    return Header(shard=0, shard_count=1, order=Order())


def tell(header: Header, broker: int, *seconds: int) -> None:
    what = LogSeconds(broker=broker, heard=Source.REQUEST_LOG, seconds=seconds)
    hear(header, 0, seen(0, what, Source.REQUEST_LOG, broker=broker))


def test_lines_of_nobody_are_heard_as_anybodys(header: Header) -> None:
    """Neither key nor envelope names the broker: the log speaks all the same."""
    tell(header, -1, 3, 5)
    assert requests_heard_ms(header, -1, 6_000) == 5_000
    assert requests_heard_ms(header, 2, 6_000) == -1


def test_the_newest_of_all_brokers_counts_while_none_is_known_to_coordinate(header: Header) -> None:
    """A second counts once it is over."""
    tell(header, 1, 3)
    tell(header, 2, 7)
    assert requests_heard_ms(header, -1, 9_000) == 7_000
    assert requests_heard_ms(header, -1, 7_500) == 3_000
    assert requests_heard_ms(header, 1, 9_000) == 3_000
    assert not requests_live(header, 3, 9_000)


def line(what: on.AnyObservation, broker: int, at_ms: int) -> Seen:
    return seen(at_ms, what, broker=broker)


def test_a_shard_that_goes_to_another_broker_moved(header: Header) -> None:
    """From whom and to whom, at the moment at which it is taken over; the first load is no move."""
    move_shard(header, line(ShardLoaded(epoch=3), 1, 10), 10)
    assert header.moved is None
    move_shard(header, line(ShardUnloaded(), 1, 20), 20)
    assert header.moved == LastFailover(at_ms=20, came_from=1)
    move_shard(header, line(ShardLoading(epoch=4), 2, 30), 30)
    move_shard(header, line(ShardLoaded(epoch=4), 2, 40), 40)
    assert header.moved == LastFailover(at_ms=30, came_from=1, went_to=2)


def test_lines_that_are_read_late_tell_when_it_moved(header: Header) -> None:
    """The metadata were asked before the new coordinator's lines came."""
    note_leader(header, ShardLed(leader=1, epoch=3), 10)
    note_leader(header, ShardLed(leader=2, epoch=4), 5_000)
    move_shard(header, line(ShardLoading(epoch=4), 2, 3_000), 6_000)
    assert header.moved == LastFailover(at_ms=3_000, came_from=1, went_to=2)

    move_shard(header, line(ShardUnloaded(), 2, 7_000), 9_000)
    assert header.moved == LastFailover(at_ms=7_000, came_from=2)
    move_shard(header, line(ShardLoading(epoch=5), 1, 7_100), 9_000)
    assert header.moved == LastFailover(at_ms=7_100, came_from=2, went_to=1)


def test_who_gives_up_what_another_has_taken_moves_nothing(header: Header) -> None:
    """It was frozen, and hears only now that others coordinate."""
    move_shard(header, line(ShardLoaded(epoch=3), 1, 10), 10)
    move_shard(header, line(ShardLoading(epoch=4), 2, 30), 30)
    move_shard(header, line(ShardUnloaded(), 1, 90), 90)

    assert header.moved == LastFailover(at_ms=30, came_from=1, went_to=2)
    assert header.coordinator == 2


def test_a_replica_that_is_missed_is_no_move_and_is_noted_like_one(header: Header) -> None:
    """Only its coordinator can tell; told again and again it lasts, and later it is another one."""
    move_shard(header, line(ShardLoaded(epoch=3), 1, 10), 10)

    assert not note_stall(header, 100, 2, 5_100)
    assert header.moved is None
    assert note_stall(header, 100, 1, 5_100)
    assert not note_stall(header, 150, 1, 5_150)
    assert note_stall(header, 1_100, 1, 6_100)
    assert header.moved == LastFailover(at_ms=100, came_from=1, went_to=1, stood=True, stalled_ms=6_100)

    assert note_stall(header, 90_000, 1, 95_000)
    assert header.moved == LastFailover(at_ms=90_000, came_from=1, went_to=1, stood=True, stalled_ms=95_000)


def test_a_replica_that_is_missed_after_a_move_belongs_to_it(header: Header) -> None:
    """A broker that dies led some partitions, and was a replica of the others."""
    note_leader(header, ShardLed(leader=1, epoch=3), 10)
    note_leader(header, ShardLed(leader=2, epoch=4), 5_000)

    assert note_stall(header, 6_000, 2, 11_000)
    assert header.moved == LastFailover(at_ms=5_000, came_from=1, went_to=2, stalled_ms=11_000)
    assert header.moved.over_ms == 16_000


def test_a_shard_that_another_broker_takes_from_a_dead_one_moved(header: Header) -> None:
    """Nothing was given up: the metadata or the new leader's lines tell."""
    note_leader(header, ShardLed(leader=1, epoch=3), 10)
    note_leader(header, ShardLed(leader=2, epoch=4), 20)
    assert header.moved == LastFailover(at_ms=20, came_from=1, went_to=2)
    move_shard(header, line(ShardLoading(epoch=4), 2, 25), 25)
    assert header.moved == LastFailover(at_ms=20, came_from=1, went_to=2)


def test_a_broker_that_began_anew_moved_its_shard_to_itself(header: Header) -> None:
    """A later epoch on the same broker: it was restarted and has read everything again."""
    move_shard(header, line(ShardLoaded(epoch=3), 1, 10), 10)
    move_shard(header, line(ShardLoading(epoch=5), 1, 20), 20)
    assert header.moved == LastFailover(at_ms=20, came_from=1, went_to=1)
