"""The notifier's threads against a real HTTP receiver and an alerts topic in memory."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.notifier import Notifier
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome, Receiver
from alerts.delivery.receivers.webhook import WebhookReceiver
from alerts.delivery.routing import Route
from alerts.delivery.waiting import Work

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import MemoryTopic, Web

MakeAlert = Callable[..., Alert]
MakeNotifier = Callable[..., Notifier]


class Desk:
    """A receiver in memory; ``answer`` is what it says, and ``gate`` can hold it inside an attempt."""

    max_age_ms = 86_400_000
    renew_ms: int | None = None
    batch_max: int = 1
    takes_silenced: bool = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.answer: Delivery | Exception = Delivery(outcome=Outcome.DELIVERED)
        self.gate = threading.Event()
        self.gate.set()
        self.got: list[Notification] = []
        self.arrived = threading.Condition()

    def deliver(self, notification: Notification) -> Delivery:
        """Keep it and answer."""
        with self.arrived:
            self.got.append(notification)
            self.arrived.notify_all()
        assert self.gate.wait(20)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def wait_for(self, count: int) -> list[str]:
        """Return the keys once ``count`` have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.got) >= count, timeout=20)
            return [notification.idempotency_key for notification in self.got]

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def make_notifier(topic: "MemoryTopic") -> Iterator[MakeNotifier]:
    started: list[Notifier] = []

    def make(*receivers: Receiver, routes: tuple[Route, ...] = (), **options: object) -> Notifier:
        notifier = Notifier(receivers, routes, {"main": topic.open}, **options)  # type: ignore[arg-type]
        notifier.start()
        started.append(notifier)
        return notifier

    yield make
    for notifier in started:
        notifier.stop()


