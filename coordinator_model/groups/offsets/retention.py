"""Computes when the unused offsets of a group will be deleted (KIP-211).

Source: ``OffsetExpirationConditionImpl``, ``ClassicGroup.offsetExpirationCondition`` and
``ConsumerGroup.offsetExpirationCondition``.
"""

from collections.abc import Mapping

from coordinator_model.kafka import RETENTION_CHECK_MS, RETENTION_MS, GroupState
from coordinator_model.state import Group

EXPIRY_MARGIN_MS = 2 * RETENTION_CHECK_MS
"""So long after its retention a group's offsets are deleted, and their tombstones read."""


def retention_of(told: Mapping[int, int], coordinator: int) -> int:
    """Return how long (ms) offsets are kept: by the group's coordinator, else by the strictest broker.

    If no broker was asked it is Kafka's default.
    """
    known = told.get(coordinator)
    return min(told.values(), default=RETENTION_MS) if known is None else known


def unused_since(group: Group) -> int | None:
    """Return since when (epoch ms) the offsets of an Empty group count as unused; None: it has none.

    Offsets of a classic group that had members count from the moment at which it became Empty, whatever is
    committed since.  Offsets of every other group count each from its own commit; the newest one decides
    here. Share groups have none.
    """
    if group.state is not GroupState.EMPTY or not group.commits or group.group_type == "share":
        return None
    if group.group_type == "classic" and group.protocol_type and group.state_since_ms >= 0:
        return group.state_since_ms
    return group.last_commit_ms
