"""Decides which receivers get an alert, how often it is repeated while it fires, and with what it is told.

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
    owner: tuple[str, ...] = ()
    repeat_interval_ms: int = REPEAT_INTERVAL_MS
    goes_on: bool = False
    """Continue with the routes after this one."""
    group_by: tuple[str, ...] = ()
    """Labels whose values alerts have in common that are told together; none: each alert is told alone."""
    group_wait_ms: int = 30_000
    """How long the first alert of a bundle waits for others."""
    group_interval_ms: int = 300_000
    """How long what changes in a bundle waits after it was sent."""


def matches(route: Route, alert: Alert, owner: str = "") -> bool:
    """Say whether ``route`` applies to ``alert``, whose group belongs to ``owner``."""
    return (
        _is_one_of(alert.severity, route.severity)
        and _is_one_of(alert.name, route.alertname)
        and _is_one_of(alert.cluster, route.cluster)
        and _is_one_of(owner, route.owner)
        and (not route.group or any(re.fullmatch(pattern, alert.group) for pattern in route.group))
    )


def _is_one_of(value: str, wanted: Sequence[str]) -> bool:
    return not wanted or value in wanted


def routes_for(routes: Iterable[Route], alert: Alert, owner: str = "") -> Mapping[str, Route]:
    """Return receiver → the route by which it gets the alert, the first that names it."""
    found: dict[str, Route] = {}
    for route in routes:
        if not matches(route, alert, owner):
            continue
        for receiver in route.receivers:
            found.setdefault(receiver, route)
        if not route.goes_on:
            break
    return found


def routes_or_everything(routes: Sequence[Route], receivers: Iterable[str]) -> tuple[Route, ...]:
    """Return ``routes``; if there are none, one route that sends everything to all ``receivers``."""
    return tuple(routes) or (Route(receivers=tuple(receivers)),)
