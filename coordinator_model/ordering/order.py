"""The buffer and the watermark: when each observation takes effect, in whatever batches it came.

An observation's *order time* depends on the contents of its Kafka partition alone: its own time, but never
before that of its predecessor in the same stream, and never before the time that the partition had proved to
have reached at that offset.  A shard's *watermark* is the least time that all partitions feeding it have
reached.  Everything that arrives later has an order time of at least the watermark, and everything strictly
before the watermark can be applied, in order, for good.

Observations wait here until then.  Three lanes prove time:

- a partition of the events topic, by the clock copies in it, less the time a log line may take on its
way (``SETTLE_MS``), on the slowest broker's clock;
- the shard's offsets partition, by clocks whose end offset has been read, or by its records before the
newest end (a clock may still show that a record after it was not replicated yet); a clock without an end (its
leader is gone) proves nothing here, and the shard waits;
- the control partition, by its clocks.

The driver's clock gives the time.  Times of a broker with a wrong clock are replaced by it (``righted``).  An
observation that precedes a clock and is dated after it gets that clock's time.  A clock that is far earlier
than a previous one proves that one wrong: the lanes go back to the earlier time, and so does the watermark.

A coalesced run (heartbeats, accepted commits) waits as one and is cut at the watermark.  Its decoder must not
coalesce across a clock copy, or parts of the run would be taken for late.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import NEVER, Seen, Source
from coordinator_model.ordering.buffered import (
    Buffered,
    Run,
    apart,
    cut,
    order_key,
    part,
    taken_apart,
)
from coordinator_model.ordering.lanes import BEYOND_MS, REGRESS_MS, EventsLane, OffsetsLane, slowest
from coordinator_model.ordering.righting import (
    AHEAD_MAX_MS,
    is_on_time,
    not_ahead,
    righted,
    righted_line,
    wrong_ms,
)
from coordinator_model.ordering.settling import settled
from coordinator_model.ordering.zones import Puzzle, Zones

SETTLE_MS = 300
"""How long after a clock copy a line written before it may come: the appender took up to 200 ms."""
HELD_MAX = 200_000
END_UNKNOWN = -2
"""The end of a partition that is read, and whose end no broker reported."""

_FROM_DRIVER = on.types_that(lambda one: one.from_driver)
_LINES = frozenset({Source.COORDINATOR_LOG, Source.REQUEST_LOG})


class Order(msgspec.Struct, array_like=True):
    """The lanes and the buffer of one shard."""

    now_ms: int = -1
    settle_ms: int = SETTLE_MS
    control_ms: int = -1
    """Newest time of the control partition, on the slowest broker's clock."""
    first_clock_ms: int = -1
    spoken_control_ms: int = -1
    events_partitions: int = 0
    events: dict[int, EventsLane] = {}
    clocked: OffsetsLane = msgspec.field(default_factory=OffsetsLane)
    """The lane of the shard's offsets partition."""
    held: list[Buffered] = []
    runs: list[Run] = []
    asked: bool = False
    overflowed: int = 0
    """Number of observations applied before their time because the buffer was full; the reader resets it."""
    announced: list[Buffered] = []
    """Observations that a job writes before its first clock: they take effect at the end of the backlog."""
    regressed_ms: int = 0
    """How far (ms) time was set back since the reader last looked; the reader resets it."""
    zones: Zones = msgspec.field(default_factory=Zones)

    def take(
        self, batch: Iterable[Seen], set_aside: Callable[[Seen, Exception], None] | None = None
    ) -> list[tuple[int, Seen]]:
        """Buffer a batch; return its ``LogSeconds``, each with the time before which none counts."""
        heard: list[tuple[int, Seen]] = []
        for seen in sorted(batch, key=_place):
            try:
                self._take_one(seen, heard)
            except Exception as error:
                if set_aside is None:
                    raise
                set_aside(seen, error)
        return heard

    def _take_one(self, seen: Seen, heard: list[tuple[int, Seen]]) -> None:
        what = seen.what
        if type(what) is on.LogSeconds:
            heard.append((self._lane(seen.partition).run_floor_ms(what.broker, self.settle_ms), seen))
        elif type(what) is on.EventsClock:
            self._tick_copy(seen, what)
        elif type(what) in _FROM_DRIVER:
            self._take_control(seen)
        elif type(what) in on.COALESCED:
            self._take_run(seen)
        elif type(what) is on.GroupHeard:
            self._take_together(seen)
        else:
            self._hold(seen)

    def _tick_copy(self, seen: Seen, what: on.EventsClock) -> None:
        lane = self._lane(seen.partition)
        # The driver appends soon after its time; if not, the broker was away, and lines may have come first.
        soon = abs(seen.recorded_at_ms - seen.at_ms) <= AHEAD_MAX_MS
        limit_ms = max(seen.at_ms, seen.recorded_at_ms) if soon else seen.at_ms
        if lane.newest_ms > limit_ms + BEYOND_MS and seen.recorded_at_ms >= 0:
            self._bound(seen.partition, limit_ms)
            lane.spoken_ms = {broker: min(one, limit_ms) for broker, one in lane.spoken_ms.items()}
        if lane.clock_ms < 0:
            self.zones.bound(seen.partition, limit_ms)
        if seen.at_ms < lane.clock_ms - REGRESS_MS:
            self._lower(lambda one: one.partition == seen.partition and one.source in _LINES)
        lane.tick(seen, what, self.settle_ms)

    def _bound(self, partition: int, limit_ms: int) -> None:
        """Give buffered observations of a partition that are dated after the next clock that clock's time."""
        self._bound_held(lambda one: one.partition == partition and one.source in _LINES, limit_ms)
        for index, run in enumerate(self.runs):
            if type(run.seen.what) is on.GroupHeard:
                continue  # its decoder has compared it with every clock copy that comes after its lines
            if run.seen.partition == partition and run.times[-1] > limit_ms + BEYOND_MS:
                times = tuple(min(one, limit_ms) for one in run.times)
                self.runs[index] = part(run, times)

    def _bound_held(self, concerned: Callable[[Seen], bool], limit_ms: int) -> None:
        for held in self.held:
            if concerned(held.seen):
                if held.order_ms > limit_ms + BEYOND_MS:
                    held.order_ms = max(limit_ms, self.now_ms)
                if held.seen.at_ms > limit_ms + BEYOND_MS:
                    held.seen = msgspec.structs.replace(held.seen, at_ms=limit_ms)

    def _lower(self, concerned: Callable[[Seen], bool]) -> None:
        """Let observations that wait for a disproved time wait only for their own."""
        for held in self.held:
            if concerned(held.seen):
                held.order_ms = min(held.order_ms, held.seen.at_ms)
        for run in self.runs:
            if concerned(run.seen):
                run.floor_ms = min(run.floor_ms, run.since_ms)
        self.zones.lower(concerned)

    def _lane(self, partition: int) -> EventsLane:
        lane = self.events.get(partition)
        if lane is None:
            lane = self.events[partition] = EventsLane()
        return lane

    def _take_control(self, seen: Seen) -> None:
        what = seen.what
        if isinstance(what, on.Clock):
            self._tick(seen, what)
            return
        if isinstance(what, on.PartitionAnew):
            self.clocked.begin_anew()
        self.spoken_control_ms = max(self.spoken_control_ms, seen.at_ms, self.control_ms)
        is_announced = self.first_clock_ms < 0 and isinstance(what, on.Settings | on.Adopted)
        waiting = self.announced if is_announced else self.held
        waiting.append(Buffered(max(self.spoken_control_ms, self.now_ms), seen))

    def _tick(self, seen: Seen, clock: on.Clock) -> None:
        told_ms = seen.at_ms + slowest(clock.skew_ms)
        if told_ms < self.control_ms - REGRESS_MS:
            self._come_back(told_ms)
        self.control_ms = max(self.control_ms, told_ms)
        self.clocked.wrong_ms = clock.wrong_ms
        if self.first_clock_ms < 0:
            self.first_clock_ms = self.control_ms
        self.events_partitions = clock.events_partitions
        if clock.zones_ms:
            self.zones.told(clock.zones_ms, self.control_ms)
        self.asked |= clock.ask
        self._bound_control()
        self._tick_records(clock)

    def _tick_records(self, clock: on.Clock) -> None:
        """Apply what a clock says of the shard's offsets partition."""
        if clock.end_offset >= 0:
            self.clocked.tick(clock.end_offset, clock.position, self.control_ms)
            if clock.is_answer and clock.end_offset == self.clocked.end_offset:
                self.clocked.answer(self.control_ms)
            self._hold_back(self.clocked.end_offset)
        elif clock.end_offset == END_UNKNOWN:
            self.clocked.exists()
        elif self.clocked.order_ms > self.control_ms + BEYOND_MS:
            # The cluster's shard, which is told of all partitions' records: they precede each clock.
            self._bound_records(NEVER)

    def _bound_control(self) -> None:
        """Give what precedes a clock in the control topic and is dated after it the clock's time.

        The driver dates all but its clocks by its machine's clock, which may have been wrong for a moment.
        """
        if self.spoken_control_ms > self.control_ms + BEYOND_MS:
            self._bound_held(lambda one: type(one.what) in _FROM_DRIVER, self.control_ms)
            self.spoken_control_ms = self.control_ms

    def _come_back(self, to_ms: int) -> None:
        """Set the watermark back to ``to_ms``: the time of an earlier clock was wrong."""
        self.regressed_ms += self.control_ms - to_ms
        self.control_ms = to_ms
        self.spoken_control_ms = min(self.spoken_control_ms, to_ms)
        self.clocked.come_back(to_ms)
        self.now_ms = min(self.now_ms, to_ms)
        self._lower(lambda _: True)
        self.zones.come_back(to_ms)

    def _hold_back(self, end_offset: int) -> None:
        """Give waiting records after a clock's end the order time that they have if the clock comes first."""
        late = False
        for held in self.held:
            if held.seen.source is not Source.OFFSETS or held.seen.offset < end_offset:
                continue
            held.seen = self.clocked.with_lag(held.seen)
            if held.order_ms < self.control_ms:
                held.order_ms, late = self.control_ms, True
        if late:
            self.clocked.order_ms = max(self.clocked.order_ms, self.control_ms)
        if self.clocked.order_ms > self.control_ms + BEYOND_MS:
            self._bound_records(end_offset)

    def _bound_records(self, end_offset: int) -> None:
        """Give waiting records before a clock's end that are dated after the clock the clock's time."""
        last_ms = self.control_ms
        records = [held for held in self.held if held.seen.source is Source.OFFSETS]
        for held in sorted(records, key=lambda one: one.seen.offset):
            if held.seen.offset >= end_offset:
                held.order_ms = last_ms = max(last_ms, held.seen.at_ms)
            elif held.order_ms > self.control_ms + BEYOND_MS:
                held.order_ms = max(self.control_ms, self.now_ms)
        self.clocked.order_ms = last_ms
        if self.clocked.position <= end_offset:
            self.clocked.proved_ms = min(self.clocked.proved_ms, last_ms)

    def _take_run(self, seen: Seen) -> None:
        if not seen.what.times:  # type: ignore[union-attr]  # only runs are taken here
            return
        lane = self._lane(seen.partition)
        floor_ms = lane.run_floor_ms(seen.broker, self.settle_ms)
        if lane.is_plain(seen) or not self._waits(lane, seen, floor_ms):
            lane.spoke(self._put_run(lane, self._righted(lane, seen), floor_ms))

    def _take_together(self, seen: Seen) -> None:
        """Buffer what several members were heard to do; their lines are plain (``EventsLane.is_plain``)."""
        lane = self._lane(seen.partition)
        if lane.is_odd:
            for one in apart(seen):
                self._take_run(one)
            return
        floor_ms = lane.run_floor_ms(seen.broker, self.settle_ms)
        self.runs.append(Run(max(floor_ms, self.now_ms), seen))
        lane.spoke(seen.what.since_ms)  # type: ignore[union-attr]  # only these are taken here

    def _put_run(self, lane: EventsLane, seen: Seen, floor_ms: int) -> int:
        """Buffer a run until its time, and return its first time (epoch ms)."""
        seen = not_ahead(seen)
        times: tuple[int, ...] = seen.what.times  # type: ignore[union-attr]  # only runs are taken here
        lane.newest_ms = max(lane.newest_ms, times[-1])
        self.runs.append(Run(max(floor_ms, self.now_ms), seen))
        return times[0]

    def _hold(self, seen: Seen) -> None:
        if seen.source is Source.OFFSETS:
            self._hold_record(seen)
            return
        lane = self._lane(seen.partition)
        floor_ms = lane.floor_ms(seen.broker, self.settle_ms)
        if not self._waits(lane, seen, floor_ms):
            lane.spoke(self._put_line(lane, self._righted(lane, seen), floor_ms))

    def _hold_record(self, seen: Seen) -> None:
        if type(seen.what) is on.GroupRecorded and (self.events_partitions or self.first_clock_ms < 0):
            self.zones.note_record(seen.what, seen.offset, seen.at_ms)
        if self.clocked.wrong_ms:
            seen = righted(seen, self.clocked.wrong_ms, self.clocked.near_ms(seen.offset))
        order_ms = self.clocked.order_of(seen.offset, seen.at_ms)
        self.held.append(Buffered(max(order_ms, self.now_ms), self.clocked.with_lag(seen)))

    def _put_line(self, lane: EventsLane, seen: Seen, floor_ms: int) -> int:
        """Buffer a line until its time, and return its order time (epoch ms)."""
        seen = not_ahead(seen)
        order_ms = max(seen.at_ms, floor_ms)
        if seen.source is Source.COORDINATOR_LOG:
            order_ms = max(order_ms, lane.spoken_ms.get(seen.broker, -1))
            lane.spoken_ms[seen.broker] = order_ms
        lane.newest_ms = max(lane.newest_ms, order_ms)
        self.held.append(Buffered(max(order_ms, self.now_ms), seen))
        return order_ms

    # --- brokers with a wrong zone or clock ---

    def _righted(self, lane: EventsLane, seen: Seen) -> Seen:
        """Return a broker's observation at the driver's time, as far as the broker's clock is known."""
        return righted(seen, lane.skew_ms.get(seen.broker, 0), lane.near_ms(seen)) if lane.is_odd else seen

    def _waits(self, lane: EventsLane, seen: Seen, floor_ms: int) -> bool:
        """Return whether an observation waits until its broker's zone is known, or after a line that does."""
        if seen.source not in _LINES:
            return False
        near_ms, skew_ms = lane.near_ms(seen), wrong_ms(lane.skew_ms.get(seen.broker, 0))
        if near_ms < 0:
            return False
        line = Puzzle(floor_ms, near_ms, seen.at_ms - skew_ms - near_ms, seen, skew_ms)
        if is_on_time(righted(seen, skew_ms, near_ms).at_ms - near_ms):
            self.zones.note_line(line)
            if seen.source is not Source.COORDINATOR_LOG or not self.zones.is_queued(seen):
                return False
        line.time_ms = floor_ms if lane.clock_ms >= 0 else max(near_ms, floor_ms)
        return self.zones.take(line)

    def _settle(self, reached_ms: int) -> None:
        """Date the lines whose broker's zone is now known, or given up."""
        records = (one for one in self.held if isinstance(one.seen.what, on.GroupRecorded))
        orders = {one.seen.offset: one.order_ms for one in records} if self.zones.written else {}
        # Without records nothing can prove a zone: the configured one counts.
        for puzzle, zone_ms in settled(self.zones, orders, reached_ms, asks=self.clocked.end_offset >= 0):
            lane, seen = self._lane(puzzle.seen.partition), righted_line(puzzle, zone_ms)
            if type(seen.what) in on.COALESCED:
                self._put_run(lane, seen, puzzle.floor_ms)
            else:
                self._put_line(lane, seen, puzzle.floor_ms)

    def advance(self) -> int:
        """Advance the watermark as far as every lane allows, and return it (epoch ms)."""
        reached_ms = self._reached()
        if self.regressed_ms:
            self.now_ms = min(self.now_ms, max(reached_ms, self.control_ms - AHEAD_MAX_MS))
        self.now_ms = max(self.now_ms, reached_ms)
        if len(self.held) + sum(map(_most, self.runs)) > HELD_MAX:
            self.runs = taken_apart(self.runs)
        excess = len(self.held) + len(self.runs) - HELD_MAX
        if excess > 0:
            self.overflowed += excess
            times = sorted([one.order_ms for one in self.held] + [run.first_ms() for run in self.runs])
            self.now_ms = max(self.now_ms, times[excess - 1] + 1)
        return self.now_ms

    def _reached(self) -> int:
        reached_ms = self._read()
        self._settle(reached_ms)
        return self.zones.held_ms(reached_ms)

    def _read(self) -> int:
        """Return the time (epoch ms) that all lanes have reached."""
        if self.control_ms < 0:
            return -1
        reached = self.control_ms
        if self.clocked.end_offset >= 0:
            reached = min(reached, self.clocked.now_ms)
        for partition in range(self.events_partitions):
            lane = self.events.get(partition)
            if lane is None:  # the others need not be read: a row may name a billion of them
                return -1
            reached = min(reached, lane.reached_ms)
        return reached

    def release(self) -> tuple[list[Buffered], list[Run]]:
        """Release the buffer before the watermark: observations in order, and runs cut there."""
        now_ms = self.now_ms
        ready = [one for one in self.held if one.order_ms < now_ms]
        if ready:
            self.held = [one for one in self.held if one.order_ms >= now_ms]
            ready.sort(key=order_key)
        runs: list[Run] = []
        waiting: list[Run] = []
        for run in self.runs:
            head, tail = cut(run, now_ms)
            if head is not None:
                runs.append(head)
            if tail is not None:
                waiting.append(tail)
        self.runs = [one for run in waiting for one in self._await_singly(run)]
        return ready, runs

    def _await_singly(self, run: Run) -> list[Run]:
        """Return a run that waits for its time, taken apart, and let the next clock copy bound it."""
        if type(run.seen.what) is not on.GroupHeard:
            return [run]
        lane = self._lane(run.seen.partition)
        lane.newest_ms = max(lane.newest_ms, run.seen.at_ms)
        return taken_apart([run])

    def due_ms(self, but: Collection[type[on.Observation]] = ()) -> int:
        """Return the driver's time (epoch ms) at which a buffered observation, but one ``but``, is due."""
        times = [one.order_ms for one in self.held if type(one.seen.what) not in but]
        times += [run.first_ms() for run in self.runs]
        given_up_ms = self.zones.due_ms()
        return min(times if given_up_ms is None else [*times, given_up_ms], default=NEVER)


def _most(run: Run) -> int:
    """Return how many runs of one member it is at most."""
    what = run.seen.what
    return 2 * len(what.members) if type(what) is on.GroupHeard else 1


def _place(seen: Seen) -> tuple[int, int, int, int]:
    """Return the rank of an observation: control first, since it dates the others."""
    if type(seen.what) in _FROM_DRIVER:
        lane = 0
    elif seen.source is Source.OFFSETS:
        lane = 1
    else:
        lane = 2
    return lane, seen.partition, seen.offset, seen.index
