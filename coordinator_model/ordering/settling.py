"""Decides the time zone of lines, from records, lines and other shards' findings in the order of their times.

Each of them has a time that depends on its place in its partition alone, and takes effect in the order of
these times, as far as all partitions have been read.  So it does not matter whether a record was read before
a line that it explains, or how much was read at once.
"""

import heapq
from collections.abc import Mapping

from coordinator_model.observations import Seen
from coordinator_model.ordering.zones import PATIENCE_MS, PUZZLES_MAX, Puzzle, Written, Zones

_TOLD, _RECORD, _LINE, _LESSON, _DEADLINE = range(5)


_Event = tuple[int, int, tuple[int, int, int], int, object]
"""Time, kind, place, number, subject."""


def settled(
    zones: Zones, orders: Mapping[int, int], reached_ms: int, *, asks: bool
) -> list[tuple[Puzzle, int]]:
    """Apply everything before ``reached_ms``, and return the lines whose zone is decided.

    Args:
        zones: known zones and waiting lines.
        orders: offset -> order time of the records that wait to be applied.
        reached_ms: the time before which everything has been read.
        asks: whether lines wait for a proof; without records there is none.

    Returns:
        the lines, in the order in which they were decided, each with how far (ms) its zone is ahead.
    """
    if not (zones.puzzles or zones.written or zones.lessons or zones.telling):
        return []
    return _Settling(zones, reached_ms, asks=asks).run(orders)


class _Settling:
    """One pass over everything since the last pass, in the order of its times."""

    def __init__(self, zones: Zones, reached_ms: int, *, asks: bool) -> None:
        self.zones, self.reached_ms, self.asks = zones, reached_ms, asks
        self.events: list[_Event] = []
        self.queues: dict[tuple[int, int], list[Puzzle]] = {}
        self.waiting = self.pushed = 0
        self.done: list[tuple[Puzzle, int]] = []

    def run(self, orders: Mapping[int, int]) -> list[tuple[Puzzle, int]]:
        """Apply one event after the other."""
        self._collect(orders)
        heapq.heapify(self.events)
        while self.events:
            at_ms, kind, _, _, one = heapq.heappop(self.events)
            if isinstance(one, Written):
                for broker in sorted(self.zones.hear_record(one)):
                    self._look_again(broker)
            elif isinstance(one, Puzzle):
                self._meet(one, kind)
            elif isinstance(one, dict):
                self.zones.hear_told(one, at_ms)
                for broker in one:
                    self._look_again(broker)
        self._keep()
        return self.done

    def _collect(self, orders: Mapping[int, int]) -> None:
        """Collect the events that are due."""
        zones, reached_ms = self.zones, self.reached_ms
        for number, (at_ms, told) in enumerate(zones.telling):
            self._add(at_ms, _TOLD, (0, number, 0), told)
        zones.telling = [one for one in zones.telling if one[0] >= reached_ms]
        later: list[Written] = []
        for record in zones.written:
            is_due = self._add(orders.get(record.offset, -1), _RECORD, (0, record.offset, 0), record)
            if not is_due:
                later.append(record)
        zones.written = later
        zones.lessons = [
            one for one in zones.lessons if not self._add(one.time_ms, _LESSON, _place(one.seen), one)
        ]
        last_ms: dict[tuple[int, int], int] = {}
        for puzzle in zones.puzzles:
            lane = puzzle.seen.partition, puzzle.seen.broker
            if puzzle.is_open:
                self._queue(puzzle)
                continue
            puzzle.time_ms = last_ms[lane] = max(puzzle.time_ms, last_ms.get(lane, -1))
            self._add(puzzle.time_ms, _LINE, _place(puzzle.seen), puzzle)
        for queue in self.queues.values():
            self._await(queue[0])

    def _add(self, at_ms: int, kind: int, place: tuple[int, int, int], one: object) -> bool:
        if at_ms >= self.reached_ms:
            return False
        self.events.append((at_ms, kind, place, len(self.events), one))
        return True

    def _meet(self, line: Puzzle, kind: int) -> None:
        """Look at a line when its time, or the end of its patience, has come."""
        if kind == _DEADLINE:
            self._give_up(line)
            return
        has_told = self.zones.learn(line) if kind == _LESSON else self.zones.hear(line)
        if has_told:
            self._look_again(line.seen.broker)
        if kind == _LINE:
            line.is_open = True
            self._queue(line)
            if self.waiting > PUZZLES_MAX:
                self._give_up(self.queues[line.seen.partition, line.seen.broker][0])
            self._release(line.seen.partition, line.seen.broker)

    def _queue(self, line: Puzzle) -> None:
        self.queues.setdefault((line.seen.partition, line.seen.broker), []).append(line)
        self.waiting += 1

    def _give_up(self, line: Puzzle) -> None:
        """Take a line for late if nothing proved its zone in time and it is still the first in its queue."""
        lane = line.seen.partition, line.seen.broker
        queue = self.queues.get(lane)
        if queue and queue[0] is line:
            self.zones.give_up(line)
            self._look_again(line.seen.broker)

    def _look_again(self, broker: int) -> None:
        for partition, other in list(self.queues):
            if other == broker:
                self._release(partition, broker)

    def _release(self, partition: int, broker: int) -> None:
        """Release the lines of a queue that wait for nothing any more."""
        queue = self.queues[partition, broker]
        count = 0
        while count < len(queue) and not (self.asks and self.zones.question(queue[count])):
            self.done.append((queue[count], self.zones.ahead_ms(broker)))
            count += 1
        del queue[:count]
        self.waiting -= count
        if not queue:
            del self.queues[partition, broker]
        elif count or len(queue) == 1:
            self._await(queue[0])

    def _await(self, line: Puzzle) -> None:
        """Let the first line of a queue wait for a proof, up to its patience."""
        given_up_ms = line.time_ms + PATIENCE_MS
        if given_up_ms < self.reached_ms:
            self.pushed -= 1
            heapq.heappush(self.events, (given_up_ms, _DEADLINE, _place(line.seen), self.pushed, line))

    def _keep(self) -> None:
        """Keep the events that are not due."""
        settled = {id(puzzle) for puzzle, _ in self.done}
        self.zones.keep([one for one in self.zones.puzzles if id(one) not in settled])


def _place(seen: Seen) -> tuple[int, int, int]:
    return seen.partition, seen.offset, seen.index
