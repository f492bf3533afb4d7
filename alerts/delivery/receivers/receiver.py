"""What a receiver is: one attempt to deliver, and how it went."""

from enum import StrEnum
from typing import Protocol

import msgspec

from alerts.alert import Alert


class Outcome(StrEnum):
    """How one attempt ended."""

    DELIVERED = "delivered"
    """The receiver has it."""
    RETRY = "retry"
    """Not now: the receiver is away or overloaded."""
    REJECTED = "rejected"
    """Never: trying the same again makes no sense."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt, in words for the log, and when the receiver wants to be asked again."""

    outcome: Outcome
    detail: str = ""
    retry_after_s: float | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What one receiver is told about one revision of one alert.

    ``alerts`` has one entry, or more when the severity changed: resolved under the old one first, so
    that whoever keeps the last word for a fingerprint ends with the right one.
    """

    id: str
    revision: int
    alerts: tuple[Alert, ...]

    @property
    def idempotency_key(self) -> str:
        """The same for every repeat of the same words."""
        return f"{self.id}/{self.revision}"


class Receiver(Protocol):
    """One place that alerts go to.  Called from one thread of its own, so it may block (for a while)."""

    name: str
    max_age_ms: int
    """How long one notification is worth trying."""

    def deliver(self, notification: Notification) -> Delivery:
        """Make one attempt.  Raises nothing that the outside world can cause."""
        ...

    def close(self) -> None:
        """Let go of connections; ``deliver`` is not called after it."""
        ...
