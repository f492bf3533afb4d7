"""Lanes: the time up to which each partition that feeds a shard has been read."""

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen
from coordinator_model.ordering.righting import (
    SKEW_MAX_MS,
    wrong_ms,
)
from coordinator_model.ordering.zones import AHEAD_MS, DELAY_MS

SILENT_SETTLE_MS = 10_000
"""How late a line may come while no clock copy has been read and only lines show the partition's time."""

BEYOND_MS = 10_000
"""Brokers report end offsets some seconds after a clock's time at most, and skews reach five: an observation

that precedes a clock and is dated this much later has no true time, and gets the clock's.
"""

REGRESS_MS = 10_000
"""A clock that is this much earlier than a previous one of its partition proves that one wrong."""

FALLEN_MS = 30_000
"""An end that all clocks tell to be lower for so long was taken back; a stale answer is told for seconds."""

COMMIT_LAG_MS = 100
"""A record is replicated within a few ms; one that takes longer waits for a replica that is gone."""

ANSWERS_MAX = 64
"""Limit of end offsets that are kept: half a minute of a partition that grows all the time."""

_OF_GROUPS = (on.GroupRecorded, on.ModernRecord)
"""A union in its place would be made anew for each record."""


class EventsLane(msgspec.Struct, array_like=True):
    """How far one partition of the events topic has been read."""

    clock_ms: int = -1
    skew_ms: dict[int, int] = {}
    reached_ms: int = -1
    spoken_ms: dict[int, int] = {}
    """Broker -> order time of its newest coordinator line, so that its lines keep their order."""
    newest_ms: int = -1
    """Newest time after the newest clock copy."""
    lead_ms: int = 0
    """How far (ms) the clock of the partition's leader is ahead."""
    is_odd: bool = False
    """Whether a broker's clock is wrong: the leader's, or another's that may write here."""

    def tick(self, seen: Seen, what: on.EventsClock, settle_ms: int) -> None:
        """Apply a clock copy."""
        if seen.at_ms < self.clock_ms - REGRESS_MS:
            self._come_back(seen.at_ms - settle_ms)
        if self.clock_ms < 0:  # the lines before it may be dated in the future
            self.reached_ms = min(self.reached_ms, seen.at_ms)
        self.clock_ms = max(self.clock_ms, seen.at_ms)
        self.skew_ms, self.lead_ms = what.skew_ms, what.lead_ms
        skews_ms = (what.lead_ms, *what.skew_ms.values())
        self.is_odd = any(abs(one) > SKEW_MAX_MS for one in skews_ms)
        self.reached_ms = max(self.reached_ms, self.clock_ms - settle_ms + slowest(what.skew_ms))
        self.newest_ms = -1

    def _come_back(self, to_ms: int) -> None:
        """Forget what an earlier clock proved: a newer clock disproves it."""
        self.clock_ms = -1
        self.reached_ms = min(self.reached_ms, to_ms)
        self.spoken_ms = {broker: min(one, to_ms) for broker, one in self.spoken_ms.items()}

    def floor_ms(self, broker: int, settle_ms: int) -> int:
        """Return the least order time (epoch ms) that a line of ``broker`` can have here."""
        if self.clock_ms < 0 or broker not in self.skew_ms:
            return self.reached_ms
        return max(self.reached_ms, self.clock_ms - settle_ms + _bounded(self.skew_ms[broker]))

    def run_floor_ms(self, broker: int, settle_ms: int) -> int:
        """Return the least order time (epoch ms) that a coalesced run can have here.

        A run has the place of its last line; before the first clock copy that proves nothing about the other
        lines.
        """
        return -1 if self.clock_ms < 0 else self.floor_ms(broker, settle_ms)

    def is_plain(self, seen: Seen) -> bool:
        """Return whether an observation is dated shortly before its append, by clocks that are right."""
        return not self.is_odd and -DELAY_MS <= seen.at_ms - seen.recorded_at_ms <= AHEAD_MS

    def near_ms(self, seen: Seen) -> int:
        """Return when an observation was appended here by the driver's clock, or a time close to it."""
        if seen.recorded_at_ms < 0:
            return self.clock_ms
        return seen.recorded_at_ms - wrong_ms(self.lead_ms)

    def spoke(self, order_ms: int) -> None:
        """Note a line; before the first clock copy only lines show the time."""
        if self.clock_ms < 0:
            self.reached_ms = max(self.reached_ms, order_ms - SILENT_SETTLE_MS)


