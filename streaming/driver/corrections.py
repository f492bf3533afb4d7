"""Brokers whose times are corrected; shown in the log, in ``/ready`` and as a metric, sent to all shards."""

import threading
from collections.abc import Callable, Mapping

from coordinator_model.ordering import SKEW_MAX_MS

BROKERS_MAX = 100
"""Most brokers kept: anybody may write lines, and lines name brokers."""


class Corrections:
    """One cluster's corrections; safe to use from several threads."""

    def __init__(
        self,
        notice: Callable[[str, str], None] = lambda _topic, _sentence: None,
        show: Callable[[int, float], None] = lambda _broker, _s: None,
    ) -> None:
        """Start without any.

        Args:
            notice: receives (topic, sentence for an operator); "": it is over.
            show: receives (broker, seconds that are added to its times).
        """
        self._notice = notice
        self._show = show
        self._lock = threading.Lock()
        self._zones_ms: dict[int, int] = {}
        self._clocks_ms: dict[int, int] = {}

    def zones_ms(self) -> dict[int, int]:
        """Return broker -> how far its lines are ahead because of their time zone."""
        with self._lock:
            return dict(self._zones_ms)

    def found(self, broker: int, ahead_ms: int) -> None:
        """Record a shard's finding that a broker's lines have another zone, or (0) no longer have."""
        with self._lock:
            if len(self._zones_ms) >= BROKERS_MAX and broker not in self._zones_ms:
                return
            if self._zones_ms.get(broker) == ahead_ms:
                return
            self._zones_ms[broker] = ahead_ms
        sentence = zone_sentence(broker, ahead_ms) if ahead_ms else ""
        self._notice(f"zone of broker {broker}", sentence)
        self._tell(broker)

    def measured(self, skew_ms: Mapping[int, int]) -> None:
        """Record how far each broker's clock is ahead; small skews need no correction."""
        wrong = {broker: skew for broker, skew in skew_ms.items() if abs(skew) > SKEW_MAX_MS}
        with self._lock:
            before, self._clocks_ms = self._clocks_ms, wrong
        for broker in before.keys() | wrong.keys():
            if before.get(broker) != wrong.get(broker):
                sentence = clock_sentence(broker, wrong[broker]) if broker in wrong else ""
                self._notice(f"clock of broker {broker}", sentence)
                self._tell(broker)

    def _tell(self, broker: int) -> None:
        with self._lock:
            ahead_ms = self._zones_ms.get(broker, 0) + self._clocks_ms.get(broker, 0)
        self._show(broker, -ahead_ms / 1000)


def zone_sentence(broker: int, ahead_ms: int) -> str:
    """Return the sentence that a broker's lines are corrected."""
    hours, minutes = divmod(abs(ahead_ms) // 60_000, 60)
    away = f"{hours} h {minutes} min {'ahead of' if ahead_ms > 0 else 'behind'}"
    return (
        f"The log lines of broker {broker} are {away} the records of the same generations: it logs in "
        "another time zone than events.timezone. Its lines are corrected by that; change one of the two."
    )


def clock_sentence(broker: int, ahead_ms: int) -> str:
    """Return the sentence that a broker's clock is wrong."""
    return (
        f"The clock of broker {broker} is {abs(ahead_ms) / 1000:.0f} s "
        f"{'ahead of' if ahead_ms > 0 else 'behind'} the driver's, and its times are corrected by that. "
        "Correct the broker's clock (NTP)."
    )
