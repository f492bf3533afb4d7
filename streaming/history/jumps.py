"""Jumps of the clock, after which nothing is deleted for a while: somebody may set it back."""

from streaming.history.samples import LOOK_MS
from streaming.history.series import HOUR_MS

_LOOKS_STEADY = HOUR_MS // LOOK_MS


class Jumps:
    """What one clock did from look to look."""

    def __init__(self, now_ms: int, *, is_replayed: bool = False) -> None:
        """Start at this time; the clock of captured logs (``is_replayed``) is set back by nobody."""
        self._looked_ms = now_ms
        self._is_replayed = is_replayed
        self._looks_left = 0

    def was_at(self, at_ms: int) -> None:
        """Take when an earlier process looked last."""
        self._looked_ms = min(self._looked_ms, at_ms)

    def look(self, now_ms: int) -> None:
        """Take the time of a look."""
        if now_ms - self._looked_ms > HOUR_MS and not self._is_replayed:
            self._looks_left = _LOOKS_STEADY
        self._looks_left = max(0, self._looks_left - 1)
        self._looked_ms = now_ms

    @property
    def is_steady(self) -> bool:
        """Say whether the time has lasted long enough to delete by it."""
        return not self._looks_left
