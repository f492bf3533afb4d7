"""Alerts that are told together: when, with what, and how often."""

import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.outbox import Outbox
from alerts.delivery.owners import Owned, Owners
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.receivers.webhook import webhook_body
from alerts.delivery.routing import Route
from alerts.delivery.silences import LiveQuiet, Match, Silence
from alerts.delivery.waiting import HeldBack, Work

MakeAlert = Callable[..., Alert]
WAIT, INTERVAL, REPEAT = 30_000, 300_000, 3_600_000
DELIVERED, RETRY = Delivery(outcome=Outcome.DELIVERED), Delivery(outcome=Outcome.RETRY)


class Desk:
    """One outbox whose route groups by cluster, on a clock of its own."""

    def __init__(self, make_alert: MakeAlert, **route: Any) -> None:
        self.make_alert = make_alert
        self.now_ms = 1_000_000
        wanted: dict[str, Any] = {"group_by": ("cluster",), "repeat_interval_ms": REPEAT, **route}
        routes = [Route(receivers=("r",), group_wait_ms=WAIT, group_interval_ms=INTERVAL, **wanted)]
        owners = Owners([Owned(owner="team-a", groups=("a.*",))])
        self.quiet = LiveQuiet()
        self.outbox = Outbox(
            "r", routes, max_age_ms=86_400_000, jitter=lambda: 1.0, quiet=self.quiet, owner_of=owners.of
        )
        self.sent: list[Work] = []

    def fire(self, name: str, revision: int = 0, **changes: Any) -> Alert:
        """Take a revision of the alert about group ``name``."""
        alert = self.make_alert(id=name, group=name, revision=revision, **changes)
        self.outbox.direct(alert, now_ms=self.now_ms)
        return alert

    def end(self, name: str, revision: int = 1) -> None:
        """Take the end of an alert."""
        self.fire(name, revision, status=AlertStatus.RESOLVED, ends_at_ms=self.now_ms)

    def after(self, ms: int, delivery: Delivery = DELIVERED) -> list[list[str]]:
        """Let time pass, and return the messages that are due then: ids with their status."""
        self.now_ms += ms
        told = []
        while (work := self.outbox.next_work(self.now_ms)) is not None:
            if delivery is DELIVERED:
                self.sent.append(work)
            told.append(
                [f"{one.id}{'!' if one.status == 'firing' else '.'}" for one in work.notification.alerts]
            )
            self.outbox.settle(work, delivery, self.now_ms)
        return told


@pytest.fixture
def desk(make_alert: MakeAlert) -> Desk:
    return Desk(make_alert)


def test_a_brokers_death_is_one_message(desk: Desk) -> None:
    """Three hundred groups that fall within the wait are told once, together."""
    for number in range(300):
        desk.fire(f"g{number}")
        assert desk.after(10) == []
    (told,) = desk.after(WAIT)
    assert len(told) == 300
    assert desk.after(INTERVAL) == []


def test_a_brokers_death_is_one_message_while_something_else_fires(desk: Desk) -> None:
    """The first of the three hundred does not go out alone, with the others an interval later."""
    desk.fire("before")
    assert desk.after(WAIT) == [["before!"]]
    assert desk.after(INTERVAL) == []
    for number in range(300):
        desk.fire(f"g{number}")
        assert desk.after(10) == []
    (told,) = desk.after(WAIT)
    assert len(told) == 301


def test_what_changes_is_told_after_the_interval_with_what_still_fires(desk: Desk) -> None:
    """The message is updated, not repeated for each change."""
    desk.fire("a")
    assert desk.after(WAIT) == [["a!"]]
    desk.fire("b")
    desk.fire("a", 1, severity=Severity.CRITICAL)
    assert desk.after(INTERVAL - 1) == []
    assert desk.after(1) == [["a.", "a!", "b!"]]
    desk.end("b")
    assert desk.after(INTERVAL) == [["b.", "a!"]]


def test_what_is_silenced_is_left_out(desk: Desk) -> None:
    """Also what was told before and still fires."""
    for name in "ab":
        desk.fire(name)
    assert desk.after(WAIT) == [["a!", "b!"]]
    desk.quiet.add_all([Silence(match=Match(groups=("a",)))])
    desk.fire("c")
    assert desk.after(INTERVAL) == [["c!", "b!"]]
    desk.end("a")
    assert desk.after(INTERVAL) == [["a.", "b!", "c!"]]


def test_other_labels_are_other_messages(desk: Desk) -> None:
    """Each cluster has its own."""
    desk.fire("a", cluster="eu")
    desk.fire("b", cluster="us")
    desk.fire("c", cluster="eu")
    assert sorted(desk.after(WAIT)) == [["a!", "c!"], ["b!"]]


