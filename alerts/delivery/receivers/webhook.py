"""A receiver that posts Alertmanager's webhook format, version "4", so anything written for it works."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from alerts.alert import Alert, AlertStatus, rfc3339
from alerts.delivery.receivers.alert_body import (
    ZERO_TIME,
    ReceiverContext,
    annotations_of,
    labels_of,
    page_url,
)
from alerts.delivery.receivers.http_post import HttpOptions, Post, Poster
from alerts.delivery.receivers.receiver import Delivery, Notification

_GROUP_LABELS = ("alertname", "cluster", "group")


class WebhookReceiver:
    """Posts to one URL, and signs the body if it has a secret."""

    renew_ms: int | None = None
    batch_max: int = 1
    takes_silenced: bool = False

    def __init__(
        self,
        name: str,
        url: str,
        http: HttpOptions = HttpOptions(),  # noqa: B008 - frozen
        *,
        secret: str = "",
        max_age_ms: int = 86_400_000,
        context: ReceiverContext = ReceiverContext(),  # noqa: B008 - a tuple
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Raises:
            OSError: a certificate cannot be read.
        """
        self.name = name
        self.max_age_ms = max_age_ms
        self._url = url
        self._secret = secret.encode()
        self._context = context
        self._clock_s = clock_s
        self._poster = Poster(http, clock_s=clock_s)

    @classmethod
    def of_options(
        cls, name: str, context: ReceiverContext, *, url: str, secret: str, max_age_ms: int, **http: Any
    ) -> "WebhookReceiver":
        """Return the receiver that the configuration describes.

        Raises:
            OSError: a certificate cannot be read.
        """
        return cls(name, url, HttpOptions(**http), secret=secret, max_age_ms=max_age_ms, context=context)

    def deliver(self, notification: Notification) -> Delivery:
        """Post once and translate the answer."""
        told = webhook_body(notification, receiver=self.name, context=self._context)
        body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Idempotency-Key": notification.idempotency_key}
        if self._secret:
            headers["X-Groupwatch-Signature"] = signature(self._secret, body, int(self._clock_s()))
        (delivery,) = self._poster.post(Post(self._url, body, headers))
        return delivery

    def close(self) -> None:
        """Close the connections within a second."""
        self._poster.close()


def signature(secret: bytes, body: bytes, at_s: int) -> str:
    """Return ``t=SECONDS,v1=HEX``: HMAC-SHA256 of ``SECONDS.BODY``; who checks it refuses old seconds."""
    return f"t={at_s},v1={hmac.digest(secret, b'%d.' % at_s + body, hashlib.sha256).hex()}"


def webhook_body(
    notification: Notification,
    *,
    receiver: str,
    context: ReceiverContext = ReceiverContext(),  # noqa: B008 - a tuple
) -> dict[str, Any]:
    """Return the body that Alertmanager would post for the alerts of ``notification``."""
    alerts = [_alert_body(alert, context) for alert in notification.alerts]
    firing = any(alert["status"] == AlertStatus.FIRING for alert in alerts)
    labels = _common([alert["labels"] for alert in alerts])
    group_labels = notification.group_labels
    if group_labels is None:
        group_labels = {name: labels[name] for name in _GROUP_LABELS}
    return {
        "version": "4",
        "groupKey": _group_key(group_labels),
        "truncatedAlerts": 0,
        "status": "firing" if firing else "resolved",
        "receiver": receiver,
        "groupLabels": group_labels,
        "commonLabels": labels,
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": context.external_url,
        "alerts": alerts,
    }


def _alert_body(alert: Alert, context: ReceiverContext) -> dict[str, Any]:
    return {
        "status": str(alert.status),
        "labels": labels_of(alert, context.owner_of(alert)),
        "annotations": annotations_of(alert),
        "startsAt": rfc3339(alert.starts_at_ms),
        "endsAt": ZERO_TIME if alert.ends_at_ms is None else rfc3339(alert.ends_at_ms),
        "generatorURL": page_url(alert, context.external_url),
        "fingerprint": alert.id,
    }


def _group_key(labels: Mapping[str, str]) -> str:
    """Return Alertmanager's spelling: route, colon, the labels as a Prometheus label set."""
    inside = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    return f"{{}}:{{{inside}}}"


def _common(sets: list[dict[str, str]]) -> dict[str, str]:
    first, *others = sets
    return {name: text for name, text in first.items() if all(other.get(name) == text for other in others)}
