"""The interface of a receiver: one attempt to deliver, and its outcome."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from alerts.alert import Alert


class Outcome(StrEnum):
    """How one attempt ended."""

    DELIVERED = "delivered"
    """The receiver took it."""
    RETRY = "retry"
    """The receiver is away or overloaded; retry."""
    REJECTED = "rejected"
    """The receiver refused it for good; a retry would fail as well."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt: a text for the log, and when the receiver wants the next one."""

    outcome: Outcome
    detail: str = ""
    retry_after_s: float | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What one receiver is sent about one revision of one alert, or about a bundle of alerts.

    About one alert ``alerts`` usually has one entry.  If the severity changed it has more: first the old
    severity as resolved, so that a system which keeps the last state of each fingerprint ends with the right
    one.
    """

    id: str
    revision: int
    alerts: tuple[Alert, ...]
    group_labels: Mapping[str, str] | None = None
    """What the alerts of a bundle have in common; None: it is about one alert."""

    @property
    def idempotency_key(self) -> str:
        """Equal for every repeat of the same content."""
        if self.group_labels is None:
            return f"{self.id}/{self.revision}"
        pairs = sorted({f"{alert.id}/{alert.revision}" for alert in self.alerts})
        return hashlib.sha256("\n".join(pairs).encode("utf-8", "replace")).hexdigest()


class Receiver(Protocol):
    """One destination of alerts.  It is called from a thread of its own, so it may block for a while."""

    name: str
    max_age_ms: int
    """How long one notification is retried."""
    renew_ms: int | None
    """What fires is sent again this often, whatever the routes say; None: as they say."""
    batch_max: int
    """Most alerts that one attempt may carry although no route bundles them; 1: each goes for itself."""
    takes_silenced: bool
    """It silences by itself: silenced alerts are delivered as well."""

    def deliver(self, notification: Notification) -> Delivery:
        """Make one attempt; problems of the outside world are outcomes, not exceptions."""
        ...

    def close(self) -> None:
        """Close the connections; ``deliver`` is not called afterwards."""
        ...
