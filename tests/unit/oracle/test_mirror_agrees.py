"""Random lives of a group: the mirror, fed with lines and records, tells the very moves that were made."""

import random
from collections.abc import Iterator

import pytest

from coordinator_model import observations as on
from coordinator_model.capture import Mirror
from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.decoding.records import subscribed_topics
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.kafka.states import can_move
from coordinator_model.observations.base import Source
from coordinator_model.observations.seen import Seen
from coordinator_model.state.group import Transition
from tests.oracle import (
    Answered,
    Appended,
    Config,
    Coordinator,
    GroupMember,
    GroupMetadata,
    GroupState,
    GroupTombstone,
    Logged,
    Moved,
    OffsetCommitted,
    OffsetTombstone,
    Record,
)
from tests.oracle.duel.random_requests import Moves
from tests.unit.made_seen import seen
from tests.unit.oracle.stage import G

EPOCH_MS = 1_700_000_000_000
SHARDS = 50
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


def observed(coordinator: Coordinator) -> Iterator[Seen]:
    """What a monitor sees of it: the log and the topic."""
    prefix = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={SHARD}] "
    for number, one in enumerate(coordinator.outcomes):
        what: on.AnyObservation | None = None
        if isinstance(one, Logged):
            what = parse_coordinator_line(prefix + one.message, shard_count=SHARDS).observation
        elif isinstance(one, Appended):
            what = _recorded(one.record, one.at_ms)
        if what is not None:
            yield _seen(number, one.at_ms, what, is_line=isinstance(one, Logged))


def _seen(number: int, at_ms: int, what: on.AnyObservation, *, is_line: bool) -> Seen:
    if is_line:
        return seen(at_ms, what, offset=number)
    return seen(at_ms, what, Source.OFFSETS, partition=SHARD, offset=number)


def _recorded(record: Record, at_ms: int) -> on.AnyObservation | None:
    match record:
        case GroupMetadata():
            return on.GroupRecorded(
                group=record.group,
                generation=record.generation,
                protocol_type=record.protocol_type,
                protocol=record.protocol,
                leader_id=record.leader,
                state_since_ms=record.current_state_timestamp,
                members=tuple(map(_member, record.members)),
            )
        case GroupTombstone():
            return on.GroupTombstone(group=record.group)
        case OffsetCommitted():
            commit = on.Commit(record.topic, record.partition, record.offset, record.commit_timestamp)
            return on.OffsetsCommitted(group=record.group, commits=(commit,))
        case OffsetTombstone():
            commit = on.Commit(record.topic, record.partition, None, at_ms)
            return on.OffsetsCommitted(group=record.group, commits=(commit,))
        case _:
            return None


def _member(member: GroupMember) -> on.MemberRecord:
    return on.MemberRecord(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
        instance_id=member.group_instance_id,
        topics=subscribed_topics(member.subscription),
    )


def mirrored(coordinator: Coordinator) -> list[Transition]:
    """What the mirror makes of it."""
    mirror = Mirror(
        cluster="c", shard_count=SHARDS, settings=b"{}", judge=None, feeds=1, offsets=True, strict=True
    )
    told: list[object] = []
    seen = list(observed(coordinator))
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
        if isinstance(one, Moved)
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
    moves = [one for one in coordinator.outcomes if isinstance(one, Moved)]
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
