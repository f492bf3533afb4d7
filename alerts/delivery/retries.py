"""Schedules retries after a failure: of the alert, and of the receiver as a whole."""

import math
from collections.abc import Callable

from alerts.delivery.receivers import Delivery
from alerts.delivery.waiting import Entry

_RETRY_BASE_MS = 1_000
_RETRY_ENTRY_MAX_MS = 60_000
_RETRY_RECEIVER_MAX_MS = 30_000
_RETRY_AFTER_MAX_MS = 3_600_000


class Retries:
    """One receiver's retries; the caller holds the outbox's lock."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        """Start without failures; ``jitter`` (0..1) spreads retries."""
        self._jitter = jitter
        self._failures = 0
        self.paused_until_ms = 0

    def succeeded(self) -> None:
        """Record that the receiver took a notification."""
        self._failures = 0

    def pause(self, delivery: Delivery, now_ms: int) -> None:
        """Pause a receiver that failed: longer after each failure, or for as long as it asks."""
        self._failures += 1
        pause_ms = self._backoff_ms(self._failures, _RETRY_RECEIVER_MAX_MS)
        self.paused_until_ms = now_ms + max(pause_ms, _asked_ms(delivery.retry_after_s))

    def put_off(self, entry: Entry, now_ms: int) -> None:
        """Retry ``entry`` later."""
        entry.attempts += 1
        entry.due_ms = now_ms + self._backoff_ms(entry.attempts, _RETRY_ENTRY_MAX_MS)

    def _backoff_ms(self, attempts: int, longest_ms: int) -> int:
        full_ms = min(longest_ms, _RETRY_BASE_MS << min(attempts - 1, 20))
        return round(full_ms * (0.5 + 0.5 * self._jitter()))


def _asked_ms(retry_after_s: float | None) -> int:
    """Return the pause that the receiver asks for, within bounds."""
    if retry_after_s is None or not math.isfinite(retry_after_s):
        return 0
    return round(min(max(retry_after_s, 0.0), _RETRY_AFTER_MAX_MS / 1000) * 1000)
