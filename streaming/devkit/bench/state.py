"""The row about state: the bytes that a shard saves per group, summaries for the rules included."""

from pathlib import Path

import msgspec

from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.observations import Seen, Source
from coordinator_model.shard import Shard
from streaming.devkit.bench.material import Population
from streaming.workers import ZSTD

GROUPS = 100
MINUTES = 10
PARTITIONS = 32
_FROM_MS = 1_750_000_000_000
_BEAT_MS = 3_000
_COMMIT_OFFSET = 5_000
"""Where a minute's commits begin in the offsets partition, behind its generations."""


def state(_folder: Path | None = None, **_: object) -> dict[str, float | int]:
    """Measure the blob of a shard whose groups have lived for ten minutes, rebalances among them."""
    population = Population(groups=GROUPS, partitions=PARTITIONS, shard_count=1)
    blob = grown(population)
    empty = len(_load(None).save())
    return {
        "groups": GROUPS,
        "members": population.members,
        "partitions": PARTITIONS,
        "blob_bytes": len(blob),
        "bytes_per_group": round((len(blob) - empty) / GROUPS),
    }


def _load(blob: bytes | None) -> Shard:
    return Shard.load(blob, cluster="bench", shard=0, shard_count=1, codec=ZSTD)


def grown(population: Population) -> bytes:
    """Return the saved shard of these groups after ten minutes of their lives."""
    blob: bytes | None = None
    judge = RuleJudge()
    for minute in range(MINUTES + 1):
        shard = _load(blob)
        shard.step(list(_minute(population, minute)), judge)
        blob = shard.save()
    assert blob is not None  # noqa: S101 - the loop ran
    return blob


def _minute(population: Population, minute: int) -> list[Seen]:
    """Return what is seen in one minute: a generation each five, commits, heartbeats, and the clocks."""
    at_ms = _FROM_MS + minute * 60_000
    seen = [_seen(at_ms - 1, Source.CONTROL, minute, _clock(minute, at_ms))] if minute == 0 else []
    for number in range(population.groups):
        offset = minute * 10_000 + number
        if minute % 5 == 0:
            seen += _rebalance(population, number, minute, at_ms, offset)
        seen += [
            _seen(
                at_ms + 30_000, Source.OFFSETS, offset + _COMMIT_OFFSET, _commits(population, number, at_ms)
            ),
            *_beats(population, number, minute, at_ms, offset),
        ]
    end_ms = at_ms + 60_000
    clock = _clock(minute, end_ms)
    copy = on.EventsClock(sequence=end_ms)
    return [
        *seen,
        _seen(end_ms, Source.CONTROL, 10**9 + minute, copy),
        _seen(end_ms, Source.CONTROL, minute + 1, clock),
    ]


def _seen(at_ms: int, source: Source, offset: int, what: on.AnyObservation, broker: int = -1) -> Seen:
    return Seen(
        at_ms=at_ms,
        source=source,
        partition=0,
        offset=offset,
        index=0,
        broker=broker,
        recorded_at_ms=at_ms,
        backlog=False,
        what=what,
    )


def _clock(minute: int, at_ms: int) -> on.Clock:
    # The position is what was read before: more would date this minute's records behind the clock.
    begun = minute * 10_000
    end = begun + _COMMIT_OFFSET + GROUPS
    return on.Clock(sequence=at_ms, end_offset=end, position=begun, events_partitions=1)


def _rebalance(population: Population, number: int, minute: int, at_ms: int, offset: int) -> list[Seen]:
    group, members = population.group(number), population.member_ids(number)
    generation = minute // 5 + 1
    reason = on.Reason(kind="member_joined", text="Adding new member", member_ids=(members[0],))
    recorded = on.GroupRecorded(
        group=group,
        generation=generation,
        protocol_type="consumer",
        protocol="range",
        leader_id=members[0],
        state_since_ms=at_ms + 20,
        members=tuple(
            on.MemberRecord(
                member_id=member,
                client_id=f"consumer-{number}-{index}",
                client_host="/10.1.2.3",
                session_timeout_ms=45_000,
                rebalance_timeout_ms=300_000,
                topics=(population.topic(number),),
                assigned={population.topic(number): tuple(range(index, population.partitions, len(members)))},
            )
            for index, member in enumerate(members)
        ),
    )
    log = Source.COORDINATOR_LOG
    return [
        _seen(
            at_ms,
            log,
            offset,
            on.RebalanceStarted(group=group, generation=generation - 1, reason=reason),
            broker=1,
        ),
        _seen(
            at_ms + 10,
            log,
            offset,
            on.JoinPhaseEnded(group=group, generation=generation, member_count=5),
            broker=1,
        ),
        _seen(at_ms + 20, Source.OFFSETS, offset, recorded),
    ]


def _commits(population: Population, number: int, at_ms: int) -> on.OffsetsCommitted:
    topic = population.topic(number)
    commits = tuple(
        on.Commit(topic, partition, at_ms % 10**9 + number * 7_919 + partition * 104_729, at_ms + 30_000)
        for partition in range(population.partitions)
    )
    return on.OffsetsCommitted(group=population.group(number), commits=commits)


def _beats(population: Population, number: int, minute: int, at_ms: int, offset: int) -> list[Seen]:
    times = tuple(range(at_ms + 1_000, at_ms + 59_000, _BEAT_MS))
    client = on.Client(client_id=f"consumer-{number}-1", host="/10.1.2.3")
    return [
        _seen(
            times[-1],
            Source.REQUEST_LOG,
            offset + 100 + index,
            on.Heartbeats(
                group=population.group(number),
                member_id=member,
                generation=minute // 5 + 1,
                error_code=0,
                times=times,
                client=msgspec.structs.replace(client, client_id=f"consumer-{number}-{index}"),
            ),
            broker=1,
        )
        for index, member in enumerate(population.member_ids(number))
    ]
