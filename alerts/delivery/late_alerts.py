"""Delays the alerts of a job that is catching up, since it may resolve them a moment later."""

from collections.abc import Callable

from alerts.alert import Alert, AlertStatus
from alerts.delivery.waiting import Entry

_LATE_MS = 120_000
"""A job is catching up if it writes an alert this long after it detected the condition …"""
_LATE_HOLD_MS = 30_000
"""… and such an alert waits this long if nobody knows whether the job has caught up since."""
_CATCHING_UP_SEEN_MS = 60_000
_LATE_HOLD_CAUGHT_UP_MS = 5_000
_LATE_HOLD_MAX_MS = 900_000
_AT_ONCE = 0
"""A due time in the past."""


class LateAlerts:
    """One receiver's alerts from jobs that are catching up, and until when each waits."""

    def __init__(self, caught_up: Callable[[str], bool | None]) -> None:
        """Start; ``caught_up`` says whether the job has caught up with a cluster, None if nobody knows."""
        self._caught_up = caught_up
        self._seen_ms: dict[str, int] = {}
        self._looked: dict[str, bool | None] = {}
        """Clusters with late alerts that wait -> whether the job had caught up at the last look."""

    def is_late(self, alert: Alert, timestamp_ms: int, now_ms: int) -> bool:
        """Say whether the job that wrote ``alert`` was catching up.

        Only the first revision shows it: its time of detection never changes, while later revisions follow.
        """
        if timestamp_ms - alert.detected_at_ms <= _LATE_MS:
            return False
        if alert.revision == 0:
            self._seen_ms[alert.cluster] = now_ms
        return now_ms - self._seen_ms.get(alert.cluster, -_CATCHING_UP_SEEN_MS) < _CATCHING_UP_SEEN_MS

    def until_ms(self, entry: Entry, *, is_told: bool) -> int:
        """Return until when ``entry`` waits for the job to resolve it."""
        if not entry.late or is_told or entry.alert.status is AlertStatus.RESOLVED:
            return _AT_ONCE
        cluster = entry.alert.cluster
        caught_up = self._looked[cluster] = self._looked.get(cluster, self._caught_up(cluster))
        longest_ms = {None: _LATE_HOLD_MS, True: _LATE_HOLD_CAUGHT_UP_MS, False: _LATE_HOLD_MAX_MS}
        return entry.queued_at_ms + longest_ms[caught_up]

    def changed(self) -> set[str]:
        """Ask again; return the clusters whose answer changed."""
        now = {cluster: self._caught_up(cluster) for cluster in self._looked}
        found = {cluster for cluster, before in self._looked.items() if now[cluster] is not before}
        self._looked = now
        return found

    def clear(self) -> None:
        """Forget the clusters: nothing waits any more."""
        self._looked.clear()
