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

import math
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence

from alerts.alert import (
    OPEN_MAX,
    REVISION_JUMP,
    TOO_MANY,
    Alert,
    AlertStatus,
    Said,
    Severity,
    Word,
    is_jump,
    is_later,
)
from alerts.delivery.alert_log import Cursor
from alerts.delivery.cursor_texts import CursorTexts
from alerts.delivery.queue_order import HeldPlaces, Line, Repeats
from alerts.delivery.receivers import Delivery, Notification, Outcome
from alerts.delivery.routing import SAID_ONCE, Route, receivers_for
from alerts.delivery.silences import NO_QUIET, Quiet
from alerts.delivery.told import Memory, Told, pack_told
from alerts.delivery.waiting import Entry, Known, Place, Recovered, Work, label_sets, told_at_start
from alerts.rules import WideCauses

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
_FORGET_TRIES = 100
_AT_ONCE = 0
"""A time that has come already."""


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
        # ^ Severities that a process before this one may have told, or not: it was killed in the attempt.
        self._under_way: Work | None = None
        self._line = Line()
        self._held = HeldPlaces()
        self._unannounced: dict[str, dict[str, Entry]] = {}
        self._announcing: dict[str, list[Entry]] = {}
        self._changed_ids: set[str] = set()
        # ^ Alerts of which a cursor may have to say something else than it did.
        self._texts = CursorTexts()
        self._late_of: dict[str, bool | None] = {}
        # ^ Clusters of late alerts that wait -> whether the job had caught up when they were looked at.
        self._homes: dict[str, Place] = {}
        self._repeats = Repeats()
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._said = Said()
        self._recovering: dict[str, Known] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._late_seen_ms: dict[str, int] = {}
        self._sequence = self._failures = self._paused_until_ms = 0

    # -- what comes in -------------------------------------------------------------------------

    def recover(self, log: str, cursors: Mapping[int, Cursor]) -> None:
        """Begin to read ``log`` as a whole; nothing of it is sent before ``recovered``."""
        with self.changed:
            self._recovering[log] = Known(cursors=cursors)

    def take(self, alert: Alert, place: Place, *, timestamp_ms: int, now_ms: int) -> str:
        """Take one record of a log; return why it is set aside, "": it is not.

        The last word about an alert counts (``last_word.py``).
        """
        with self.changed:
            known = self._recovering.get(place.log)
            newest = self._newest_of(alert.id, known)
            if is_jump(alert.revision, newest):
                return REVISION_JUMP
            if newest < 0 and known is None and len(self._open) >= OPEN_MAX:
                return TOO_MANY
            if self._said.is_repeat(alert):
                return ""
            if known is not None:
                self._remember(known, alert, place, timestamp_ms)
            else:
                self._accept(alert, place)
                late = self._is_late(alert, timestamp_ms, now_ms)
                self._queue(alert, place, now_ms=now_ms, late=late)
            return ""

    def forget(self, alert_id: str, log: str) -> None:
        """Drop an alert whose tombstone was read: somebody wants it gone without a word."""
        with self.changed:
            if log in self._recovering:
                self._recovering[log].latest.pop(alert_id, None)
            self._changed_ids.add(alert_id)
            self._wide.forget(alert_id)
            entry = self._pending.pop(alert_id, None)
            if entry is not None:
                self._line.leave(entry)
            for memory in (
                self._open,
                self._told,
                self._doubts,
                self._homes,
            ):
                memory.pop(alert_id, None)
            self._said.forget(alert_id)
            self._repeats.forget(alert_id)

    def direct(self, alert: Alert, *, now_ms: int) -> None:
        """Take an alert that is in no log, to be sent at once."""
        with self.changed:
            if alert.revision > self._newest.get(alert.id, -1):
                self._accept(alert, None)
                self._queue(alert, None, now_ms=now_ms, late=False)

    def restore(self, alert: Alert, told: Told | None, *, now_ms: int) -> None:
        """Take an alert that is in no log and that a process before this one has told, or was about to.

        Args:
            alert: its newest revision.
            told: what this receiver was told of it; None: nothing, as far as is known.
            now_ms: the time now.
        """
        with self.changed:
            if alert.revision <= self._newest.get(alert.id, -1):
                return
            self._accept(alert, None)
            if told is not None:
                self._told[alert.id] = told
            if told is None or told.severity is not self._should_know(alert):
                self._queue(alert, None, now_ms=now_ms, late=False)
            else:
                self._plan_repeat(alert, told.at_ms)

    def told_of(self, alert_id: str) -> Told | None:
        """Return under which severity the receiver holds an alert for firing, and since when; None: not."""
        with self.changed:
            return self._told.get(alert_id)

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
            while now_ms >= self._paused_until_ms and (entry := self._line.first()):
                if self._when_ms(entry, now_ms) > now_ms:
                    self._line_up(entry, now_ms)
                    continue
                alerts = self._worth_telling(entry.alert)
                if alerts and self._hold_back(entry, now_ms):
                    continue
                if alerts:
                    if entry.first_attempt_ms < 0:
                        entry.first_attempt_ms = now_ms
                    alert = entry.alert
                    notification = Notification(id=alert.id, revision=alert.revision, alerts=alerts)
                    self._under_way = Work(entry, notification)
                    self._changed_ids.add(alert.id)
                    return self._under_way
                self._done(entry)
            return None

    def settle(self, work: Work, delivery: Delivery, now_ms: int) -> str:
        """Take note of how an attempt ended; return the outcome to count."""
        with self.changed:
            self._under_way = None
            self._changed_ids.add(work.entry.alert.id)
            if delivery.outcome is Outcome.RETRY:
                return self._put_off(work.entry, delivery, now_ms)
            self._failures = 0
            if delivery.outcome is Outcome.DELIVERED:
                self._note_told(work, now_ms)
            self._done(work.entry)
            self._plan_repeat(work.entry.alert, now_ms)
            return str(delivery.outcome)

    def put_back(self, work: Work, now_ms: int) -> None:
        """Try an attempt again later whose outcome could not be noted, so that it holds up no other."""
        with self.changed:
            self._under_way = None
            current = self._pending.get(work.entry.alert.id)
            if current is not None:
                current.attempts += 1
                current.due_ms = now_ms + self._backoff_ms(current.attempts, _RETRY_ENTRY_MAX_MS)
                self._line_up(current, now_ms)

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
            for partition, offset in offsets.items():
                first = self._held.first(log, partition, self._pending)
                offsets[partition] = offset if first is None else min(offset, first)
            if closing:
                self._announcing[log] = []
                return {n: Cursor(offset, text) for n, offset, text in self._closing_texts(log, offsets)}
            self._announcing[log] = list(self._unannounced.get(log, {}).values())
            self._write_down()
            return {n: Cursor(offset, self._texts.text(log, n)) for n, offset in offsets.items()}

    def announced(self, log: str) -> None:
        """Let go what the last ``cursors`` said may be told: they are committed, or cannot be now."""
        with self.changed:
            parked = self._unannounced.get(log, {})
            for entry in self._announcing.pop(log, []):
                entry.announced = True
                if parked.get(entry.alert.id) is entry:
                    del parked[entry.alert.id]
                if self._pending.get(entry.alert.id) is entry:
                    self._line.look_at(entry, _AT_ONCE)
            self.changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many alerts wait to be delivered."""
        with self.changed:
            return len(self._pending)

    def oldest_undelivered_ms(self, now_ms: int) -> int:
        """Return for how long the alert that waits longest has waited; 0: nothing waits that may be told."""
        with self.changed:
            waiting = (e.waits_since_ms for e in self._pending.values() if not e.held_back)
            return max(0, now_ms - min(waiting, default=now_ms))

    # -- inside, under the lock ----------------------------------------------------------------

    def _write_down(self) -> None:
        """Bring the cursors' texts up to date for what has changed."""
        changed, self._changed_ids = self._changed_ids, set()
        for alert_id in changed:
            told, maybe = self._told.get(alert_id), self._maybe_told(alert_id)
            self._texts.put(alert_id, self._homes.get(alert_id), told, maybe)

    def _closing_texts(self, log: str, offsets: Mapping[int, int]) -> Iterator[tuple[int, int, str]]:
        """Yield each partition with its offset and text where nothing more will be sent."""
        memories = {partition: Memory() for partition in offsets}
        going_out = {self._under_way.entry.alert.id} if self._under_way else set()
        for alert_id in self._told.keys() | self._doubts.keys() | going_out:
            home = self._homes.get(alert_id)
            if home is not None and home.log == log and home.partition in memories:
                maybe = self._maybe_told(alert_id, closing=True)
                memories[home.partition].add(alert_id, self._told.get(alert_id), maybe)
        for partition, memory in memories.items():
            yield partition, offsets[partition], pack_told(memory)

    def _maybe_told(self, alert_id: str, *, closing: bool = False) -> frozenset[Severity]:
        """Return what the receiver may hold, besides ``_told``, if this process is killed from now on."""
        maybe, told = self._doubts.get(alert_id, frozenset()), self._told.get(alert_id)
        going_out: list[Alert] = []
        entry = self._pending.get(alert_id)
        if entry is not None and not entry.held_back and not closing:
            going_out.append(entry.alert)
        if self._under_way is not None and self._under_way.entry.alert.id == alert_id:
            going_out += self._under_way.notification.alerts
        for alert in going_out:
            should = self._should_know(alert)
            if should is not None and (told is None or told.severity is not should):
                maybe |= {should}
        return maybe

    def _newest_of(self, alert_id: str, known: Known | None) -> int:
        """Return the newest revision that is known of an alert, -1 if none is."""
        before = known.latest.get(alert_id) if known is not None else None
        return self._newest.get(alert_id, -1) if before is None else before.alert.revision

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
        self._changed_ids.add(alert.id)
        self._line_up(entry, now_ms)
        return True

    def _look_again(self, now_ms: int) -> None:
        """Let go what waited until now; before what was held back is sent, a cursor must tell of it."""
        self._look_at_progress(now_ms)
        for entry in list(self._line.woken(now_ms)):
            if entry.held_back:
                entry.held_back, entry.announced = False, self._is_known_to_cursor(entry.alert)
                entry.waits_since_ms = now_ms
                self._changed_ids.add(entry.alert.id)
            self._line_up(entry, now_ms)

    def _look_at_progress(self, now_ms: int) -> None:
        """Look at late alerts again where the job has caught up since, or has not any more."""
        if not self._pending:
            self._late_of.clear()
        changed = {c for c, before in self._late_of.items() if self._caught_up(c) is not before}
        if changed:
            for entry in self._pending.values():
                if entry.late and entry.alert.cluster in changed:
                    self._line_up(entry, now_ms)

    def _line_up(self, entry: Entry, now_ms: int) -> None:
        """Put ``entry`` where it has to wait."""
        if entry.held_back:
            self._line.look_at(entry, entry.due_ms)
        elif not entry.announced:
            self._line.leave(entry)
            self._unannounced.setdefault(self._homes[entry.alert.id].log, {})[entry.alert.id] = entry
        elif (when_ms := self._when_ms(entry, now_ms)) > now_ms:
            self._line.look_at(entry, when_ms)
        else:
            self._line.add(entry)

    def _when_ms(self, entry: Entry, now_ms: int) -> int:
        """Return when ``entry`` may be tried as things are."""
        return max(entry.due_ms, self._late_until_ms(entry))

    def _interval_ms(self, alert: Alert) -> int | None:
        return receivers_for(self._routes, alert).get(self.receiver)

    def _remember(self, known: Known, alert: Alert, place: Place, timestamp_ms: int) -> None:
        before = known.latest.get(alert.id)
        cursor = known.cursors.get(place.partition)
        told = before.told_by_log if before else None
        if cursor is not None and place.offset < cursor.offset:
            severity = self._should_know(alert)
            told = None if severity is None else Told(severity, timestamp_ms)
        earlier = Word(before.alert.revision, before.place.partition) if before else None
        if is_later(Word(alert.revision, place.partition), earlier):
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
        self._changed_ids.add(alert.id)
        if place is not None:
            self._homes[alert.id] = place
        self._wide.note(alert)
        if alert.status is AlertStatus.FIRING:
            self._open[alert.id] = alert
        else:
            self._open.pop(alert.id, None)
            self._repeats.forget(alert.id)
        while len(self._newest) > _ENDED_REMEMBERED_MAX and self._forget_an_ended():
            pass

    def _forget_an_ended(self) -> bool:
        for _ in range(_FORGET_TRIES):
            alert_id = next(iter(self._newest))
            if not any(
                alert_id in memory for memory in (self._open, self._pending, self._told, self._doubts)
            ):
                del self._newest[alert_id]
                self._said.forget(alert_id)
                self._homes.pop(alert_id, None)
                return True
            self._newest.move_to_end(alert_id)
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
            waits_since_ms=now_ms,
        )
        before = self._pending.get(alert.id)
        if before is not None:
            entry.sequence = before.sequence
            self._line.leave(before)
            if before.held_back:
                entry.queued_at_ms = before.queued_at_ms
            else:
                entry.attempts, entry.due_ms = before.attempts, before.due_ms
                entry.waits_since_ms = before.waits_since_ms
        self._pending[alert.id] = entry
        self._unpark(alert.id)
        if place is not None:
            self._held.hold(place, entry)
        self._changed_ids.add(alert.id)
        self._line_up(entry, now_ms)
        self._repeats.forget(alert.id)
        self.changed.notify_all()

    def _unpark(self, alert_id: str) -> None:
        for parked in self._unannounced.values():
            parked.pop(alert_id, None)

    def _is_known_to_cursor(self, alert: Alert) -> bool:
        """Say whether a kill after sending ``alert`` leaves nothing that its successor would not know."""
        told, should = self._told.get(alert.id), self._should_know(alert)
        no_news = should is None or (told is not None and told.severity is should)
        return no_news or alert.id not in self._homes

    def _queue_repeats(self, now_ms: int) -> None:
        for alert_id in self._repeats.due(now_ms):
            if alert_id in self._open and alert_id not in self._pending:
                self._queue(self._open[alert_id], None, now_ms=now_ms, late=False)

    def _is_late(self, alert: Alert, timestamp_ms: int, now_ms: int) -> bool:
        """Say whether the job that wrote ``alert`` was catching up.

        Only a first revision shows it, for the time of detection stays; later ones follow what was seen.
        """
        if timestamp_ms - alert.detected_at_ms <= _LATE_MS:
            return False
        if alert.revision == 0:
            self._late_seen_ms[alert.cluster] = now_ms
        return now_ms - self._late_seen_ms.get(alert.cluster, -_CATCHING_UP_SEEN_MS) < _CATCHING_UP_SEEN_MS

    def _late_until_ms(self, entry: Entry) -> int:
        """Return until when ``entry`` waits for what the job, which is catching up, may say of its end."""
        if not entry.late or entry.alert.id in self._told or entry.alert.status is AlertStatus.RESOLVED:
            return _AT_ONCE
        cluster = entry.alert.cluster
        caught_up = self._late_of[cluster] = self._caught_up(cluster)
        longest_ms = {None: _LATE_HOLD_MS, True: _LATE_HOLD_CAUGHT_UP_MS, False: _LATE_HOLD_MAX_MS}
        return entry.queued_at_ms + longest_ms[caught_up]

    def _worth_telling(self, alert: Alert) -> tuple[Alert, ...]:
        """Return the alerts of the notification: the ends of old label sets, then what fires."""
        told = self._told.get(alert.id)
        held = self._doubts.get(alert.id, frozenset()) | ({told.severity} if told else set())
        return tuple(label_sets(alert, held, self._should_know(alert)))

    def _note_told(self, work: Work, now_ms: int) -> None:
        last = work.notification.alerts[-1]
        self._changed_ids.add(last.id)
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
            self._repeats.plan(alert.id, now_ms + interval_ms)

    def _done(self, entry: Entry) -> None:
        """Drop ``entry``, unless a newer revision took its place meanwhile (that one starts afresh)."""
        self._line.leave(entry)
        self._changed_ids.add(entry.alert.id)
        current = self._pending.get(entry.alert.id)
        if current is entry:
            del self._pending[entry.alert.id]
        elif current is not None:
            current.first_attempt_ms, current.attempts, current.due_ms = -1, 0, current.queued_at_ms
            current.waits_since_ms = current.queued_at_ms
            if current.announced:
                self._line.look_at(current, _AT_ONCE)

    def _put_off(self, entry: Entry, delivery: Delivery, now_ms: int) -> str:
        if now_ms - entry.first_attempt_ms >= self._max_age_ms:
            self._done(entry)
            self._plan_repeat(entry.alert, now_ms)
            return EXPIRED
        self._failures += 1
        current = self._pending.get(entry.alert.id, entry)
        current.attempts += 1
        current.due_ms = now_ms + self._backoff_ms(current.attempts, _RETRY_ENTRY_MAX_MS)
        if current.alert.id in self._pending:
            self._line_up(current, now_ms)
        pause_ms = self._backoff_ms(self._failures, _RETRY_RECEIVER_MAX_MS)
        self._paused_until_ms = now_ms + max(pause_ms, _asked_ms(delivery.retry_after_s))
        return str(Outcome.RETRY)

    def _backoff_ms(self, attempts: int, longest_ms: int) -> int:
        full_ms = min(longest_ms, _RETRY_BASE_MS << min(attempts - 1, 20))
        return round(full_ms * (0.5 + 0.5 * self._jitter()))


def _asked_ms(retry_after_s: float | None) -> int:
    """Return how long the receiver asks to be left alone, within bounds whatever it said."""
    if retry_after_s is None or not math.isfinite(retry_after_s):
        return 0
    return round(min(max(retry_after_s, 0.0), _RETRY_AFTER_MAX_MS / 1000) * 1000)
