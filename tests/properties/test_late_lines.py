"""What comes late, twice, in disorder or with gaps leads to the same last state and tells nothing twice.

With the topic read, records say by themselves how a group stands in the end.  A source that alone tells
something (a coordinator that moved, without the INFO log) tells it late if it comes late, so the last state
is held against that of the same life undisturbed.
"""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alerts.rules import RuleJudge
from coordinator_model.observations.base import Source
from tests.properties.delivered import (
    LOG,
    REQUESTS,
    TOPIC,
    Delivered,
    again,
    deliver,
    jittered,
    late,
    on_time,
    thinned,
    with_moves,
)
from tests.properties.examples import examples
from tests.properties.simulated_clients import GROUP, Life, live

MODES = {"full": {LOG, TOPIC, REQUESTS}, "quiet": {LOG, TOPIC}, "requests": {TOPIC, REQUESTS}}
LATE_MS = (30, 400, 2_000, 7_000, 30_000, 300_000, 3_600_000)
SEEDS = st.integers(0, 2**32)
EVENTS = st.integers(3, 25)


def told_of(life: Life, mode: str) -> Delivered:
    """Return what a mode reads of a life, delivered when it happened."""
    return on_time(with_moves([one for one in life.world.seen if one.source in MODES[mode]]))


def lives(seed: int, events: int, chance: random.Random) -> Life:
    """Return a group that mostly has had another life before this one, with the same generations."""
    life = live(seed, events, failovers=chance.random() < 0.5)
    if chance.random() < 0.7:
        for one in life.consumers:
            one.leave("the consumer is being closed")
        life.settle()
        life._delete()
        life.world.run_until(life.world.now_ms + 500)
        life._new()
        life.go_on(chance.randint(1, 3))
    life.settle()
    return life


def a_log(mode: str, chance: random.Random) -> Source:
    """Return one of the logs that a mode reads."""
    return chance.choice(sorted(MODES[mode] - {TOPIC}))


def shipped_badly(delivered: Delivered, mode: str, chance: random.Random) -> Delivered:
    """Let a log come late as a whole, or a stretch of it a second time."""
    source, by_ms = a_log(mode, chance), chance.choice(LATE_MS)
    if chance.random() < 0.5:
        return late(delivered, source, by_ms)
    return again(delivered, source, by_ms, chance)


@pytest.mark.parametrize("mode", list(MODES))
@examples(100)
@given(seed=SEEDS, events=EVENTS)
@example(seed=70_058, events=3)  # a client leaves with an id, and without having joined
def test_late_and_repeated_lines_lead_to_the_same_last_state(mode: str, seed: int, events: int) -> None:
    """A log that comes up to an hour late, or once more, changes nothing of how a group stands in the end."""
    chance = random.Random(seed)
    delivered = told_of(lives(seed, events, chance), mode)

    assert deliver(shipped_badly(delivered, mode, chance), GROUP).picture == deliver(delivered, GROUP).picture


@pytest.mark.parametrize("mode", list(MODES))
@examples(60)
@given(seed=SEEDS, events=EVENTS)
@example(seed=134_975, events=6)  # the line of a load is lost: a generation comes twice
def test_lines_in_disorder_or_with_gaps_lead_to_the_right_last_state(
    mode: str, seed: int, events: int
) -> None:
    """A log that loses lines, or tells each up to half a minute late, leads to the right state in the end."""
    chance = random.Random(seed)
    life = live(seed, events, failovers=chance.random() < 0.5)
    life.renew()
    delivered, source = told_of(life, mode), a_log(mode, chance)
    if chance.random() < 0.5:
        delivered = jittered(delivered, source, chance.choice((30, 2_000, 30_000)), chance)
    else:
        ends_ms = life.world.now_ms - 60_000  # the last generation is told of
        kept = [row for row in delivered if row[0] >= ends_ms]
        lossy = [row for row in delivered if row[0] < ends_ms]
        delivered = [*thinned(lossy, source, chance.choice((0.05, 0.3)), chance), *kept]
    coordinator = life.coordinator

    wanted = coordinator.state, coordinator.generation, frozenset(coordinator.members)
    assert deliver(delivered, GROUP).picture == wanted


@pytest.mark.parametrize("mode", list(MODES))
@examples(100)
@given(seed=SEEDS, events=EVENTS)
def test_nothing_is_told_twice_nor_backwards(mode: str, seed: int, events: int) -> None:
    """Each id is one transition, each (id, revision) one alert, and no row lies before the one before it."""
    chance = random.Random(seed)
    delivered = told_of(lives(seed, events, chance), mode)
    outcome = deliver(shipped_badly(delivered, mode, chance), GROUP, judge=RuleJudge())

    ids = [one.id for one in outcome.told]
    assert len(set(ids)) == len(ids)
    revisions = [(one.id, one.revision) for one in outcome.alerts]
    assert len(set(revisions)) == len(revisions)
    times = [one.at_ms for one in outcome.effective]
    assert times == sorted(times)
