"""A test page: one alert that begins and ends at once, sent to one receiver, and what came back."""

import time
from collections.abc import Iterator

import msgspec

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery import Owners, wall_clock_ms
from alerts.delivery.receivers import Notification, Outcome, ReceiverContext
from streaming.config import Config
from streaming.notify.notifying import receiver_of

NAME = "GroupwatchTest"
GROUP = "groupwatch-test"


class NoReceiverError(ValueError):
    """The configuration has no receiver of that name; the text names those that it has."""


def send_test_page(config: Config, receiver: str) -> Iterator[tuple[str, bool]]:
    """Send the beginning and, if that was taken, the end; yield a sentence for each, and if it was taken.

    Raises:
        NoReceiverError: there is none of that name.
    """
    found = next((one for one in config.receivers if one.name == receiver), None)
    if found is None:
        known = ", ".join(one.name for one in config.receivers) or "none"
        raise NoReceiverError(f"there is no receiver {receiver!r}; the configuration has: {known}")
    owners = Owners([one.owned() for one in config.owners])
    made = receiver_of(found, ReceiverContext(config.http.external_url, owners.of))
    try:
        for alert in _both(config.clusters[0].name):
            began_s = time.monotonic()
            delivery = made.deliver(Notification(id=alert.id, revision=alert.revision, alerts=(alert,)))
            took_ms = round((time.monotonic() - began_s) * 1_000)
            detail = f": {delivery.detail}" if delivery.detail else ""
            is_taken = delivery.outcome is Outcome.DELIVERED
            yield f"{receiver}: {alert.status} {delivery.outcome} after {took_ms} ms{detail}", is_taken
            if not is_taken:
                return
    finally:
        made.close()


def _both(cluster: str) -> tuple[Alert, Alert]:
    now_ms = wall_clock_ms()
    begins = Alert(
        id=f"groupwatch-test-{now_ms}",
        revision=0,
        name=NAME,
        cluster=cluster,
        group=GROUP,
        status=AlertStatus.FIRING,
        severity=Severity.INFO,
        starts_at_ms=now_ms,
        ends_at_ms=None,
        detected_at_ms=now_ms,
        summary="This is a test of groupwatch's notifications; nothing is wrong.",
        cause="Somebody ran groupwatch alerts test.",
        culprits=(),
        cost="",
        advice="Nothing to do.",
        runbook="",
    )
    return begins, msgspec.structs.replace(begins, revision=1, status=AlertStatus.RESOLVED, ends_at_ms=now_ms)
