"""What request logs had said by a time is the same whether it is computed for that time or for a span."""

import random

import pytest

from coordinator_model.ordering import Order
from coordinator_model.shard import live_sources
from coordinator_model.shard.live_sources import HeardSpans
from coordinator_model.shard.snapshot import Header

AT_MS = 1_000_000


def _heard(chance: random.Random) -> list[tuple[int, int]]:
    """Return seconds of a log with silences, each with the time from which it counts."""
    known, at_ms, counts_ms = [], AT_MS - 200_000, 0
    for _ in range(chance.randrange(40)):
        at_ms += 1000 * chance.choice([1, 1, 1, 3, 4, 5, 29, 30, 31, 110])
        counts_ms = max(counts_ms, at_ms + 1000 + chance.choice([0, 0, 0, 7, 2500]))
        known.append((counts_ms, at_ms))
    return known


@pytest.mark.parametrize("seed", range(20))
def test_spans_say_what_the_time_itself_says(seed: int) -> None:
    """Asked in any order, each time gets the answer that holds at exactly that time."""
    chance = random.Random(seed)
    header = Header(shard=0, shard_count=1, order=Order())
    header.heard = {broker: _heard(chance) for broker in range(chance.randrange(3))}
    spans = HeardSpans(header)
    edges = [
        at_ms + over for one in header.heard.values() for pair in one for at_ms in pair for over in EDGES
    ]
    times = edges + [chance.randrange(AT_MS - 250_000, AT_MS + 250_000) for _ in range(300)]
    chance.shuffle(times)
    for at_ms in times:
        broker = chance.randrange(-1, 3)
        span = spans.at(broker, at_ms)
        assert (span.is_live, span.is_steady, span.heard_ms, span.seconds, span.brokers) == (
            live_sources.requests_live(header, broker, at_ms),
            live_sources.requests_steady(header, broker, at_ms),
            live_sources.requests_heard_ms(header, broker, at_ms),
            live_sources.seconds_heard(header, broker, at_ms),
            live_sources.brokers_heard(header, at_ms),
        )


EDGES = [
    over + one
    for over in (
        0,
        live_sources.SPEAKS_MS,
        live_sources.REQUESTS_LIVE_MS,
        live_sources.HEARD_SHOWN_MS,
    )
    for one in (-1, 0, 1)
]
