"""Random lives of a group: the mirror, fed with lines and records, tells the very moves that were made."""

import random

import pytest

from coordinator_model.capture import Mirror
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.kafka.states import can_move
from coordinator_model.state.group import Transition
from tests.oracle import (
    Answered,
    Config,
    Coordinator,
    GroupState,
    LastFailover,
)
from tests.oracle.duel.random_requests import Moves
from tests.oracle.watched.traces import SHARDS, lines_and_records
from tests.unit.oracle.stage import G

EPOCH_MS = 1_700_000_000_000
SHARD = shard_of(G, SHARDS)
BATCH = 25
CONFIG = Config(group_min_session_timeout_ms=500, group_initial_rebalance_delay_ms=410, group_max_size=4)


def live(seed: int, requests: int = 200) -> Coordinator:
    """Let random clients play with a coordinator."""
    coordinator = Coordinator(CONFIG, start_ms=EPOCH_MS)
    moves = Moves(G, random.Random(seed))
    now_ms, waiting = EPOCH_MS, []
    for _ in range(requests):
        now_ms += moves.pause_ms()
        waiting.append(coordinator.request(now_ms, moves.next()))
        for ticket in waiting:
            if ticket.is_answered:
                moves.learn(ticket.request, ticket.response)
        waiting = [ticket for ticket in waiting if not ticket.is_answered]
    coordinator.advance(now_ms + 30_000)
    return coordinator


def mirrored(coordinator: Coordinator) -> list[Transition]:
    """What the mirror makes of it."""
    mirror = Mirror(
        cluster="c", shard_count=SHARDS, settings=b"{}", judge=None, feeds=1, offsets=True, strict=True
    )
    told: list[object] = []
    seen = list(lines_and_records(coordinator, SHARD))
    for start in range(0, len(seen), BATCH):
        batch = seen[start : start + BATCH]
        mirror.feed({SHARD: batch})
        told += mirror.advance(batch[-1].at_ms)
    told += mirror.finish(coordinator.now_ms + 100_000)
    return [one for one in told if isinstance(one, Transition)]


@pytest.mark.parametrize("seed", range(12))
def test_the_mirror_tells_the_moves_that_were_made(seed: int) -> None:
    """Each with its time, its generation and its cause."""
    coordinator = live(seed)

    truth = [
        (one.at_ms, one.from_state, one.to_state, one.generation, one.cause)
        for one in coordinator.outcomes
        if isinstance(one, LastFailover)
    ]
    assert len(truth) > 10
    assert [
        (one.at_ms, one.from_state, one.to_state, one.generation, one.cause.kind)
        for one in mirrored(coordinator)
    ] == truth


@pytest.mark.parametrize("seed", range(100, 125))
def test_what_always_holds(seed: int) -> None:
    """Legal moves in order of time, no generation twice, one answer a request, and the same again."""
    coordinator = live(seed)
    moves = [one for one in coordinator.outcomes if isinstance(one, LastFailover)]
    answered = [one.ticket for one in coordinator.outcomes if isinstance(one, Answered)]
    times = [one.at_ms for one in coordinator.outcomes]

    assert all(can_move(one.from_state, one.to_state) for one in moves)
    assert [one.to_state for one in moves[:-1]] == [one.from_state for one in moves[1:]]
    begun = [one for one in moves if one.to_state is GroupState.COMPLETING_REBALANCE]
    created = [one.at_ms for one in moves if one.from_state is GroupState.DEAD]
    lives = [(sum(at_ms <= one.at_ms for at_ms in created), one.generation) for one in begun]
    assert lives == sorted(set(lives))
    assert len(answered) == len(set(answered))
    assert times == sorted(times)
    assert live(seed).outcomes == coordinator.outcomes
