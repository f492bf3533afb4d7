"""The thread that fills one outbox from one log of alerts.

It shares only the outbox with the sender, so a Kafka cluster that is away delays no delivery.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from alerts.alert import Refused, read_alert
from alerts.delivery.alert_log import AlertLog, AlertRecord, Cursor
from alerts.delivery.outbox import Outbox
from alerts.delivery.waiting import Place

_LOGGER = logging.getLogger("groupwatch.notifier")
POLL_MS = 250
_RECOMMIT_MS = 3_600_000
"""Cursors of groups without members expire after ``offsets.retention.minutes`` (a week by default)."""
_REOPEN_S = (0.5, 1.0, 2.0, 5.0, 10.0)

OpenLog = Callable[[str], AlertLog]
"""Opens a log for the receiver of that name; called again after each failure."""


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
