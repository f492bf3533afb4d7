"""Timers by key, in order of time; of two at the same instant the one that was set first is first."""

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Timers:
    """What is due when; nobody's clock runs here."""

    def __init__(self) -> None:
        """Nothing is due."""
        self._numbers = count()
        self._queue: list[tuple[int, int, str]] = []
        self._set: dict[str, tuple[int, Action]] = {}

    def schedule(self, key: str, due_ms: int, action: Action) -> None:
        """Set a timer; one of the same key is replaced."""
        number = next(self._numbers)
        self._set[key] = (number, action)
        heapq.heappush(self._queue, (due_ms, number, key))

    def cancel(self, key: str) -> None:
        """Forget a timer, if it is set."""
        self._set.pop(key, None)

    def cancel_all(self, prefix: str) -> None:
        """Forget every timer whose key begins so."""
        for key in [key for key in self._set if key.startswith(prefix)]:
            del self._set[key]

    def due_at(self) -> int | None:
        """Return when the next timer is due, or None."""
        while self._queue and self._number_of(self._queue[0][2]) != self._queue[0][1]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def pop(self) -> Action:
        """Take the next timer; ``due_at`` must have named one."""
        _, _, key = heapq.heappop(self._queue)
        return self._set.pop(key)[1]

    def _number_of(self, key: str) -> int | None:
        found = self._set.get(key)
        return found[0] if found else None