def test_an_alert_goes_from_the_topic_to_the_webhook(
    topic: "MemoryTopic", web: "Web", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """And its cursor is committed, and the outcome counted."""
    counts: Counter[tuple[str, str]] = Counter()
    make_notifier(WebhookReceiver("oncall", web.url), count=lambda *what: counts.update([what]))
    topic.write(make_alert())
    (body,) = web.wait_for(1)
    assert body["alerts"][0]["fingerprint"] == "a1"
    topic.wait_for_cursor("oncall", 1)
    assert counts == {("oncall", "delivered"): 1}


def test_a_webhook_that_was_down_gets_it_in_the_end(
    topic: "MemoryTopic", web: "Web", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """A 503 is tried again, with the same key."""
    web.answers = [(503, {})]
    make_notifier(WebhookReceiver("oncall", web.url))
    topic.write(make_alert())
    web.wait_for(2)
    assert [headers["Idempotency-Key"] for headers in web.headers] == ["a1/0", "a1/0"]
    topic.wait_for_cursor("oncall", 1)


def test_a_receiver_that_hangs_holds_up_no_other(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """Each has a thread, a queue and a cursor of its own."""
    stuck, fine = Desk("stuck"), Desk("fine")
    stuck.gate.clear()
    make_notifier(stuck, fine)
    topic.write(make_alert())
    stuck.wait_for(1)
    topic.write(make_alert(id="a2"))
    assert fine.wait_for(2) == ["a1/0", "a2/0"]
    topic.wait_for_cursor("fine", 2)
    assert topic.cursors["stuck"][0].offset == 0
    stuck.gate.set()
    topic.wait_for_cursor("stuck", 2)


def test_a_bug_in_a_receiver_loses_nothing_and_kills_no_thread(
    topic: "MemoryTopic",
    make_notifier: MakeNotifier,
    make_alert: MakeAlert,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception counts as an outage of that receiver."""
    desk = Desk("oncall")
    desk.answer = RuntimeError("a bug")
    with caplog.at_level(logging.ERROR, "groupwatch.notifier"):
        notifier = make_notifier(desk)
        topic.write(make_alert())
        desk.wait_for(1)
        desk.answer = Delivery(outcome=Outcome.DELIVERED)
        desk.wait_for(2)
    topic.wait_for_cursor("oncall", 1)
    assert notifier.dead_threads() == []
    assert "receiver oncall broke" in caplog.text


def test_kafka_may_be_away_at_start_and_in_between(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """The notifier comes back by itself and neither loses nor repeats."""
    desk = Desk("oncall")
    topic.is_away = True
    notifier = make_notifier(desk)
    assert not notifier.is_caught_up
    topic.write(make_alert())
    topic.is_away = False
    assert desk.wait_for(1) == ["a1/0"]
    topic.wait_for_cursor("oncall", 1)
    topic.is_away = True
    topic.write(make_alert(id="a2"))
    topic.is_away = False
    assert desk.wait_for(2) == ["a1/0", "a2/0"]
    topic.wait_for_cursor("oncall", 2)
    assert notifier.is_caught_up


def test_direct_alerts_need_no_kafka(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """That a cluster is unreachable is told although it is, and its end as well."""
    desk = Desk("oncall")
    topic.is_away = True
    notifier = make_notifier(desk)
    notifier.direct(make_alert(name="ClusterUnreachable", group=""))
    desk.wait_for(1)
    ended = make_alert(name="ClusterUnreachable", group="", revision=1, status=AlertStatus.RESOLVED)
    notifier.direct(ended)
    assert desk.wait_for(2) == ["a1/0", "a1/1"]
    assert desk.got[1].alerts[0].status is AlertStatus.RESOLVED


def test_routes_decide_who_is_told(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """The pager gets the critical, the chat the rest."""
    pager, chat = Desk("pager"), Desk("chat")
    routes = (Route(receivers=("pager",), severity=(Severity.CRITICAL,)), Route(receivers=("chat",)))
    make_notifier(pager, chat, routes=routes)
    topic.write(make_alert(id="w"), make_alert(id="c", severity=Severity.CRITICAL))
    topic.wait_for_cursor("pager", 2)
    topic.wait_for_cursor("chat", 2)
    assert pager.wait_for(1) == ["c/0"]
    assert chat.wait_for(1) == ["w/0"]


def test_a_stop_commits_what_was_delivered(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """The attempt under way is finished and its cursor stored; the next start says nothing twice."""
    desk = Desk("oncall")
    notifier = make_notifier(desk)
    topic.write(make_alert())
    desk.wait_for(1)
    notifier.stop()
    assert topic.cursors["oncall"][0].offset == 1
    later = Desk("oncall")
    make_notifier(later)
    topic.write(make_alert(id="a2"))
    assert later.wait_for(1) == ["a2/0"]


def test_a_notifier_killed_in_an_attempt_sends_again_after_the_restart(
    topic: "MemoryTopic", make_notifier: MakeNotifier, make_alert: MakeAlert
) -> None:
    """Commit follows delivery, so the successor finds the record, under the same key."""
    killed = Desk("oncall")
    killed.gate.clear()
    make_notifier(killed)
    topic.write(make_alert(revision=2))
    killed.wait_for(1)
    successor = Desk("oncall")
    make_notifier(successor)
    assert successor.wait_for(1) == ["a1/2"]
    killed.gate.set()


def test_an_outage_is_one_line_in_the_log(
    topic: "MemoryTopic",
    make_notifier: MakeNotifier,
    make_alert: MakeAlert,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The same failure is not told at every attempt."""
    desk = Desk("oncall")
    desk.answer = Delivery(outcome=Outcome.RETRY, detail="HTTP 503")
    with caplog.at_level(logging.INFO, "groupwatch.notifier"):
        make_notifier(desk)
        topic.write(make_alert())
        desk.wait_for(2)
        desk.answer = Delivery(outcome=Outcome.DELIVERED)
        topic.wait_for_cursor("oncall", 1)
    assert [r.message for r in caplog.records if "HTTP 503" in r.message] == [
        "receiver oncall, alert a1/0: retry: HTTP 503"
    ]


def test_a_dead_thread_is_named(
    topic: "MemoryTopic", make_notifier: MakeNotifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/healthz can tell that alerts go nowhere."""
    notifier = make_notifier(Desk("oncall"))
    sender = notifier._senders[0]
    sender.stop()
    sender.join(20)
    assert notifier.dead_threads() == ["sender-oncall"]


def test_a_sender_comes_back_after_an_error_of_ours(
    topic: "MemoryTopic",
    make_notifier: MakeNotifier,
    make_alert: MakeAlert,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is counted and logged once; what was being sent is sent again, and others do not wait for it."""
    monkeypatch.setattr("alerts.delivery.sender._FAILED_S", 0.01)
    desk = Desk("oncall")
    notifier = make_notifier(desk)
    outbox, broken = notifier.outboxes["oncall"], threading.Event()
    settle = outbox.settle

    def breaks(work: Work, delivery: Delivery, now_ms: int) -> str:
        if work.entries[0].alert.id == "a1" and not broken.is_set():
            broken.set()
            raise OverflowError("cannot convert float infinity to integer")
        return settle(work, delivery, now_ms)

    monkeypatch.setattr(outbox, "settle", breaks)
    with caplog.at_level(logging.ERROR, "groupwatch.notifier"):
        topic.write(make_alert(), make_alert(id="a2"))
        assert desk.wait_for(3) == ["a1/0", "a2/0", "a1/0"]
    topic.wait_for_cursor("oncall", 2)
    assert notifier.dead_threads() == []
    assert [one.failures for one in notifier.deliveries()] == [1]
    assert "the sender of receiver oncall failed, and goes on" in caplog.text
