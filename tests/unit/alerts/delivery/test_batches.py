"""Alerts that one attempt carries although no route bundles them, as Alertmanager's API takes a list."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.routing import Route
from alerts.delivery.waiting import Place, Work

MakeAlert = Callable[..., Alert]
RENEW, BATCH, OLDEST = 60_000, 10, 3_600_000
DELIVERED, RETRY, REJECTED = (Delivery(outcome=one) for one in Outcome)


class Desk:
    """An outbox that sends batches, on a clock of its own, and a receiver that refuses some alerts."""

    def __init__(self, make_alert: MakeAlert, **route: Any) -> None:
        self.make_alert = make_alert
        self.now_ms = 1_000_020
        self.outbox = Outbox(
            "r",
            [Route(receivers=("r",), **route)],
            max_age_ms=OLDEST,
            renew_ms=RENEW,
            batch_max=BATCH,
            jitter=lambda: 1.0,
        )
        self.bad: set[str] = set()
        self.is_away = False
        self.sent: list[Work] = []
        self.outcomes: list[str] = []

    def fire(self, *names: str, revision: int = 0, **changes: Any) -> None:
        """Take a revision of each of these alerts."""
        for name in names:
            alert = self.make_alert(id=name, group=name, revision=revision, **changes)
            self.outbox.direct(alert, now_ms=self.now_ms)

    def after(self, ms: int) -> list[list[str]]:
        """Let time pass; return the ids of each attempt that is due then."""
        self.now_ms += ms
        tried = []
        while (work := self.outbox.next_work(self.now_ms)) is not None:
            ids = [alert.id for alert in work.notification.alerts]
            tried.append(ids)
            self.sent.append(work)
            self.outcomes.append(self.outbox.settle(work, self._answer(ids), self.now_ms))
        return tried

    def _answer(self, ids: Iterable[str]) -> Delivery:
        if self.is_away:
            return RETRY
        return DELIVERED if self.bad.isdisjoint(ids) else REJECTED


@pytest.fixture
def desk(make_alert: MakeAlert) -> Desk:
    return Desk(make_alert)


def names(count: int) -> list[str]:
    return [f"g{number:04d}" for number in range(count)]


def test_a_thousand_alerts_are_a_few_attempts_now_and_at_each_renewal(desk: Desk) -> None:
    desk.fire(*names(1_000))
    for ms in (0, RENEW, RENEW, RENEW):
        tried = desk.after(ms)
        assert len(tried) == 1_000 / BATCH
        assert sorted(chain.from_iterable(tried)) == names(1_000)


def test_alerts_that_began_at_different_times_are_renewed_together(desk: Desk) -> None:
    """Within each renewal interval there are six moments at which something is sent."""
    for name in names(60):
        desk.fire(name)
        desk.after(RENEW // 60)
    renewals = [tried for _ in range(60) if (tried := desk.after(RENEW // 60))]
    assert len(renewals) <= 7
    assert {one for tried in renewals for batch in tried for one in batch} == set(names(60))


def test_the_most_urgent_go_first(desk: Desk) -> None:
    desk.fire(*names(BATCH))
    desk.fire("bad", severity=Severity.CRITICAL)
    assert desk.after(0) == [["bad", *names(BATCH - 1)], names(BATCH)[-1:]]


def test_one_refused_alert_costs_the_others_nothing(desk: Desk) -> None:
    desk.fire(*names(5))
    desk.bad = {"g0003"}
    assert desk.after(0) == [names(5), *([one] for one in names(5))]
    assert desk.outcomes == ["retry", *["delivered"] * 3, "rejected", "delivered"]
    told = {one for one in names(5) if desk.outbox.last_delivery(one)}
    assert told == set(names(5)) - {"g0003"}


def test_a_refused_alert_stays_alone_until_it_is_taken(desk: Desk) -> None:
    """Else each renewal of all the others would be refused first."""
    desk.fire(*names(5))
    desk.bad = {"g0003"}
    desk.after(0)
    good = [one for one in names(5) if one not in desk.bad]
    tried = desk.after(RENEW)
    assert ["g0003"] in tried
    assert sorted(chain.from_iterable(tried)) == names(5)
    assert all(batch == ["g0003"] or "g0003" not in batch for batch in tried)
    desk.bad = set()
    desk.after(RENEW)
    assert sorted(desk.after(RENEW)) == [sorted([*good, "g0003"])]


def test_the_end_of_a_refused_alert_ends_its_loneliness(desk: Desk) -> None:
    desk.fire("a", "b")
    desk.bad = {"a"}
    desk.after(0)
    desk.fire("a", revision=1, status=AlertStatus.RESOLVED, ends_at_ms=desk.now_ms)
    assert desk.after(0) == []  # nobody was told that it began
    desk.fire("a", revision=2)
    desk.fire("c")
    assert desk.after(0) == [["a", "c"], ["a"], ["c"]]


def test_a_batch_that_found_nobody_is_tried_again_whole(desk: Desk) -> None:
    desk.fire(*names(5))
    desk.is_away = True
    assert desk.after(0) == [names(5)]
    assert desk.after(500) == []
    desk.is_away = False
    assert desk.after(1_000) == [names(5)]
    assert desk.outbox.waiting == 0


def test_a_batch_whose_outcome_could_not_be_recorded_is_tried_again(desk: Desk) -> None:
    desk.fire(*names(3))
    work = desk.outbox.next_work(desk.now_ms)
    assert work is not None
    desk.outbox.put_back(work, desk.now_ms)
    assert desk.after(2_000) == [names(3)]


def test_what_came_while_the_batch_was_under_way_is_sent_after_it(desk: Desk) -> None:
    desk.fire("a", "b")
    work = desk.outbox.next_work(desk.now_ms)
    assert work is not None
    desk.fire("a", revision=1, severity=Severity.CRITICAL)
    desk.outbox.settle(work, DELIVERED, desk.now_ms)
    desk.after(0)
    last = desk.sent[-1].notification
    assert [(one.severity, one.status) for one in last.alerts] == [
        (Severity.WARNING, AlertStatus.RESOLVED),
        (Severity.CRITICAL, AlertStatus.FIRING),
    ]


def test_a_refused_batch_does_not_repeat_what_was_replaced(desk: Desk) -> None:
    desk.fire("a", "b")
    work = desk.outbox.next_work(desk.now_ms)
    assert work is not None
    desk.fire("a", revision=1)
    desk.outbox.settle(work, REJECTED, desk.now_ms)
    assert desk.after(0) == [["a"], ["b"]]
    assert desk.sent[0].notification.revision == 1


def test_no_cursor_passes_a_record_of_a_batch_under_way(desk: Desk, make_alert: MakeAlert) -> None:
    box = desk.outbox
    box.recover("log", {})
    box.recovered("log", now_ms=desk.now_ms)
    for offset, name in enumerate(names(3)):
        place = Place("log", 0, offset)
        box.take(make_alert(id=name, group=name), place, timestamp_ms=desk.now_ms, now_ms=desk.now_ms)
    box.advance("log", {0: 3})
    box.cursors("log")
    box.announced("log")
    work = box.next_work(desk.now_ms)
    assert work is not None
    assert len(work.entries) == 3
    assert box.cursors("log")[0].offset == 0
    box.settle(work, REJECTED, desk.now_ms)
    assert box.cursors("log")[0].offset == 0
    assert desk.after(0) == [[one] for one in names(3)]
    assert box.cursors("log")[0].offset == 3


def test_what_a_route_bundles_is_no_part_of_a_batch(make_alert: MakeAlert) -> None:
    desk = Desk(make_alert, group_by=("cluster",), group_wait_ms=0, group_interval_ms=0)
    desk.fire("a", "b", cluster="one")
    desk.fire("c", cluster="two")
    assert desk.after(0) == [["a", "b"], ["c"]]
    assert [dict(one.notification.group_labels or {}) for one in desk.sent] == [
        {"cluster": "one"},
        {"cluster": "two"},
    ]


def test_a_batch_is_named_by_all_it_carries(desk: Desk) -> None:
    desk.fire("a", "b")
    desk.after(0)
    desk.fire("c")
    desk.after(0)
    batch, single = (one.notification.idempotency_key for one in desk.sent)
    assert len(batch) == 64
    assert single == "c/0"
