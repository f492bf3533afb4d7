"""What clients say of themselves when they join or leave (KIP-800), as far as the mirror recognises it.

Sources: the Java client's ``AbstractCoordinator`` (``handlePollTimeoutExpiry``, its heartbeat handler) and
``ConsumerCoordinator.rejoinNeededOrPending``.  Texts go on after these beginnings.
"""

from coordinator_model.kafka.cause_kinds import CauseKind

NOT_PROVIDED = "not provided"
"""The broker's own words where a client gave no reason (``JoinGroupRequest``, ``LeaveGroupRequest``)."""
POLL_TIMEOUT_REASON = "consumer poll timeout has expired"
"""``max.poll.interval.ms`` ran out, and the client left."""

_WHY_JOINED = (
    ("cached metadata has changed", CauseKind.PARTITIONS_CHANGED),
    ("subscription has changed", CauseKind.SUBSCRIPTION_CHANGED),
)
_FOLLOWS = "group is already rebalancing"


def how_it_left(reason: str | None) -> CauseKind:
    """Return how a member left."""
    is_poll_timeout = (reason or "").startswith(POLL_TIMEOUT_REASON)
    return CauseKind.POLL_TIMEOUT if is_poll_timeout else CauseKind.MEMBER_LEFT


def why_it_joined(reason: str | None) -> CauseKind | None:
    """Return why a client says that it joined again, None if it says nothing that tells."""
    return next((kind for start, kind in _WHY_JOINED if (reason or "").startswith(start)), None)


def follows_others(reason: str | None) -> bool:
    """Say whether the client was told to join again, and so did not begin the rebalance."""
    return (reason or "").startswith(_FOLLOWS)
