"""The last hour of every group in memory, minute by minute: what a list shows of each."""

import numpy as np

MINUTES = 60
MINUTE_MS = 60_000
_INT32_MAX = 2**31 - 1
_COUNT_MAX = 255


class Sparks:
    """Lag and rebalances of groups by their numbers; not safe to use from several threads."""

    def __init__(self, now_ms: int) -> None:
        self._minute = now_ms // MINUTE_MS
        self._lags = np.full((0, MINUTES), -1, dtype="i4")
        self._starts = np.zeros((0, MINUTES), dtype="u1")
        self._now = np.full(0, -1, dtype="i4")

    def _grow(self, number: int) -> None:
        have = len(self._now)
        if number < have:
            return
        more = max(1024, have, number + 1 - have)
        self._lags = np.concatenate([self._lags, np.full((more, MINUTES), -1, dtype="i4")])
        self._starts = np.concatenate([self._starts, np.zeros((more, MINUTES), dtype="u1")])
        self._now = np.concatenate([self._now, np.full(more, -1, dtype="i4")])

    def is_ahead(self, now_ms: int) -> bool:
        """Return whether the hour here ends after the present one: the clock was set back."""
        return now_ms // MINUTE_MS < self._minute - 1

    def advance(self, now_ms: int) -> None:
        """Go on to the present minute."""
        minute = now_ms // MINUTE_MS
        for one in range(max(self._minute, minute - MINUTES), minute):
            self._lags[:, one % MINUTES] = self._now
            self._starts[:, (one + 1) % MINUTES] = 0
        self._minute = max(self._minute, minute)

    def lag(self, number: int, records: int) -> None:
        """Take a group's lag of now; -1: unknown."""
        self._grow(number)
        self._now[number] = min(records, _INT32_MAX)

    def lags(self, numbers: np.ndarray, records: np.ndarray) -> None:
        """Take the lag of several groups."""
        if len(numbers):
            self._grow(int(numbers.max()))
            self._now[numbers] = np.minimum(records, _INT32_MAX)

    def unknown(self) -> None:
        """Take that nothing is known of now."""
        self._now[:] = -1

    def started(self, number: int, at_ms: int) -> None:
        """Take the start of a rebalance."""
        minute = at_ms // MINUTE_MS
        if self._minute - MINUTES < minute <= self._minute:
            self._grow(number)
            count = self._starts[number, minute % MINUTES]
            self._starts[number, minute % MINUTES] = min(_COUNT_MAX, int(count) + 1)

    def now(self, number: int) -> int:
        """Return a group's lag; -1: unknown."""
        return int(self._now[number]) if number < len(self._now) else -1

    def of(self, number: int) -> tuple[list[int | None], list[int]]:
        """Return a group's lag and starts of rebalances, the oldest minute first."""
        if number >= len(self._now):
            return [None] * MINUTES, [0] * MINUTES
        order = [(self._minute + 1 + one) % MINUTES for one in range(MINUTES)]
        lags = self._lags[number, order].tolist()
        lags[-1] = int(self._now[number])
        return [one if one >= 0 else None for one in lags], self._starts[number, order].tolist()
