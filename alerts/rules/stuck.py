"""What the two stuck alerts share: when a stay turns critical."""

from alerts.alert import Severity
from alerts.rules.situation import rebalance_timeout_ms
from coordinator_model.group import Group

CRITICAL_MS = 5 * 60_000
"""A stay this long is critical even in groups that allow themselves more."""

CRITICAL_SHARE = 0.8
"""Of the rebalance timeout, after which the coordinator begins to remove members."""

GENERATIONS_BURNED = 2


def critical_after_ms(group: Group, after_ms: int) -> int:
    """Return how long a stay is a warning before it is critical."""
    timeout_ms = rebalance_timeout_ms(group)
    limit_ms = CRITICAL_MS if timeout_ms < 0 else min(CRITICAL_MS, round(CRITICAL_SHARE * timeout_ms))
    return max(after_ms, limit_ms)


def severity(
    group: Group, *, since_ms: int, now_ms: int, after_ms: int, begins: Severity
) -> tuple[Severity, int | None]:
    """Return how loud a stay since ``since_ms`` is now, and when it turns critical by itself."""
    critical_at_ms = since_ms + critical_after_ms(group, after_ms)
    burned = group.rebalance.burned if group.rebalance else 0
    if burned >= GENERATIONS_BURNED or now_ms >= critical_at_ms:
        return Severity.CRITICAL, None
    return begins, critical_at_ms
