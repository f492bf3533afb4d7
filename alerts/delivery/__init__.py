"""Delivers alerts to receivers: outboxes, threads, routes, silences."""

from alerts.delivery.alert_log import GROUP_PREFIX, AlertLog, AlertRecord, Cursor
from alerts.delivery.cursor_notes import LastDelivery
from alerts.delivery.log_reader import OpenLog
from alerts.delivery.notifier import DeliveryState, Notifier, wall_clock_ms
from alerts.delivery.outbox import EXPIRED
from alerts.delivery.owners import Owned, Owners
from alerts.delivery.routing import Route
from alerts.delivery.silences import DAYS, FOREVER_MS, NO_QUIET, Maintenance, Match, Quiet, Silence
from alerts.delivery.waiting import RANK

__all__ = [
    "DAYS",
    "EXPIRED",
    "FOREVER_MS",
    "GROUP_PREFIX",
    "NO_QUIET",
    "RANK",
    "AlertLog",
    "AlertRecord",
    "Cursor",
    "DeliveryState",
    "LastDelivery",
    "Maintenance",
    "Match",
    "Notifier",
    "OpenLog",
    "Owned",
    "Owners",
    "Quiet",
    "Route",
    "Silence",
    "wall_clock_ms",
]
