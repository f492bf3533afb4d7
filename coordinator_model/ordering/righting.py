"""What brokers with a wrong clock or zone say, at the driver's time."""

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen, shifted
from coordinator_model.ordering.zones import AHEAD_MS, DELAY_MS, Puzzle

SKEW_MAX_MS = 5_000
"""A broker's clock that is further off delays nobody else: what it says is dated by the driver's clock."""
AHEAD_MAX_MS = 60_000
"""A line dated further after its Kafka record has a wrong zone or clock; the record's time counts."""


def righted(seen: Seen, skew_ms: int, near_ms: int) -> Seen:
    """Return what a broker with a wrong clock said, at the driver's time.

    Args:
        seen: dated by the broker.
        skew_ms: how far its clock was last known to be ahead.
        near_ms: a clock's time not far from when it was said; -1: unknown.

    The clock may have been set right since, so what is nearer to the driver's time as it is stays so.
    """
    at_ms = seen.at_ms
    if not wrong_ms(skew_ms) or near_ms < 0 or abs(at_ms - near_ms) <= abs(at_ms - skew_ms - near_ms):
        return seen
    return shifted(seen, -skew_ms)


def righted_line(puzzle: Puzzle, zone_ms: int) -> Seen:
    """Return a line whose broker's zone was found to be so far ahead, or was not found (0).

    A zone is proved and a line may be late by any time, so the zone counts wherever the line is not written
    after its own append by it; but for what is on time as it is, for the zone may be another by now.
    """
    seen = puzzle.seen
    if zone_ms and not is_on_time(puzzle.ahead_ms) and puzzle.ahead_ms - zone_ms <= AHEAD_MS:
        seen = shifted(seen, -zone_ms)
    return righted(seen, puzzle.skew_ms, puzzle.near_ms)


def is_on_time(ahead_ms: int) -> bool:
    """Say whether what is dated so far after its append needs no zone to explain it."""
    return -DELAY_MS <= ahead_ms <= AHEAD_MAX_MS


def not_ahead(seen: Seen) -> Seen:
    """Return a line at its record's time, and marked, if it is dated long after that and nobody knows why."""
    ahead_ms = seen.at_ms - seen.recorded_at_ms
    if ahead_ms <= AHEAD_MAX_MS or seen.recorded_at_ms < 0:
        return seen
    is_run = type(seen.what) in on.COALESCED  # none of them moves a group back
    return msgspec.structs.replace(shifted(seen, -ahead_ms), is_ahead=not is_run)


def wrong_ms(skew_ms: int) -> int:
    """Return a skew that has to be corrected; 0: it is small, and others wait for it."""
    return skew_ms if abs(skew_ms) > SKEW_MAX_MS else 0
