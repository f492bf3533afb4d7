"""What one receiver still has to be told: the alerts topic as a queue, delivered first and committed after.

Pure bookkeeping under a lock: no Kafka, no HTTP, no clock of its own.  The reader hands in records
(``recover`` … ``recovered`` for what the topic held at start, ``take`` after that), the sender asks
``next_work`` and answers ``settle``, and ``cursors`` says how far everything is done with.

Laws:
- A cursor never passes a record that is still to be delivered: a crash repeats, it loses nothing.
- One entry for each alert: a newer revision replaces an older one that waits.
- The end of an alert is told only to those who were told its beginning, or may have been.
- A severity goes out only after a cursor has said that it may have: a killed process leaves no doubt
  about anything else.
- Whether something is worth sending is decided when it is sent, not when it came in.
- What is silenced waits here and not before the cursor: a start finds it in the topic, open and not told.
"""

import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

from alerts.alert import Alert, AlertStatus, Severity
from alerts.alert_log import Cursor
from alerts.inhibition import WideCauses
from alerts.quiet import NO_QUIET, Quiet
from alerts.receivers import Delivery, Notification, Outcome
from alerts.routing import SAID_ONCE, Route, receivers_for
from alerts.told import Memory, Told, pack_told
from alerts.waiting import RANK, Entry, Known, Place, Recovered, Work, label_sets, told_at_start

EXPIRED = "expired"
"""Outcome of a notification that was tried until it was too old."""

_RETRY_BASE_MS = 1_000
_RETRY_ENTRY_MAX_MS = 60_000
_RETRY_RECEIVER_MAX_MS = 30_000
_RETRY_AFTER_MAX_MS = 3_600_000
_LATE_MS = 120_000
"""An alert detected this long before it was written comes from a job that is catching up …"""
_LATE_HOLD_MS = 30_000
"""… and waits, for its end may be the next thing to come.  Without news of the job, this long."""
_CATCHING_UP_SEEN_MS = 60_000
_LATE_HOLD_CAUGHT_UP_MS = 5_000
_LATE_HOLD_MAX_MS = 900_000
_ENDED_REMEMBERED_MAX = 100_000


