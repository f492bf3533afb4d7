"""Groups of the classic protocol: what log lines, records and answers do to them."""

from coordinator_model.groups.classic.failover import NOT_IN_CHARGE, taken_over
from coordinator_model.groups.classic.from_log import LOG_HANDLERS
from coordinator_model.groups.classic.from_records import RECORD_HANDLERS
from coordinator_model.groups.classic.from_requests import REQUEST_HANDLERS, beat_quietly
from coordinator_model.groups.classic.joins import JOIN_HANDLERS
from coordinator_model.groups.classic.waiting_records import adopt_loaded, give_up, hold, must_wait, release

__all__ = [
    "JOIN_HANDLERS",
    "LOG_HANDLERS",
    "NOT_IN_CHARGE",
    "RECORD_HANDLERS",
    "REQUEST_HANDLERS",
    "adopt_loaded",
    "beat_quietly",
    "give_up",
    "hold",
    "must_wait",
    "release",
    "taken_over",
]
