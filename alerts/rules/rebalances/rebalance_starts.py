"""Which transitions begin a rebalance: PreparingRebalance in classic groups, a grown epoch in the newer ones.

In consumer, share and streams groups no state means "begins"; the cause tells what raised the epoch.  What
only carries a rebalance on (a target computed, a member there) has a cause of its own.
"""

from coordinator_model.kafka import RAISE_EPOCH, CauseKind, GroupState
from coordinator_model.state import Group, Step, Transition


def begins(transition: Transition) -> bool:
    """Say whether a rebalance began."""
    if transition.group_type == "classic":
        return transition.to_state is GroupState.PREPARING_REBALANCE
    return transition.cause.kind in RAISE_EPOCH and transition.to_state is not GroupState.DEAD


def kind_of(transition: Transition) -> CauseKind:
    """Return why it began; the last member that leaves is a member that leaves."""
    kind = transition.cause.kind
    return CauseKind.MEMBER_LEFT if kind is CauseKind.ALL_MEMBERS_LEFT else kind


def deduced(step: Step) -> tuple[str, CauseKind]:
    """Return who and what a rebalance without a told cause goes back to, by who went or came with it."""
    if step.departures:
        how = step.departures[0].how
        return step.departures[0].member_id, CauseKind.MEMBER_LEFT if how is CauseKind.UNKNOWN else how
    if step.arrivals:
        return step.arrivals[0], CauseKind.MEMBER_JOINED
    return "", CauseKind.UNKNOWN


def is_away(group: Group, transition: Transition) -> bool:
    """Say whether a static member went for a while: it is still a member, and will be replaced."""
    is_modern = transition.group_type != "classic"
    return (
        is_modern
        and transition.cause.kind is CauseKind.MEMBER_LEFT
        and transition.cause.member_id in group.members
    )


def place(group: Group, transition: Transition, told: str) -> str:
    """Return the static member's place that was given up or taken: the one explains nothing of the other.

    ``told`` is the instance id in the coordinator's words, if there is one.
    """
    member = group.members.get(transition.cause.member_id)
    instance_id = told or (member.instance_id if member else None) or ""
    return f"away {instance_id}" if is_away(group, transition) else instance_id


def is_resolved(transition: Transition) -> bool:
    """Say whether only the topics of a newcomer's expression were found, a moment after it had joined."""
    detail = transition.cause.detail
    return transition.group_type != "classic" and detail.startswith("topics of ") and detail.endswith("found")
