"""The records an outbox keeps: waiting alerts, and the state that a start reads from the topic."""

from collections.abc import Iterator, Mapping, Set
from enum import StrEnum
from typing import NamedTuple

import msgspec

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery.alert_log import Cursor
from alerts.delivery.cursor_notes import LastDelivery, mark, unpack_notes
from alerts.delivery.receivers import Notification

RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
"""Severities, most urgent first."""


class HeldBack(StrEnum):
    """Why an open alert is not sent to a receiver now; the values are part of the API."""

    NOT_ROUTED = "not_routed"
    """No route leads to this receiver: the alert's name, severity, cluster or group matches none."""
    SILENCED = "silenced"
    """A silence or maintenance is in force."""
    EFFECT = "effect_of_cause"
    """A cause that concerns a broker or the whole cluster fires; this alert may be its effect."""
    CATCHING_UP = "job_catching_up"
    """The job is still reading old records: it may resolve the alert a moment later."""
    GROUPING = "grouping"
    """The route groups alerts: it waits for others, or until a while after the last message."""
    NOT_ANNOUNCED = "not_announced"
    """Kafka has not yet confirmed the cursor that announces the alert."""
    RECEIVER_FAILING = "receiver_failing"
    """The receiver failed to take the last notification; a retry follows after a pause."""


class Place(NamedTuple):
    """Where a record stands: log (one per Kafka cluster that we write to), partition, offset."""

    log: str
    partition: int
    offset: int


class Entry(msgspec.Struct, kw_only=True, eq=False):
    """One alert that waits to be delivered."""

    alert: Alert
    place: Place | None
    """None: the alert is in no log (the supervisor's own alerts, repeats)."""
    queued_at_ms: int
    sequence: int
    late: bool = False
    due_ms: int = 0
    attempts: int = 0
    first_attempt_ms: int = -1
    announced: bool = True
    """A committed cursor has announced the alert; nothing is sent before that."""
    held_back: HeldBack | None = None
    """The entry is silenced or inhibited, and is looked at again when it is due."""
    logged: HeldBack | None = None
    """The reason that the log named last."""
    waits_since_ms: int = -1
    """Since when the receiver should have been told."""
    ticket: int = -1
    """Its ticket in the line (``queue_order.py``); -1: it is in none."""


class Work(NamedTuple):
    """One attempt to make now."""

    entries: tuple[Entry, ...]
    """What is done with it: one alert, or those of a bundle that wait."""
    notification: Notification


class Recovered(msgspec.Struct, kw_only=True):
    """The newest revision of one alert, as read from the topic at start."""

    alert: Alert
    place: Place
    timestamp_ms: int
    delivered_by_log: LastDelivery | None = None
    """The newest firing revision before the cursor that went to this receiver."""


class Known(msgspec.Struct, kw_only=True):
    """One receiver's cursor in one log, as found when reading begins."""

    cursors: Mapping[int, Cursor]
    latest: dict[str, Recovered] = msgspec.field(default_factory=dict)


def deliveries_at_start(
    item: Recovered, cursor: Cursor | None
) -> tuple[LastDelivery | None, frozenset[Severity]]:
    """Return what the receiver was told (by the cursor, else the topic), and what it may have been told."""
    if cursor is None:
        return None, frozenset()
    memory = unpack_notes(cursor.metadata)
    if memory is None:
        return item.delivered_by_log, frozenset()
    name = mark(item.alert.id)
    told = memory.told.get(name, None if memory.is_complete else item.delivered_by_log)
    return told, memory.maybe.get(name, frozenset())


def label_sets(alert: Alert, held: Set[Severity], should: Severity | None) -> Iterator[Alert]:
    """Yield the resolved alerts of severities ``held`` that no longer apply, then the one that applies."""
    ended_ms = alert.ends_at_ms if alert.ends_at_ms is not None else alert.detected_at_ms
    for severity in sorted(held - {should}, key=lambda severity: -RANK[severity]):
        yield msgspec.structs.replace(
            alert, severity=severity, status=AlertStatus.RESOLVED, ends_at_ms=ended_ms
        )
    if should is not None:
        yield alert
