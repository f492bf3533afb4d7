"""Delivers alerts to receivers: outboxes, threads, routes, silences."""

from alerts.delivery.alert_log import GROUP_PREFIX, AlertLog, AlertRecord, Cursor
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.log_reader import OpenLog
from alerts.delivery.notifier import DeliveryState, Notifier, wall_clock_ms
from alerts.delivery.outbox import EXPIRED
from alerts.delivery.owners import Owned, Owners
from alerts.delivery.routing import Route
from alerts.delivery.silences import (
    DAYS,
    FOREVER_MS,
    NO_QUIET,
    SILENCE_REASONS,
    SILENCE_STATES,
    SILENCES_MAX,
    KeptSilence,
    LiveQuiet,
    Maintenance,
    Match,
    PatternError,
    Quiet,
    Silence,
    SilenceBook,
    Silenced,
    check_pattern,
    silences_in,
    wrong_in,
)
from alerts.delivery.waiting import RANK

__all__ = [
    "DAYS",
    "EXPIRED",
    "FOREVER_MS",
    "GROUP_PREFIX",
    "NO_QUIET",
    "RANK",
    "SILENCES_MAX",
    "SILENCE_REASONS",
    "SILENCE_STATES",
    "AlertLog",
    "AlertRecord",
    "Cursor",
    "DeliveryState",
    "KeptSilence",
    "LastDelivery",
    "LiveQuiet",
    "Maintenance",
    "Match",
    "Notifier",
    "OpenLog",
    "Owned",
    "Owners",
    "PatternError",
    "Quiet",
    "Route",
    "Silence",
    "SilenceBook",
    "Silenced",
    "check_pattern",
    "silences_in",
    "wall_clock_ms",
    "wrong_in",
]
