"""Alerts: their parts, their wording, and the checks on alert records that anybody may have written."""

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.alert.checksums import checksum
from alerts.alert.last_word import Said, Word, is_jump, is_later
from alerts.alert.records import (
    DIRECT,
    OPEN_MAX,
    REASONS,
    REVISION_JUMP,
    TOO_MANY,
    Refused,
    is_credible,
    read_alert,
)
from alerts.alert.transition_records import refusal
from alerts.alert.wording import (
    clock,
    clock_time,
    printable,
    round_up,
    some,
    span,
    times,
    who,
    who_is,
    why,
)

__all__ = [
    "DIRECT",
    "OPEN_MAX",
    "REASONS",
    "REVISION_JUMP",
    "TOO_MANY",
    "Alert",
    "AlertStatus",
    "Culprit",
    "Refused",
    "Said",
    "Severity",
    "Word",
    "checksum",
    "clock",
    "clock_time",
    "is_credible",
    "is_jump",
    "is_later",
    "printable",
    "read_alert",
    "refusal",
    "round_up",
    "some",
    "span",
    "times",
    "who",
    "who_is",
    "why",
]
