"""Draws the stored worlds: ``python -m tests.fingerprint.make_worlds``.  They are drawn once.

Drawn anew they are other worlds as soon as a generator has changed, and hashes of before say nothing.
"""

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations.answers import EndOffsetsReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, EventsClock
from coordinator_model.observations.records import Commit, GroupRecorded, MemberRecord, OffsetsCommitted
from coordinator_model.observations.seen import Seen
from tests.fingerprint.worlds import World, save
from tests.properties import cut_worlds as cuts
from tests.properties import handing_over as modern
from tests.properties.simulated_clients import Life

START_MS = 1_700_000_000_000
CLOCK_MS = 1_000
BATCH_MS = 8_000
EVENTS, OFFSETS, CONTROL = "events", "offsets", "control"
MODES = {
    "full": (Source.COORDINATOR_LOG, Source.OFFSETS, Source.REQUEST_LOG),
    "quiet": (Source.COORDINATOR_LOG, Source.OFFSETS),
    "requests": (Source.OFFSETS, Source.REQUEST_LOG),
    "offsets": (Source.OFFSETS,),
}
Arrival = tuple[int, Seen]
"""When a record was appended, and what it tells."""


def worlds() -> Iterator[World]:
    """Yield all worlds, each of a seed of its own."""
    for seed in range(220):
        mode = list(MODES)[seed % 4]
        disturbed = seed % 8 >= 4
        name = f"classic-{seed:03d}-{mode}{'-disturbed' if disturbed else ''}"
        yield captured(name, classic_life(seed, mode, disturbed=disturbed), seed)
    for seed in range(80):
        yield captured(f"modern-{seed:03d}", modern_life(seed), seed)
    for seed in range(120):
        yield cut_world(seed)
    for seed in range(80):
        yield captured(f"progress-{seed:03d}", progress(seed), seed)


# --- lives -----------------------------------------------------------------------------------------------


def classic_life(seed: int, mode: str, *, disturbed: bool) -> list[Arrival]:
    """Return what a mode reads of a classic group's life; disturbed: lines are late, lost and repeated."""
    life = Life(seed)
    life.world.now_ms = START_MS
    life.go_on(1 + seed % 40)
    life.renew()
    chance = random.Random(seed)
    arrivals: list[Arrival] = []
    for one in life.world.seen:
        if one.source not in MODES[mode]:
            continue
        if not disturbed or one.source is Source.OFFSETS:
            arrivals.append((one.at_ms, one))
        elif chance.random() > 0.03:
            copies = 2 if chance.random() < 0.03 else 1
            late_ms = chance.choice((0, 0, 0, 0, 100, 900, 4_000, 20_000))
            arrivals += [(one.at_ms + late_ms, one)] * copies
    return arrivals


def modern_life(seed: int) -> list[Arrival]:
    """Return a consumer group's records."""
    coordinator = modern.Coordinator(random.Random(seed), now_ms=START_MS)
    arrivals: list[Arrival] = []
    for _ in range(20 + seed):
        coordinator.now_ms += coordinator.chance.choice((1, 40, 300, 2_000))
        coordinator.act()
        # Records written as one have one time.
        arrivals += [
            (coordinator.now_ms, _seen(coordinator.now_ms, record)) for record in coordinator.written
        ]
        coordinator.written = []
    return arrivals


