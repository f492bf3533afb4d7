"""Decides which ticks of the clock are written, since each record makes a batch.

A batch costs most of a second of CPU.  So while nothing happens, nothing is written for ``QUIET_S``.  A clock
is due at once when somebody has written into an input, from then on until what was written is settled and a
batch has taken it, and at each shard's next deadline, which the shards tell after every look
(``streaming/workers``, the row ``due``).
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from coordinator_model.ordering import SETTLE_MS

QUIET_S = 10.0
"""The longest time without a clock: what waits for the next batch waits no longer."""
TICK_S = 0.5
"""The longest time between two ticks."""


def settled_s(slowest_ms: int) -> float:
    """Return the age from which on a clock proves something read; see ``Quiet.need`` for ``slowest_ms``."""
    return (SETTLE_MS - min(0, slowest_ms)) / 1000


class Need(NamedTuple):
    """Whether a clock is needed."""

    is_there: bool
    shards: frozenset[int] | None = None
    """By whom; None: by all, since nobody knows whom that concerns which was written."""


class Quiet:
    """One query's next deadlines, and when its inputs last moved; safe to use from several threads."""

    def __init__(self, shards: int, now: Callable[[], float] = time.monotonic) -> None:
        """Start; until each of so many shards has told its next deadline, every tick is written."""
        self._shards = shards
        self._now = now
        self._lock = threading.Lock()
        self._due_ms: dict[int, int] = {}
        self._moved_s = now()
        """When something was last written into an input by others than the clock."""
        self._needed_s = now()
        """When the last clock was written that proves what had moved."""
        self._begun_s = float("-inf")
        self._written_s = float("-inf")
        self._reach_ms = -1
        """The latest deadline that the clocks for all shards have met, by the driver's time."""
        self._reach_of: dict[int, int] = {}
        """Shard -> the same of later clocks that were for it."""

    # --- told by the batches and by whoever writes -------------------------------------------------

    def due(self, shard: int, due_ms: int) -> None:
        """A shard has been looked at, and waits for this time of the driver (epoch ms)."""
        with self._lock:
            self._due_ms[shard] = due_ms

    def batch_begun(self) -> None:
        """A batch has begun, with what was written before."""
        self._begun_s = self._now()

    def moved(self) -> None:
        """Something was written into an input that the shards must read soon."""
        self._moved_s = self._now()

    # --- asked and told by the clock ---------------------------------------------------------------

    def need(self, reach_ms: int, *, slowest_ms: int, has_read: bool) -> Need:
        """Return whether the clock of this tick must be written, and for whom.

        Args:
            reach_ms: the latest deadline that this clock meets, its time on the fastest broker's clock.
            slowest_ms: how far the slowest broker's clock is ahead; if behind, its lines take as much longer.
            has_read: whether the query has read all clocks that were written.
        """
        now_s = self._now()
        if self._is_settling(now_s, slowest_ms):
            self._needed_s = now_s
            return Need(is_there=True)
        with self._lock:
            if self._begun_s < self._needed_s or len(self._due_ms) < self._shards:
                return Need(is_there=True)
            due = {shard: due_ms for shard, due_ms in self._due_ms.items() if due_ms <= reach_ms}
            # One clock meets a deadline.  If the shard still waits when it has read that clock, another does.
            is_due = any(has_read or due_ms > self._met(shard) for shard, due_ms in due.items())
        is_there = is_due or now_s - self._written_s > QUIET_S - TICK_S
        return Need(is_there, frozenset(due))

    def _is_settling(self, now_s: float, slowest_ms: int) -> bool:
        return now_s - self._moved_s <= settled_s(slowest_ms) + TICK_S

    def _met(self, shard: int) -> int:
        return max(self._reach_ms, self._reach_of.get(shard, -1))

    def written(self, reach_ms: int, shards: Collection[int] | None = None) -> None:
        """This tick's clock is being written, for these shards or for all."""
        self._written_s = self._now()
        if shards is None:
            self._reach_ms = reach_ms
            self._reach_of.clear()
        else:
            self._reach_of |= dict.fromkeys(shards, reach_ms)
