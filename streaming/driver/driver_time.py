"""The time in clock records: the driver's wall clock, unless the brokers prove it wrong.

A wall clock steps: NTP sets it, a virtual machine resumes, somebody types ``date``.  The new time may be true
(the machine slept) or false (it was set wrongly), and the mirror must neither run ahead of its brokers nor
stand still.  So between two readings the time follows the monotonic clock, and it follows a step of the wall
clock only if the brokers' append times moved as well.  They also decide which of two readings is right after
a correction. If all brokers agree that our clock is wrong, their time counts: the groups live on the brokers'
time.
"""

import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable

STEP_MS = 1_000
"""NTP removes a smaller difference bit by bit; a larger one is a step."""
AGREED_MS = 10_000
"""A clock that dates groups may differ from most brokers by this at most."""
UNPROVED_MS = 30_000
"""After this long, a step that no broker can confirm (none stamps our records) is believed."""
_SAMPLES = 5
_SAMPLE_AGE_MS = 60_000.0
_PROOFS = 3
_QUORUM = 2
"""With one broker, its clock stands against ours, and neither proves the other wrong."""


def wall_clock_ms() -> float:
    """Return the driver's wall clock."""
    return time.time_ns() / 1e6


def monotonic_ms() -> float:
    """Return the monotonic clock, which nobody sets."""
    return time.monotonic() * 1000


class DriverTime:
    """The time for clock records; for one thread.

    A ``base`` is the difference between a clock and the monotonic one, in ms: a clock that runs evenly keeps
    its base, and a step changes it.
    """

    def __init__(
        self,
        wall_ms: Callable[[], float] = wall_clock_ms,
        mono_ms: Callable[[], float] = monotonic_ms,
    ) -> None:
        """Start with the wall clock."""
        self._wall_ms = wall_ms
        self._mono_ms = mono_ms
        self._base = wall_ms() - mono_ms()
        self._brokers: dict[int, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=_SAMPLES))
        """Broker -> (when, base of its clock) of its newest answers."""
        self._differs_since: float | None = None

    def now_ms(self) -> float:
        """Return the present time, after a look at all clocks."""
        mono_ms = self._mono_ms()
        wall = self._wall_ms() - mono_ms
        if abs(wall - self._base) <= STEP_MS:
            self._base, self._differs_since = wall, None
        else:
            self._choose(wall, mono_ms)
        return self._base + mono_ms

    def peek_ms(self) -> float:
        """Return the present time as last judged."""
        return self._base + self._mono_ms()

    def witness(self, broker: int, appended_ms: float, our_ms: float) -> None:
        """Record that ``broker`` stamped ``appended_ms`` on a record when our time was ``our_ms``."""
        self._brokers[broker].append((self._mono_ms(), self._base + appended_ms - our_ms))

    @property
    def base(self) -> float:
        """Return our time less the monotonic clock; only a step changes it by much."""
        return self._base

    @property
    def is_wall(self) -> bool:
        """Say whether our time is the wall clock."""
        return self._differs_since is None

    def off_ms(self) -> int:
        """Return how far the wall clock is ahead of our time."""
        return round(self._wall_ms() - self._mono_ms() - self._base)

    def _choose(self, wall: float, mono_ms: float) -> None:
        """Choose the wall clock, the present time or the brokers' common time, whichever brokers confirm."""
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
        """Take the brokers' time if most of them agree that ours is wrong; True if it was."""
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
        """Return the bases of brokers with ``proofs`` recent answers."""
        found: list[float] = []
        for samples in self._brokers.values():
            fresh = [base for at_ms, base in samples if mono_ms - at_ms <= _SAMPLE_AGE_MS]
            if len(fresh) >= proofs:
                found.append(statistics.median(fresh))
        return found
