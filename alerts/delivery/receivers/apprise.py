"""A receiver for chat, pagers and mail: whatever the library apprise can reach by one of its addresses.

Tried: PagerDuty, Slack, Teams workflows and mail.  Its other services are not.
"""

import io
import logging
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery.receivers.alert_body import ReceiverContext
from alerts.delivery.receivers.concealing import concealed, secrets_of_service
from alerts.delivery.receivers.messages import Messages
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome

_DETAIL_CHARACTERS_MAX = 300
_UNDER_WAY_MAX = 4
"""Deliveries that took too long and go on in their threads; with so many of them no other begins."""


class _Word(NamedTuple):
    revision: int
    severity: Severity
    status: AlertStatus


class AppriseReceiver:
    """Sends text to one address of apprise, as a new object each time.

    apprise answers yes or no, waits between calls and has its own timeouts for each read.  So a delivery is
    a thread of its own that is left behind after ``timeout_ms``, its pauses are switched off (the outbox
    paces), and what it logs is the reason that we give.  A pager has that time for each alert.
    """

    renew_ms: int | None = None
    batch_max: int = 1
    takes_silenced: bool = False

    def __init__(
        self,
        name: str,
        url: str,
        messages: Messages,
        *,
        timeout_ms: int = 10_000,
        max_age_ms: int = 86_400_000,
    ) -> None:
        self.name = name
        self.max_age_ms = max_age_ms
        self._url = url
        self._messages = messages
        self._timeout_s = timeout_ms / 1000
        self._under_way = threading.BoundedSemaphore(_UNDER_WAY_MAX)
        self._knows: dict[str, _Word] = {}
        """What a pager was told of each alert that fires."""
        self._taken: dict[str, _Word] = {}
        """What it has taken of a bundle whose delivery failed: the next attempt goes on from there."""

    @classmethod
    def of_options(
        cls, name: str, context: ReceiverContext, *, url: str, title: str, body: str, **times: int
    ) -> "AppriseReceiver":
        """Return the receiver that the configuration describes.

        Raises:
            ValueError: a template is none.
        """
        return cls(name, url, Messages(context, title, body), **times)

    def deliver(self, notification: Notification) -> Delivery:
        """Tell it once: a pager each alert for itself, everybody else one message."""
        alerts = list({alert.id: alert for alert in notification.alerts}.values())  # the last of each id
        return self._to_pager(alerts) if self._is_for_pager else self._within_time(alerts)

    @cached_property
    def _is_for_pager(self) -> bool:
        return _is_pager(service_at(self._url))

    def _to_pager(self, alerts: Sequence[Alert]) -> Delivery:
        """Tell one alert after the other what is new in it; a repeat, in which nothing is, tells them all."""
        words = {alert.id: _Word(alert.revision, alert.severity, alert.status) for alert in alerts}
        due = [alert for alert in alerts if self._knows.get(alert.id) != words[alert.id]] or alerts
        self._taken = {
            alert_id: word for alert_id, word in self._taken.items() if words.get(alert_id) == word
        }
        for alert in due:
            if alert.id in self._taken:
                continue
            delivery = self._within_time([alert])
            if delivery.outcome is not Outcome.DELIVERED:
                return delivery
            self._taken[alert.id] = words[alert.id]
        self._taken = {}
        told = self._knows | words
        self._knows = {one: word for one, word in told.items() if word.status is AlertStatus.FIRING}
        return Delivery(outcome=Outcome.DELIVERED)

    def _within_time(self, alerts: list[Alert]) -> Delivery:
        if not self._under_way.acquire(blocking=False):
            return Delivery(outcome=Outcome.RETRY, detail=f"{_UNDER_WAY_MAX} deliveries hang already")
        found: list[Delivery] = []
        thread = threading.Thread(
            target=self._send, args=(alerts, found), name=f"apprise-{self.name}", daemon=True
        )
        thread.start()
        thread.join(self._timeout_s)
        if found:
            return found[0]
        return Delivery(outcome=Outcome.RETRY, detail=f"no answer within {self._timeout_s:g} s")

    def _send(self, alerts: list[Alert], found: list[Delivery]) -> None:
        try:
            found.append(self._sent(alerts))
        except Exception as error:  # of a library that promises none
            found.append(Delivery(outcome=Outcome.RETRY, detail=type(error).__name__))
        finally:
            self._under_way.release()

    def _sent(self, alerts: list[Alert]) -> Delivery:
        service = service_at(self._url)
        if service is None:
            return Delivery(outcome=Outcome.REJECTED, detail="apprise knows no service with this address")
        service.request_rate_per_sec = 0
        service.redirects = False  # they would carry alerts, and secrets, elsewhere
        service.socket_read_timeout = service.socket_connect_timeout = self._timeout_s
        with _Heard() as heard:
            if self._tell(service, alerts):
                return Delivery(outcome=Outcome.DELIVERED)
        said = concealed(heard.words(), secrets_of_service(self._url))
        return Delivery(outcome=Outcome.RETRY, detail=said)

    def _tell(self, service: Any, alerts: list[Alert]) -> bool:
        if _is_pager(service):
            service.dedup, service.action = alerts[0].id, "map"
            service.severity = str(alerts[0].severity)
        title, body = self._messages.of(alerts)
        return bool(service.notify(title=title, body=body, notify_type=_kind(alerts)))

    def close(self) -> None:
        """Do nothing: nothing stays open between deliveries."""


def service_at(url: str) -> Any:
    """Return apprise's object for an address; None if it knows none."""
    import apprise  # noqa: PLC0415 - half a second, only for those who use it

    with _Heard():
        return apprise.Apprise.instantiate(url)


def _is_pager(service: Any) -> bool:
    """Say whether it keeps incidents, which are told by a key that they begin, get louder and end."""
    return hasattr(service, "dedup")


def _kind(alerts: list[Alert]) -> str:
    """Return apprise's kind of message: the loudest of what fires, success if nothing does."""
    firing = {alert.severity for alert in alerts if alert.status is AlertStatus.FIRING}
    if Severity.CRITICAL in firing:
        return "failure"
    if Severity.WARNING in firing:
        return "warning"
    return "info" if firing else "success"


class _Heard(logging.Handler):
    """Hears what apprise logs in this thread, and keeps it from our log, for it names addresses."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self._text = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a sentence of this thread."""
        if record.thread == self._thread:
            self._text.write(f"{record.getMessage()} ")

    def words(self) -> str:
        """Return what was heard."""
        heard = " ".join(self._text.getvalue().split())[:_DETAIL_CHARACTERS_MAX]
        return heard or "apprise could not deliver it"

    def __enter__(self) -> "_Heard":
        log = logging.getLogger("apprise")
        log.propagate = False
        log.setLevel(logging.WARNING)  # below, it logs whole payloads
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("apprise").removeHandler(self)
