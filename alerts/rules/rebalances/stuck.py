"""Shared by the alerts about stuck rebalances: when one turns critical, and whether the coordinator moved."""

from alerts.alert import Severity, clock
from alerts.rules.engine import Situation, rebalance_timeout_ms
from coordinator_model.groups.core import UPSET_MS
from coordinator_model.state import Group

CRITICAL_MS = 5 * 60_000
"""A stay of this length is critical even in groups with larger timeouts."""

CRITICAL_SHARE = 0.8
"""This part of the rebalance timeout; after all of it the coordinator starts to remove members."""

GENERATIONS_BURNED = 2


def critical_after_ms(group: Group, after_ms: int) -> int:
    """Return for how long a stay is a warning before it turns critical."""
    timeout_ms = rebalance_timeout_ms(group)
    limit_ms = CRITICAL_MS if timeout_ms < 0 else min(CRITICAL_MS, round(CRITICAL_SHARE * timeout_ms))
    return max(after_ms, limit_ms)


def severity(
    group: Group, *, since_ms: int, now_ms: int, after_ms: int, begins: Severity
) -> tuple[Severity, int | None]:
    """Return the severity of a stay since ``since_ms``, and when it turns critical by itself."""
    critical_at_ms = since_ms + critical_after_ms(group, after_ms)
    burned = group.rebalance.burned if group.rebalance else 0
    if burned >= GENERATIONS_BURNED or now_ms >= critical_at_ms:
        return Severity.CRITICAL, None
    return begins, critical_at_ms


def moves(situation: Situation, since_ms: int) -> tuple[str, ...]:
    """Return a line that the group's coordinator moved, if it did after a minute before ``since_ms``."""
    moved = situation.evidence.moved
    if moved is None or not since_ms - UPSET_MS <= moved.at_ms <= situation.now_ms:
        return ()
    whence = f" from broker {moved.came_from}" if moved.came_from >= 0 else ""
    where = f" to broker {moved.went_to}" if moved.went_to >= 0 else ""
    again = moved.came_from == moved.went_to
    how = f"was loaded again on broker {moved.went_to}" if again else f"moved{whence}{where}"
    if moved.stood:
        how = f"on broker {moved.went_to} waited for a replica"
    return (
        f"The group's coordinator {how} at {clock(moved.at_ms)}; that may be the cause of rebalances "
        "since then.",
    )


LATE_MS = 60_000


def graced_ms(situation: Situation, name: str, since_ms: int, fires_at_ms: int) -> int:
    """Return when an alert fires whose condition holds since ``since_ms``; later if that was learned late.

    A deadline is met to the second.  If a deadline is long past when the condition is first seen, the lines
    came late: a shipper is behind, or a broker's clock is.  The lines that end the state are then as late, so
    they get the time that they would have had.
    """
    graces, now_ms = situation.memory.graces, situation.now_ms
    known = graces.get(name)
    if known is not None and known[0] == since_ms:
        return max(fires_at_ms, known[1])
    graces.pop(name, None)
    is_live = 0 <= situation.evidence.live_since_ms < now_ms
    if situation.opened(name) is not None or not is_live or now_ms - fires_at_ms <= LATE_MS:
        return fires_at_ms
    graces[name] = since_ms, now_ms + fires_at_ms - since_ms
    return graces[name][1]
