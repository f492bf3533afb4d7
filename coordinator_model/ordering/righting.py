"""Converts times of brokers with a wrong clock or time zone to the driver's time."""

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen, shifted
from coordinator_model.ordering.zones import AHEAD_MS, DELAY_MS, Puzzle

SKEW_MAX_MS = 5_000
"""A broker's clock that is further off delays no other broker: its times are replaced by the driver's."""
AHEAD_MAX_MS = 60_000
"""A line dated further after its Kafka record has a wrong zone or clock; the record's time counts."""


def righted(seen: Seen, skew_ms: int, near_ms: int) -> Seen:
    """Return an observation of a broker with a wrong clock, at the driver's time.

    Args:
        seen: dated by the broker.
        skew_ms: how far its clock was last known to be ahead.
        near_ms: a clock's time close to the observation; -1: unknown.

    The clock may have been corrected since, so a time that is closer to the driver's without conversion
    stays.
    """
    at_ms = seen.at_ms
    if not wrong_ms(skew_ms) or near_ms < 0 or abs(at_ms - near_ms) <= abs(at_ms - skew_ms - near_ms):
        return seen
    return shifted(seen, -skew_ms)


def righted_line(puzzle: Puzzle, zone_ms: int) -> Seen:
    """Return a line whose broker's zone was found to be ``zone_ms`` ahead; 0: it was not found.

    A zone is proved and a line may be late by any time, so the zone counts wherever it does not put the line
    after its own append.  A line that is on time as it is keeps its time: the zone may have changed by now.
    """
    seen = puzzle.seen
    if zone_ms and not is_on_time(puzzle.ahead_ms) and puzzle.ahead_ms - zone_ms <= AHEAD_MS:
        seen = shifted(seen, -zone_ms)
    return righted(seen, puzzle.skew_ms, puzzle.near_ms)


def is_on_time(ahead_ms: int) -> bool:
    """Return whether a time so far after the append needs no zone to explain it."""
    return -DELAY_MS <= ahead_ms <= AHEAD_MAX_MS


def not_ahead(seen: Seen) -> Seen:
    """Return a line at its record's time, marked, if it is dated long after that for an unknown reason."""
    ahead_ms = seen.at_ms - seen.recorded_at_ms
    if ahead_ms <= AHEAD_MAX_MS or seen.recorded_at_ms < 0:
        return seen
    is_run = type(seen.what) in on.COALESCED  # no run takes a group back
    return msgspec.structs.replace(shifted(seen, -ahead_ms), is_ahead=not is_run)


def wrong_ms(skew_ms: int) -> int:
    """Return a skew (ms) that has to be corrected; 0: it is small, and the watermark waits for it."""
    return skew_ms if abs(skew_ms) > SKEW_MAX_MS else 0
