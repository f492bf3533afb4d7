"""Which brokers write their lines in another zone than we were told: proved by their records alone.

A line that stands hours before its append is either late or written in another zone, and looks the same.
But the coordinator also writes a record of each generation, dated in epoch milliseconds by the same clock.
So lines whose distance from their append is like that of a zone (a multiple of 15 minutes) wait until one
of them is found that is written beside a record: if it is dated as far from that, the zone is wrong; if it
stands beside it, they are late.  The shard's time waits as well, so that the result is as if the zone had
been known; and for no longer than ``PATIENCE_MS``, after which they count as late.
"""

from collections.abc import Mapping

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen, Source

STEP_MS = 900_000
"""All zones of today are whole quarters of an hour apart."""
FARTHEST_MS = 14 * 3_600_000
DELAY_MS = 60_000
"""What a line takes on its way to its record, at most, if it is not late."""
AHEAD_MS = 5_000
BESIDE_MS = 10_000
"""A record is written within milliseconds of its line; a busy disk takes seconds."""
PATIENCE_MS = 30_000
PUZZLES_MAX = 5_000
RECORDS_MAX = 128
SAID_MAX = 32
_BESIDE = (on.AssignmentReceived, on.GroupEmptied)
"""Lines that are written with the record of their generation."""


class Zone(msgspec.Struct, array_like=True):
    """How far a broker's lines are ahead of their true time, and when that was proved."""

    ahead_ms: int
    since_ms: int


class Puzzle(msgspec.Struct, array_like=True):
    """A line, or a folded run of them, that is late or written in another zone."""

    floor_ms: int
    """Order time that it has at least."""
    near_ms: int
    """When it was appended."""
    ahead_ms: int
    """How far its zone is ahead, if it is one."""
    seen: Seen


