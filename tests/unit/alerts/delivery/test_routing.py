"""Which receivers an alert goes to."""

import pytest

from alerts.alert.alert import Alert, Severity
from alerts.delivery.routing import Route, matches, routes_for, routes_or_everything
from tests.unit.made_alerts import an_alert


def alert(severity: Severity = Severity.WARNING, group: str = "payments") -> Alert:
    return an_alert(name="RebalanceStorm", severity=severity, group=group)


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (Route(receivers=("a",)), True),
        (Route(receivers=("a",), severity=(Severity.WARNING, Severity.CRITICAL)), True),
        (Route(receivers=("a",), severity=(Severity.CRITICAL,)), False),
        (Route(receivers=("a",), alertname=("RebalanceStorm",), cluster=("eu",)), True),
        (Route(receivers=("a",), alertname=("SessionTimeout",)), False),
        (Route(receivers=("a",), cluster=("us",)), False),
        (Route(receivers=("a",), group=("x", "pay.*")), True),
        (Route(receivers=("a",), group=("pay",)), False),
        (Route(receivers=("a",), cluster=("eu",), group=("other",)), False),
    ],
)
def test_every_given_key_must_match(route: Route, expected: bool) -> None:
    """Keys left out match all, patterns match the whole group name."""
    assert matches(route, alert()) is expected


def test_the_first_matching_route_takes_the_alert() -> None:
    """A catch-all at the end gets only the rest."""
    routes = [Route(receivers=("pager",), severity=(Severity.CRITICAL,)), Route(receivers=("chat",))]
    assert set(routes_for(routes, alert(Severity.CRITICAL))) == {"pager"}
    assert set(routes_for(routes, alert(Severity.INFO))) == {"chat"}


def test_continue_looks_further_and_the_first_interval_counts() -> None:
    """One alert can go to two places; a receiver named twice is told once, at its first route's interval."""
    routes = [
        Route(receivers=("a",), repeat_interval_ms=1, goes_on=True),
        Route(receivers=("a", "b"), repeat_interval_ms=2),
        Route(receivers=("c",)),
    ]
    found = routes_for(routes, alert())
    assert {name: route.repeat_interval_ms for name, route in found.items()} == {"a": 1, "b": 2}


def test_no_route_matches_means_nobody() -> None:
    """Nothing is sent by accident."""
    assert routes_for([Route(receivers=("a",), cluster=("us",))], alert()) == {}


def test_without_routes_everybody_gets_everything() -> None:
    """The shortest configuration works."""
    assert set(routes_for(routes_or_everything((), ["a", "b"]), alert())) == {"a", "b"}
