"""The rows of batches that wait to be written: a bounded list, and what was lost of them, in words."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

ROWS_MAX = 50_000
"""Most rows that wait: a storm of 10,000 groups."""
NO_ROOM, NOT_WRITTEN = "no_room", "not_written"
REASONS = (NO_ROOM, NOT_WRITTEN)
"""Why rows are lost: more came than may wait, or the file did not take them."""
_WORDS = {NO_ROOM: "more came than could be written", NOT_WRITTEN: "the file did not take them"}
_SHOWN_MS = 3_600_000
"""So long people are told of a loss."""

_CALM_MS = 60_000
"""Lost rows can be read again when no more were lost for so long."""

ClusterRow = tuple[str, str, str, bytes]
"""Cluster, kind, key, value."""


class Intake:
    """The list; safe to use from several threads."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._rows: list[ClusterRow] = []
        self._dropped = dict.fromkeys(REASONS, 0)
        self._lost_ms: dict[str, int] = {}
        """Cluster -> when the first of its rows was lost that nobody has asked for again."""
        self._last_loss_ms = 0
        self._told: dict[str, tuple[int, str]] = {}

    @property
    def has_rows(self) -> bool:
        """Whether rows wait."""
        return bool(self._rows)

    def dropped(self) -> Mapping[str, int]:
        """Return how many rows were lost since the start, by each reason."""
        with self._lock:
            return dict(self._dropped)

    def leave(self, rows: Sequence[ClusterRow]) -> None:
        """Add rows; never waits, and drops what does not fit."""
        with self._lock:
            room = max(0, ROWS_MAX - len(self._rows))
            self._rows += rows[:room]
            self._lose(NO_ROOM, rows[room:])

    @contextmanager
    def rows(self) -> Iterator[list[ClusterRow]]:
        """Give the rows that wait; they are dropped if they cannot be written."""
        with self._lock:
            rows, self._rows = self._rows, []
        try:
            yield rows
        except BaseException:
            with self._lock:
                self._lose(NOT_WRITTEN, rows)
            raise

    def regainable(self) -> Mapping[str, int]:
        """Return since when (epoch ms) rows of which clusters were lost, once that is over."""
        with self._lock:
            return {} if self._clock_ms() - self._last_loss_ms < _CALM_MS else dict(self._lost_ms)

    def regained(self, lost_ms: Mapping[str, int]) -> None:
        """Forget these losses: it is on disk that their rows are to be read again."""
        with self._lock:
            for cluster, at_ms in lost_ms.items():
                if self._lost_ms.get(cluster) == at_ms:
                    del self._lost_ms[cluster]

    def _lose(self, reason: str, rows: Sequence[ClusterRow]) -> None:
        if rows:
            self._dropped[reason] += len(rows)
            self._last_loss_ms = self._clock_ms()
            for cluster in {row[0] for row in rows}:
                self._lost_ms.setdefault(cluster, self._last_loss_ms)
            at = datetime.fromtimestamp(self._clock_ms() / 1000, UTC)
            self.tell(
                reason,
                f"Rows of history were lost, the last at {at:%H:%M} UTC: {_WORDS[reason]}. Timelines may "
                "lack rebalances and alerts until these are read again from the topics, and lives of members "
                "for ever; groupwatch_history_dropped_rows_total counts them.",
            )

    def tell(self, about: str, sentence: str) -> None:
        """Let people read a sentence about a loss for an hour."""
        self._told[about] = (self._clock_ms(), sentence)

    def notice(self) -> str:
        """Return what people should know about losses; "": nothing was lost lately."""
        since_ms = self._clock_ms() - _SHOWN_MS
        return " ".join(sentence for at_ms, sentence in self._told.copy().values() if at_ms >= since_ms)
