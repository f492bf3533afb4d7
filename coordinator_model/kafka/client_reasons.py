"""The reasons that clients give when they join or leave (KIP-800), as far as the mirror recognises them.

Sources: the Java client 4.3.1: ``AbstractCoordinator`` (``handlePollTimeoutExpiry``,
``HeartbeatResponseHandler``) and ``ConsumerCoordinator.rejoinNeededOrPending``.  A text may go
on after these beginnings; the client cuts it after 255 characters.
"""

from coordinator_model.kafka.cause_kinds import CauseKind

NOT_PROVIDED = "not provided"
"""The broker's own text where a client gave no reason.

Sources: ``JoinGroupRequest.joinReason``, ``GroupMetadataManager.classicGroupLeaveToClassicGroup`` (3.x:
``GroupCoordinator``).
"""
POLL_TIMEOUT_REASON = "consumer poll timeout has expired"
"""``max.poll.interval.ms`` ran out, and the client left."""

_WHY_JOINED = (
    ("cached metadata has changed", CauseKind.PARTITIONS_CHANGED),
    ("subscription has changed", CauseKind.SUBSCRIPTION_CHANGED),
)
_FOLLOWS = "group is already rebalancing"
"""A heartbeat's answer asked the client to join the rebalance that was under way.

Not "offset commit failed since group is already rebalancing": coordinators refuse commits in the sync phase
only (``ClassicGroup.validateOffsetCommit``), so such a join may begin the next rebalance.
"""


def how_it_left(reason: str | None) -> CauseKind:
    """Return how a member left."""
    is_poll_timeout = (reason or "").startswith(POLL_TIMEOUT_REASON)
    return CauseKind.POLL_TIMEOUT if is_poll_timeout else CauseKind.MEMBER_LEFT


def why_it_joined(reason: str | None) -> CauseKind | None:
    """Return the client's reason for joining again as a cause; None if the reason shows none."""
    return next((kind for start, kind in _WHY_JOINED if (reason or "").startswith(start)), None)


def follows_others(reason: str | None) -> bool:
    """Return whether the client was asked to join again, and so did not begin the rebalance."""
    return (reason or "").startswith(_FOLLOWS)
