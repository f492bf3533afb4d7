"""Finds brokers whose lines have another time zone than configured: only their records prove it.

A line that is dated hours away from its append is late, or written in another zone, or both, and looks the
same.  But the coordinator also writes a record of each generation, dated in epoch milliseconds by the same
clock.  So a line that is written beside a record shows its broker's zone: the distance between the two is the
zone's (a multiple of 15 minutes), however late the line comes.  Lines whose distance from their append may be
a zone's wait until a line proves it.  The shard's watermark waits as well, so that the result is as if the
zone had been known, and for no longer than ``PATIENCE_MS``.  After that the lines count as late.

Records, lines and findings of other shards take effect in the order of their times (``settling.py``), so that
how the input is cut into batches makes no difference.
"""

from collections.abc import Callable, Mapping

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen

STEP_MS = 900_000
"""All zones in use today are multiples of a quarter of an hour."""
FARTHEST_MS = 14 * 3_600_000
DELAY_MS = 60_000
"""Greatest delay between a line and its append, if the line is not late."""
AHEAD_MS = 5_000
BESIDE_MS = 10_000
"""A record is written within milliseconds of its line; a busy disk takes seconds."""
PATIENCE_MS = 30_000
LESSON_MS = 5_000
"""So long after a line that is on time the record beside it has been read."""
PUZZLES_MAX = 5_000
TAKEN_MAX = 100_000
"""Limit of lines of one batch that are ordered by time; further lines count as late at once."""
RECORDS_MAX = 128
SAID_MAX = 32


class Zone(msgspec.Struct, array_like=True):
    """How far (ms) a broker's lines are ahead of their true time, and when that was proved."""

    ahead_ms: int
    since_ms: int


class Puzzle(msgspec.Struct, array_like=True):
    """A line, or a coalesced run, that is late or written in another zone."""

    floor_ms: int
    """Its least order time."""
    near_ms: int
    """When it was appended."""
    ahead_ms: int
    """How far (ms) its time is after its append, on its broker's clock as far as that is known."""
    seen: Seen
    skew_ms: int = 0
    """How far (ms) its broker's clock was known to be ahead."""
    time_ms: int = -1
    """When its zone is looked at."""
    is_open: bool = False
    """Whether it was looked at and waits for a proof, or after a line that does."""


class Written(msgspec.Struct, array_like=True):
    """A record of a generation that is not yet compared with lines."""

    offset: int
    at_ms: int
    """On its broker's clock."""
    group: str
    generation: int
    leader_id: str


