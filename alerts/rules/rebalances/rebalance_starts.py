"""Says which transitions start a rebalance: PreparingRebalance (classic), a raised epoch (modern).

No state of consumer, share and streams groups means "start"; the cause says what raised the epoch.  A
transition that only continues a rebalance (a target computed, a member there) has a cause of its own.
"""

from coordinator_model.kafka import RAISE_EPOCH, CauseKind, GroupState
from coordinator_model.state import Group, Step, Transition


def begins(transition: Transition) -> bool:
    """Say whether a transition starts a rebalance."""
    if transition.group_type == "classic":
        return transition.to_state is GroupState.PREPARING_REBALANCE
    return transition.cause.kind in RAISE_EPOCH and transition.to_state is not GroupState.DEAD


def kind_of(transition: Transition) -> CauseKind:
    """Return why the rebalance started; the last member's departure counts as a departure."""
    kind = transition.cause.kind
    return CauseKind.MEMBER_LEFT if kind is CauseKind.ALL_MEMBERS_LEFT else kind


def deduced(step: Step) -> tuple[str, CauseKind]:
    """Return member and kind of a rebalance without a given cause, inferred from who left or joined."""
    if step.departures:
        how = step.departures[0].how
        return step.departures[0].member_id, CauseKind.MEMBER_LEFT if how is CauseKind.UNKNOWN else how
    if step.arrivals:
        return step.arrivals[0], CauseKind.MEMBER_JOINED
    return "", CauseKind.UNKNOWN


def is_away(group: Group, transition: Transition) -> bool:
    """Say whether a static member left for a while: it is still a member, and will be replaced."""
    is_modern = transition.group_type != "classic"
    return (
        is_modern
        and transition.cause.kind is CauseKind.MEMBER_LEFT
        and transition.cause.member_id in group.members
    )


def place(group: Group, transition: Transition, told: str) -> str:
    """Return the place of a static member that was given up or taken: one does not explain the other.

    ``told`` is the instance id in the coordinator's reason, if there is one.
    """
    member = group.members.get(transition.cause.member_id)
    instance_id = told or (member.instance_id if member else None) or ""
    return f"away {instance_id}" if is_away(group, transition) else instance_id


def is_resolved(transition: Transition) -> bool:
    """Say whether a regular expression's topics were merely resolved, a moment after the member joined."""
    detail = transition.cause.detail
    return transition.group_type != "classic" and detail.startswith("topics of ") and detail.endswith("found")
