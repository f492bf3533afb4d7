"""A receiver that writes to our own log, for trying out and as a journal beside a real receiver."""

import logging

from alerts.alert import Alert, AlertStatus, Severity, printable
from alerts.delivery.receivers.alert_body import ReceiverContext
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome

_LOUDNESS = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.CRITICAL: logging.ERROR,
}


class LogReceiver:
    """Writes one line per alert: firing at a level that fits its severity, resolved at INFO."""

    max_age_ms = 60_000
    renew_ms: int | None = None
    batch_max: int = 1
    takes_silenced: bool = False

    def __init__(self, name: str, logger: logging.Logger | None = None) -> None:
        self.name = name
        self._logger = logger or logging.getLogger("groupwatch.alerts")

    @classmethod
    def of_options(cls, name: str, _context: ReceiverContext) -> "LogReceiver":
        """Return the receiver that the configuration describes; it has no options."""
        return cls(name)

    def deliver(self, notification: Notification) -> Delivery:
        """Write the alerts; this cannot fail."""
        for alert in notification.alerts:
            self._write(alert)
        return Delivery(outcome=Outcome.DELIVERED)

    def _write(self, alert: Alert) -> None:
        firing = alert.status is AlertStatus.FIRING
        self._logger.log(
            _LOUDNESS[alert.severity] if firing else logging.INFO,
            "%s %s (%s) cluster=%s group=%s: %s",
            alert.name,
            alert.status,
            alert.severity,
            alert.cluster,
            printable(alert.group),
            printable(alert.summary),
        )

    def close(self) -> None:
        """Do nothing: nothing is open."""