def test_owners_are_a_label_to_group_by(make_alert: MakeAlert) -> None:
    """Who owns nothing has the empty one."""
    desk = Desk(make_alert, group_by=("owner",))
    for name in ("a1", "x", "a2"):
        desk.fire(name)
    assert sorted(desk.after(WAIT)) == [["a1!", "a2!"], ["x!"]]
    assert [work.notification.group_labels for work in desk.sent] == [{"owner": "team-a"}, {"owner": ""}]


def test_what_ends_while_it_waits_is_not_told(desk: Desk) -> None:
    """A receiver hears of no end whose beginning it was not told."""
    desk.fire("a")
    desk.fire("b")
    desk.end("b")
    assert desk.after(WAIT) == [["a!"]]
    desk.end("a")
    assert desk.after(INTERVAL) == [["a."]]
    desk.fire("c")
    assert desk.after(WAIT) == [["c!"]]


def test_a_repeat_is_of_the_whole_message(desk: Desk) -> None:
    """Once for all, not once for each alert."""
    for name in "abc":
        desk.fire(name)
    assert desk.after(WAIT) == [["a!", "b!", "c!"]]
    assert desk.after(REPEAT) == []
    assert [sorted(one) for one in desk.after(WAIT)] == [["a!", "b!", "c!"]]
    assert desk.after(REPEAT - 1) == []


def test_a_failed_message_is_tried_again_whole(desk: Desk) -> None:
    """One pause for the receiver, whatever the number of alerts; and what has come meanwhile goes along."""
    for name in "ab":
        desk.fire(name)
    assert desk.after(WAIT, RETRY) == [["a!", "b!"]]
    desk.fire("c")
    (told,) = desk.after(1_000)
    assert sorted(told) == ["a!", "b!", "c!"]
    assert desk.outbox.waiting == 0


def test_the_key_is_of_the_content(desk: Desk) -> None:
    """The hash of the sorted ids with their revisions; the body names what its alerts have in common."""
    for name in "ba":
        desk.fire(name)
    desk.after(WAIT)
    notification = desk.sent[0].notification
    assert notification.idempotency_key == hashlib.sha256(b"a/0\nb/0").hexdigest()
    body = webhook_body(notification, receiver="r")
    assert (body["groupLabels"], body["groupKey"]) == ({"cluster": "eu"}, '{}:{cluster="eu"}')
    assert "group" not in body["commonLabels"]
    assert len(body["alerts"]) == 2


def test_why_it_waits_is_said(desk: Desk) -> None:
    """And it does not count as undelivered meanwhile."""
    alert = desk.fire("a")
    desk.now_ms += WAIT - 1
    assert desk.outbox.held_back(alert.id, desk.now_ms) is HeldBack.GROUPING
    assert desk.outbox.oldest_undelivered_ms(desk.now_ms) == 0


def test_without_group_by_each_alert_is_told_at_once(make_alert: MakeAlert) -> None:
    """As ever, with its own key."""
    desk = Desk(make_alert, group_by=())
    desk.fire("a")
    desk.fire("b", 3)
    assert desk.after(0) == [["a!"], ["b!"]]
    assert [work.notification.idempotency_key for work in desk.sent] == ["a/0", "b/3"]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_receiver_ends_with_what_fires(make_alert: MakeAlert, seed: int) -> None:
    """Random beginnings, severities, ends and failures: no end without a beginning, nothing forgotten."""
    rng = random.Random(seed)
    desk = Desk(make_alert, group_by=rng.choice([("cluster",), ("severity",), ("owner", "alertname"), ()]))
    revisions: dict[str, int] = {}
    firing: dict[str, Severity] = {}
    for _ in range(300):
        name = rng.choice("abcdefgh")
        revisions[name] = revisions.get(name, -1) + 1
        if name in firing and rng.random() < 0.5:
            desk.end(name, revisions[name])
            del firing[name]
        else:
            firing[name] = rng.choice([Severity.WARNING, Severity.CRITICAL])
            desk.fire(name, revisions[name], severity=firing[name])
        desk.after(rng.choice([0, 1_000, WAIT, INTERVAL]), rng.choice([DELIVERED, DELIVERED, RETRY]))
    for _ in range(10):
        desk.after(INTERVAL)
    seen: dict[tuple[str, str], bool] = {}
    for work in desk.sent:
        for one in work.notification.alerts:
            seen[one.id, one.severity] = one.status == "firing"
    assert {key for key, fires in seen.items() if fires} == set(firing.items())
    assert (desk.outbox.waiting, desk.outbox._bundles._waits_in) == (0, {})


def test_a_clock_that_was_ahead_for_a_moment_delays_no_message(desk: Desk) -> None:
    """What began to wait then waits as long as it would have, and the next one for the interval only."""
    year_ms = 365 * 86_400_000
    desk.now_ms += year_ms
    desk.fire("g1")
    assert desk.after(0) == []
    desk.now_ms -= year_ms
    assert desk.after(0) == []
    assert desk.after(WAIT) == [["g1!"]]
    desk.fire("g2")
    assert desk.after(INTERVAL) == [["g2!", "g1!"]]
