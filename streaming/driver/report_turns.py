"""Chooses the shards that must report all their groups: first those that owe a report, then in turns."""

import time
from collections.abc import Callable

from streaming.pipeline import Reading

_ASK_EVERY_S = 3.0
_ASK_AT_ONCE = 17
"""A third of the usual shards: the reports of 100,000 groups should not come in one batch."""
_REFRESH_EVERY_S = 2.0


class Asking:
    """Chooses the shards that each clock record asks: those that owe a report, later one after another.

    On a large cluster a report of all groups at once would be hundreds of megabytes, so after the start the
    shards take turns.  While no clock is written, turns are missed; the next record makes up for them.
    """

    def __init__(self, shard_count: int, reading: Reading, now: Callable[[], float] = time.monotonic) -> None:
        self._shards = list(range(-1, shard_count))
        self._reading = reading
        self._now = now
        self._turn = 0
        self._asked_at = float("-inf")
        self._asked: frozenset[int] = frozenset()

    def __call__(self) -> bool | list[int]:
        """Return the shards to ask in the record that is written now."""
        owing = self._reading.unreported
        pause_s = _ASK_EVERY_S if owing else _REFRESH_EVERY_S
        answered = bool(owing) and not self._asked.intersection(owing)
        if not answered and self._now() - self._asked_at < pause_s:
            return False
        missed_s = min(self._now() - self._asked_at, _REFRESH_EVERY_S * _ASK_AT_ONCE)
        self._asked_at = self._now()
        if owing:
            self._asked = frozenset(owing[:_ASK_AT_ONCE])
            return sorted(self._asked)
        return [self._next() for _ in range(min(len(self._shards), int(missed_s / _REFRESH_EVERY_S)))]

    def _next(self) -> int:
        self._turn = (self._turn + 1) % len(self._shards)
        return self._shards[self._turn]