class Reading:
    """One partition: what is produced to it, and what the group commits."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.end = self.offset = chance.randint(100, 10_000)
        self.produced = chance.choice((0, 5, 50))
        self.consumed = self.produced * 2
        self.is_committed = True

    def turn(self) -> None:
        """Let one thing change."""
        lot = self.chance.random()
        if lot < 0.3:
            self.consumed = 0 if self.consumed else self.produced * 2
        elif lot < 0.5:
            self.is_committed = not self.is_committed
        elif lot < 0.7:
            self.produced = self.chance.choice((0, 5, 50, 500))
        elif lot < 0.8:
            self.offset = max(0, self.offset - self.chance.choice((10, 5_000)))
        elif lot < 0.85:
            self.end, self.offset = 0, 0
        else:
            self.consumed, self.is_committed = self.produced * 2, True

    def go_on(self) -> None:
        """Produce, and consume."""
        self.end += self.produced
        self.offset = min(self.end, self.offset + self.consumed)


def progress(seed: int) -> list[Arrival]:
    """Return a group that commits, or does not, for an hour or so, and the ends of its partitions."""
    chance = random.Random(seed)
    readings = [Reading(chance) for _ in range(chance.choice((1, 3, 6)))]
    now_ms = START_MS
    arrivals: list[Arrival] = [(now_ms, _seen(now_ms, _generation(len(readings), now_ms)))]
    for step in range(chance.choice((120, 240, 480))):
        now_ms += 10_000
        if chance.random() < 0.03:
            chance.choice(readings).turn()
        for reading in readings:
            reading.go_on()
        commits = tuple(
            Commit("t", number, reading.offset, now_ms)
            for number, reading in enumerate(readings)
            if reading.is_committed
        )
        if commits:
            arrivals.append((now_ms, _seen(now_ms, OffsetsCommitted(group="orders", commits=commits))))
        if step % 3 == 0:
            ends = {number: reading.end for number, reading in enumerate(readings)}
            told = EndOffsetsReported(group="orders", ends={"t": ends}, since_ms=START_MS, asked_ms=now_ms)
            arrivals.append((now_ms, _seen(now_ms, told, Source.CONTROL)))
    return arrivals


def _generation(partitions: int, at_ms: int) -> GroupRecorded:
    members = tuple(
        MemberRecord(
            member_id=f"{name}-1",
            client_id=name,
            client_host="/10.0.0.1",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            topics=("t",),
            assigned={"t": tuple(range(partitions))[index::2]},
        )
        for index, name in enumerate("ab")
    )
    return GroupRecorded(
        group="orders",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader_id="a-1",
        state_since_ms=at_ms,
        members=members,
    )


def _seen(at_ms: int, what: Any, source: Source = Source.OFFSETS) -> Seen:
    return Seen(
        at_ms=at_ms,
        source=source,
        partition=0,
        offset=0,
        index=0,
        broker=-1,
        recorded_at_ms=at_ms,
        backlog=False,
        what=what,
    )


# --- how it is read --------------------------------------------------------------------------------------


class Recording:
    """Partitions being filled, with clocks in them."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Arrival]] = {OFFSETS: [], CONTROL: [], EVENTS: []}
        self._sequence = 0

    def add(self, arrived_ms: int, seen: Seen) -> None:
        """Append one record to its partition."""
        part = OFFSETS if seen.source is Source.OFFSETS else EVENTS
        self._append(CONTROL if seen.source is Source.CONTROL else part, arrived_ms, seen)

    def _append(self, part: str, arrived_ms: int, seen: Seen) -> None:
        records = self.parts[part]
        placed = msgspec.structs.replace(seen, offset=len(records), recorded_at_ms=arrived_ms)
        records.append((arrived_ms, placed))

    def clock(self, at_ms: int) -> None:
        """Append a clock, and its copy."""
        self._sequence += 1
        end_offset = len(self.parts[OFFSETS])
        clock = Clock(sequence=self._sequence, end_offset=end_offset, events_partitions=1, is_answer=True)
        self._append(CONTROL, at_ms, _seen(at_ms, clock, Source.CONTROL))
        copy = EventsClock(sequence=self._sequence, skew_ms={1: 0})
        self._append(EVENTS, at_ms, _seen(at_ms, copy, Source.CONTROL))


def captured(name: str, arrivals: list[Arrival], seed: int) -> World:
    """Return a world of what arrived, with a clock each second and a batch every few."""
    recording = Recording()
    clock_ms = START_MS
    last_ms = START_MS
    for arrived_ms, seen in sorted(arrivals, key=lambda one: one[0]):
        # A pause is passed with a clock now and then, as a monitor passes it.
        step_ms = max(CLOCK_MS, (arrived_ms - clock_ms) // 20)
        while clock_ms <= arrived_ms:
            recording.clock(clock_ms)
            clock_ms += step_ms
        recording.add(arrived_ms, seen)
        last_ms = arrived_ms
    for wait_ms in (1_000, 40_000, 80_000, 600_000, 1_200_000):
        recording.clock(max(last_ms, clock_ms) + wait_ms)
    return World(name, list(batches(recording.parts, seed)))


def batches(parts: dict[str, list[Arrival]], seed: int) -> Iterator[bytes]:
    """Cut partitions into batches, each a little later or earlier than the others."""
    chance = random.Random(seed)
    taken = dict.fromkeys(parts, 0)
    until_ms = START_MS
    while any(taken[part] < len(records) for part, records in parts.items()):
        waiting = [records[taken[part]][0] for part, records in parts.items() if taken[part] < len(records)]
        until_ms = max(until_ms, min(waiting)) + BATCH_MS
        rows: list[Seen] = []
        delivered = taken[OFFSETS]
        for part, records in parts.items():
            start, limit_ms = taken[part], until_ms - chance.choice((0, 500, 3_000))
            while taken[part] < len(records) and records[taken[part]][0] <= limit_ms:
                taken[part] += 1
            rows += cuts.fold([seen for _, seen in records[start : taken[part]]])
        if rows:
            yield packed(rows, delivered)


def packed(rows: list[Seen], delivered: int) -> bytes:
    """Return rows as a stream gives them to a shard, clocks with the position that was read before."""
    return on.pack(
        [
            msgspec.structs.replace(one, what=msgspec.structs.replace(one.what, position=delivered))
            if isinstance(one.what, Clock)
            else one
            for one in rows
        ]
    )


def cut_world(seed: int) -> World:
    """Return a world of several groups of all kinds on two brokers, in which everything happens at random."""
    chance = random.Random(seed)
    parts = cuts.make_world(seed, 20 + seed)
    count = chance.randint(3, 12)
    bounds = {
        name: [0, *sorted(chance.randint(0, len(records)) for _ in range(count - 1)), len(records)]
        for name, records in parts.items()
    }
    made = []
    for batch in range(count):
        rows = [
            one
            for name, records in parts.items()
            for one in cuts.fold(records[bounds[name][batch] : bounds[name][batch + 1]])
        ]
        made.append(packed(rows, bounds[cuts.OFFSETS][batch]))
    return World(f"several-{seed:03d}", made)


if __name__ == "__main__":
    save(list(worlds()))
