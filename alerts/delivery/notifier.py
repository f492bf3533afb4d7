"""The threads that deliver alerts: for each receiver one sender, and one reader per log.

Threads of different receivers share nothing, so a dead receiver delays no other receiver.  One receiver's
threads share only its ``Outbox``, so a Kafka cluster that is away delays no delivery.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from alerts.alert import Alert, Refused, read_alert
from alerts.delivery.alert_log import AlertLog, AlertRecord, Cursor
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers import Delivery, Outcome, Receiver
from alerts.delivery.routing import Route, routes_or_everything
from alerts.delivery.silences import NO_QUIET, Quiet
from alerts.delivery.waiting import HeldBack, Place, Work

_LOGGER = logging.getLogger("groupwatch.notifier")

POLL_MS = 250
_IDLE_S = 0.5
_FAILED_S = 1.0
_RECOMMIT_MS = 3_600_000
"""Cursors of groups without members expire after ``offsets.retention.minutes`` (a week by default)."""
_REOPEN_S = (0.5, 1.0, 2.0, 5.0, 10.0)

OpenLog = Callable[[str], AlertLog]
"""Opens a log for the receiver of that name; called again after each failure."""
CountOutcome = Callable[[str, str], None]
"""Counts (receiver, outcome)."""


def wall_clock_ms() -> int:
    """Return the current time; the default clock."""
    return time.time_ns() // 1_000_000


class Sender(threading.Thread):
    """Sends what one outbox releases, one notification after the other."""

    def __init__(
        self,
        receiver: Receiver,
        outbox: Outbox,
        *,
        clock_ms: Callable[[], int],
        count: CountOutcome,
        may_speak: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(name=f"sender-{receiver.name}", daemon=True)
        self._receiver = receiver
        self._outbox = outbox
        self._clock_ms = clock_ms
        self._count = count
        self._may_speak = may_speak
        self._stopping = threading.Event()
        self.trouble = ""
        """How the last attempt failed; "" if it did not."""

        self.failures = 0
        """How many of our own errors this thread has survived."""
        self.failure = ""
        """The latest of them; "" after the next attempt without one."""

    def run(self) -> None:
        """Deliver until stopped; count and log our own errors, and continue."""
        while not self._stopping.is_set():
            try:
                is_idle = not self.send_one()
            except Exception as error:
                self._failed(error)
                self._stopping.wait(_FAILED_S)
                continue
            if is_idle:
                with self._outbox.changed:
                    if not self._stopping.is_set():
                        self._outbox.changed.wait(_IDLE_S)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        told, self.failure = self.failure, f"{type(error).__name__}: {error}"[:200]
        if told != self.failure:
            _LOGGER.exception("the sender of receiver %s failed, and goes on", self._receiver.name)

    def send_one(self) -> bool:
        """Make one attempt if one is due and this process may make it; return whether one was made."""
        if not self._may_speak():
            return False
        work = self._outbox.next_work(self._clock_ms())
        if work is None:
            return False
        delivery = self._attempt(work)
        try:
            outcome = self._outbox.settle(work, delivery, self._clock_ms())
        except Exception:
            self._outbox.put_back(work, self._clock_ms())
            raise
        self._count(self._receiver.name, outcome)
        self._tell_trouble(outcome, work, delivery)
        self.failure = ""
        return True

    def _attempt(self, work: Work) -> Delivery:
        try:
            return self._receiver.deliver(work.notification)
        except Exception as error:
            # A bug in a receiver must neither end its thread nor lose the notification.
            _LOGGER.exception("receiver %s broke", self._receiver.name)
            return Delivery(outcome=Outcome.RETRY, detail=f"{type(error).__name__}: {error}")

    def _tell_trouble(self, outcome: str, work: Work, delivery: Delivery) -> None:
        """Log a failure when it first occurs and when it changes, so that an outage is one line."""
        trouble = "" if outcome == Outcome.DELIVERED else f"{outcome}: {delivery.detail}"
        if trouble and (trouble != self.trouble or outcome != Outcome.RETRY):
            _LOGGER.warning(
                "receiver %s, alert %s: %s", self._receiver.name, work.notification.idempotency_key, trouble
            )
        elif self.trouble and not trouble:
            _LOGGER.info("receiver %s takes notifications again", self._receiver.name)
        self.trouble = trouble

    def stop(self) -> None:
        """Ask the thread to end after its current attempt."""
        self._stopping.set()
        with self._outbox.changed:
            self._outbox.changed.notify_all()


class Reader(threading.Thread):
    """Fills one outbox from one log, and commits the log's cursors as alerts are delivered."""

    def __init__(
        self,
        log_name: str,
        open_log: OpenLog,
        outbox: Outbox,
        *,
        clock_ms: Callable[[], int],
        may_speak: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(name=f"reader-{outbox.receiver}-{log_name}", daemon=True)
        self._log_name = log_name
        self._open_log = open_log
        self._outbox = outbox
        self._clock_ms = clock_ms
        self._may_speak = may_speak
        self._stopping = threading.Event()
        self.receiver = outbox.receiver
        self._positions: Mapping[int, int] | None = None
        self._committed: dict[int, Cursor] = {}
        self._committed_at_ms = 0
        self._failures = 0
        self._last_trouble = ""
        self.refused: dict[str, int] = {}
        """Reason -> number of refused records."""
        self.refusal = ""
        """The latest refused record, in words."""
        self.is_caught_up = False
        """The log has been read to the end that it had at start."""

    def run(self) -> None:
        """Read until stopped; after a failure close the log and open it again a little later."""
        while not self._stopping.is_set():
            try:
                self._session()
            except Exception as error:
                # Kafka's client may raise anything here; the outbox continues to deliver what it has.
                self._tell_trouble(f"{type(error).__name__}: {error}")
                self._stopping.wait(_REOPEN_S[min(self._failures, len(_REOPEN_S) - 1)])
                self._failures += 1

    def _tell_trouble(self, trouble: str) -> None:
        if trouble != self._last_trouble:
            _LOGGER.warning("cannot read the alerts of %s: %s", self._log_name, trouble)
        self._last_trouble = trouble

    def _session(self) -> None:
        log = self._open_log(self._outbox.receiver)
        try:
            self.begin(log)
            while not self._stopping.is_set():
                self.step(log)
            self.commit(log, closing=True)
        finally:
            log.close()

    def begin(self, log: AlertLog) -> None:
        """Read the whole topic at the first call; resume at the last position after a lost connection."""
        if self._positions is not None:
            log.seek(self._positions)
            return
        self._outbox.recover(self._log_name, log.committed())
        log.seek({})
        ends = log.ends()
        while not self._stopping.is_set() and not _reached(log.positions(), ends):
            self._take(log.poll(POLL_MS))
        if self._stopping.is_set():
            return
        self._note_positions(log)
        self._outbox.recovered(self._log_name, now_ms=self._clock_ms())
        self.is_caught_up = True
        self.commit(log)

    def step(self, log: AlertLog) -> None:
        """Read new records, and commit what was delivered since the last step."""
        self._take(log.poll(POLL_MS))
        self._note_positions(log)
        self.commit(log)
        self._failures, self._last_trouble = 0, ""

    def commit(self, log: AlertLog, *, closing: bool = False) -> None:
        """Commit the cursors if they changed, and otherwise now and then, so that they do not expire."""
        try:
            self._commit(log, self._outbox.cursors(self._log_name, closing=closing))
        finally:
            # A failed commit must not hold alerts back: a repeat is better than a lost alert.
            self._outbox.announced(self._log_name)

    def _commit(self, log: AlertLog, cursors: Mapping[int, Cursor]) -> None:
        now_ms = self._clock_ms()
        if now_ms - self._committed_at_ms < _RECOMMIT_MS:
            cursors = {n: cursor for n, cursor in cursors.items() if self._committed.get(n) != cursor}
        else:
            self._committed_at_ms = now_ms
        if cursors and self._may_speak():  # cursors of a process that was succeeded are out of date
            log.commit(cursors)
            self._committed.update(cursors)

    def _note_positions(self, log: AlertLog) -> None:
        self._positions = log.positions()
        self._outbox.advance(self._log_name, self._positions)

    def _take(self, records: Iterable[AlertRecord]) -> None:
        for record in records:
            if record.value is None:
                self._outbox.forget((record.key or b"").decode("utf-8", "replace"), self._log_name)
                continue
            now_ms = self._clock_ms()
            found = read_alert(record.key, record.value, timestamp_ms=record.timestamp_ms, now_ms=now_ms)
            if isinstance(found, Refused):
                self._refuse(record, found)
                continue
            place = Place(self._log_name, record.partition, record.offset)
            reason = self._outbox.take(found, place, timestamp_ms=record.timestamp_ms, now_ms=now_ms)
            if reason:
                self._refuse(record, Refused(reason, f"revision {found.revision} of alert {found.id!r}"))

    def _refuse(self, record: AlertRecord, refused: Refused) -> None:
        """Count a refused record; log the first one of each reason."""
        is_first = refused.reason not in self.refused
        self.refused[refused.reason] = self.refused.get(refused.reason, 0) + 1
        level = logging.WARNING if is_first else logging.DEBUG
        where = f"partition {record.partition} offset {record.offset} of the alerts of {self._log_name}"
        _LOGGER.log(level, "%s is set aside: %s: %s", where, refused.reason, refused.detail)
        self.refusal = f"{where}: {refused.reason}: {refused.detail}"

    def stop(self) -> None:
        """Ask the thread to commit its cursors and end."""
        self._stopping.set()


def _reached(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return all(positions.get(partition, 0) >= end for partition, end in ends.items())


class DeliveryState(NamedTuple):
    """The state of delivery to one receiver."""

    receiver: str
    waiting: int
    """How many alerts wait to be delivered, silenced ones included."""
    oldest_s: float
    """How long the oldest alert that may be sent has waited; 0 if none waits."""
    failures: int
    """How many of our own errors its sender has survived."""
    failure: str
    """The latest of them; "" after the next attempt without one."""
    trouble: str
    """How the last attempt failed; "" if it succeeded."""
    refused: Mapping[str, int] = {}
    """Reason -> number of refused records of the alerts topic."""
    refusal: str = ""
    """The latest refused record, in words."""

    @property
    def problem(self) -> str:
        """A sentence if this process, not the receiver, is the reason that nothing is delivered; else ""."""
        return f"the sender of receiver {self.receiver} fails: {self.failure}" if self.failure else ""

    def describe(self) -> dict[str, object]:
        """Return the facts for ``/healthz``."""
        return {
            "receiver": self.receiver,
            "waiting": self.waiting,
            "oldest_undelivered_seconds": round(self.oldest_s, 1),
            "trouble": self.trouble,
            "errors_of_ours": self.failures,
            "refused_records": sum(self.refused.values()),
            "refused_last": self.refusal,
        }


class Notifier:
    """All receivers, with their outboxes and threads."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        routes: Sequence[Route],
        logs: Mapping[str, OpenLog],
        *,
        count: CountOutcome = lambda _receiver, _outcome: None,
        caught_up: Callable[[str], bool | None] = lambda _cluster: None,
        clock_ms: Callable[[], int] = wall_clock_ms,
        quiet: Quiet = NO_QUIET,
        may_speak: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare everything; ``start`` opens the connections.

        Args:
            receivers: where to deliver; names are unique.
            routes: which alerts each receiver gets; without routes, every receiver gets every alert.
            logs: name of an output cluster → how to open its alerts topic for a receiver.
            count: called with the outcome of each attempt.
            caught_up: whether the job has caught up with a cluster; None if nobody knows.
            clock_ms: returns the current time.
            quiet: silences and maintenance.
            may_speak: asked before each attempt; false while another process may deliver as well.
        """
        self._routes = routes_or_everything(routes, (receiver.name for receiver in receivers))
        self._clock_ms = clock_ms
        self._receivers = tuple(receivers)
        self.outboxes = {
            receiver.name: Outbox(
                receiver.name,
                self._routes,
                max_age_ms=receiver.max_age_ms,
                caught_up=caught_up,
                quiet=quiet,
            )
            for receiver in receivers
        }
        self._senders = [
            Sender(
                receiver, self.outboxes[receiver.name], clock_ms=clock_ms, count=count, may_speak=may_speak
            )
            for receiver in receivers
        ]
        self._readers = [
            Reader(name, open_log, outbox, clock_ms=clock_ms, may_speak=may_speak)
            for name, open_log in logs.items()
            for outbox in self.outboxes.values()
        ]
        self._started = False

    def start(self) -> None:
        """Start every thread and return at once."""
        self._started = True
        for thread in (*self._senders, *self._readers):
            thread.start()

    def direct(self, alert: Alert) -> None:
        """Send an alert that has no log (ClusterUnreachable, MonitorStalled) straight to its receivers."""
        now_ms = self._clock_ms()
        for outbox in self.outboxes.values():
            # Every outbox gets it: one that was told the beginning must be told the end, whatever the routes.
            outbox.direct(alert, now_ms=now_ms)

    def restore(self, alert: Alert, told: Mapping[str, LastDelivery]) -> None:
        """Continue an alert that an earlier process sent straight to its receivers."""
        now_ms = self._clock_ms()
        for name, outbox in self.outboxes.items():
            outbox.restore(alert, told.get(name), now_ms=now_ms)

    def last_deliveries(self, alert_id: str) -> dict[str, LastDelivery]:
        """Return the receivers that see the alert firing."""
        found = ((name, outbox.last_delivery(alert_id)) for name, outbox in self.outboxes.items())
        return {name: told for name, told in found if told is not None}

    def held_back(self, alert_id: str) -> dict[str, HeldBack]:
        """Return receiver -> why it does not get an open alert now; receivers that got it are left out."""
        now_ms = self._clock_ms()
        found = ((name, outbox.held_back(alert_id, now_ms)) for name, outbox in self.outboxes.items())
        return {name: why for name, why in found if why is not None}

    @property
    def is_caught_up(self) -> bool:
        """Every receiver has read every log to the end that it had at start."""
        return all(reader.is_caught_up for reader in self._readers)

    def deliveries(self) -> list[DeliveryState]:
        """Return the state of delivery to each receiver."""
        now_ms = self._clock_ms()
        return [
            DeliveryState(
                receiver=outbox.receiver,
                waiting=outbox.waiting,
                oldest_s=outbox.oldest_undelivered_ms(now_ms) / 1000,
                failures=sender.failures,
                failure=sender.failure,
                trouble=sender.trouble,
                **self._refusals(outbox),
            )
            for outbox, sender in zip(self.outboxes.values(), self._senders, strict=True)
        ]

    def _refusals(self, outbox: Outbox) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        last = ""
        for reader in self._readers:
            if reader.receiver == outbox.receiver:
                counts.update(dict(reader.refused))
                last = reader.refusal or last
        return {"refused": counts, "refusal": last}

    def dead_threads(self) -> list[str]:
        """Return the names of threads that have died."""
        if not self._started:
            return []
        return [thread.name for thread in (*self._senders, *self._readers) if not thread.is_alive()]

    def stop(self, timeout_s: float = 15.0) -> None:
        """End: finish the current attempts and commit the cursors; the next start sends what still waits."""
        self._started = False
        deadline_s = time.monotonic() + timeout_s
        for group in (self._senders, self._readers):
            # Senders stop first, so that the readers' last commit includes what was just delivered.
            for thread in group:
                thread.stop()
            for thread in group:
                if thread.ident is not None:
                    thread.join(max(0.1, deadline_s - time.monotonic()))
        for receiver in self._receivers:
            receiver.close()