class Zones(msgspec.Struct, array_like=True):
    """What a shard knows of its brokers' zones."""

    known: dict[int, Zone] = {}
    puzzles: list[Puzzle] = []
    late: dict[int, int] = {}
    """Broker -> distance at which its lines were late, and no zone."""
    records: dict[str, dict[int, int]] = {}
    """Group -> generation -> time of its record, on its broker's clock; the newest ``RECORDS_MAX``."""
    said: list[Puzzle] = []
    """Lines that were taken for late before the record of their generation was read."""
    news: list[tuple[int, int]] = []
    """(broker, how far its lines are ahead) found since the reader last looked; reset by the reader."""

    def ahead_ms(self, broker: int, near_ms: int) -> int:
        """Return how far the zone of what a broker said at ``near_ms`` is ahead."""
        zone = self.known.get(broker)
        return 0 if zone is None or near_ms < zone.since_ms - PATIENCE_MS else zone.ahead_ms

    def is_open(self, seen: Seen, ahead_ms: int) -> bool:
        """Say whether what stands so far from its append may be of another zone."""
        if not ahead_ms or seen.broker < 0 or self.late.get(seen.broker) == ahead_ms:
            return False
        return seen.source is not Source.CONTROL and len(self.puzzles) < PUZZLES_MAX

    def told(self, ahead_ms: Mapping[int, int], at_ms: int) -> None:
        """Take in what other shards have found, by ``at_ms``."""
        for broker, found_ms in ahead_ms.items():
            known = self.known.get(broker)
            if known is None or known.ahead_ms != found_ms:
                self.known[broker] = Zone(found_ms, at_ms)
                self.late.pop(broker, None)

    def note_record(self, what: on.GroupRecorded, at_ms: int) -> None:
        """Take in when a generation was recorded, by its broker's clock."""
        generations = self.records.pop(what.group, {})
        generations[what.generation] = at_ms
        self.records[what.group] = generations
        if sum(map(len, self.records.values())) > RECORDS_MAX:
            oldest = self.records[next(iter(self.records))]
            del oldest[next(iter(oldest))]
            if not oldest:
                del self.records[next(iter(self.records))]
        for puzzle in self.said:
            self._learn(puzzle)

    def take_late(self, puzzle: Puzzle) -> None:
        """Note that a line counts as late; the record of its generation may prove otherwise yet."""
        self.late[puzzle.seen.broker] = puzzle.ahead_ms
        self.note_said(puzzle)

    def note_said(self, puzzle: Puzzle) -> None:
        """Keep a line that counted as late, for a record that comes later."""
        if isinstance(puzzle.seen.what, _BESIDE) and not self._learn(puzzle):
            self.said = [*self.said, puzzle][-SAID_MAX:]

    def solved(self) -> list[Puzzle]:
        """Take out the puzzles that records have answered, in the order in which they came."""
        for puzzle in self.puzzles:
            self._learn(puzzle)
        solved = [one for one in self.puzzles if self._is_answered(one)]
        self.puzzles = [one for one in self.puzzles if not self._is_answered(one)]
        return solved

    def expired(self, reached_ms: int) -> list[Puzzle]:
        """Take out the puzzles that nothing has answered in time; they count as late."""
        expired = [one for one in self.puzzles if max(one.near_ms, one.floor_ms) + PATIENCE_MS < reached_ms]
        if expired:
            self.puzzles = [one for one in self.puzzles if one not in expired]
            for puzzle in expired:
                self.take_late(puzzle)
        return expired

    def take_news(self, *, whole: bool) -> list[tuple[int, int]]:
        """Return which zones were found since the last call; ``whole``: all that are known."""
        news, self.news = self.news, []
        return [(broker, zone.ahead_ms) for broker, zone in sorted(self.known.items())] if whole else news

    def due_ms(self) -> int | None:
        """Return when the first puzzle is given up; None: there is none."""
        return min((max(one.near_ms, one.floor_ms) + PATIENCE_MS for one in self.puzzles), default=None)

    def held_ms(self, reached_ms: int) -> int:
        """Return how far time may go while puzzles wait."""
        return min((one.floor_ms for one in self.puzzles), default=reached_ms)

    def _is_answered(self, puzzle: Puzzle) -> bool:
        broker = puzzle.seen.broker
        if self.late.get(broker) == puzzle.ahead_ms:
            return True
        return self.ahead_ms(broker, puzzle.near_ms) == puzzle.ahead_ms

    def _learn(self, puzzle: Puzzle) -> bool:
        """Ask the records about one line; True: they tell."""
        proved_ms = self._proved_ms(puzzle)
        if proved_ms is None:
            return False
        broker = puzzle.seen.broker
        if not proved_ms:
            self.late[broker] = puzzle.ahead_ms
            return True
        if self.late.get(broker) == proved_ms:
            del self.late[broker]
        known = self.known.get(broker)
        if known is not None and known.ahead_ms == proved_ms:
            known.since_ms = min(known.since_ms, puzzle.near_ms)
        else:
            self.known[broker] = Zone(proved_ms, puzzle.near_ms)
            self.news.append((broker, proved_ms))
        return True

    def _proved_ms(self, puzzle: Puzzle) -> int | None:
        """Return how far the zone of a line is proved to be ahead; 0: it is late; None: nothing is proved."""
        what, at_ms = puzzle.seen.what, puzzle.seen.at_ms
        generations = self.records.get(getattr(what, "group", None) or "", {})
        if not generations:
            return None
        if not isinstance(what, _BESIDE):
            return None  # of a rebalance's begin a record tells little: the group may have been made anew
        recorded_ms = generations.get(what.generation)
        return None if recorded_ms is None else _beside(at_ms - recorded_ms, puzzle.ahead_ms)


def _beside(ahead_ms: int, expected_ms: int) -> int | None:
    if abs(ahead_ms) <= BESIDE_MS:
        return 0
    return expected_ms if abs(ahead_ms - expected_ms) <= BESIDE_MS else None


def zone_like_ms(at_ms: int, near_ms: int) -> int:
    """Return how far a line of ``at_ms``, appended at ``near_ms``, would be ahead by its zone; 0: not so."""
    if at_ms < 0 or near_ms < 0:
        return 0
    ahead_ms = round((at_ms - near_ms + DELAY_MS // 2) / STEP_MS) * STEP_MS
    rest_ms = at_ms - near_ms - ahead_ms
    return ahead_ms if -DELAY_MS <= rest_ms <= AHEAD_MS and abs(ahead_ms) <= FARTHEST_MS else 0
