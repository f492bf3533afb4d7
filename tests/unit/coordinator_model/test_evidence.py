"""Which broker's request log spoke when."""

import pytest

from coordinator_model.evidence import hear, requests_heard_ms, requests_live
from coordinator_model.observations import BrokerHeard, Seen, Source
from coordinator_model.ordering import Order
from coordinator_model.snapshot import Header


@pytest.fixture
def header() -> Header:
    return Header(shard=0, shard_count=1, order=Order())


def tell(header: Header, broker: int, *seconds: int) -> None:
    what = BrokerHeard(broker=broker, heard=Source.REQUEST_LOG, seconds=seconds)
    seen = Seen(
        at_ms=0,
        source=Source.REQUEST_LOG,
        partition=0,
        offset=0,
        index=0,
        broker=broker,
        recorded_at_ms=0,
        backlog=False,
        what=what,
    )
    hear(header, 0, seen)


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
