"""The queue and memory of one receiver, driven by hand with a clock of our own."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.alert_log import Cursor
from alerts.delivery.cursor_notes import CursorNotes, LastDelivery, mark, pack_notes, unpack_notes
from alerts.delivery.log_reader import Reader
from alerts.delivery.outbox import EXPIRED, Outbox
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.routing import Route
from alerts.delivery.waiting import Place, Work

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import MemoryTopic

MakeAlert = Callable[..., Alert]
T0 = 1_700_000_002_000
DELIVERED = Delivery(outcome=Outcome.DELIVERED)
RETRY = Delivery(outcome=Outcome.RETRY, detail="HTTP 503")
REJECTED = Delivery(outcome=Outcome.REJECTED, detail="HTTP 400")
FIRING, RESOLVED = AlertStatus.FIRING, AlertStatus.RESOLVED
HOUR_MS = 3_600_000


class Desk:
    """An outbox with its reader and a clock, and a receiver that answers as told."""

    def __init__(self, topic: "MemoryTopic", *routes: Route, now_ms: int = T0) -> None:
        self.now_ms = now_ms
        self.caught_up: bool | None = True
        self.outbox = Outbox(
            "oncall",
            routes or (Route(receivers=("oncall",)),),
            max_age_ms=24 * HOUR_MS,
            caught_up=lambda _cluster: self.caught_up,
            jitter=lambda: 1.0,
        )
        self.reader = Reader("main", topic.open, self.outbox, clock_ms=lambda: self.now_ms)
        self.log = topic.open("oncall")
        self.reader.begin(self.log)

    def read(self) -> None:
        """Let the reader take what the topic has."""
        self.reader.step(self.log)

    def work(self) -> Work | None:
        """Return the attempt due now."""
        return self.outbox.next_work(self.now_ms)

    def die_sending(self) -> None:
        """Deliver one notification, and be killed before its commit."""
        work = self.work()
        assert work is not None
        self.outbox.settle(work, DELIVERED, self.now_ms)

    def send(self, answer: Delivery = DELIVERED) -> list[tuple[str, int, list[tuple[str, str]]]]:
        """Answer every attempt due now; return (id, revision, [(status, severity)]) of each."""
        sent = []
        while work := self.work():
            notification = work.notification
            statuses = [(str(a.status), str(a.severity)) for a in notification.alerts]
            sent.append((notification.id, notification.revision, statuses))
            self.outbox.settle(work, answer, self.now_ms)
        self.reader.commit(self.log)
        return sent


@pytest.fixture
def make_desk(topic: "MemoryTopic") -> Callable[..., Desk]:
    return lambda *routes, **options: Desk(topic, *routes, **options)


def test_a_firing_and_its_end_are_told_once_each(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The plain story."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    assert desk.send() == [("a1", 0, [("firing", "warning")])]
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    assert desk.send() == [("a1", 1, [("resolved", "warning")])]
    assert desk.send() == []


def test_repeats_of_a_revision_are_dropped(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A crash of the job writes the same records again, even after the end."""
    desk = make_desk()
    story = [make_alert(), make_alert(revision=1, status=RESOLVED, ends_at_ms=T0)]
    for alert in story:
        topic.write(alert)
        desk.read()
        desk.send()
    topic.write(*story)
    desk.read()
    assert desk.send() == []


