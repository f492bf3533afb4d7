"""How far the watermark is behind the wall clock, as the driver sees it.

The shards judge nothing later than the least that their partitions have proved
(``coordinator_model/ordering``): the control topic and each events partition by the clocks that were read
from it and believed, the offsets topic by the ends in those clocks that the query has reached.  A sleeping
shard keeps an old time without being behind, so the driver looks at what would wake it, not at the shard.

While nothing happens no clock is written.  Whoever has read the newest one has then read all there is, up to
the time at which the driver last saw that there is no more.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from streaming.control import ClocksRead

TICKS_MAX = 512
_FRESH_S = 10.0
_WINDOW_S = 20.0
"""Catching up shows within this time: a job that gains on the wall clock is late, but not stalled."""
_LOOK_S = 0.5
_IDLE_KEPT = 128
"""More clocks than are written while one batch runs."""


class _Tick(NamedTuple):
    at_ms: int
    ends: Sequence[int]


class Watermark:
    """One cluster's watermark; safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._lock = threading.Lock()
        self._began = clock()
        self._told: tuple[int, float] | None = None
        """The newest clock's time, and when by the monotonic clock."""
        self._ticks: deque[_Tick] = deque()
        """Clocks whose ends are not reached yet."""
        self._offsets_ms: int | None = None
        self._control_ms = -1
        self._events_ms: dict[int, int] = {}
        self._partitions = 0
        self._held_ms = 0
        """How far the cluster's shard was behind the clocks that it had read."""
        self._idle: deque[tuple[int, int]] = deque(maxlen=_IDLE_KEPT)
        """(a clock's time, until when nothing came after it)."""
        self._history: deque[tuple[float, float]] = deque()
        self._losing_since: float | None = None

    # --- written by the clock, the sink and the job ----------------------------------------------

    def begin(self) -> None:
        """Count from now: until now another process watched the cluster."""
        with self._lock:
            self._began = self._now()
            self._history.clear()
            self._losing_since = None

    def told(self, at_ms: int, ends: Sequence[int]) -> None:
        """A clock was written at ``at_ms`` with these end offsets; [] without the offsets topic."""
        with self._lock:
            self._told = at_ms, self._now()
            self._idle.append((at_ms, at_ms))
            if not ends:
                self._offsets_ms = None
                return
            self._offsets_ms = -1 if self._offsets_ms is None else self._offsets_ms
            self._ticks.append(_Tick(at_ms, ends))
            if len(self._ticks) > TICKS_MAX:
                newest = self._ticks[-1]
                self._ticks = deque(list(self._ticks)[::2])
                if self._ticks[-1] is not newest:
                    self._ticks.append(newest)

    def idle(self, at_ms: int) -> None:
        """No clock was written, and at ``at_ms`` nothing had come since the newest one."""
        with self._lock:
            if self._idle:
                self._told = at_ms, self._now()
                self._idle[-1] = self._idle[-1][0], at_ms

    def topic_recreated(self) -> None:
        """The offsets topic was recreated: the old topic's ends will never be reached."""
        with self._lock:
            self._ticks.clear()

    def reached(self, positions: Sequence[int]) -> None:
        """The query has read the offsets topic up to ``positions``.

        The newest clock that they cover counts.  An older one may hold an end that is never reached: one that
        no leader told, or that a new leader took back.
        """
        with self._lock:
            newest_first = reversed(list(enumerate(self._ticks, start=1)))
            covered = next((count for count, tick in newest_first if _covers(positions, tick.ends)), 0)
            for _ in range(covered):
                self._offsets_ms = self._ticks.popleft().at_ms

    def take_clocks(self, row: ClocksRead) -> None:
        """A batch with these clocks is finished."""
        with self._lock:
            if row.control_ms >= 0:
                self._control_ms = row.control_ms
            if row.partitions >= 0:
                self._partitions = row.partitions
            self._events_ms.update(row.events)
            if row.now_ms >= 0:
                read_ms = min(at_ms for at_ms, _ in self._clocks_read())
                self._held_ms = max(0, read_ms - row.now_ms)

    # --- read by others --------------------------------------------------------------------------

    def behind_s(self) -> float:
        """Return the seconds behind the wall clock; without a watermark, how long we have waited for it."""
        with self._lock:
            return self._behind_s()

    def delays_s(self) -> dict[str, float]:
        """Return source -> how far behind the end of its topic we read it; without what is not known yet."""
        with self._lock:
            if self._told is None:
                return {}
            told_ms, told_at = self._told
            now_ms = told_ms + (self._now() - told_at) * 1000
            reached = {} if self._offsets_ms is None else {"offsets": self._until(self._offsets_ms)}
            if self._partitions:
                events = (self._events_ms.get(n, -1) for n in range(self._partitions))
                reached["events"] = min(map(self._until, events))
        return {name: max(0.0, now_ms - at_ms) / 1000 for name, at_ms in reached.items() if at_ms >= 0}

    def slowest(self) -> str:
        """Return what is furthest behind, in words."""
        with self._lock:
            proved = self._proved()
        return min(proved)[1]

    def losing_s(self) -> float:
        """Return how long it has been behind without gaining; call this about once a second."""
        with self._lock:
            now, behind_s = self._now(), self._behind_s()
            if not self._history or now - self._history[-1][0] >= _LOOK_S:
                self._history.append((now, behind_s))
            while len(self._history) > 1 and now - self._history[1][0] >= _WINDOW_S:
                self._history.popleft()
            gains = behind_s < self._history[0][1] - _LOOK_S
            if behind_s <= _FRESH_S or gains:
                self._losing_since = None
            elif self._losing_since is None:
                self._losing_since = now
            return 0.0 if self._losing_since is None else now - self._losing_since

    def _behind_s(self) -> float:
        proved = self._proved()
        least_ms = self._until(min(at_ms for at_ms, _ in proved))
        if self._told is None or least_ms < 0:
            return self._now() - self._began
        told_ms, told_at = self._told
        now_ms = told_ms + (self._now() - told_at) * 1000
        return max(0.0, (now_ms - least_ms + self._held_ms) / 1000)

    def _proved(self) -> list[tuple[int, str]]:
        """Return (time reached, what reached it)."""
        found = self._clocks_read()
        if self._offsets_ms is not None:
            found.append((self._offsets_ms, "the offsets topic"))
        return found

    def _until(self, at_ms: int) -> int:
        """Return up to when everything has been read by whoever has read the clock of ``at_ms``."""
        return next(
            (max(at_ms, until_ms) for told_ms, until_ms in reversed(self._idle) if told_ms <= at_ms), at_ms
        )

    def _clocks_read(self) -> list[tuple[int, str]]:
        events = range(self._partitions)
        return [
            (self._control_ms, "the control topic"),
            *((self._events_ms.get(n, -1), f"partition {n} of the events topic") for n in events),
        ]


def _covers(positions: Sequence[int], ends: Sequence[int]) -> bool:
    """Say whether everything before ``ends`` has been read; an unknown end has not."""
    if len(positions) < len(ends):
        return False
    return all(0 <= end <= max(at, 0) for end, at in zip(ends, positions, strict=False))
