"""Alerts and their parts."""

from enum import StrEnum

import msgspec

from coordinator_model.state import Basis


class Severity(StrEnum):
    """How urgent an alert is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertStatus(StrEnum):
    """An alert is firing or resolved."""

    FIRING = "firing"
    RESOLVED = "resolved"


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """A member that caused the trouble; ``share`` of the blame is 0..1."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    share: float = 1.0
    basis: Basis = Basis.OBSERVED


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of one alert, as written to ``groupwatch-alerts`` under its id.

    ``id`` is fixed at first firing; ``(id, revision)`` has exactly one content.
    """

    id: str
    revision: int
    name: str
    cluster: str
    group: str
    """"" for alerts about a whole cluster."""
    status: AlertStatus
    severity: Severity
    starts_at_ms: int
    ends_at_ms: int | None
    detected_at_ms: int
    summary: str
    cause: str
    culprits: tuple[Culprit, ...] = ()
    evidence: tuple[str, ...] = ()
    runbook: str = ""
    cost: str = ""
    advice: str = ""