def test_the_cursor_waits_for_the_delivery(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A crash before the delivery finds the record again."""
    desk = make_desk()
    topic.write(make_alert(), make_alert(id="a2"))
    desk.read()
    work = desk.work()
    assert work is not None
    desk.reader.commit(desk.log)
    assert topic.cursors["oncall"][0].offset == 0
    desk.outbox.settle(work, DELIVERED, desk.now_ms)
    desk.reader.commit(desk.log)
    assert topic.cursors["oncall"][0].offset == 1
    desk.send()
    assert topic.cursors["oncall"][0].offset == 2


def test_an_early_delivery_does_not_carry_the_cursor_over_a_waiting_one(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The critical alert goes first; the one before it still holds the cursor."""
    desk = make_desk()
    topic.write(make_alert(), make_alert(id="a2", severity=Severity.CRITICAL))
    desk.read()
    work = desk.work()
    assert work is not None
    assert work.notification.id == "a2"
    desk.outbox.settle(work, DELIVERED, desk.now_ms)
    desk.reader.commit(desk.log)
    assert topic.cursors["oncall"][0].offset == 0


def test_after_an_outage_only_the_newest_revision_is_sent(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Three revisions wait; one is told."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(RETRY)
    topic.write(make_alert(revision=1), make_alert(revision=2))
    desk.read()
    desk.now_ms += 60_000
    assert desk.send() == [("a1", 2, [("firing", "warning")])]


def test_what_began_and_ended_during_an_outage_is_never_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Nobody is woken for what is over."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(RETRY)
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    desk.now_ms += 60_000
    assert desk.send() == []
    assert topic.cursors["oncall"][0].offset == 2


def test_an_end_that_comes_while_the_beginning_is_being_sent_is_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Whether an end is worth telling is decided after the attempt under way."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    under_way = desk.work()
    assert under_way is not None
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    desk.outbox.settle(under_way, DELIVERED, desk.now_ms)
    assert desk.send() == [("a1", 1, [("resolved", "warning")])]


def test_a_new_receiver_is_told_what_is_open_and_not_history(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Only the newest revision of what still fires."""
    topic.write(
        make_alert(id="old"),
        make_alert(id="old", revision=1, status=RESOLVED, ends_at_ms=T0),
        make_alert(id="open"),
        make_alert(id="open", revision=1),
    )
    desk = make_desk()
    assert desk.send() == [("open", 1, [("firing", "warning")])]
    assert topic.cursors["oncall"][0].offset == 4


def test_a_restart_tells_nothing_twice(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """What was delivered and committed stays told, and its end still comes."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send()
    again = make_desk(now_ms=T0 + 1000)
    assert again.send() == []
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    again.read()
    assert again.send() == [("a1", 1, [("resolved", "warning")])]


def test_a_kill_between_delivery_and_commit_repeats_with_the_same_key(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Twice is allowed, never is not."""
    desk = make_desk()
    topic.write(make_alert(revision=4))
    desk.read()
    first = desk.work()
    assert first is not None
    second = make_desk().work()
    assert second is not None
    assert first.notification.idempotency_key == second.notification.idempotency_key == "a1/4"


def test_the_end_is_told_of_what_a_killed_process_may_have_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """What was about to go out is known, and only that: nobody hears the end of what came later."""
    desk = make_desk()
    topic.write(make_alert(id="told"))
    desk.read()
    desk.die_sending()
    topic.write(
        make_alert(id="later"),
        make_alert(id="told", revision=1, status=RESOLVED, ends_at_ms=T0),
        make_alert(id="later", revision=1, status=RESOLVED, ends_at_ms=T0),
    )
    topic.compact()
    assert make_desk().send() == [("told", 1, [("resolved", "warning")])]
    assert make_desk().send() == []


def test_every_severity_that_killed_processes_may_have_told_is_ended(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Two kills, two severities, and a third one that fires now; after it all is known again."""
    for revision, severity in enumerate((Severity.INFO, Severity.WARNING)):
        topic.write(make_alert(revision=revision, severity=severity))
        topic.compact()
        make_desk().die_sending()
    topic.write(make_alert(revision=2, severity=Severity.CRITICAL))
    topic.compact()
    desk = make_desk()
    assert desk.send() == [("a1", 2, [("resolved", "info"), ("resolved", "warning"), ("firing", "critical")])]
    topic.write(make_alert(revision=3, severity=Severity.CRITICAL, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    assert desk.send() == [("a1", 3, [("resolved", "critical")])]


def test_doubts_outlive_processes_that_could_not_end_them(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The receiver is away for the life of two more processes, one stopped and one killed."""
    topic.write(make_alert())
    make_desk().die_sending()
    topic.write(make_alert(revision=1, severity=Severity.CRITICAL))
    stopped = make_desk()
    stopped.send(RETRY)
    stopped.reader.commit(stopped.log, closing=True)
    make_desk().send(RETRY)
    assert make_desk().send() == [("a1", 1, [("resolved", "warning"), ("firing", "critical")])]


@pytest.mark.parametrize("closing", [False, True])
def test_an_attempt_under_way_stays_in_doubt(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert, *, closing: bool
) -> None:
    """The warning is being posted when the escalation comes and the process ends, killed or in a stop."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    assert desk.work() is not None
    topic.write(make_alert(revision=1, severity=Severity.CRITICAL))
    desk.read()
    if closing:
        desk.reader.commit(desk.log, closing=True)
    assert make_desk().send() == [("a1", 1, [("resolved", "warning"), ("firing", "critical")])]


def test_a_clean_stop_leaves_no_doubt(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """What waited in vain, and ended while nobody was there, is not told."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(RETRY)
    desk.reader.commit(desk.log, closing=True)
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    assert make_desk().send() == []


def test_nothing_new_is_sent_before_a_cursor_has_announced_it(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Else a kill in the attempt would leave the successor without a hint; when Kafka is away it goes out."""
    desk = make_desk()
    alert = make_alert()
    desk.outbox.take(alert, Place("main", 0, 0), timestamp_ms=T0, now_ms=T0)
    assert desk.work() is None
    topic.is_away = True
    with pytest.raises(ConnectionError):
        desk.reader.commit(desk.log)
    assert desk.work() is not None


def test_the_end_is_told_although_the_beginning_was_compacted_away(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The cursor's own memory knows what the receiver was told."""
    desk = make_desk()
    topic.write(make_alert(id="told"))
    desk.read()
    desk.send()
    topic.write(
        make_alert(id="untold"),
        make_alert(id="told", revision=1, status=RESOLVED, ends_at_ms=T0),
        make_alert(id="untold", revision=1, status=RESOLVED, ends_at_ms=T0),
    )
    topic.compact()
    assert make_desk().send() == [("told", 1, [("resolved", "warning")])]


def test_without_the_cursors_memory_the_topic_tells_what_was_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """An operator who moved the cursor by hand left no metadata."""
    topic.write(make_alert(), make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    topic.cursors["oncall"] = {0: Cursor(1, "")}
    assert make_desk().send() == [("a1", 1, [("resolved", "warning")])]


def test_a_changed_severity_ends_the_old_labels_and_begins_the_new(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """One notification with both, and the end comes under the new labels."""
    desk = make_desk()
    for alert in (
        make_alert(),
        make_alert(revision=1, severity=Severity.CRITICAL),
    ):
        topic.write(alert)
        desk.read()
        sent = desk.send()
    assert sent == [("a1", 1, [("resolved", "warning"), ("firing", "critical")])]
    topic.write(make_alert(revision=2, severity=Severity.CRITICAL, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    assert desk.send() == [("a1", 2, [("resolved", "critical")])]


def test_a_severity_that_changed_over_a_restart_is_told_in_both_label_sets(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The old severity is remembered even where compaction removed its record."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send()
    topic.write(make_alert(revision=1, severity=Severity.CRITICAL))
    topic.compact()
    assert make_desk().send() == [("a1", 1, [("resolved", "warning"), ("firing", "critical")])]


def test_an_end_under_another_severity_closes_what_was_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The escalation was never told, so its labels are not ended either."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send()
    topic.write(
        make_alert(revision=1, severity=Severity.CRITICAL),
        make_alert(revision=2, severity=Severity.CRITICAL, status=RESOLVED, ends_at_ms=T0),
    )
    desk.read()
    assert desk.send() == [("a1", 2, [("resolved", "warning")])]


def test_an_escalation_that_leaves_a_receivers_routes_ends_there(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The chat that heard of the warning hears its end; the critical alert is for others."""
    desk = make_desk(Route(receivers=("oncall",), severity=(Severity.WARNING,)))
    for alert in (make_alert(), make_alert(revision=1, severity=Severity.CRITICAL)):
        topic.write(alert)
        desk.read()
        sent = desk.send()
    assert sent == [("a1", 1, [("resolved", "warning")])]
    desk.now_ms += 5 * HOUR_MS
    assert desk.send() == []


def test_alerts_for_others_are_passed_over(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The cursor goes on without a word."""
    desk = make_desk(Route(receivers=("oncall",), group=("other",)))
    topic.write(make_alert())
    desk.read()
    assert desk.send() == []
    assert topic.cursors["oncall"][0].offset == 1


def test_a_firing_alert_is_said_again_at_the_repeat_interval(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """With the same key, as long as it fires."""
    desk = make_desk(Route(receivers=("oncall",), repeat_interval_ms=HOUR_MS))
    topic.write(make_alert())
    desk.read()
    desk.send()
    desk.now_ms += HOUR_MS - 1
    assert desk.send() == []
    desk.now_ms += 1
    assert desk.send() == [("a1", 0, [("firing", "warning")])]
    desk.now_ms += HOUR_MS
    assert len(desk.send()) == 1
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    desk.send()
    desk.now_ms += 2 * HOUR_MS
    assert desk.send() == []


def test_advice_about_a_setting_is_not_said_again(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """While nothing changes, and not after a restart either; its end is told."""
    route = Route(receivers=("oncall",), repeat_interval_ms=HOUR_MS)
    desk = make_desk(route)
    topic.write(make_alert(name="UnsafeTimeouts"))
    desk.read()
    assert len(desk.send()) == 1
    for _ in range(2):
        desk.now_ms += 30 * HOUR_MS
        assert desk.send() == []
        now_ms, desk = desk.now_ms, make_desk(route)
        desk.now_ms = now_ms
    topic.write(make_alert(name="UnsafeTimeouts", revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    assert desk.send() == [("a1", 1, [("resolved", "warning")])]


def test_restarts_neither_skip_repeats_nor_add_any(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A notifier that restarts all the time keeps the rhythm of the alert."""
    route = Route(receivers=("oncall",), repeat_interval_ms=HOUR_MS)
    first = make_desk(route)
    topic.write(make_alert())
    first.read()
    first.send()
    told = 0
    for minutes in range(10, 180, 10):
        desk = make_desk(route, now_ms=T0 + minutes * 60_000)
        desk.now_ms += 9 * 60_000
        told += len(desk.send())
    assert told == 2


def test_a_receiver_that_is_away_is_tried_ever_more_slowly(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """1, 2, 4, … s, at most a minute (the jitter of this test is none)."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    waits = []
    for _ in range(8):
        assert len(desk.send(RETRY)) == 1
        before_ms = desk.now_ms
        while desk.work() is None:
            desk.now_ms += 500
        waits.append((desk.now_ms - before_ms) // 1000)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_retry_after_is_honoured_for_the_whole_receiver(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """An overloaded receiver is left in peace, by other alerts too."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(Delivery(outcome=Outcome.RETRY, retry_after_s=90))
    topic.write(make_alert(id="a2"))
    desk.read()
    desk.now_ms += 89_999
    assert desk.send() == []
    desk.now_ms += 1
    assert len(desk.send()) == 2


def test_an_absurd_retry_after_is_cut_to_an_hour(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A slip of the receiver does not silence it for a year."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(Delivery(outcome=Outcome.RETRY, retry_after_s=1e9))
    desk.now_ms += HOUR_MS
    assert len(desk.send()) == 1


def test_one_alert_that_is_always_refused_does_not_hold_up_the_rest(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A poisonous notification waits by itself."""
    desk = make_desk()
    topic.write(make_alert(id="bad", severity=Severity.CRITICAL), make_alert(id="good"))
    desk.read()
    work = desk.work()
    assert work is not None
    assert work.notification.id == "bad"
    desk.outbox.settle(work, RETRY, desk.now_ms)
    desk.now_ms += 1_000
    again = desk.work()
    assert again is not None
    desk.outbox.settle(again, RETRY, desk.now_ms)
    desk.now_ms += 2_000 - 1
    assert desk.work() is None
    desk.now_ms += 1
    desk.outbox.settle(again, RETRY, desk.now_ms)
    desk.now_ms += 4_000 - 1
    desk.outbox._retries.paused_until_ms = 0
    assert desk.send() == [("good", 0, [("firing", "warning")])]


def test_a_notification_too_old_is_given_up_and_counted(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """After max_age it is dropped, and the cursor goes on."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    outcomes = []
    for _ in range(2):
        work = desk.work()
        assert work is not None
        outcomes.append(desk.outbox.settle(work, RETRY, desk.now_ms))
        desk.now_ms += 24 * HOUR_MS
    work = desk.work()
    assert outcomes == ["retry", EXPIRED]
    desk.reader.commit(desk.log)
    assert topic.cursors["oncall"][0].offset == 1


def test_a_rejected_alert_is_dropped_and_its_end_is_not_told(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """4xx means never; the cursor goes on."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    assert len(desk.send(REJECTED)) == 1
    assert topic.cursors["oncall"][0].offset == 1
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0))
    desk.read()
    assert desk.send() == []


def test_alerts_of_a_job_that_catches_up_wait_for_their_end(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """After a night's outage of the job nobody is paged for what was over by then."""
    desk = make_desk()
    desk.caught_up = False
    topic.write(make_alert(id="over"), make_alert(id="open"), delay_ms=6 * HOUR_MS)
    desk.read()
    desk.now_ms += 300_000
    assert desk.send() == []
    topic.write(make_alert(id="over", revision=1, status=RESOLVED, ends_at_ms=T0), delay_ms=6 * HOUR_MS)
    desk.read()
    desk.caught_up = True
    assert desk.send() == [("open", 0, [("firing", "warning")])]


@pytest.mark.parametrize(("caught_up", "wait_ms"), [(None, 30_000), (True, 5_000), (False, 900_000)])
def test_a_late_alert_does_not_wait_for_ever(
    topic: "MemoryTopic",
    make_desk: Callable[..., Desk],
    make_alert: MakeAlert,
    caught_up: bool | None,
    wait_ms: int,
) -> None:
    """Even a job that never catches up is heard in the end."""
    desk = make_desk()
    desk.caught_up = caught_up
    topic.write(make_alert(), delay_ms=HOUR_MS)
    desk.read()
    desk.now_ms += wait_ms - 1
    assert desk.send() == []
    desk.now_ms += 1
    assert len(desk.send()) == 1


def test_a_revision_made_long_after_the_first_is_not_late(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """The escalation of an alert that has fired for an hour is sent at once, to new receivers too."""
    desk = make_desk(Route(receivers=("oncall",), severity=(Severity.CRITICAL,)))
    desk.caught_up = None
    topic.write(make_alert())
    topic.write(make_alert(revision=1, severity=Severity.CRITICAL), delay_ms=HOUR_MS)
    desk.read()
    assert desk.send() == [("a1", 1, [("firing", "critical")])]


def test_a_tombstone_makes_an_alert_forgotten(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Whoever deletes an alert's key wants silence."""
    desk = make_desk()
    topic.write(make_alert())
    topic.write_raw(None, b"a1")
    desk.read()
    assert desk.send() == []


def test_what_is_no_alert_is_passed_over(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A stray record neither stops the reader nor holds the cursor."""
    desk = make_desk()
    topic.write_raw(b"\xff not json", b"x")
    topic.write_raw(b'{"id": 7}', b"x")
    topic.write(make_alert())
    desk.read()
    assert len(desk.send()) == 1
    assert topic.cursors["oncall"][0].offset == 3


def test_a_route_added_later_brings_what_is_open(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """An alert passed over before is told when the configuration now wants it."""
    desk = make_desk(Route(receivers=("oncall",), group=("other",)))
    topic.write(make_alert())
    desk.read()
    desk.send()
    assert make_desk().send() == [("a1", 0, [("firing", "warning")])]


def test_the_cursors_memory_is_read_back_as_written() -> None:
    """Marks and severities survive; foreign metadata is none of ours."""
    memory = CursorNotes()
    memory.add("a", LastDelivery(Severity.INFO, T0), frozenset())
    memory.add(
        "b", LastDelivery(Severity.CRITICAL, T0 + 90_000), frozenset({Severity.INFO, Severity.WARNING})
    )
    memory.add("c", None, frozenset({Severity.WARNING}))
    minute_ms = T0 // 60_000 * 60_000
    assert unpack_notes(pack_notes(memory)) == CursorNotes(
        told={
            mark("a"): LastDelivery(Severity.INFO, minute_ms),
            mark("b"): LastDelivery(Severity.CRITICAL, minute_ms + 60_000),
        },
        maybe={
            mark("b"): frozenset({Severity.INFO, Severity.WARNING}),
            mark("c"): frozenset({Severity.WARNING}),
        },
    )
    assert unpack_notes("") is None
    assert unpack_notes("gw1=short") is None
    assert unpack_notes("gw1=12345678xAAAA") is None


def test_the_cursors_memory_is_bounded_and_says_so() -> None:
    """Kafka refuses a commit with metadata above 4 KiB; what is in doubt has room first."""
    memory = CursorNotes()
    for n in range(1000):
        memory.add(str(n), LastDelivery(Severity.WARNING, T0), frozenset())
    memory.add("doubtful", None, frozenset({Severity.WARNING}))
    text = pack_notes(memory)
    assert len(text) < 4096
    unpacked = unpack_notes(text)
    assert unpacked is not None
    assert not unpacked.is_complete
    assert mark("doubtful") in unpacked.maybe


@pytest.mark.parametrize("answer", [DELIVERED, REJECTED])
def test_what_waits_costs_each_delivery_no_more_the_more_waits(
    answer: Delivery, make_alert: MakeAlert
) -> None:
    """Thousands of alerts that wait are worked off in a time that grows with their number, not its square."""
    assert calls_to_deliver(3_200, answer, make_alert) <= 10 * calls_to_deliver(400, answer, make_alert)


def calls_to_deliver(alerts: int, answer: Delivery, make_alert: MakeAlert) -> int:
    """Count the calls, of C functions too, for taking alerts and delivering them, cursors included."""
    outbox = Outbox("oncall", (Route(receivers=("oncall",)),), max_age_ms=HOUR_MS)
    made = [make_alert(id=f"{n:032x}", group=f"g{n}") for n in range(alerts)]
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    outbox.recover("main", {})
    outbox.recovered("main", now_ms=T0)
    sys.setprofile(count)
    try:
        for offset, alert in enumerate(made):
            outbox.take(alert, Place("main", 0, offset), timestamp_ms=T0, now_ms=T0)
        outbox.advance("main", {0: alerts})
        outbox.cursors("main")
        outbox.announced("main")
        while work := outbox.next_work(T0):
            outbox.settle(work, answer, T0)
            outbox.cursors("main")
            outbox.announced("main")
    finally:
        sys.setprofile(None)
    assert outbox.cursors("main")[0].offset == alerts
    return calls


@pytest.mark.parametrize("asked_s", [float("inf"), float("nan"), -5.0, 1e308, 10.0**300])
def test_a_receiver_that_asks_for_an_impossible_wait_is_tried_again(
    asked_s: float, topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """Whatever a receiver says, the wait has a length, and that is an hour at most."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.send(Delivery(outcome=Outcome.RETRY, retry_after_s=asked_s))
    desk.now_ms += HOUR_MS
    assert desk.send() == [("a1", 0, [("firing", "warning")])]


def test_the_age_of_what_waits_longest_is_known(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """News of an alert that waits makes it no younger; what was delivered waits no more."""
    desk = make_desk()
    assert desk.outbox.oldest_undelivered_ms(desk.now_ms) == 0
    topic.write(make_alert())
    desk.read()
    desk.send(RETRY)
    desk.now_ms += 60_000
    topic.write(make_alert(revision=1), make_alert(id="a2"))
    desk.read()
    assert desk.outbox.oldest_undelivered_ms(desk.now_ms) == 60_000
    desk.send()
    assert desk.outbox.oldest_undelivered_ms(desk.now_ms) == 0


def test_a_clock_that_was_ahead_for_a_moment_delays_no_retry(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """A receiver failed just then; neither its alert nor a later one waits for that time to come."""
    desk = make_desk()
    topic.write(make_alert())
    desk.read()
    desk.now_ms += 365 * 24 * HOUR_MS
    work = desk.work()
    assert work is not None
    desk.outbox.settle(work, RETRY, desk.now_ms)
    desk.now_ms = T0 + 1_000
    assert desk.send() == []
    topic.write(make_alert(id="a2"))
    desk.read()
    desk.now_ms += 60_000
    assert [one[0] for one in desk.send()] == ["a1", "a2"]


def test_a_clock_that_was_ahead_for_a_moment_delays_no_repeat(
    topic: "MemoryTopic", make_desk: Callable[..., Desk], make_alert: MakeAlert
) -> None:
    """What was told then is told again after its interval, by the clock as it is now."""
    desk = make_desk(Route(receivers=("oncall",), repeat_interval_ms=HOUR_MS))
    desk.now_ms += 365 * 24 * HOUR_MS
    topic.write(make_alert())
    desk.read()
    assert len(desk.send()) == 1
    desk.now_ms = T0
    assert desk.send() == []
    desk.now_ms += HOUR_MS + 1_000
    assert len(desk.send()) == 1
