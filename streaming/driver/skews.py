"""Measures how far the brokers' clocks are from ours."""

import statistics
from collections import defaultdict, deque

from coordinator_model.ordering import SKEW_MAX_MS

_SAMPLES = 20
_STEP_MS = 10
"""Skews are reported in steps of this size, so that noise does not change them from record to record."""
_LARGE_STEP_MS = 250
"""The same for skews that correct a broker's times: those must be steadier still."""
_KEPT_MS = 3_600_000.0
"""A broker that has led nothing of ours for this long may be gone, or have another clock by now."""


class Skews:
    """How far each broker's clock is from ours, by the append times of records that we sent."""

    def __init__(self, samples: int = _SAMPLES) -> None:
        self._samples: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=samples))
        self._measured_ms: dict[int, float] = {}
        """Broker -> when it stamped a record of ours last."""
        self._large: dict[int, int] = {}
        """Broker -> the reported skew, for brokers whose times are corrected by it."""

    def add(self, broker: int, appended_ms: int, sent_ms: float, acknowledged_ms: float) -> None:
        """Record that ``broker`` stamped ``appended_ms`` on a record between two readings of our clock."""
        self._samples[broker].append(appended_ms - (sent_ms + acknowledged_ms) / 2)
        self._measured_ms[broker] = acknowledged_ms

    def known(self) -> dict[int, int]:
        """Return broker -> its clock minus ours, in rounded milliseconds, without small ones."""
        self._forget_old()
        medians = {broker: statistics.median(samples) for broker, samples in self._samples.items()}
        rounded = {b: round(skew / _STEP_MS) * _STEP_MS for b, skew in medians.items()}
        for broker, skew in rounded.items():
            if abs(skew - self._large.get(broker, 0)) > _LARGE_STEP_MS:
                self._large[broker] = skew
            elif abs(skew) > SKEW_MAX_MS:
                rounded[broker] = self._large[broker]
        return {broker: skew for broker, skew in sorted(rounded.items()) if skew}

    def _forget_old(self) -> None:
        last_ms = max(self._measured_ms.values(), default=0.0)
        for broker in [b for b, at_ms in self._measured_ms.items() if last_ms - at_ms > _KEPT_MS]:
            del self._samples[broker], self._measured_ms[broker]
            self._large.pop(broker, None)

    def forget(self) -> None:
        """Start anew: our own clock has stepped, so earlier measurements are useless."""
        self._samples.clear()
        self._measured_ms.clear()
        self._large.clear()
