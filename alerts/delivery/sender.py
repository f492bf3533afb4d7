"""The thread that sends what one outbox releases.

Threads of different receivers share nothing, so a dead receiver delays no other receiver.
"""

import logging
import threading
from collections.abc import Callable

from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers import Delivery, Outcome, Receiver
from alerts.delivery.waiting import Work

_LOGGER = logging.getLogger("groupwatch.notifier")
_IDLE_S = 0.5
_FAILED_S = 1.0

CountOutcome = Callable[[str, str], None]
"""Counts (receiver, outcome)."""


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
        self._remark = ""
        """What was amiss with the last notification although it was delivered."""
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
        if outcome == Outcome.DELIVERED and self._remark != delivery.detail:
            self._remark = delivery.detail
            if delivery.detail:
                _LOGGER.warning("receiver %s took it, but %s", self._receiver.name, delivery.detail)

    def stop(self) -> None:
        """Ask the thread to end after its current attempt."""
        self._stopping.set()
        with self._outbox.changed:
            self._outbox.changed.notify_all()