class Zones(msgspec.Struct, array_like=True):
    """What a shard knows of its brokers' zones."""

    known: dict[int, Zone] = {}
    puzzles: list[Puzzle] = []
    """In the order of their partitions."""
    late: dict[int, int] = {}
    """Broker -> distance (ms) at which its lines were late, which is no zone."""
    records: dict[str, dict[int, int]] = {}
    """Group -> generation -> time of its record, on its broker's clock; the newest ``RECORDS_MAX``."""
    said: list[Puzzle] = []
    """Lines that were looked at before the record of their generation was read."""
    news: list[tuple[int, int]] = []
    """(broker, how far its lines are ahead) found since the reader last looked; the reader resets it."""
    leaders: dict[str, dict[int, str]] = {}
    """The leader in each of these records."""
    written: list[Written] = []
    lessons: list[Puzzle] = []
    """Lines on time that are written beside a record: they may show that a zone has changed."""
    told_ms: dict[int, int] = {}
    """Broker -> the zone in the last clock."""
    telling: list[tuple[int, dict[int, int]]] = []
    """(time, zones that are new in the clock of that time)."""
    ahead: list[int] = []
    """Brokers whose lines were ahead of their append by no zone's distance, without a proof."""
    queued: dict[int, dict[int, int]] = {}
    """Partition -> broker -> how many of its lines wait."""

    # --- what comes in ---

    def told(self, ahead_ms: Mapping[int, int], at_ms: int) -> None:
        """Apply what other shards have found by ``at_ms``."""
        news = {broker: one for broker, one in ahead_ms.items() if self.told_ms.get(broker) != one}
        if news:
            self.told_ms = dict(ahead_ms)
            self.telling = [*self.telling, (at_ms, news)]

    def note_record(self, what: on.GroupRecorded, offset: int, at_ms: int) -> None:
        """Note when a generation was recorded, by its broker's clock."""
        leader_id = what.leader_id or ""
        self.written.append(Written(offset, at_ms, what.group, what.generation, leader_id))

    def note_line(self, puzzle: Puzzle) -> None:
        """Note a line on time, which needs no zone but may prove one."""
        if _generation_of(puzzle.seen.what) is not None:
            puzzle.time_ms = puzzle.floor_ms + LESSON_MS
            self.lessons.append(puzzle)

    def take(self, puzzle: Puzzle) -> bool:
        """Let a line wait for its turn; False if too many wait."""
        if len(self.puzzles) >= TAKEN_MAX:
            return False
        self.puzzles.append(puzzle)
        self._count_queued(puzzle)
        return True

    def keep(self, puzzles: list[Puzzle]) -> None:
        """Let only these lines go on waiting."""
        self.puzzles, self.queued = puzzles, {}
        for puzzle in puzzles:
            self._count_queued(puzzle)

    def _count_queued(self, puzzle: Puzzle) -> None:
        brokers = self.queued.setdefault(puzzle.seen.partition, {})
        brokers[puzzle.seen.broker] = brokers.get(puzzle.seen.broker, 0) + 1

    def is_queued(self, seen: Seen) -> bool:
        """Return whether earlier lines of the same broker wait."""
        return bool(self.queued) and seen.broker in self.queued.get(seen.partition, ())

    def bound(self, partition: int, limit_ms: int) -> None:
        """Limit the wait of a partition's lines to its first clock."""
        for puzzle in self.puzzles:
            if puzzle.seen.partition == partition:
                puzzle.time_ms = min(puzzle.time_ms, limit_ms)

    def lower(self, concerned: Callable[[Seen], bool]) -> None:
        """Let lines wait for the time of their append only: the time of a clock was disproved."""
        for puzzle in (*self.puzzles, *self.lessons):
            if concerned(puzzle.seen):
                puzzle.floor_ms = min(puzzle.floor_ms, puzzle.near_ms)
                puzzle.time_ms = min(puzzle.time_ms, puzzle.near_ms)

    def come_back(self, to_ms: int) -> None:
        """Let no finding of other shards wait for a time that a clock has disproved."""
        self.telling = [(min(at_ms, to_ms), zones) for at_ms, zones in self.telling]

    # --- what is known ---

    def ahead_ms(self, broker: int) -> int:
        """Return how far (ms) a broker's zone is known to be ahead."""
        zone = self.known.get(broker)
        return 0 if zone is None else zone.ahead_ms

    def take_news(self, *, whole: bool) -> list[tuple[int, int]]:
        """Return the zones found since the last call; ``whole``: all known zones."""
        news, self.news = self.news, []
        return [(broker, zone.ahead_ms) for broker, zone in sorted(self.known.items())] if whole else news

    def due_ms(self) -> int | None:
        """Return when (epoch ms) the first line is looked at or given up; None: there is none."""
        return min(
            (one.time_ms + PATIENCE_MS if one.is_open else one.time_ms for one in self.puzzles), default=None
        )

    def held_ms(self, reached_ms: int) -> int:
        """Return how far the watermark may go while lines wait."""
        return min((one.floor_ms for one in self.puzzles), default=reached_ms)

    # --- what is learned, in the order of times ---

    def learn(self, line: Puzzle) -> bool:
        """Compare a line with the records; True: they prove its zone."""
        proved_ms = self._proved_ms(line)
        if proved_ms is None:
            return False
        broker = line.seen.broker
        known = self.known.get(broker)
        if proved_ms != self.ahead_ms(broker):
            self.known[broker] = Zone(proved_ms, line.near_ms)
            self.news.append((broker, proved_ms))
            self._ask_anew(broker)
        elif known is not None:
            known.since_ms = min(known.since_ms, line.near_ms)
        self.give_up(line)
        return True

    def hear(self, line: Puzzle) -> bool:
        """Learn from a line, or keep it until its record is read; True if it proved something."""
        if _generation_of(line.seen.what) is None:
            return False
        if self.learn(line):
            return True
        self.said = [*self.said, line][-SAID_MAX:]
        return False

    def hear_record(self, record: Written) -> set[int]:
        """Apply a record, and return the brokers whose zone it proves."""
        generations, leaders = self.records.pop(record.group, {}), self.leaders.setdefault(record.group, {})
        generations.pop(record.generation, None)
        generations[record.generation], leaders[record.generation] = record.at_ms, record.leader_id
        self.records[record.group] = generations
        if sum(map(len, self.records.values())) > RECORDS_MAX:
            self._forget_oldest()
        told = [one for one in self.said if self.learn(one)]
        self.said = [one for one in self.said if one not in told]
        return {one.seen.broker for one in told}

    def _forget_oldest(self) -> None:
        group = next(iter(self.records))
        oldest, leaders = self.records[group], self.leaders.get(group, {})
        generation = next(iter(oldest))
        del oldest[generation]
        leaders.pop(generation, None)
        if not oldest:
            del self.records[group]
            self.leaders.pop(group, None)

    def hear_told(self, ahead_ms: Mapping[int, int], at_ms: int) -> None:
        """Apply what other shards have found."""
        for broker, found_ms in ahead_ms.items():
            if self.ahead_ms(broker) != found_ms:
                self.known[broker] = Zone(found_ms, at_ms)
                self._ask_anew(broker)

    def _ask_anew(self, broker: int) -> None:
        """Forget at which distance a broker's lines were late: its zone has changed."""
        self.late.pop(broker, None)
        self.ahead = [one for one in self.ahead if one != broker]

    def question(self, line: Puzzle) -> int:
        """Return the distance (ms) that a line may be ahead by an unknown zone; 0: nothing is unknown.

        ``ELSEWHERE`` is no zone's distance: the line is late as well, or its broker's clock is wrong.
        """
        broker = line.seen.broker
        zone_ms, like_ms = self.ahead_ms(broker), zone_like_ms(line.ahead_ms)
        if broker < 0 or -DELAY_MS <= line.ahead_ms - zone_ms <= AHEAD_MS:
            return 0
        if like_ms:
            return 0 if self.late.get(broker) == like_ms else like_ms
        is_ahead = DELAY_MS < line.ahead_ms <= FARTHEST_MS and line.ahead_ms - zone_ms > AHEAD_MS
        return ELSEWHERE if is_ahead and broker not in self.ahead else 0

    def give_up(self, line: Puzzle) -> None:
        """Note that lines at this distance wait no more: they are late, or their clock is wrong."""
        asked_ms, broker = self.question(line), line.seen.broker
        if asked_ms == ELSEWHERE:
            self.ahead.append(broker)
        elif asked_ms:
            self.late[broker] = asked_ms

    def _proved_ms(self, line: Puzzle) -> int | None:
        """Return how far (ms) the zone of a line is proved to be ahead; None: nothing is proved."""
        what = line.seen.what
        generation = _generation_of(what)
        group = getattr(what, "group", "")
        generations = self.records.get(group, {})
        recorded_ms = -1 if generation is None else generations.get(generation, -1)
        if recorded_ms < 0:
            return None
        distance_ms = _beside_ms(line.seen) - recorded_ms
        zone_ms = round(distance_ms / STEP_MS) * STEP_MS
        if abs(distance_ms - zone_ms) > BESIDE_MS or abs(zone_ms) > FARTHEST_MS:
            return None
        leader_id = self.leaders.get(group, {}).get(generation or 0)
        is_leaders = bool(leader_id) and leader_id == _leader_of(what)
        if isinstance(what, on.SyncAnswered) and not is_leaders:
            return None
        if zone_ms == 0 or zone_ms == zone_like_ms(line.ahead_ms):
            return zone_ms
        # Within one life a group has each generation once; two leaders never have the same id.
        is_sure = is_leaders or 0 < line.ahead_ms <= zone_ms + AHEAD_MS
        return zone_ms if is_sure and line.ahead_ms - zone_ms <= AHEAD_MS else None


