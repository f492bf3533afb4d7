"""The time that clock records tell: the driver's wall clock, unless the brokers know better.

A wall clock steps: NTP sets it, a virtual machine resumes, somebody types ``date``.  What it says after a
step may be the truth (the machine slept) or not (it was set wrongly), and the mirror must neither run
ahead of its brokers nor stand still.  So between two looks time goes on as the monotonic clock does,
and a step of the wall clock is followed only if the brokers' append times moved along.  They also say
which of two readings is right after a correction, and where all of them agree that ours is wrong, theirs
counts: the groups live on the brokers' time.
"""

import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable

STEP_MS = 1_000
"""A difference that NTP takes away bit by bit; a larger one is a step."""
AGREED_MS = 10_000
"""So far from what most brokers say no clock may be that dates their groups."""
UNPROVED_MS = 30_000
"""A step that no broker can confirm (none stamps our records) is believed after this."""
_SAMPLES = 5
_SAMPLE_AGE_MS = 60_000.0
_PROOFS = 3
_QUORUM = 2
"""One broker against our clock is one word against another."""


def wall_clock_ms() -> float:
    """Return the driver's wall clock."""
    return time.time_ns() / 1e6


def monotonic_ms() -> float:
    """Return the clock that nobody sets."""
    return time.monotonic() * 1000


class ToldTime:
    """Tells the time; for one thread.

    ``base`` values are the difference between a clock and the monotonic one, in ms: a clock that runs
    evenly keeps its base, and one that steps changes it.
    """

    def __init__(
        self,
        wall_ms: Callable[[], float] = wall_clock_ms,
        mono_ms: Callable[[], float] = monotonic_ms,
    ) -> None:
        """Begin with what the wall clock says."""
        self._wall_ms = wall_ms
        self._mono_ms = mono_ms
        self._base = wall_ms() - mono_ms()
        self._brokers: dict[int, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=_SAMPLES))
        """Broker -> (when, base of its clock) of its newest answers."""
        self._differs_since: float | None = None

    def now_ms(self) -> float:
        """Return the time now, after a look at all clocks."""
        mono_ms = self._mono_ms()
        wall = self._wall_ms() - mono_ms
        if abs(wall - self._base) <= STEP_MS:
            self._base, self._differs_since = wall, None
        else:
            self._choose(wall, mono_ms)
        return self._base + mono_ms

    def peek_ms(self) -> float:
        """Return the time now as it was last judged."""
        return self._base + self._mono_ms()

    def witness(self, broker: int, appended_ms: float, told_ms: float) -> None:
        """Note that ``broker`` stamped ``appended_ms`` on a record when we would have told ``told_ms``."""
        self._brokers[broker].append((self._mono_ms(), self._base + appended_ms - told_ms))

    @property
    def base(self) -> float:
        """Return what is told, less the monotonic clock; only a step changes it by much."""
        return self._base

    @property
    def is_wall(self) -> bool:
        """Say whether the wall clock is what is told."""
        return self._differs_since is None

    def off_ms(self) -> int:
        """Return how far the wall clock is ahead of what is told."""
        return round(self._wall_ms() - self._mono_ms() - self._base)

    def _choose(self, wall: float, mono_ms: float) -> None:
        """Take that of wall clock, told time and the brokers' agreement which the brokers confirm."""
        if self._differs_since is None:
            self._differs_since = mono_ms
        bases = self._broker_bases(mono_ms)
        if not bases:
            if mono_ms - self._differs_since > UNPROVED_MS:
                self._base = wall
            return
        middle = statistics.median(bases)
        if abs(wall - middle) < abs(self._base - middle):
            self._base = wall

    def agree(self) -> bool:
        """Take the time of the brokers where most of them agree that what is told is wrong; True: it was."""
        bases = self._broker_bases(self._mono_ms(), _PROOFS)
        if len(bases) < _QUORUM:
            return False
        middle = statistics.median(bases)
        agreeing = sum(abs(one - middle) <= AGREED_MS / 2 for one in bases)
        if abs(middle - self._base) <= AGREED_MS or 2 * agreeing <= len(bases):
            return False
        self._base = middle
        if self._differs_since is None:
            self._differs_since = self._mono_ms()
        return True

    def _broker_bases(self, mono_ms: float, proofs: int = 1) -> list[float]:
        """Return the bases of the brokers that answered ``proofs`` times lately."""
        found: list[float] = []
        for samples in self._brokers.values():
            fresh = [base for at_ms, base in samples if mono_ms - at_ms <= _SAMPLE_AGE_MS]
            if len(fresh) >= proofs:
                found.append(statistics.median(fresh))
        return found
