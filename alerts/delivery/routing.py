"""Decides which receivers get an alert, and how often it is repeated while it fires.

Routes are tried in order; the first that matches takes the alert, unless it says ``goes_on``.  An
alert that matches no route goes nowhere; with no routes at all, everything goes to everybody.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from alerts.alert import Alert, Severity

REPEAT_INTERVAL_MS = 4 * 3_600_000
"""Default, as in Alertmanager: long enough not to nag, short enough for each shift to see it."""


SAID_ONCE = frozenset({"UnsafeTimeouts"})
"""Advice about a setting is never repeated while it stays the same, whatever the repeat interval is."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One route; an empty tuple matches everything.  ``group`` holds patterns for the whole name."""

    receivers: tuple[str, ...]
    severity: tuple[Severity, ...] = ()
    alertname: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    repeat_interval_ms: int = REPEAT_INTERVAL_MS
    goes_on: bool = False
    """Continue with the routes after this one."""


def matches(route: Route, alert: Alert) -> bool:
    """Say whether ``route`` applies to ``alert``."""
    return (
        _is_one_of(alert.severity, route.severity)
        and _is_one_of(alert.name, route.alertname)
        and _is_one_of(alert.cluster, route.cluster)
        and (not route.group or any(re.fullmatch(pattern, alert.group) for pattern in route.group))
    )


def _is_one_of(value: str, wanted: Sequence[str]) -> bool:
    return not wanted or value in wanted


def receivers_for(routes: Iterable[Route], alert: Alert) -> Mapping[str, int]:
    """Return receiver → repeat interval in ms; the first route that names a receiver sets its interval."""
    found: dict[str, int] = {}
    for route in routes:
        if not matches(route, alert):
            continue
        for receiver in route.receivers:
            found.setdefault(receiver, route.repeat_interval_ms)
        if not route.goes_on:
            break
    return found


def routes_or_everything(routes: Sequence[Route], receivers: Iterable[str]) -> tuple[Route, ...]:
    """Return ``routes``; if there are none, one route that sends everything to all ``receivers``."""
    return tuple(routes) or (Route(receivers=tuple(receivers)),)