class OffsetsLane(msgspec.Struct, array_like=True):
    """How far the shard's offsets partition has been read."""

    position: int = -1
    order_ms: int = -1
    """Order time of the newest record."""
    reached_ms: int = -1
    end_offset: int = -1
    ahead: list[tuple[int, int]] = []
    """(end offset, time) of clocks whose end is not read yet; ascending."""
    answers: list[tuple[int, int]] = []
    """(end offset, newest time of that end) as brokers answered: later records were not replicated then."""
    proved_ms: int = -1
    """Order time of the newest record before the newest end: no clock can make it later."""
    wrong_ms: int = 0
    """How far (ms) the clock of the partition's leader is ahead, where it is wrong; else 0."""
    fallen_ms: int = -1
    """Since when every clock tells a lower end than an earlier one; -1: the newest does not."""

    @property
    def now_ms(self) -> int:
        """Return the time that this lane has reached."""
        return max(self.reached_ms, self.proved_ms)

    def exists(self) -> None:
        """Note that the partition is read although its end is unknown, so that the watermark waits for it."""
        self.end_offset = max(self.end_offset, 0)

    def begin_anew(self) -> None:
        """Forget all offsets: the partition was created again, and its new offsets are smaller."""
        self.position = self.end_offset = 0
        self.fallen_ms = -1
        self.ahead.clear()
        self.answers.clear()

    def tick(self, end_offset: int, position: int, at_ms: int) -> None:
        """Apply a clock: at ``at_ms`` the partition ended at ``end_offset``."""
        # An end that falls (a stale answer, an unclean election) proves nothing new, unless it stays lower.
        if end_offset >= self.end_offset:
            self.fallen_ms = -1
        elif self.fallen_ms < 0:
            self.fallen_ms = at_ms
        elif at_ms - self.fallen_ms >= FALLEN_MS:
            self._fall(end_offset)
        self.end_offset = max(self.end_offset, end_offset)
        if self.position <= self.end_offset:
            self.proved_ms = self.order_ms
        self.ahead.append((self.end_offset, at_ms))
        self.read_to(position)

    def _fall(self, to_offset: int) -> None:
        """Forget what stood behind ``to_offset``: a new leader has taken it back, and it will not be read."""
        self.end_offset, self.fallen_ms = to_offset, -1
        self.position = min(self.position, to_offset)
        self.ahead = [(min(end_offset, to_offset), at_ms) for end_offset, at_ms in self.ahead]
        self.answers = [(min(end_offset, to_offset), at_ms) for end_offset, at_ms in self.answers]

    def read_to(self, position: int) -> None:
        """Note that everything before ``position`` has been read."""
        self.position = max(self.position, position)
        if not self.ahead or self.ahead[0][0] > self.position:
            return
        done = 0
        for end_offset, at_ms in self.ahead:
            if end_offset > self.position:
                break
            self.reached_ms = max(self.reached_ms, at_ms)
            done += 1
        if done:
            del self.ahead[:done]

    def order_of(self, offset: int, at_ms: int) -> int:
        """Return the order time (epoch ms) of the record at ``offset`` and note it as read."""
        self.read_to(offset)
        order_ms = max(self.order_ms, at_ms, self.reached_ms)
        limit_ms = self._next_clock_ms(offset)
        if limit_ms >= 0 and order_ms > limit_ms + BEYOND_MS:
            order_ms = max(limit_ms, self.reached_ms)
        self.order_ms = order_ms
        if offset < self.end_offset:
            self.proved_ms = order_ms
        self.read_to(offset + 1)
        return order_ms

    def near_ms(self, offset: int) -> int:
        """Note that the record at ``offset`` comes next; return a clock's time near it, -1: unknown."""
        self.read_to(offset)
        limit_ms = self._next_clock_ms(offset)
        return self.reached_ms if limit_ms < 0 else limit_ms

    def _next_clock_ms(self, offset: int) -> int:
        """Return the time of the first clock after ``offset`` (read to before); -1: none is known."""
        return self.ahead[0][1] if self.ahead and self.ahead[0][0] > offset else -1

    def come_back(self, to_ms: int) -> None:
        """Withdraw the proof of every time after ``to_ms``: a clock has disproved it."""
        self.ahead = [(end_offset, min(at_ms, to_ms)) for end_offset, at_ms in self.ahead]
        self.answers = [(end_offset, min(at_ms, to_ms)) for end_offset, at_ms in self.answers]
        self.order_ms, self.proved_ms = min(self.order_ms, to_ms), min(self.proved_ms, to_ms)
        self.reached_ms = min(self.reached_ms, to_ms)
        self.fallen_ms = min(self.fallen_ms, to_ms)

    def answer(self, at_ms: int) -> None:
        """Note that a broker, asked at ``at_ms``, answered with the end."""
        if self.answers and self.answers[-1][0] == self.end_offset:
            self.answers.pop()
        self.answers.append((self.end_offset, at_ms))
        del self.answers[:-ANSWERS_MAX]

    def with_lag(self, seen: Seen) -> Seen:
        """Return a group's record with the last answer at which it was not replicated, if it was late."""
        what = seen.what
        if seen.backlog or type(what) not in _OF_GROUPS:
            return seen
        behind = (at_ms for end_offset, at_ms in reversed(self.answers) if end_offset <= seen.offset)
        until_ms = next(behind, -1)
        if until_ms - seen.at_ms <= COMMIT_LAG_MS:
            return seen
        return msgspec.structs.replace(seen, what=msgspec.structs.replace(what, uncommitted_ms=until_ms))


def _bounded(skew_ms: int) -> int:
    """Return the skew that the watermark must wait for: 0 where the broker's times are replaced."""
    return 0 if wrong_ms(skew_ms) else skew_ms


def slowest(skew_ms: dict[int, int]) -> int:
    """Return how far (ms) the slowest broker's clock is behind (0 or less)."""
    return min((_bounded(one) for one in skew_ms.values()), default=0)


def fastest(skew_ms: dict[int, int]) -> int:
    """Return how far (ms) the fastest broker's clock is ahead, where its times are believed."""
    return max((one for one in skew_ms.values() if one <= SKEW_MAX_MS), default=0)
