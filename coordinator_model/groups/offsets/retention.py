"""When the offsets of a group that does not use them will be deleted (KIP-211).

Source: ``OffsetExpirationConditionImpl``, ``ClassicGroup.offsetExpirationCondition`` and
``ConsumerGroup.offsetExpirationCondition``.
"""

from collections.abc import Mapping

from coordinator_model.kafka import RETENTION_CHECK_MS, RETENTION_MS, GroupState
from coordinator_model.state import Group

EXPIRY_MARGIN_MS = 2 * RETENTION_CHECK_MS
"""So much after its retention a group's offsets are gone, and their tombstones read."""


def retention_of(told: Mapping[int, int], coordinator: int) -> int:
    """Return how long offsets are kept: as the group's coordinator says, else as the strictest broker does.

    Where no broker was asked it is Kafka's default.
    """
    known = told.get(coordinator)
    return min(told.values(), default=RETENTION_MS) if known is None else known


def unused_since(group: Group) -> int | None:
    """Return since when the offsets of an Empty group count as unused; None: it has none.

    Those of a classic group that had members count from the moment at which it became Empty, whatever is
    committed since; those of every other group each from its own commit, so this is the newest one's.
    Share groups keep none.
    """
    if group.state is not GroupState.EMPTY or not group.commits or group.group_type == "share":
        return None
    if group.group_type == "classic" and group.protocol_type and group.state_since_ms >= 0:
        return group.state_since_ms
    return group.last_commit_ms
