"""A receiver that posts Alertmanager's webhook format, version "4", so anything written for it works."""

import asyncio
import contextlib
import email.utils
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlencode

import httpx

from alerts.alert import Alert, AlertStatus, Culprit, printable
from alerts.delivery.receivers.lookups import Lookups
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from alerts.rules import nobody
from coordinator_model.observations import TIME_MS_MAX

ZERO_TIME = "0001-01-01T00:00:00Z"
"""What Go writes for "no time": Alertmanager's ``endsAt`` of a firing alert."""

_GROUP_LABELS = ("alertname", "cluster", "group")
_CULPRITS_NAMED_MAX = 5
_DETAIL_BYTES_MAX = 200
_AGAIN = frozenset({404, 408, 425, 429})
"""Statuses that may pass: a route is being deployed, a queue is full."""
_WAIT_CHARACTERS_MAX = 64
_CLOSE_S = 1.0
_WAIT_S_MAX = 366 * 86_400.0
"""Longest believable ``Retry-After``: a year."""


class WebhookReceiver:
    """Posts to one URL.  It follows no redirects: they would carry alerts, and secrets, elsewhere.

    ``timeout_s`` bounds a whole delivery: name lookup, connecting, TLS, and the status and headers of the
    answer.  With a limit per read, a receiver that sends a byte now and then would block the thread for
    ever; so each delivery is a task that is cancelled after ``timeout_s``.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        max_age_ms: int = 86_400_000,
        external_url: str = "",
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.max_age_ms = max_age_ms
        self._url = url
        self._external_url = external_url
        self._clock_s = clock_s
        self._timeout_s = timeout_s
        self._runner = asyncio.Runner()
        self._runner.get_loop().set_default_executor(Lookups())
        self._is_closed = False
        self._client = httpx.AsyncClient(
            timeout=None,  # noqa: S113 - each delivery as a whole has one
            follow_redirects=False,
            headers={"User-Agent": "groupwatch", "Accept-Encoding": "identity", **(headers or {})},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # nothing is kept of an answer
            event_hooks={"response": [_set_location_aside]},
        )

    @classmethod
    def of_options(
        cls,
        name: str,
        external_url: str,
        *,
        url: str,
        headers: Mapping[str, str],
        timeout_ms: int,
        max_age_ms: int,
    ) -> "WebhookReceiver":
        """Return the receiver that the configuration describes."""
        return cls(
            name,
            url,
            headers=headers,
            timeout_s=timeout_ms / 1000,
            max_age_ms=max_age_ms,
            external_url=external_url,
        )

    def deliver(self, notification: Notification) -> Delivery:
        """Post once and translate the answer; return after ``timeout_s`` at the latest."""
        body = json.dumps(
            webhook_body(notification, receiver=self.name, external_url=self._external_url),
            ensure_ascii=False,
        ).encode("utf-8", "replace")
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": notification.idempotency_key,
        }
        try:
            return self._runner.run(self._post(body, headers))
        except TimeoutError:
            return Delivery(outcome=Outcome.RETRY, detail=f"no answer within {self._timeout_s:g} s")
        except (httpx.InvalidURL, UnicodeError) as error:
            return Delivery(outcome=Outcome.REJECTED, detail=f"the URL cannot be used: {error}")
        except (httpx.HTTPError, OSError) as error:
            return Delivery(outcome=Outcome.RETRY, detail=f"{type(error).__name__}: {error}".rstrip(": "))

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> Delivery:
        async with (
            asyncio.timeout(self._timeout_s),
            self._client.stream("POST", self._url, content=body, headers=dict(headers)) as response,
        ):
            return await self._verdict(response)

    async def _verdict(self, response: httpx.Response) -> Delivery:
        status = response.status_code
        if response.is_success:
            return Delivery(outcome=Outcome.DELIVERED)
        if status in _AGAIN or not 400 <= status < 500:
            wait_s = retry_after_s(response.headers.get("Retry-After"), now_s=self._clock_s())
            return Delivery(outcome=Outcome.RETRY, detail=_refusal(response), retry_after_s=wait_s)
        words = await self._first_words(response)
        return Delivery(outcome=Outcome.REJECTED, detail=f"{_refusal(response)}{words}")

    async def _first_words(self, response: httpx.Response) -> str:
        """Return the beginning of a refusal's body for the log; the rest is never read, whatever its size."""
        found = b""
        try:
            async with asyncio.timeout(min(1.0, self._timeout_s / 4)):
                async for chunk in response.aiter_raw():
                    found += chunk[:_DETAIL_BYTES_MAX]
                    if len(found) >= _DETAIL_BYTES_MAX:
                        break
        except (httpx.HTTPError, TimeoutError):
            pass  # a refusal is one, whatever becomes of its text
        text = " ".join(found[:_DETAIL_BYTES_MAX].decode("utf-8", "replace").split())
        return f": {text}" if text else ""

    def close(self) -> None:
        """Close the connections within a second; the next start sends what was not delivered.

        A delivery under way keeps its own connection until it ends.  A lookup that hangs is abandoned.
        """
        if self._is_closed or self._runner.get_loop().is_running():
            return
        self._is_closed = True
        self._runner.run(self._close_connections())
        self._runner.close()

    async def _close_connections(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._client.aclose()


async def _set_location_aside(response: httpx.Response) -> None:
    """Hide a redirect's target from httpx, which raises on some targets even if it need not follow them."""
    response.extensions["location"] = response.headers.pop("Location", "")


def _refusal(response: httpx.Response) -> str:
    """Return the status in words, with the target of a redirect, so that the operator can configure it."""
    where = response.extensions["location"] if response.is_redirect else ""
    shown = f" to {where[:_DETAIL_BYTES_MAX]!r}, which is not followed" if where else ""
    return f"HTTP {response.status_code}{shown}"


def retry_after_s(value: str | None, *, now_s: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header (seconds or an HTTP date) asks for; None if none."""
    text = (value or "").strip()
    if not text or len(text) > _WAIT_CHARACTERS_MAX:
        return None
    try:
        if text.isascii() and text.isdigit():
            asked_s = float(text)
        else:
            asked_s = max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return None
    return asked_s if asked_s <= _WAIT_S_MAX else None


def webhook_body(notification: Notification, *, receiver: str, external_url: str = "") -> dict[str, Any]:
    """Return the body that Alertmanager would post for the alerts of ``notification``."""
    alerts = [_alert_body(alert, external_url) for alert in notification.alerts]
    firing = any(alert["status"] == AlertStatus.FIRING for alert in alerts)
    labels = _common([alert["labels"] for alert in alerts])
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
        "externalURL": external_url,
        "alerts": alerts,
    }


def _alert_body(alert: Alert, external_url: str) -> dict[str, Any]:
    return {
        "status": str(alert.status),
        "labels": {
            "alertname": alert.name,
            "cluster": alert.cluster,
            "group": alert.group,
            "severity": str(alert.severity),
        },
        "annotations": {
            "summary": alert.summary,
            "cause": alert.cause,
            "culprit": culprits_text(alert.culprits) or nobody(alert.name),
            "cost": alert.cost,
            "advice": alert.advice,
            "runbook_url": alert.runbook,
        },
        "startsAt": rfc3339(alert.starts_at_ms),
        "endsAt": ZERO_TIME if alert.ends_at_ms is None else rfc3339(alert.ends_at_ms),
        "generatorURL": _page_url(alert, external_url),
        "fingerprint": alert.id,
    }


def _page_url(alert: Alert, external_url: str) -> str:
    if not external_url:
        return ""
    return f"{external_url.rstrip('/')}/?{urlencode({'cluster': alert.cluster, 'q': alert.group})}"


def _group_key(labels: Mapping[str, str]) -> str:
    """Return Alertmanager's spelling: route, colon, the labels as a Prometheus label set."""
    inside = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    return f"{{}}:{{{inside}}}"


def _common(sets: list[dict[str, str]]) -> dict[str, str]:
    first, *others = sets
    return {name: text for name, text in first.items() if all(other.get(name) == text for other in others)}


def rfc3339(at_ms: int) -> str:
    """Return a time as Go's JSON has it, in UTC with milliseconds."""
    text = datetime.fromtimestamp(min(at_ms, TIME_MS_MAX) / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def culprits_text(culprits: tuple[Culprit, ...]) -> str:
    """Return the culprits in one line: the first few, in the rule's order, most guilty first."""
    named = [_culprit_text(culprit) for culprit in culprits[:_CULPRITS_NAMED_MAX]]
    if len(culprits) > _CULPRITS_NAMED_MAX:
        named.append(f"and {len(culprits) - _CULPRITS_NAMED_MAX} more")
    return printable("; ".join(named))


def _culprit_text(culprit: Culprit) -> str:
    who = culprit.instance_id or culprit.member_id or culprit.client_id or "unknown member"
    details = [
        f"client {culprit.client_id}" if culprit.client_id else "",
        f"host {culprit.client_host}" if culprit.client_host else "",
        f"{round(culprit.share * 100)} %" if culprit.share < 1 else "",
        str(culprit.basis),
    ]
    return f"{who} ({', '.join(detail for detail in details if detail)})"
