"""What fires for a whole cluster holds back, in the notifier, the alerts that are only its effects."""

from collections.abc import Mapping

from alerts.alert import Alert, AlertStatus
from alerts.rules.registry import ALL_RULES, is_about_a_group

CLUSTER_EFFECTS: Mapping[str, frozenset[str]] = {
    rule.name: frozenset(cause.name for cause in rule.effect_of if not is_about_a_group(cause))
    for rule in ALL_RULES
}
"""Effect -> causes about its whole cluster."""

WIDE_HOLD_MAX_MS = 3_600_000
"""A cause about the whole cluster holds nothing back for longer than this."""

_LOOK_AGAIN_MS = 5_000


class WideCauses:
    """The open alerts about whole clusters, as one notifier knows them."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, str]] = {}

    def forget(self, alert_id: str) -> None:
        """Let go of an alert that its topic has forgotten."""
        for of_cluster in self._open.values():
            of_cluster.pop(alert_id, None)

    def note(self, alert: Alert) -> None:
        """Take note of any alert's newest revision."""
        if alert.group:
            return
        of_cluster = self._open.setdefault(alert.cluster, {})
        if alert.status is AlertStatus.FIRING:
            of_cluster[alert.id] = alert.name
        else:
            of_cluster.pop(alert.id, None)

    def hold_until_ms(self, alert: Alert, *, queued_at_ms: int, now_ms: int) -> int | None:
        """Return when to look at ``alert`` again if it is the effect of what fires; None: tell it."""
        causes = CLUSTER_EFFECTS.get(alert.name, frozenset())
        if causes.isdisjoint(self._open.get(alert.cluster, {}).values()):
            return None
        latest_ms = queued_at_ms + WIDE_HOLD_MAX_MS
        return min(now_ms + _LOOK_AGAIN_MS, latest_ms) if now_ms < latest_ms else None