class Outbox:
    """The queue and memory of one receiver; safe to use from several threads."""

    def __init__(
        self,
        receiver: str,
        routes: Sequence[Route],
        *,
        max_age_ms: int,
        caught_up: Callable[[str], bool | None] = lambda _cluster: None,
        jitter: Callable[[], float] = random.random,
        quiet: Quiet = NO_QUIET,
    ) -> None:
        """Start empty.

        Args:
            receiver: its name in the routes.
            routes: see ``routing``.
            max_age_ms: how long one notification is worth trying.
            caught_up: whether the job has caught up with a cluster; None if nobody knows.
            jitter: 0..1, spreads retries.
            quiet: when nothing is told about what fires.
        """
        self.receiver = receiver
        self.changed = threading.Condition()
        self._routes = routes
        self._max_age_ms = max_age_ms
        self._caught_up = caught_up
        self._jitter = jitter
        self._quiet = quiet
        self._wide = WideCauses()
        self._pending: dict[str, Entry] = {}
        self._open: dict[str, Alert] = {}
        self._told: dict[str, Told] = {}
        self._doubts: dict[str, frozenset[Severity]] = {}
        """Severities that a process before this one may have told, or not: it was killed in the attempt."""
        self._under_way: Work | None = None
        self._announcing: dict[str, list[Entry]] = {}
        self._homes: dict[str, Place] = {}
        self._repeat_at_ms: dict[str, int] = {}
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._recovering: dict[str, Known] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._late_seen_ms: dict[str, int] = {}
        self._sequence = 0
        self._failures = 0
        self._paused_until_ms = 0

    # -- what comes in -------------------------------------------------------------------------

    def recover(self, log: str, cursors: Mapping[int, Cursor]) -> None:
        """Begin to read ``log`` as a whole; nothing of it is sent before ``recovered``."""
        with self.changed:
            self._recovering[log] = Known(cursors=cursors)

    def take(self, alert: Alert, place: Place, *, timestamp_ms: int, now_ms: int) -> None:
        """Take one record of a log."""
        with self.changed:
            known = self._recovering.get(place.log)
            if known is not None:
                self._remember(known, alert, place, timestamp_ms)
            elif alert.revision > self._newest.get(alert.id, -1):
                self._accept(alert, place)
                late = self._is_late(alert, timestamp_ms, now_ms)
                self._queue(alert, place, now_ms=now_ms, late=late)

    def forget(self, alert_id: str, log: str) -> None:
        """Drop an alert whose tombstone was read: somebody wants it gone without a word."""
        with self.changed:
            if log in self._recovering:
                self._recovering[log].latest.pop(alert_id, None)
            for memory in (
                self._pending,
                self._open,
                self._told,
                self._doubts,
                self._homes,
                self._repeat_at_ms,
            ):
                memory.pop(alert_id, None)

    def direct(self, alert: Alert, *, now_ms: int) -> None:
        """Take an alert that is in no log, to be sent at once."""
        with self.changed:
            if alert.revision > self._newest.get(alert.id, -1):
                self._accept(alert, None)
                self._queue(alert, None, now_ms=now_ms, late=False)

    def advance(self, log: str, positions: Mapping[int, int]) -> None:
        """Note how far ``log`` has been read (everything before was handed in)."""
        with self.changed:
            self._positions[log] = dict(positions)

    def recovered(self, log: str, *, now_ms: int) -> None:
        """End ``recover``: queue what this receiver should know and does not."""
        with self.changed:
            known = self._recovering.pop(log)
            for item in sorted(known.latest.values(), key=lambda item: item.place[1:]):
                self._settle_recovered(known, item, now_ms)
            self.changed.notify_all()

    # -- what goes out -------------------------------------------------------------------------

    def next_work(self, now_ms: int) -> Work | None:
        """Return the most urgent thing to send now, or None; what is not worth sending is dropped here."""
        with self.changed:
            self._queue_repeats(now_ms)
            self._look_again(now_ms)
            while now_ms >= self._paused_until_ms and (entry := self._most_urgent(now_ms)):
                alerts = self._worth_telling(entry.alert)
                if alerts and self._hold_back(entry, now_ms):
                    continue
                if alerts:
                    if entry.first_attempt_ms < 0:
                        entry.first_attempt_ms = now_ms
                    alert = entry.alert
                    notification = Notification(id=alert.id, revision=alert.revision, alerts=alerts)
                    self._under_way = Work(entry, notification)
                    return self._under_way
                self._done(entry)
            return None

    def settle(self, work: Work, delivery: Delivery, now_ms: int) -> str:
        """Take note of how an attempt ended; return the outcome to count."""
        with self.changed:
            self._under_way = None
            if delivery.outcome is Outcome.RETRY:
                return self._put_off(work.entry, delivery, now_ms)
            self._failures = 0
            if delivery.outcome is Outcome.DELIVERED:
                self._note_told(work, now_ms)
            self._done(work.entry)
            self._plan_repeat(work.entry.alert, now_ms)
            return str(delivery.outcome)

    def cursors(self, log: str, *, closing: bool = False) -> dict[int, Cursor]:
        """Return how far each partition of ``log`` is done with; {} while it is recovered.

        Args:
            log: its name.
            closing: nothing more will be sent, so what was not tried by now is not told.
        """
        with self.changed:
            if log in self._recovering:
                return {}
            offsets = dict(self._positions.get(log, {}))
            for entry in self._pending.values():
                place = entry.place
                if place is not None and place.log == log and place.partition in offsets:
                    offsets[place.partition] = min(offsets[place.partition], place.offset)
            self._announcing[log] = [] if closing else self._sendable(log)
            maybe = self._maybe_told(self._announcing[log])
            memories = {partition: Memory() for partition in offsets}
            for alert_id in self._told.keys() | maybe.keys():
                home = self._homes.get(alert_id)
                if home is not None and home.log == log:
                    memory = memories.setdefault(home.partition, Memory())
                    memory.add(alert_id, self._told.get(alert_id), maybe.get(alert_id, frozenset()))
            return {n: Cursor(offset, pack_told(memories[n])) for n, offset in offsets.items()}

    def announced(self, log: str) -> None:
        """Let go what the last ``cursors`` said may be told: they are committed, or cannot be now."""
        with self.changed:
            for entry in self._announcing.pop(log, []):
                entry.announced = True
            self.changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many alerts wait to be delivered."""
        with self.changed:
            return len(self._pending)

    # -- inside, under the lock ----------------------------------------------------------------

    def _sendable(self, log: str) -> list[Entry]:
        return [
            e
            for i, e in self._pending.items()
            if not e.held_back and (home := self._homes.get(i)) and home.log == log
        ]

    def _hold_back(self, entry: Entry, now_ms: int) -> bool:
        """Put ``entry`` off if receivers shall not hear of it now; the end of an alert is always told."""
        alert = entry.alert
        if alert.status is AlertStatus.RESOLVED:
            return False
        until_ms = self._quiet.until_ms(alert, now_ms)
        if until_ms is None and alert.id not in self._told:
            until_ms = self._wide.hold_until_ms(alert, queued_at_ms=entry.queued_at_ms, now_ms=now_ms)
        if until_ms is None:
            return False
        entry.held_back, entry.due_ms = True, until_ms
        # Nothing of it may be told, so nobody need be warned; and it must not hold the cursor for days.
        entry.announced, entry.place = False, None
        return True

    def _look_again(self, now_ms: int) -> None:
        """Let go what was held back until now; before it is sent, a cursor must tell of it."""
        for entry in self._pending.values():
            if entry.held_back and entry.due_ms <= now_ms:
                entry.held_back, entry.announced = False, self._is_known_to_cursor(entry.alert)

    def _maybe_told(self, entries: Iterable[Entry]) -> dict[str, frozenset[Severity]]:
        """Return what the receiver may hold, besides ``_told``, if this process is killed from now on."""
        maybe = dict(self._doubts)
        going_out = [entry.alert for entry in entries]
        going_out += self._under_way.notification.alerts if self._under_way else ()
        for alert in going_out:
            told, should = self._told.get(alert.id), self._should_know(alert)
            if should is not None and (told is None or told.severity is not should):
                maybe[alert.id] = maybe.get(alert.id, frozenset()) | {should}
        return maybe

    def _interval_ms(self, alert: Alert) -> int | None:
        return receivers_for(self._routes, alert).get(self.receiver)

    def _remember(self, known: Known, alert: Alert, place: Place, timestamp_ms: int) -> None:
        before = known.latest.get(alert.id)
        cursor = known.cursors.get(place.partition)
        told = before.told_by_log if before else None
        if cursor is not None and place.offset < cursor.offset:
            severity = self._should_know(alert)
            told = None if severity is None else Told(severity, timestamp_ms)
        if before is None or alert.revision >= before.alert.revision:
            known.latest[alert.id] = Recovered(
                alert=alert, place=place, timestamp_ms=timestamp_ms, told_by_log=told
            )

    def _settle_recovered(self, known: Known, item: Recovered, now_ms: int) -> None:
        alert, place = item.alert, item.place
        if alert.revision <= self._newest.get(alert.id, -1):
            return
        cursor = known.cursors.get(place.partition)
        told, doubts = told_at_start(item, cursor)
        if told is not None:
            self._told[alert.id] = told
        if doubts:
            self._doubts[alert.id] = doubts
        self._accept(alert, place)
        is_news = cursor is None or place.offset >= cursor.offset
        if not self._worth_telling(alert):
            return  # long over, and never told here; there may be very many of these
        should = self._should_know(alert)
        if is_news or told is None or told.severity is not should:
            late = self._is_late(alert, item.timestamp_ms, now_ms)
            self._queue(alert, place if is_news else None, now_ms=now_ms, late=late)
        else:
            self._plan_repeat(alert, told.at_ms)

    def _should_know(self, alert: Alert) -> Severity | None:
        """Return the severity under which the receiver should hold ``alert`` for firing, if at all."""
        if alert.status is AlertStatus.RESOLVED or self._interval_ms(alert) is None:
            return None
        return alert.severity

    def _accept(self, alert: Alert, place: Place | None) -> None:
        self._newest[alert.id] = alert.revision
        self._newest.move_to_end(alert.id)
        if place is not None:
            self._homes[alert.id] = place
        self._wide.note(alert)
        if alert.status is AlertStatus.FIRING:
            self._open[alert.id] = alert
        else:
            self._open.pop(alert.id, None)
            self._repeat_at_ms.pop(alert.id, None)
        while len(self._newest) > _ENDED_REMEMBERED_MAX and self._forget_an_ended():
            pass

    def _forget_an_ended(self) -> bool:
        for alert_id in self._newest:
            if not any(
                alert_id in memory for memory in (self._open, self._pending, self._told, self._doubts)
            ):
                del self._newest[alert_id]
                self._homes.pop(alert_id, None)
                return True
        return False

    def _queue(self, alert: Alert, place: Place | None, *, now_ms: int, late: bool) -> None:
        self._sequence += 1
        entry = Entry(
            alert=alert,
            place=place,
            queued_at_ms=now_ms,
            sequence=self._sequence,
            late=late,
            due_ms=now_ms,
            announced=self._is_known_to_cursor(alert),
        )
        before = self._pending.get(alert.id)
        if before is not None:
            entry.sequence = before.sequence
            if before.held_back:
                entry.queued_at_ms = before.queued_at_ms
            else:
                entry.attempts, entry.due_ms = before.attempts, before.due_ms
        self._pending[alert.id] = entry
        self._repeat_at_ms.pop(alert.id, None)
        self.changed.notify_all()

    def _is_known_to_cursor(self, alert: Alert) -> bool:
        """Say whether a kill after sending ``alert`` leaves nothing that its successor would not know."""
        told, should = self._told.get(alert.id), self._should_know(alert)
        no_news = should is None or (told is not None and told.severity is should)
        return no_news or alert.id not in self._homes

    def _queue_repeats(self, now_ms: int) -> None:
        for alert_id in [i for i, at_ms in self._repeat_at_ms.items() if at_ms <= now_ms]:
            del self._repeat_at_ms[alert_id]
            if alert_id in self._open and alert_id not in self._pending:
                self._queue(self._open[alert_id], None, now_ms=now_ms, late=False)

    def _most_urgent(self, now_ms: int) -> Entry | None:
        ready = (
            e
            for e in self._pending.values()
            if e.announced and e.due_ms <= now_ms and not self._is_held(e, now_ms)
        )
        return min(ready, key=lambda e: (RANK[e.alert.severity], e.due_ms, e.sequence), default=None)

    def _is_late(self, alert: Alert, timestamp_ms: int, now_ms: int) -> bool:
        """Say whether the job that wrote ``alert`` was catching up.

        Only a first revision shows it, for the time of detection stays; later ones follow what was seen.
        """
        if timestamp_ms - alert.detected_at_ms <= _LATE_MS:
            return False
        if alert.revision == 0:
            self._late_seen_ms[alert.cluster] = now_ms
        return now_ms - self._late_seen_ms.get(alert.cluster, -_CATCHING_UP_SEEN_MS) < _CATCHING_UP_SEEN_MS

    def _is_held(self, entry: Entry, now_ms: int) -> bool:
        if not entry.late or entry.alert.id in self._told or entry.alert.status is AlertStatus.RESOLVED:
            return False
        caught_up = self._caught_up(entry.alert.cluster)
        longest_ms = {None: _LATE_HOLD_MS, True: _LATE_HOLD_CAUGHT_UP_MS, False: _LATE_HOLD_MAX_MS}
        return now_ms - entry.queued_at_ms < longest_ms[caught_up]

    def _worth_telling(self, alert: Alert) -> tuple[Alert, ...]:
        """Return the alerts of the notification: the ends of old label sets, then what fires."""
        told = self._told.get(alert.id)
        held = self._doubts.get(alert.id, frozenset()) | ({told.severity} if told else set())
        return tuple(label_sets(alert, held, self._should_know(alert)))

    def _note_told(self, work: Work, now_ms: int) -> None:
        last = work.notification.alerts[-1]
        self._doubts.pop(last.id, None)
        if last.status is AlertStatus.FIRING:
            self._told[last.id] = Told(last.severity, now_ms)
        else:
            self._told.pop(last.id, None)

    def _plan_repeat(self, alert: Alert, now_ms: int) -> None:
        interval_ms = self._interval_ms(alert)
        if (
            interval_ms is not None
            and alert.name not in SAID_ONCE
            and alert.id in self._open
            and alert.id not in self._pending
        ):
            self._repeat_at_ms[alert.id] = now_ms + interval_ms

    def _done(self, entry: Entry) -> None:
        """Drop ``entry``, unless a newer revision took its place meanwhile (that one starts afresh)."""
        current = self._pending.get(entry.alert.id)
        if current is entry:
            del self._pending[entry.alert.id]
        elif current is not None:
            current.first_attempt_ms, current.attempts, current.due_ms = -1, 0, current.queued_at_ms

    def _put_off(self, entry: Entry, delivery: Delivery, now_ms: int) -> str:
        if now_ms - entry.first_attempt_ms >= self._max_age_ms:
            self._done(entry)
            self._plan_repeat(entry.alert, now_ms)
            return EXPIRED
        self._failures += 1
        current = self._pending.get(entry.alert.id, entry)
        current.attempts += 1
        current.due_ms = now_ms + self._backoff_ms(current.attempts, _RETRY_ENTRY_MAX_MS)
        pause_ms = self._backoff_ms(self._failures, _RETRY_RECEIVER_MAX_MS)
        asked_ms = round((delivery.retry_after_s or 0) * 1000)
        self._paused_until_ms = now_ms + max(pause_ms, min(asked_ms, _RETRY_AFTER_MAX_MS))
        return str(Outcome.RETRY)

    def _backoff_ms(self, attempts: int, longest_ms: int) -> int:
        full_ms = min(longest_ms, _RETRY_BASE_MS << min(attempts - 1, 20))
        return round(full_ms * (0.5 + 0.5 * self._jitter()))
