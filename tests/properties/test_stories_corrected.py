"""Whatever comes late or is lost, what a group's transitions tell with their corrections is one story."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.state.group import Transition
from tests.properties.delivered import (
    LOG,
    REQUESTS,
    TOPIC,
    Outcome,
    deliver,
    jittered,
    late,
    on_time,
    thinned,
    with_moves,
)
from tests.properties.examples import examples
from tests.properties.simulated_clients import GROUP, live

MODES = {"full": {LOG, TOPIC, REQUESTS}, "quiet": {LOG, TOPIC}, "requests": {TOPIC, REQUESTS}}
LATE_MS = (30, 400, 2_000, 7_000, 30_000, 300_000)
SEEDS = st.integers(0, 2**32)


def disturbed(mode: str, seed: int, events: int) -> Outcome:
    """Return what a shard makes of a life of which one log comes late, in disorder or with gaps."""
    chance = random.Random(seed)
    life = live(seed, events, failovers=chance.random() < 0.5)
    life.settle()
    delivered = on_time(with_moves([one for one in life.world.seen if one.source in MODES[mode]]))
    source = chance.choice(sorted(MODES[mode] - {TOPIC}))
    by_ms = chance.choice(LATE_MS)
    harmed = chance.choice(
        (
            late(delivered, source, by_ms),
            jittered(delivered, source, min(by_ms, 30_000), chance),
            thinned(delivered, source, chance.choice((0.05, 0.3)), chance),
        )
    )
    return deliver(harmed, GROUP, batches=chance.choice((1, 1, 3)))


@pytest.mark.parametrize("mode", list(MODES))
@examples(100)
@given(seed=SEEDS, events=st.integers(3, 25))
def test_corrections_come_from_what_they_replace(mode: str, seed: int, events: int) -> None:
    """A row that replaces another names one that was told, and comes from where that one came from."""
    told: dict[str, Transition] = {}
    for one in disturbed(mode, seed, events).told:
        if one.replaces is not None:
            assert told[one.replaces].from_state == one.from_state
        told[one.id] = one


@pytest.mark.parametrize("mode", list(MODES))
@examples(100)
@given(seed=SEEDS, events=st.integers(3, 25))
def test_what_is_not_replaced_is_one_walk(mode: str, seed: int, events: int) -> None:
    """Each row that was not replaced begins where the one before it ended."""
    story = disturbed(mode, seed, events).effective

    assert [one.from_state for one in story[1:]] == [one.to_state for one in story[:-1]]