ELSEWHERE = 1
"""A distance from the append that no zone has."""


def _generation_of(what: on.AnyObservation) -> int | None:
    """Return the generation whose record is written with a line; None: there is none.

    A record proves little about the start of a rebalance: the group may have been created again.
    """
    if isinstance(what, on.AssignmentReceived | on.GroupEmptied):
        return what.generation
    is_stored = isinstance(what, on.SyncAnswered) and what.by_leader and what.error_code == 0
    return what.generation if is_stored else None  # type: ignore[union-attr]


def _leader_of(what: on.AnyObservation) -> str:
    """Return the leader of the generation in a line."""
    if isinstance(what, on.SyncAnswered):
        return what.member_id
    return what.leader_id if isinstance(what, on.AssignmentReceived) else ""


def _beside_ms(seen: Seen) -> int:
    """Return when the effect of a line was stored: a leader is answered only when that is replicated."""
    arrived_ms = getattr(seen.what, "arrived_at_ms", -1)
    return arrived_ms if arrived_ms >= 0 else seen.at_ms


def zone_like_ms(ahead_ms: int) -> int:
    """Return the zone (ms) by which a line on time would be so far ahead of its append; 0: there is none."""
    zone_ms = round((ahead_ms + DELAY_MS // 2) / STEP_MS) * STEP_MS
    return zone_ms if -DELAY_MS <= ahead_ms - zone_ms <= AHEAD_MS and abs(zone_ms) <= FARTHEST_MS else 0
