"""Inhibition in the notifier: an alert about a whole cluster holds back alerts that are only its effects."""

from collections.abc import Mapping

from alerts.alert import Alert, AlertStatus
from alerts.rules.registry import ALL_RULES, is_about_a_group

CLUSTER_EFFECTS: Mapping[str, frozenset[str]] = {
    rule.name: frozenset(cause.name for cause in rule.effect_of if not is_about_a_group(cause))
    for rule in ALL_RULES
}
"""Effect -> causes that concern its whole cluster."""

WIDE_HOLD_MAX_MS = 3_600_000
"""Longest time for which a cluster-wide cause holds an alert back."""

_LOOK_AGAIN_MS = 5_000


class WideCauses:
    """The open alerts about whole clusters, as one notifier knows them."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, str]] = {}

    def forget(self, alert_id: str) -> None:
        """Forget an alert that its topic no longer holds."""
        for of_cluster in self._open.values():
            of_cluster.pop(alert_id, None)

    def note(self, alert: Alert) -> None:
        """Take any alert's newest revision."""
        if alert.group:
            return
        of_cluster = self._open.setdefault(alert.cluster, {})
        if alert.status is AlertStatus.FIRING:
            of_cluster[alert.id] = alert.name
        else:
            of_cluster.pop(alert.id, None)

    def hold_until_ms(self, alert: Alert, *, queued_at_ms: int, now_ms: int) -> int | None:
        """Return when to look at ``alert`` again if a firing cause explains it; None: send it."""
        causes = CLUSTER_EFFECTS.get(alert.name, frozenset())
        if causes.isdisjoint(self._open.get(alert.cluster, {}).values()):
            return None
        latest_ms = queued_at_ms + WIDE_HOLD_MAX_MS
        return min(now_ms + _LOOK_AGAIN_MS, latest_ms) if now_ms < latest_ms else None
