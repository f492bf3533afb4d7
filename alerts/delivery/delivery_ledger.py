"""What one receiver has been told, should be told, and may have been told; under the outbox's lock."""

from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence

from alerts.alert import Alert, AlertStatus, RecentRecords, Severity
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.owners import OwnerOf, nobody_owns
from alerts.delivery.routing import Route, routes_for
from alerts.delivery.waiting import Place, Work, label_sets

_ENDED_REMEMBERED_MAX = 100_000
_FORGET_TRIES = 100


class DeliveryLedger:
    """One receiver's knowledge; the caller holds the outbox's lock."""

    def __init__(self, receiver: str, routes: Sequence[Route], owner_of: OwnerOf = nobody_owns) -> None:
        """Start empty."""
        self._receiver = receiver
        self._routes = routes
        self._owner_of = owner_of
        self.open: dict[str, Alert] = {}
        self.told: dict[str, LastDelivery] = {}
        self.doubts: dict[str, frozenset[Severity]] = {}
        """Severities that a killed earlier process was about to send: nobody knows whether it did."""
        self.homes: dict[str, Place] = {}
        self.said = RecentRecords()
        self.changed_ids: set[str] = set()
        """Alerts whose entry in the cursor's metadata may have to change."""
        self._newest: OrderedDict[str, int] = OrderedDict()

    # -- what comes in -------------------------------------------------------------------------

    def accept(self, alert: Alert, place: Place | None, pending: Container[str]) -> None:
        """Take the newest revision of an alert, and forget alerts that ended long ago."""
        self._newest[alert.id] = alert.revision
        self._newest.move_to_end(alert.id)
        self.changed_ids.add(alert.id)
        if place is not None:
            self.homes[alert.id] = place
        if alert.status is AlertStatus.FIRING:
            self.open[alert.id] = alert
        else:
            self.open.pop(alert.id, None)
        while len(self._newest) > _ENDED_REMEMBERED_MAX and self._forget_an_ended(pending):
            pass

    def _forget_an_ended(self, pending: Container[str]) -> bool:
        for _ in range(_FORGET_TRIES):
            alert_id = next(iter(self._newest))
            if not any(alert_id in memory for memory in (self.open, pending, self.told, self.doubts)):
                del self._newest[alert_id]
                self.said.forget(alert_id)
                self.homes.pop(alert_id, None)
                return True
            self._newest.move_to_end(alert_id)
        return False

    def forget(self, alert_id: str) -> None:
        """Drop an alert without notifying the receiver."""
        self.changed_ids.add(alert_id)
        for memory in (self.open, self.told, self.doubts, self.homes):
            memory.pop(alert_id, None)
        self.said.forget(alert_id)

    def delivered(self, work: Work, now_ms: int) -> None:
        """Record that the receiver took a notification."""
        for alert in work.notification.alerts:  # of an alert with several label sets the last one counts
            self.changed_ids.add(alert.id)
            self.doubts.pop(alert.id, None)
            if alert.status is AlertStatus.FIRING:
                self.told[alert.id] = LastDelivery(alert.severity, now_ms)
            else:
                self.told.pop(alert.id, None)

    # -- what is asked -------------------------------------------------------------------------

    def newest(self, alert_id: str) -> int:
        """Return the newest revision number of an alert, -1 if none is known."""
        return self._newest.get(alert_id, -1)

    def interval_ms(self, alert: Alert) -> int | None:
        """Return the repeat interval of ``alert`` for this receiver; None if no route leads here."""
        route = self.route_of(alert)
        return None if route is None else route.repeat_interval_ms

    def route_of(self, alert: Alert) -> Route | None:
        """Return the route by which ``alert`` comes to this receiver; None if none does."""
        return routes_for(self._routes, alert, self._owner_of(alert)).get(self._receiver)

    def should_know(self, alert: Alert) -> Severity | None:
        """Return the severity under which the receiver should see ``alert`` firing; None if it should not."""
        if alert.status is AlertStatus.RESOLVED or self.interval_ms(alert) is None:
            return None
        return alert.severity

    def worth_telling(self, alert: Alert) -> tuple[Alert, ...]:
        """Return the alerts to send: resolved under old severities first, then firing."""
        told = self.told.get(alert.id)
        held = self.doubts.get(alert.id, frozenset()) | ({told.severity} if told else set())
        return tuple(label_sets(alert, held, self.should_know(alert)))

    def is_known_to_cursor(self, alert: Alert) -> bool:
        """Say whether the cursor already announces ``alert``, so that a kill after sending loses nothing."""
        told, should = self.told.get(alert.id), self.should_know(alert)
        no_news = should is None or (told is not None and told.severity is should)
        return no_news or alert.id not in self.homes

    def maybe_delivered(self, alert_id: str, going_out: Iterable[Alert]) -> frozenset[Severity]:
        """Return the severities that the receiver may see besides ``told``, if this process is killed now."""
        maybe, told = self.doubts.get(alert_id, frozenset()), self.told.get(alert_id)
        for alert in going_out:
            should = self.should_know(alert)
            if should is not None and (told is None or told.severity is not should):
                maybe |= {should}
        return maybe
