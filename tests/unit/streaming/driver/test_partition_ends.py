"""PartitionEnds of partitions from the leaders that live."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import KafkaError, KafkaTimeoutError

from coordinator_model.ordering.order import END_UNKNOWN
from streaming.driver.partition_ends import LeadersAsked, PartitionEnds
from tests.unit.streaming.fakes import FakeConnections


@pytest.fixture
def brokers() -> FakeConnections:
    """Three brokers that lead four partitions."""
    return FakeConnections({0: 1, 1: 2, 2: 3, 3: 1}, {0: 10, 1: 11, 2: 12, 3: 13})


def _asked(brokers: FakeConnections) -> LeadersAsked:
    return LeadersAsked(cast("Any", SimpleNamespace(connections=brokers)), "t", 4)


def test_each_leader_is_asked_once_for_all_it_leads(brokers: FakeConnections) -> None:
    """As many questions as leaders, whatever the number of partitions."""
    assert _asked(brokers).ends() == PartitionEnds([10, 11, 12, 13], {})
    assert brokers.asked == [(1, [0, 3]), (2, [1]), (3, [2])]


def test_a_partition_without_a_leader_is_not_asked_for(brokers: FakeConnections) -> None:
    """Its broker is gone and nobody took its place."""
    brokers.leaders[1] = -1
    assert _asked(brokers).ends() == PartitionEnds([10, END_UNKNOWN, 12, 13], {1: "no leader"})


def test_a_leader_that_refuses_costs_only_its_own_partitions(brokers: FakeConnections) -> None:
    """A broker that was killed stands in the metadata for seconds."""
    brokers.gone = {1}
    why = "broker 1: KafkaConnectionError"
    assert _asked(brokers).ends() == PartitionEnds([END_UNKNOWN, 11, 12, END_UNKNOWN], {0: why, 3: why})


def test_a_leader_that_does_not_know_its_end_yet_tells_none(brokers: FakeConnections) -> None:
    """One that has just been elected answers OFFSET_NOT_AVAILABLE (78) until it does."""
    brokers.ends[3] = -78
    why = {3: "broker 1: OffsetNotAvailableError"}
    assert _asked(brokers).ends() == PartitionEnds([10, 11, 12, END_UNKNOWN], why)


def test_a_leader_that_hangs_is_asked_again_when_it_has_answered(brokers: FakeConnections) -> None:
    """Questions do not pile up at it, and an answer that comes late is of an earlier time: not used."""
    asked = _asked(brokers)
    brokers.hanging = {2}
    ends = [asked.ends(), asked.ends()]
    late = brokers.owed[0].success(None)
    brokers.hanging = set()
    ends.append(asked.ends())

    assert [one.offsets[1] for one in ends] == [END_UNKNOWN, END_UNKNOWN, 11]
    assert [one.silent.get(1) for one in ends] == [
        "broker 2: KafkaTimeoutError",
        "broker 2: no answer yet",
        None,
    ]
    assert [broker for broker, _ in brokers.asked].count(2) == 2
    assert late.is_done


def test_a_broker_that_is_new_is_looked_for(brokers: FakeConnections) -> None:
    """The metadata name it before the client knows where it is."""
    brokers.unknown = {3}
    assert _asked(brokers).ends().silent == {2: "broker 3: UnknownBrokerIdError"}
    assert brokers.refreshed == 1


def test_metadata_that_do_not_come_are_asked_for_again(brokers: FakeConnections) -> None:
    """The first broker that was asked hangs, the next one answers."""
    brokers.deaf = 1
    assert _asked(brokers).ends().offsets == [10, 11, 12, 13]
    brokers.deaf = 2
    with pytest.raises(KafkaTimeoutError):
        _asked(brokers).ends()


def test_without_a_single_end_it_fails(brokers: FakeConnections) -> None:
    """Who asks learns why from the first partition."""
    brokers.gone = {1, 2, 3}
    with pytest.raises(KafkaError, match="no end offset of t is known: broker 1: KafkaConn"):
        _asked(brokers).ends()
