"""One receiver's outbox: the alerts topic as a queue; alerts are delivered first and committed after.

Bookkeeping under a lock, without Kafka, HTTP or a clock.  The reader hands in records (between ``recover``
and ``recovered`` those that the topic held at start, then by ``take``).  The sender asks ``next_work`` and
reports back to ``settle``.  ``cursors`` says how far each partition is delivered.

Laws:
- A cursor never passes a record that is still to be delivered: a crash repeats alerts and loses none.
- Each alert has one entry: a newer revision replaces an older one that waits.
- A receiver is told the end of an alert only if it was told the beginning, or may have been.
- A severity is sent only after a committed cursor has announced it: a killed process leaves no other doubt.
- Whether an alert is worth sending is decided when it is sent, not when it came in.
- A silenced alert waits in the outbox and lets the cursor pass: a restart finds it in the topic, open and
  not delivered.

Longer than 400 lines, because these laws hold only under one lock.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from alerts.alert import (
    OPEN_MAX,
    REVISION_JUMP,
    TOO_MANY,
    Alert,
    AlertStatus,
    RecordPosition,
    Severity,
    is_jump,
    is_later,
    printable,
)
from alerts.delivery.alert_log import Cursor
from alerts.delivery.bundles import Bundles
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.cursors import Cursors
from alerts.delivery.delivery_ledger import DeliveryLedger
from alerts.delivery.late_alerts import LateAlerts
from alerts.delivery.owners import OwnerOf, nobody_owns
from alerts.delivery.queue_order import Line, Repeats
from alerts.delivery.receivers import Delivery, Notification, Outcome, labels_of
from alerts.delivery.retries import Retries
from alerts.delivery.routing import SAID_ONCE, Route
from alerts.delivery.silences import NO_QUIET, LiveQuiet, Quiet
from alerts.delivery.waiting import Entry, HeldBack, Known, Place, Recovered, Work, deliveries_at_start
from alerts.rules import WideCauses

_LOGGER = logging.getLogger("groupwatch.notifier")

EXPIRED = "expired"
"""Outcome of a notification that became too old while it was retried."""

_LOGGED = frozenset({HeldBack.SILENCED, HeldBack.EFFECT, HeldBack.CATCHING_UP})
"""Reasons that may last and are logged; every alert waits for its cursor, so that is not logged."""
_BUNDLE_MAX = 1_000
"""Most alerts of one bundle that are told as news at once; the others follow."""
_RENEWALS = 6
"""Renewals are due at this many moments of each interval, so that alerts are renewed together."""
_AT_ONCE = 0
"""A due time in the past."""
_STEP_MS = 1_000
"""NTP removes a smaller difference bit by bit; a larger one is a step."""


class Outbox:
    """The queue and memory of one receiver; safe to use from several threads."""

    def __init__(
        self,
        receiver: str,
        routes: Sequence[Route],
        *,
        max_age_ms: int,
        renew_ms: int | None = None,
        batch_max: int = 1,
        takes_silenced: bool = False,
        caught_up: Callable[[str], bool | None] = lambda _cluster: None,
        jitter: Callable[[], float] = random.random,
        quiet: Quiet | LiveQuiet = NO_QUIET,
        owner_of: OwnerOf = nobody_owns,
    ) -> None:
        """Start empty.

        Args:
            receiver: its name in the routes.
            routes: see ``routing``.
            max_age_ms: how long one notification is retried.
            renew_ms: what fires is sent again this often; None: as the routes say.
            batch_max: most alerts that one attempt may carry although no route bundles them.
            takes_silenced: silenced alerts are delivered like others, and again when a silence comes or goes.
            caught_up: whether the job has caught up with a cluster; None if nobody knows.
            jitter: 0..1, spreads retries.
            quiet: silences and maintenance; they apply to firing alerts only.
            owner_of: returns who owns an alert's group.
        """
        self.receiver = receiver
        self.changed = threading.Condition()
        self._max_age_ms = max_age_ms
        self._renew_ms = renew_ms
        self._batch_max = batch_max
        self._takes_silenced = takes_silenced
        self._alone: set[str] = set()
        """Alerts of a refused batch: each is sent for itself until it is delivered."""
        self._quiet = quiet
        self._heeded = quiet.now
        self._known = DeliveryLedger(receiver, routes, owner_of)
        self._bundles = Bundles(
            self._known.route_of, lambda alert, name: labels_of(alert, owner_of(alert)).get(name, "")
        )
        self._late = LateAlerts(caught_up)
        self._retries = Retries(jitter)
        self._wide = WideCauses()
        self._pending: dict[str, Entry] = {}
        self._under_way: Work | None = None
        self._line = Line()
        self._cursors = Cursors(self._known)
        self._repeats = Repeats()
        self._recovering: dict[str, Known] = {}
        self._sequence = 0
        self._looked_ms = -1

    # -- what comes in -------------------------------------------------------------------------

    def recover(self, log: str, cursors: Mapping[int, Cursor]) -> None:
        """Begin to read all of ``log``; none of it is sent before ``recovered``."""
        with self.changed:
            self._recovering[log] = Known(cursors=cursors)

    def take(self, alert: Alert, place: Place, *, timestamp_ms: int, now_ms: int) -> str:
        """Take one record of a log; return why it is refused, "" if it is not.

        ``newest_record.py`` decides which revision counts.
        """
        with self.changed:
            known = self._recovering.get(place.log)
            newest = self._newest_of(alert.id, known)
            if is_jump(alert.revision, newest):
                return REVISION_JUMP
            if newest < 0 and known is None and len(self._known.open) >= OPEN_MAX:
                return TOO_MANY
            if self._known.said.is_repeat(alert):
                return ""
            if known is not None:
                self._remember(known, alert, place, timestamp_ms)
            else:
                self._accept(alert, place)
                late = self._late.is_late(alert, timestamp_ms, now_ms)
                self._queue(alert, place, now_ms=now_ms, late=late)
            return ""

    def forget(self, alert_id: str, log: str) -> None:
        """Drop an alert whose tombstone was read, without notifying the receiver."""
        with self.changed:
            if log in self._recovering:
                self._recovering[log].latest.pop(alert_id, None)
            self._known.forget(alert_id)
            self._wide.forget(alert_id)
            entry = self._pending.pop(alert_id, None)
            if entry is not None:
                self._line.leave(entry)
            self._bundles.forget(alert_id)
            self._alone.discard(alert_id)
            self._repeats.forget(alert_id)

    def direct(self, alert: Alert, *, now_ms: int) -> None:
        """Take an alert that is in no log, and send it at once."""
        with self.changed:
            if alert.revision > self._known.newest(alert.id):
                self._accept(alert, None)
                self._queue(alert, None, now_ms=now_ms, late=False)

    def restore(self, alert: Alert, told: LastDelivery | None, *, now_ms: int) -> None:
        """Take an alert that is in no log and that an earlier process sent, or was about to send.

        Args:
            alert: its newest revision.
            told: what this receiver was told of it; None if nothing, as far as is known.
            now_ms: the current time.
        """
        with self.changed:
            if alert.revision <= self._known.newest(alert.id):
                return
            self._accept(alert, None)
            if told is not None:
                self._known.told[alert.id] = told
                self._bundles.told(alert, told.at_ms)
            if told is None or told.severity is not self._known.should_know(alert):
                self._queue(alert, None, now_ms=now_ms, late=False)
            else:
                self._plan_repeat(alert, told.at_ms)

    def last_delivery(self, alert_id: str) -> LastDelivery | None:
        """Return the severity that the receiver sees firing, and since when; None if it sees none."""
        with self.changed:
            return self._known.told.get(alert_id)

    def advance(self, log: str, positions: Mapping[int, int]) -> None:
        """Record how far ``log`` has been read; every record before that was handed in."""
        with self.changed:
            self._cursors.advance(log, positions)

    def recovered(self, log: str, *, now_ms: int) -> None:
        """End ``recover``: queue what this receiver should have been told and was not."""
        with self.changed:
            known = self._recovering.pop(log)
            for item in sorted(known.latest.values(), key=lambda item: item.place[1:]):
                self._settle_recovered(known, item, now_ms)
            self.changed.notify_all()

    # -- what goes out -------------------------------------------------------------------------

    def next_work(self, now_ms: int) -> Work | None:
        """Return the most urgent notification, or None; drop what is no longer worth sending."""
        with self.changed:
            self._mind_step(now_ms)
            self._look_at_silences(now_ms)
            self._queue_repeats(now_ms)
            self._look_again(now_ms)
            while now_ms >= self._retries.paused_until_ms and (entry := self._line.first()):
                if self._when_ms(entry, now_ms) > now_ms:
                    self._line_up(entry, now_ms)
                    continue
                alerts = self._known.worth_telling(entry.alert)
                if alerts and self._hold_back(entry, now_ms):
                    continue
                if alerts:
                    self._under_way = self._work(entry, alerts, now_ms)
                    return self._under_way
                self._done(entry)
            return None

    def _work(self, first: Entry, alerts: tuple[Alert, ...], now_ms: int) -> Work:
        """Return the attempt to tell ``alerts`` of an entry, with all that waits in its bundle."""
        entries, told = [first], list(alerts)
        labels = self._bundles.labels_of(first)
        is_bundle = labels is not None
        others = self._bundles.others(first) if is_bundle else self._batch_of(first, now_ms)
        for entry in others:
            if len(entries) == (_BUNDLE_MAX if is_bundle else self._batch_max):
                break
            if entry.held_back or not entry.announced or self._late_until_ms(entry) > now_ms:
                continue
            its = self._known.worth_telling(entry.alert)
            if not its:
                self._done(entry)
            elif not self._hold_back(entry, now_ms):
                entries.append(entry)
                self._line.leave(entry)
                told += its
        still = (self._known.open.get(one) for one in self._bundles.still_told(first))
        told += [one for one in still if one and self._silent_until_ms(one, now_ms) is None]
        for entry in entries:
            self._known.changed_ids.add(entry.alert.id)
            if entry.first_attempt_ms < 0:
                entry.first_attempt_ms = now_ms
        notification = Notification(
            id=first.alert.id,
            revision=first.alert.revision,
            alerts=tuple(told),
            group_labels={} if labels is None and len(entries) > 1 else labels,
        )
        return Work(tuple(entries), notification)

    def _batch_of(self, first: Entry, now_ms: int) -> Iterator[Entry]:
        """Yield what is due as well and in no bundle; the caller takes out of the line what it accepts."""
        if self._batch_max == 1 or first.alert.id in self._alone:
            return
        self._line.leave(first)
        while (entry := self._line.first()) and entry.alert.id not in self._alone:
            if self._when_ms(entry, now_ms) > now_ms:
                self._line_up(entry, now_ms)
            elif self._bundles.labels_of(entry) is None:
                yield entry
            else:
                return

    def settle(self, work: Work, delivery: Delivery, now_ms: int) -> str:
        """Record how an attempt ended; return the outcome to count."""
        with self.changed:
            self._under_way = None
            self._known.changed_ids.update(entry.alert.id for entry in work.entries)
            if delivery.outcome is Outcome.RETRY:
                return self._put_off(work, delivery, now_ms)
            self._retries.succeeded()
            if delivery.outcome is Outcome.REJECTED and self._is_batch(work):
                return self._take_apart(work, now_ms)
            self._bundles.sent(work.entries[0], now_ms)
            if delivery.outcome is Outcome.DELIVERED:
                self._known.delivered(work, now_ms)
                for alert in work.notification.alerts:
                    self._bundles.told(alert, now_ms)
                    self._alone.discard(alert.id)
            for entry in work.entries:
                self._done(entry)
            for alert_id in dict.fromkeys(alert.id for alert in work.notification.alerts):
                if alert_id in self._known.open:
                    self._plan_repeat(self._known.open[alert_id], now_ms)
            return str(delivery.outcome)

    def put_back(self, work: Work, now_ms: int) -> None:
        """Retry an attempt later if its outcome could not be recorded, so that it delays no other."""
        with self.changed:
            self._under_way = None
            for entry in work.entries:
                self._put_off_entry(entry, now_ms)

    def cursors(self, log: str, *, closing: bool = False) -> dict[int, Cursor]:
        """Return how far each partition of ``log`` is delivered; {} until ``recovered``.

        Args:
            log: its name.
            closing: nothing more will be sent, so alerts without an attempt count as not told.
        """
        with self.changed:
            if log in self._recovering:
                return {}
            if not closing:
                return self._cursors.cursors_to_commit(log, self._pending, self._maybe_told)
            going_out = {one.alert.id for one in self._under_way.entries} if self._under_way else set[str]()
            return self._cursors.close(log, self._pending, self._maybe_told_at_close, going_out)

    def announced(self, log: str) -> None:
        """Release what the last ``cursors`` announced: they are committed, or cannot be at present."""
        with self.changed:
            for entry in self._cursors.announced(log):
                if self._pending.get(entry.alert.id) is entry:
                    self._line.look_at(entry, _AT_ONCE)
            self.changed.notify_all()

    def held_back(self, alert_id: str, now_ms: int) -> HeldBack | None:
        """Return why an open alert is not sent now; None if it was or will be sent, or is unknown here."""
        with self.changed:
            alert, entry = self._known.open.get(alert_id), self._pending.get(alert_id)
            if alert is None:
                return None
            if self._known.interval_ms(alert) is None:
                return HeldBack.NOT_ROUTED
            return None if entry is None else self._reason(entry, now_ms)

    @property
    def waiting(self) -> int:
        """Return how many alerts wait to be delivered."""
        with self.changed:
            return len(self._pending)

    def oldest_undelivered_ms(self, now_ms: int) -> int:
        """Return how long the oldest alert that may be sent has waited; 0 if none waits."""
        with self.changed:
            waiting = (e.waits_since_ms for e in self._pending.values() if self._may_go_out(e, now_ms))
            return max(0, now_ms - min(waiting, default=now_ms))

    # -- inside, under the lock ----------------------------------------------------------------

    def _may_go_out(self, entry: Entry, now_ms: int) -> bool:
        return not entry.held_back and self._bundles.due_ms(entry) <= now_ms

    def _maybe_told(self, alert_id: str) -> frozenset[Severity]:
        """Return the severities that the receiver may see besides ``told``, if this process is killed now."""
        entry = self._pending.get(alert_id)
        waits = () if entry is None or entry.held_back else (entry.alert,)
        return self._known.maybe_delivered(alert_id, (*waits, *self._going_out(alert_id)))

    def _maybe_told_at_close(self, alert_id: str) -> frozenset[Severity]:
        """Return the same for a close: nothing more is sent, so what was not tried counts as not told."""
        return self._known.maybe_delivered(alert_id, self._going_out(alert_id))

    def _going_out(self, alert_id: str) -> tuple[Alert, ...]:
        """Return what is being sent of an alert at this moment."""
        alerts = () if self._under_way is None else self._under_way.notification.alerts
        return tuple(alert for alert in alerts if alert.id == alert_id)

    def _accept(self, alert: Alert, place: Place | None) -> None:
        self._known.accept(alert, place, self._pending)
        self._wide.note(alert)
        if alert.status is AlertStatus.RESOLVED:
            self._repeats.forget(alert.id)

    def _newest_of(self, alert_id: str, known: Known | None) -> int:
        """Return the highest revision known of an alert, -1 if none is."""
        before = known.latest.get(alert_id) if known is not None else None
        return self._known.newest(alert_id) if before is None else before.alert.revision

    def _hold_back(self, entry: Entry, now_ms: int) -> bool:
        """Delay ``entry`` while its receiver is to be left in peace; the end of an alert is never delayed."""
        alert = entry.alert
        if alert.status is AlertStatus.RESOLVED:
            return False
        why, until_ms = HeldBack.SILENCED, self._silent_until_ms(alert, now_ms)
        if until_ms is None and alert.id not in self._known.told:
            why = HeldBack.EFFECT
            until_ms = self._wide.hold_until_ms(alert, queued_at_ms=entry.queued_at_ms, now_ms=now_ms)
        if until_ms is None:
            return False
        entry.held_back, entry.due_ms = why, until_ms
        # Nothing of it may be sent, so no cursor need list it; nor may it hold the cursor back for days.
        entry.announced, entry.place = False, None
        self._known.changed_ids.add(alert.id)
        self._line_up(entry, now_ms)
        return True

    def _silent_until_ms(self, alert: Alert, now_ms: int) -> int | None:
        return None if self._takes_silenced else self._heeded.until_ms(alert, now_ms)

    def _look_again(self, now_ms: int) -> None:
        """Release entries that are due; a held-back one is sent after a cursor has announced it."""
        self._look_at_progress(now_ms)
        for entry in list(self._line.woken(now_ms)):
            if entry.held_back:
                entry.held_back, entry.announced = None, self._known.is_known_to_cursor(entry.alert)
                entry.waits_since_ms = now_ms
                self._known.changed_ids.add(entry.alert.id)
            self._line_up(entry, now_ms)

    def _mind_step(self, now_ms: int) -> None:
        """Let nothing wait for a time of before the clock was set back: it may lie years ahead."""
        step_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        if step_ms >= -_STEP_MS:
            return
        self._retries.paused_until_ms += step_ms
        self._repeats.shift(step_ms)
        self._bundles.shift(step_ms)
        for entry in self._pending.values():
            entry.queued_at_ms = min(entry.queued_at_ms, now_ms)
            entry.waits_since_ms = min(entry.waits_since_ms, now_ms)
            entry.first_attempt_ms = min(entry.first_attempt_ms, now_ms)
            entry.due_ms = min(entry.due_ms, now_ms)
            self._line_up(entry, now_ms)

    def _look_at_progress(self, now_ms: int) -> None:
        """Reconsider late alerts of clusters whose job has caught up, or fallen behind, since then."""
        if not self._pending:
            self._late.clear()
        changed = self._late.changed()
        if changed:
            for entry in self._pending.values():
                if entry.late and entry.alert.cluster in changed:
                    self._line_up(entry, now_ms)

    def _look_at_silences(self, now_ms: int) -> None:
        """Look at silenced entries when their silence ends now; ``_hold_back`` sees new silences."""
        before, quiet = self._heeded, self._quiet.now
        if quiet is before:
            return
        self._heeded = quiet
        if self._takes_silenced:
            for alert in list(self._known.open.values()):
                if before.silenced(alert, now_ms) != quiet.silenced(alert, now_ms):
                    self._repeats.plan(alert.id, now_ms)
        for entry in self._pending.values():
            if entry.held_back is HeldBack.SILENCED:
                until_ms = quiet.until_ms(entry.alert, now_ms)
                entry.due_ms = now_ms if until_ms is None else until_ms
                self._line.look_at(entry, entry.due_ms)

    def _line_up(self, entry: Entry, now_ms: int) -> None:
        """Put ``entry`` into the structure that it has to wait in."""
        self._log_reason(entry, now_ms)
        if entry.held_back:
            self._line.look_at(entry, entry.due_ms)
        elif not entry.announced:
            self._line.leave(entry)
            self._cursors.hold_until_committed(entry)
        elif (when_ms := self._when_ms(entry, now_ms)) > now_ms:
            self._line.look_at(entry, when_ms)
        else:
            self._line.add(entry)

    def _reason(self, entry: Entry, now_ms: int) -> HeldBack | None:
        """Return why ``entry`` waits; None if it only waits for its turn."""
        if entry.held_back is not None:
            return entry.held_back
        if not entry.announced:
            return HeldBack.NOT_ANNOUNCED
        if self._late_until_ms(entry) > now_ms:
            return HeldBack.CATCHING_UP
        if self._bundles.due_ms(entry) > now_ms:
            return HeldBack.GROUPING
        is_failing = entry.attempts > 0 or now_ms < self._retries.paused_until_ms
        return HeldBack.RECEIVER_FAILING if is_failing else None

    def _log_reason(self, entry: Entry, now_ms: int) -> None:
        """Log why ``entry`` waits, once per lasting reason; the sender logs failures."""
        why = self._reason(entry, now_ms)
        if why not in _LOGGED or why is entry.logged or entry.alert.status is AlertStatus.RESOLVED:
            return
        entry.logged = why
        name, about = printable(entry.alert.name), printable(entry.alert.group or entry.alert.cluster)
        _LOGGER.info("receiver %s is not told of %s about %s: %s", self.receiver, name, about, why)

    def _when_ms(self, entry: Entry, now_ms: int) -> int:
        """Return when ``entry`` may be tried, as things stand."""
        return max(entry.due_ms, self._late_until_ms(entry), self._bundles.due_ms(entry))

    def _late_until_ms(self, entry: Entry) -> int:
        return self._late.until_ms(entry, is_told=entry.alert.id in self._known.told)

    def _remember(self, known: Known, alert: Alert, place: Place, timestamp_ms: int) -> None:
        before = known.latest.get(alert.id)
        cursor = known.cursors.get(place.partition)
        told = before.delivered_by_log if before else None
        if cursor is not None and place.offset < cursor.offset:
            severity = self._known.should_know(alert)
            told = None if severity is None else LastDelivery(severity, timestamp_ms)
        earlier = RecordPosition(before.alert.revision, before.place.partition) if before else None
        if is_later(RecordPosition(alert.revision, place.partition), earlier):
            known.latest[alert.id] = Recovered(
                alert=alert, place=place, timestamp_ms=timestamp_ms, delivered_by_log=told
            )

    def _settle_recovered(self, known: Known, item: Recovered, now_ms: int) -> None:
        alert, place = item.alert, item.place
        if alert.revision <= self._known.newest(alert.id):
            return
        cursor = known.cursors.get(place.partition)
        told, doubts = deliveries_at_start(item, cursor)
        if told is not None:
            self._known.told[alert.id] = told
            self._bundles.told(alert, told.at_ms)
        if doubts:
            self._known.doubts[alert.id] = doubts
        self._accept(alert, place)
        is_news = cursor is None or place.offset >= cursor.offset
        if not self._known.worth_telling(alert):
            return  # long over, and never told here; there may be very many of these
        should = self._known.should_know(alert)
        if is_news or told is None or told.severity is not should:
            late = self._late.is_late(alert, item.timestamp_ms, now_ms)
            self._queue(alert, place if is_news else None, now_ms=now_ms, late=late)
        else:
            self._plan_repeat(alert, told.at_ms)

    def _queue(self, alert: Alert, place: Place | None, *, now_ms: int, late: bool) -> None:
        self._sequence += 1
        entry = Entry(
            alert=alert,
            place=place,
            queued_at_ms=now_ms,
            sequence=self._sequence,
            late=late,
            due_ms=now_ms,
            announced=self._known.is_known_to_cursor(alert),
            waits_since_ms=now_ms,
        )
        before = self._pending.get(alert.id)
        if before is not None:
            entry.sequence, entry.logged = before.sequence, before.logged
            self._line.leave(before)
            if before.held_back:
                entry.queued_at_ms = before.queued_at_ms
            else:
                entry.attempts, entry.due_ms = before.attempts, before.due_ms
                entry.waits_since_ms = before.waits_since_ms
        self._pending[alert.id] = entry
        self._cursors.withdraw(alert.id)
        if place is not None:
            self._cursors.hold(place, entry)
        self._known.changed_ids.add(alert.id)
        self._bundles.join(entry, now_ms)
        self._line_up(entry, now_ms)
        self._repeats.forget(alert.id)
        self.changed.notify_all()

    def _queue_repeats(self, now_ms: int) -> None:
        for alert_id in self._repeats.due(now_ms):
            if alert_id in self._known.open and alert_id not in self._pending:
                self._queue(self._known.open[alert_id], None, now_ms=now_ms, late=False)

    def _plan_repeat(self, alert: Alert, now_ms: int) -> None:
        interval_ms = self._known.interval_ms(alert)
        if interval_ms is not None and self._renew_ms is not None:
            step_ms = max(1, self._renew_ms // _RENEWALS)
            interval_ms = self._renew_ms - now_ms % step_ms
        elif alert.name in SAID_ONCE:
            interval_ms = None
        if interval_ms is not None and alert.id in self._known.open and alert.id not in self._pending:
            self._repeats.plan(alert.id, now_ms + interval_ms)

    def _done(self, entry: Entry) -> None:
        """Drop ``entry``, unless a newer revision has replaced it meanwhile (that one starts afresh)."""
        self._line.leave(entry)
        self._bundles.leave(entry)
        self._known.changed_ids.add(entry.alert.id)
        if entry.alert.id not in self._known.open:
            self._alone.discard(entry.alert.id)
        current = self._pending.get(entry.alert.id)
        if current is entry:
            del self._pending[entry.alert.id]
        elif current is not None:
            current.first_attempt_ms, current.attempts, current.due_ms = -1, 0, current.queued_at_ms
            current.waits_since_ms = current.queued_at_ms
            if current.announced:
                self._line.look_at(current, _AT_ONCE)

    @staticmethod
    def _is_batch(work: Work) -> bool:
        """Say whether the attempt carries alerts that no route bundles."""
        return len(work.entries) > 1 and work.notification.group_labels == {}

    def _take_apart(self, work: Work, now_ms: int) -> str:
        """Send each alert of a refused batch for itself, since one bad alert has the others refused."""
        for entry in work.entries:
            self._alone.add(entry.alert.id)
            current = self._pending.get(entry.alert.id)
            if current is not None:
                self._line_up(current, now_ms)
        return str(Outcome.RETRY)

    def _put_off(self, work: Work, delivery: Delivery, now_ms: int) -> str:
        """Retry later what is young enough, and give up the rest."""
        young = [one for one in work.entries if now_ms - one.first_attempt_ms < self._max_age_ms]
        for entry in work.entries:
            if entry not in young:
                self._done(entry)
                self._plan_repeat(entry.alert, now_ms)
        for entry in young:
            self._put_off_entry(entry, now_ms)
        if not young:
            return EXPIRED
        self._retries.pause(delivery, now_ms)
        return str(Outcome.RETRY)

    def _put_off_entry(self, entry: Entry, now_ms: int) -> None:
        current = self._pending.get(entry.alert.id)
        if current is not None:
            self._retries.put_off(current, now_ms)
            self._line_up(current, now_ms)
