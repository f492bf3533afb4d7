"""The alerts on the page, in the API and in the metrics: open ones, and the last that ended.

Batches (``apply``), the alerts topic and the supervisor (``remember``) feed it.  Safe to use from several
threads.
"""

import heapq
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from alerts.alert import Alert, AlertStatus, RecentRecords, Severity
from alerts.rules import stops
from streaming.serving.choosing import Trouble

RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
_RESOLVED_KEPT_MAX = 1_000

_log = logging.getLogger("groupwatch.alerts")

Row = tuple[str, str, bytes]
"""(kind, key, value) as the state function yields it; the value is JSON."""


def trouble(alert: Alert) -> Trouble:
    """Order what fires: by severity, by how much stands still, by how many members are blamed.

    Nothing of it goes up and down, so that what somebody reads stays where it is.
    """
    return RANK[alert.severity], stops(alert.name), -len(alert.culprits)


def loudness(alert: Alert) -> tuple[bool, Trouble, int, str]:
    """Order alerts: open before ended, then by trouble, then new before old."""
    return alert.status is AlertStatus.RESOLVED, trouble(alert), -alert.starts_at_ms, alert.id


class ShownAlerts:
    """The alerts of all clusters; see the module."""

    def __init__(
        self, clock_ms: Callable[[], int], detected: Callable[[float], None] = lambda _seconds: None
    ) -> None:
        """Start empty; ``detected`` takes, for each new alert, the seconds from detection until now."""
        self._lock = threading.Lock()
        self._clock_ms = clock_ms
        self._detected = detected
        self._open: dict[str, Alert] = {}
        self._resolved: OrderedDict[str, Alert] = OrderedDict()
        self._of_group: dict[tuple[str, str], dict[str, Alert]] = {}
        """(cluster, group) → alert id → open alert."""
        self._said = RecentRecords()

    def apply(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take the alerts among the rows of one batch."""
        with self._lock:
            for kind, _, value in rows:
                if kind != "alert":
                    continue
                try:
                    self._take(msgspec.json.decode(value, type=Alert))
                except msgspec.DecodeError as error:
                    _log.error("an alert of %s cannot be read: %s", cluster, error)

    def remember(self, alert: Alert) -> None:
        """Take an alert of the alerts topic or the supervisor; older revisions change nothing.

        Reading the topic overlaps with the batches in no order; a batch's later record wins.
        """
        with self._lock:
            before = self._open.get(alert.id) or self._resolved.get(alert.id)
            if before is None or before.revision < alert.revision:
                self._said.is_repeat(alert)
                self._put(alert)

    def known(self, alert_id: str) -> Alert | None:
        """Return an alert that is open or ended lately; None if it is unknown."""
        with self._lock:
            return self._open.get(alert_id) or self._resolved.get(alert_id)

    def of(self, cluster: str, group: str) -> list[Alert]:
        """Return the open alerts of one group, loudest first."""
        with self._lock:
            return sorted(self._of_group.get((cluster, group), {}).values(), key=loudness)

    def troubles(self) -> dict[tuple[str, str], Trouble]:
        """Return (cluster, group) → place of its loudest open alert."""
        with self._lock:
            return {
                group: min(trouble(one) for one in found.values()) for group, found in self._of_group.items()
            }

    def names(self) -> dict[tuple[str, str], frozenset[str]]:
        """Return (cluster, group) → names of its open alerts."""
        with self._lock:
            return {
                group: frozenset(one.name for one in found.values())
                for group, found in self._of_group.items()
            }

    def loudest(self, limit: int) -> list[Alert]:
        """Return at most ``limit`` open alerts, loudest first."""
        with self._lock:
            return heapq.nsmallest(limit, self._open.values(), key=loudness)

    def matching(self, *, status: str, cluster: str, group: str | None, severity: str = "") -> list[Alert]:
        """Return the matching alerts, loudest first; "" and None match everything."""
        with self._lock:
            known = (*self._open.values(), *self._resolved.values())
        return sorted(
            (
                alert
                for alert in known
                if (not status or alert.status == status)
                and (not cluster or alert.cluster == cluster)
                and (group is None or alert.group == group)
                and (not severity or alert.severity == severity)
            ),
            key=loudness,
        )

    def _take(self, alert: Alert) -> None:
        if self._said.is_repeat(alert):
            return  # a batch that was run again after a failure
        self._put(alert)
        if alert.revision == 0 and alert.status is AlertStatus.FIRING:
            self._detected(max(0, self._clock_ms() - alert.detected_at_ms) / 1000)

    def _put(self, alert: Alert) -> None:
        self._take_away(alert.id)
        if alert.status is AlertStatus.FIRING:
            self._open[alert.id] = alert
            self._of_group.setdefault((alert.cluster, alert.group), {})[alert.id] = alert
        else:
            self._resolved[alert.id] = alert
            while len(self._resolved) > _RESOLVED_KEPT_MAX:
                self._said.forget(self._resolved.popitem(last=False)[0])

    def _take_away(self, alert_id: str) -> None:
        """Remove an alert from the group of its last record; a forged record may name another group."""
        self._resolved.pop(alert_id, None)
        before = self._open.pop(alert_id, None)
        if before is None:
            return
        place = (before.cluster, before.group)
        del self._of_group[place][alert_id]
        if not self._of_group[place]:
            del self._of_group[place]
