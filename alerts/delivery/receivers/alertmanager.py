"""A receiver that speaks Alertmanager's API v2, as Prometheus does, so that its routes and silences apply."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from alerts.alert import Alert
from alerts.delivery.receivers.alert_body import (
    ReceiverContext,
    annotations_of,
    labels_of,
    page_url,
    rfc3339,
)
from alerts.delivery.receivers.http_post import HttpOptions, Post, Poster
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome

_PATH = "/api/v2/alerts"
_AHEAD_MS = 300_000
"""How long Alertmanager believes a firing alert that nobody repeats."""


class AlertmanagerReceiver:
    """Posts to each of several Alertmanagers, which are one cluster or replace one another.

    Every firing alert is sent again each minute with ``endsAt`` five minutes ahead, so that alerts end by
    themselves when groupwatch dies.  One that accepts is enough: the others get it with the next repeat, or
    by their own gossip.
    """

    renew_ms: int | None = 60_000
    batch_max: int = 256
    """As many as Prometheus posts at once."""

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        http: HttpOptions = HttpOptions(),  # noqa: B008 - frozen
        *,
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
        self._urls = [f"{url.rstrip('/')}{_PATH}" for url in urls]
        self._context = context
        self._clock_s = clock_s
        self._poster = Poster(http, clock_s=clock_s)

    @classmethod
    def of_options(
        cls, name: str, context: ReceiverContext, *, urls: Sequence[str], max_age_ms: int, **http: Any
    ) -> "AlertmanagerReceiver":
        """Return the receiver that the configuration describes.

        Raises:
            OSError: a certificate cannot be read.
        """
        return cls(name, urls, HttpOptions(**http), max_age_ms=max_age_ms, context=context)

    def deliver(self, notification: Notification) -> Delivery:
        """Post to all at once; delivered if one of them accepts."""
        now_ms = round(self._clock_s() * 1000)
        told = [alert_body(alert, self._context, now_ms) for alert in notification.alerts]
        body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        return self._together(self._poster.post(*(Post(url, body) for url in self._urls)))

    def _together(self, deliveries: Sequence[Delivery]) -> Delivery:
        """Return the best outcome, with what the others said."""
        order = [Outcome.DELIVERED, Outcome.RETRY, Outcome.REJECTED]
        best = min(deliveries, key=lambda one: order.index(one.outcome))
        pairs = zip(self._urls, deliveries, strict=True)
        failed = "; ".join(f"{url}: {one.detail}" for url, one in pairs if one.detail)
        return Delivery(outcome=best.outcome, detail=failed, retry_after_s=best.retry_after_s)

    def close(self) -> None:
        """Close the connections within a second."""
        self._poster.close()


def alert_body(alert: Alert, context: ReceiverContext, now_ms: int) -> Mapping[str, Any]:
    """Return one alert of the API; empty labels are left out, for Alertmanager has none."""
    ends_at_ms = now_ms + _AHEAD_MS if alert.ends_at_ms is None else min(alert.ends_at_ms, now_ms)
    labels = labels_of(alert, context.owner_of(alert))
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: text for name, text in annotations_of(alert).items() if text},
        "startsAt": rfc3339(min(alert.starts_at_ms, ends_at_ms)),
        "endsAt": rfc3339(ends_at_ms),
        "generatorURL": page_url(alert, context.external_url),
    }
