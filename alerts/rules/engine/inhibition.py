"""Which alerts are effects of which: while a cause fires, its effects are not told beside it.

Two places apply this.  The judge holds back the effects of what fires in the same group; alerts about the
whole cluster are not known there, so the notifier holds back what they cause.
"""

from collections.abc import Mapping

from alerts.alert import Alert, AlertStatus

_REBALANCING = frozenset({"StuckPreparingRebalance", "StuckCompletingRebalance", "RebalanceStorm"})

EFFECTS: Mapping[str, frozenset[str]] = {
    "CommitsStopped": _REBALANCING | {"PollIntervalExceeded"},
    "CommitsStalled": _REBALANCING,
    "LagGrowing": _REBALANCING | {"CommitsStopped", "CommitsStalled", "PollIntervalExceeded"},
    "AssignmentChurn": frozenset({"RebalanceStorm"}),
}
"""Effect -> causes in the same group."""

CLUSTER_EFFECTS: Mapping[str, frozenset[str]] = {
    "CommitsStopped": frozenset({"ClusterUnreachable", "MonitorStalled", "SourceSilent"}),
    "CommitsStalled": frozenset({"ClusterUnreachable", "MonitorStalled", "SourceSilent"}),
    "LagGrowing": frozenset({"ClusterUnreachable", "MonitorStalled", "SourceSilent"}),
    "SourceSilent": frozenset({"ClusterUnreachable"}),
}
"""Effect -> causes about its whole cluster."""

GRACE_MS = 60_000
"""After a cause has ended its effects have so long to end as well, before they are told."""

WIDE_HOLD_MAX_MS = 3_600_000
"""A cause about the whole cluster holds nothing back for longer than this."""

_LOOK_AGAIN_MS = 5_000


def held_back_until_ms(name: str, *, is_firing: Mapping[str, object], ended: Mapping[str, int]) -> int | None:
    """Return until when an alert of this name must wait for what causes it; None: it need not.

    Args:
        name: the alert that would fire.
        is_firing: the names of the group's open alerts.
        ended: name -> when its last alert of the group ended.
    """
    causes = EFFECTS.get(name, frozenset())
    if any(cause in is_firing for cause in causes):
        return FIRING
    return max((ended[cause] + GRACE_MS for cause in causes if cause in ended), default=None)


FIRING = -1
"""Held back for as long as a cause fires: its end is news, and asks again."""


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
