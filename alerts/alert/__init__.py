"""Alerts: their parts, their wording, and the check of records in the alerts topic, which is not trusted."""

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.alert.cause_words import what_began, why
from alerts.alert.checksums import checksum
from alerts.alert.newest_record import RecentRecords, RecordPosition, is_jump, is_later
from alerts.alert.records import (
    AHEAD_MAX_MS,
    DIRECT,
    OPEN_MAX,
    OUT_OF_RANGE,
    REASONS,
    REVISION_JUMP,
    TOO_MANY,
    WRONG_KEY,
    Refused,
    is_credible,
    read_alert,
)
from alerts.alert.wording import (
    clock,
    clock_time,
    printable,
    rfc3339,
    round_up,
    some,
    span,
    times,
    who,
    who_is,
)

__all__ = [
    "AHEAD_MAX_MS",
    "DIRECT",
    "OPEN_MAX",
    "OUT_OF_RANGE",
    "REASONS",
    "REVISION_JUMP",
    "TOO_MANY",
    "WRONG_KEY",
    "Alert",
    "AlertStatus",
    "Culprit",
    "RecentRecords",
    "RecordPosition",
    "Refused",
    "Severity",
    "checksum",
    "clock",
    "clock_time",
    "is_credible",
    "is_jump",
    "is_later",
    "printable",
    "read_alert",
    "rfc3339",
    "round_up",
    "some",
    "span",
    "times",
    "what_began",
    "who",
    "who_is",
    "why",
]
