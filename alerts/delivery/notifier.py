"""All receivers with their outboxes and threads: for each a sender, and a reader for each log."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from alerts.alert import Alert
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.log_reader import OpenLog, Reader
from alerts.delivery.outbox import Outbox
from alerts.delivery.owners import OwnerOf, nobody_owns
from alerts.delivery.receivers import Receiver
from alerts.delivery.routing import Route, routes_or_everything
from alerts.delivery.sender import CountOutcome, Sender
from alerts.delivery.silences import NO_QUIET, LiveQuiet, Quiet
from alerts.delivery.waiting import HeldBack


def wall_clock_ms() -> int:
    """Return the current time; the default clock."""
    return time.time_ns() // 1_000_000


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
        quiet: Quiet | LiveQuiet = NO_QUIET,
        owner_of: OwnerOf = nobody_owns,
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
            quiet: silences and maintenance; the outboxes look again when they change.
            owner_of: returns who owns an alert's group.
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
                renew_ms=receiver.renew_ms,
                batch_max=receiver.batch_max,
                takes_silenced=receiver.takes_silenced,
                caught_up=caught_up,
                quiet=quiet,
                owner_of=owner_of,
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
