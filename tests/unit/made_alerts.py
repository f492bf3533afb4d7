"""An alert for tests that care for a few of its fields only."""

from typing import Any

import msgspec

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity

BEGAN_MS = 1_700_000_000_000

_GOOD = Alert(
    id="a1",
    revision=0,
    name="SessionTimeout",
    cluster="eu",
    group="orders",
    status=AlertStatus.FIRING,
    severity=Severity.WARNING,
    starts_at_ms=BEGAN_MS,
    ends_at_ms=None,
    detected_at_ms=BEGAN_MS,
    summary="Group orders lost a member.",
    cause="It was silent.",
    culprits=(Culprit(member_id="m"),),
    cost="A rebalance.",
    advice="Look at it.",
)


def an_alert(**changes: Any) -> Alert:
    """Return an alert that fires and answers every question, but for what is changed."""
    return msgspec.structs.replace(_GOOD, **changes)
