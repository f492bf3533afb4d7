"""What an outbox keeps of the alerts that wait for one receiver, and what a start makes of the topic."""

from collections.abc import Iterator, Mapping, Set
from enum import StrEnum
from typing import NamedTuple

import msgspec

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery.alert_log import Cursor
from alerts.delivery.receivers import Notification
from alerts.delivery.told import Told, mark, unpack_told

RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
"""The loudest first."""


class HeldBack(StrEnum):
    """Why an open alert is not sent to a receiver now; the values are part of the API."""

    NOT_ROUTED = "not_routed"
    """No route brings it to this receiver: its name, severity, cluster or group fits none."""
    SILENCED = "silenced"
    """A silence or maintenance of the configuration holds."""
    EFFECT = "effect_of_cause"
    """A wide cause fires (a broker, the whole cluster), whose effect it may be."""
    CATCHING_UP = "job_catching_up"
    """The job is reading what is old: the end of the alert may be the next thing to come."""
    NOT_ANNOUNCED = "not_announced"
    """Kafka has not yet confirmed the cursor that says that it may have been sent."""
    RECEIVER_FAILING = "receiver_failing"
    """The receiver did not take the last notification; it is tried again after a pause."""


class Place(NamedTuple):
    """Where a record stands: which log (one for each Kafka cluster we write to), partition, offset."""

    log: str
    partition: int
    offset: int


class Entry(msgspec.Struct, kw_only=True, eq=False):
    """One alert that waits to be delivered."""

    alert: Alert
    place: Place | None
    """None: not from a log (the supervisor's own alerts, repeats)."""
    queued_at_ms: int
    sequence: int
    late: bool = False
    due_ms: int = 0
    attempts: int = 0
    first_attempt_ms: int = -1
    announced: bool = True
    """A committed cursor says that the receiver may know this; nothing is sent before."""
    held_back: HeldBack | None = None
    """Silenced, or the effect of what fires: looked at again when it is due."""
    logged: HeldBack | None = None
    """Which reason the log has named last."""
    waits_since_ms: int = -1
    """Since when the receiver should have been told something of this alert."""
    ticket: int = -1
    """Its place in the line (``line.py``); -1: it stands in none."""


class Work(NamedTuple):
    """One attempt to make now."""

    entry: Entry
    notification: Notification


class Recovered(msgspec.Struct, kw_only=True):
    """The newest revision of one alert while the topic is read at start."""

    alert: Alert
    place: Place
    timestamp_ms: int
    told_by_log: Told | None = None
    """The newest firing revision before the cursor that was for this receiver."""


class Known(msgspec.Struct, kw_only=True):
    """What is known of one receiver's cursor in one log when reading begins."""

    cursors: Mapping[int, Cursor]
    latest: dict[str, Recovered] = msgspec.field(default_factory=dict)


def told_at_start(item: Recovered, cursor: Cursor | None) -> tuple[Told | None, frozenset[Severity]]:
    """Return what the receiver holds by its cursor's memory or else by the topic, and what it may hold."""
    if cursor is None:
        return None, frozenset()
    memory = unpack_told(cursor.metadata)
    if memory is None:
        return item.told_by_log, frozenset()
    name = mark(item.alert.id)
    told = memory.told.get(name, None if memory.is_complete else item.told_by_log)
    return told, memory.maybe.get(name, frozenset())


def label_sets(alert: Alert, held: Set[Severity], should: Severity | None) -> Iterator[Alert]:
    """Yield the ends of the label sets that are ``held`` and should not be, then the one that should."""
    ended_ms = alert.ends_at_ms if alert.ends_at_ms is not None else alert.detected_at_ms
    for severity in sorted(held - {should}, key=lambda severity: -RANK[severity]):
        yield msgspec.structs.replace(
            alert, severity=severity, status=AlertStatus.RESOLVED, ends_at_ms=ended_ms
        )
    if should is not None:
        yield alert
