"""What a simulated group was seen doing, delivered to a shard late, twice, in disorder, or with gaps.

Records stand in the offsets partition at their own time.  Each log is a partition of the events topic, in
which a line may come long after what it tells of.  Clocks stand between them, so that the shard knows what
has been read.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator_model import observations as on
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, EventsClock
from coordinator_model.observations.log import (
    GroupLoaded,
    GroupUnloaded,
    ShardLoaded,
    ShardLoading,
    ShardUnloaded,
)
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.judging import Judge
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import decode_group
from coordinator_model.state.group import Transition

LOG, TOPIC, REQUESTS = Source.COORDINATOR_LOG, Source.OFFSETS, Source.REQUEST_LOG
FEEDS = {LOG: 0, REQUESTS: 1}
CLOCK_MS = 1_000
REST_MS = 90_000
"""How long the shard goes on after the last line: longer than it keeps a dead group."""

Delivered = list[tuple[int, Seen]]
"""When it comes, and what."""


def on_time(seen: Iterable[Seen]) -> Delivered:
    """Deliver everything when it happens."""
    return [(one.at_ms, one) for one in seen]


def late(delivered: Delivered, source: Source, by_ms: int) -> Delivered:
    """Deliver what one source tells so much later."""
    return [(at_ms + by_ms if one.source is source else at_ms, one) for at_ms, one in delivered]


def again(delivered: Delivered, source: Source, by_ms: int, chance: random.Random) -> Delivered:
    """Deliver a stretch of one source a second time, so much later."""
    own = [one for one in delivered if one[1].source is source]
    first, last = sorted((chance.randint(0, len(own)), chance.randint(0, len(own))))
    if chance.random() < 0.3:
        first, last = 0, len(own)
    return [*delivered, *((at_ms + by_ms, one) for at_ms, one in own[first:last])]


def jittered(delivered: Delivered, source: Source, by_ms: int, chance: random.Random) -> Delivered:
    """Deliver each line of one source at a time of its own, up to so much later."""
    return [
        (at_ms + chance.randint(0, by_ms) if one.source is source else at_ms, one) for at_ms, one in delivered
    ]


def thinned(delivered: Delivered, source: Source, share: float, chance: random.Random) -> Delivered:
    """Lose a part of what one source tells."""
    return [one for one in delivered if one[1].source is not source or chance.random() >= share]


def with_moves(seen: list[Seen]) -> list[Seen]:
    """Add the lines about the whole shard that stand beside those about its one group."""
    lines: list[Seen] = []
    epoch = 1
    for one in seen:
        if isinstance(one.what, GroupLoaded):
            epoch += 1
            lines.append(msgspec.structs.replace(one, what=ShardLoading(epoch=epoch)))
        lines.append(one)
        if isinstance(one.what, GroupLoaded):
            lines.append(msgspec.structs.replace(one, what=ShardLoaded(epoch=epoch)))
        if isinstance(one.what, GroupUnloaded):
            lines.append(msgspec.structs.replace(one, what=ShardUnloaded()))
    return lines


@dataclass
class Outcome:
    """What a shard made of it."""

    shard: Shard
    group: str
    told: list[Transition] = field(default_factory=list)
    alerts: list[Any] = field(default_factory=list)
    divergences: dict[str, int] = field(default_factory=dict)

    @property
    def picture(self) -> tuple[str, int, frozenset[str]]:
        """State, generation and members; of a dead group the generation means nothing."""
        slot: Slot | None = self.shard.slots.get(self.group)
        if slot is None:
            return "Dead", 0, frozenset()
        group = decode_group(slot.raw)
        generation = 0 if group.state is GroupState.DEAD else group.generation
        return str(group.state), generation, frozenset(group.members)

    @property
    def effective(self) -> list[Transition]:
        """The group's story: each correction in the place of the row that it replaces."""
        rows: list[Transition] = []
        for one in self.told:
            if one.replaces is None:
                rows.append(one)
            else:
                place = next((n for n, known in enumerate(rows) if known.id == one.replaces), None)
                assert place is not None, f"replaces what is not there: {one}"
                rows[place] = one
        return rows


def deliver(delivered: Delivered, group: str, *, judge: Judge | None = None, batches: int = 1) -> Outcome:
    """Let a shard read everything, and time pass until nothing more comes of it."""
    shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
    outcome = Outcome(shard, group)
    rows = sorted(_rows(delivered), key=lambda row: (row[0], row[1]))
    size, position = max(1, len(rows) // batches + 1), 0
    for start in range(0, len(rows), size):
        outputs = shard.step([_read_to(position, seen) for _, _, seen in rows[start : start + size]], judge)
        position += sum(seen.source is TOPIC for _, _, seen in rows[start : start + size])
        outcome.told += outputs.transitions
        outcome.alerts += outputs.alerts
        for one in outputs.divergences:
            outcome.divergences[one.kind] = outcome.divergences.get(one.kind, 0) + one.count
    return outcome


def _read_to(position: int, seen: Seen) -> Seen:
    """Return an observation; a clock says how far the topic had been read before its batch."""
    if not isinstance(seen.what, Clock):
        return seen
    return msgspec.structs.replace(seen, what=msgspec.structs.replace(seen.what, position=position))


def _rows(delivered: Delivered) -> Iterable[tuple[int, int, Seen]]:
    """Return each observation and clock with its time and place; all that is in a partition is numbered."""
    ordered = sorted(delivered, key=lambda row: row[0])
    moments: list[tuple[int, int, Seen]] = [(at_ms, 0, one) for at_ms, one in ordered]
    ends = sorted(at_ms for at_ms, one in ordered if one.source is TOPIC)
    for sequence, at_ms in enumerate(_clock_times([at_ms for at_ms, _ in ordered])):
        end = sum(one <= at_ms for one in ends)
        clock = Clock(sequence=sequence, end_offset=end, events_partitions=len(FEEDS))
        moments.append((at_ms, 1, _control(at_ms, 0, clock)))
        copy = EventsClock(sequence=sequence)
        moments += [(at_ms, 1, _control(at_ms, feed, copy)) for feed in FEEDS.values()]
    counts: Counter[str] = Counter()
    for number, (at_ms, _, one) in enumerate(sorted(moments, key=lambda row: row[:2])):
        partition = FEEDS.get(one.source, one.partition)
        lane = _lane(one, partition)
        placed = msgspec.structs.replace(one, partition=partition, offset=counts[lane], recorded_at_ms=at_ms)
        counts[lane] += 1
        yield at_ms, number, placed


def _lane(seen: Seen, partition: int) -> str:
    if seen.source is TOPIC:
        return "offsets"
    return "control" if isinstance(seen.what, Clock) else f"events {partition}"


def _clock_times(comes: list[int]) -> list[int]:
    """Return when it is noted how late it is: often while something comes, rarely while nothing does."""
    if not comes:
        return []
    times = {comes[0] - 1}
    for at_ms in comes:
        second = at_ms // CLOCK_MS + 1
        times.update((second + after) * CLOCK_MS for after in (0, 1, 2, 5, 10, 30))
    times.update(comes[-1] + after for after in range(0, REST_MS, 10_000))
    return sorted(times)


def _control(at_ms: int, partition: int, what: on.AnyObservation) -> Seen:
    return Seen(
        at_ms=at_ms,
        source=Source.CONTROL,
        partition=partition,
        offset=0,
        index=0,
        broker=-1,
        recorded_at_ms=at_ms,
        backlog=False,
        what=what,
    )
