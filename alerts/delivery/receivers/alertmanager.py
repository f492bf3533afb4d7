"""A receiver that speaks Alertmanager's API v2, as Prometheus does, so that its routes and silences apply."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from alerts.alert import Alert, rfc3339
from alerts.delivery.receivers.alert_body import (
    ReceiverContext,
    annotations_of,
    labels_of,
    page_url,
)
from alerts.delivery.receivers.alertmanager_silences import SilencesThere
from alerts.delivery.receivers.http_post import HttpOptions, Post, Poster
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome

_PATH = "/api/v2/alerts"
_NOTHING_TO_SAY = Delivery(outcome=Outcome.DELIVERED)
_AHEAD_MS = 300_000
"""How long Alertmanager believes a firing alert that nobody repeats."""


class AlertmanagerReceiver:
    """Posts to each of several Alertmanagers, which are one cluster or replace one another.

    Every firing alert is sent again each minute with ``endsAt`` five minutes ahead, so that alerts end by
    themselves when groupwatch dies.  One that accepts is enough: the others get it with the next repeat, or
    by their own gossip.  A silenced alert is sent after its silence, unless ``silences`` is false or the
    Alertmanager refuses the silence: then it is kept from it, and ends there after five minutes.
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
        silences: bool = True,
        context: ReceiverContext = ReceiverContext(),  # noqa: B008 - a tuple
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Raises:
            OSError: a certificate cannot be read.
        """
        self.name = name
        self.max_age_ms = max_age_ms
        self._urls = [url.rstrip("/") for url in urls]
        self.takes_silenced = silences
        self._context = context
        self._clock_s = clock_s
        self._poster = Poster(http, clock_s=clock_s)
        self._silences = SilencesThere(self._urls, self._poster)

    @classmethod
    def of_options(
        cls,
        name: str,
        context: ReceiverContext,
        *,
        urls: Sequence[str],
        max_age_ms: int,
        silences: bool,
        **http: Any,
    ) -> "AlertmanagerReceiver":
        """Return the receiver that the configuration describes.

        Raises:
            OSError: a certificate cannot be read.
        """
        return cls(name, urls, HttpOptions(**http), max_age_ms=max_age_ms, silences=silences, context=context)

    def deliver(self, notification: Notification) -> Delivery:
        """Post to all at once; delivered if one of them accepts."""
        now_ms = round(self._clock_s() * 1000)
        bodies = [(alert.id, alert_body(alert, self._context, now_ms)) for alert in notification.alerts]
        kept = self._kept_back(notification.alerts, now_ms)
        told = {url: [body for alert_id, body in bodies if alert_id not in kept[url]] for url in self._urls}
        posts = [Post(url + _PATH, _json(said)) for url, said in told.items() if said]
        found = [(post.shown, one) for post, one in zip(posts, self._poster.post(*posts), strict=True)]
        return self._together(found + [("", _NOTHING_TO_SAY)] * (len(told) - len(posts)))

    def _kept_back(self, alerts: Sequence[Alert], now_ms: int) -> Mapping[str, frozenset[str]]:
        """Silence there what is silenced here; return address -> ids of alerts that must not be sent."""
        if not self.takes_silenced:
            return dict.fromkeys(self._urls, frozenset())
        return self._silences.bring(alerts, self._context.quiet.now, now_ms)

    def _together(self, deliveries: Sequence[tuple[str, Delivery]]) -> Delivery:
        """Return the best outcome, with what the others said."""
        order = [Outcome.DELIVERED, Outcome.RETRY, Outcome.REJECTED]
        best = min((one for _, one in deliveries), key=lambda one: order.index(one.outcome))
        said = [f"{where}: {one.detail}" for where, one in deliveries if one.detail]
        detail = "; ".join([*said, *filter(None, [self._silences.trouble])])
        return Delivery(outcome=best.outcome, detail=detail, retry_after_s=best.retry_after_s)

    def close(self) -> None:
        """Close the connections within a second."""
        self._poster.close()


def _json(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")


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
