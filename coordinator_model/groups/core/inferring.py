"""Moves that nobody told: made where the INFO log does not speak, and marked inferred."""

from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.transitions import Target, reach
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Cause

_UNKNOWN = Cause(kind=CauseKind.UNKNOWN)


def prove(
    turn: Turn,
    to: GroupState,
    generation: int,
    at_ms: int,
    why: Cause,
    *,
    by: Inference,
    start: Cause = _UNKNOWN,
    started_at_ms: int = -1,
) -> bool:
    """Conclude that the group is, or has been, in this state; does nothing while the INFO log is live.

    What is older than the newest record of the group proves nothing beyond that.
    """
    if not turn.may_infer or turn.at_ms < turn.group.stored_at_ms:
        return False
    target = Target(
        to=to,
        generation=generation,
        at_ms=at_ms,
        cause=why,
        by=by,
        start=start,
        started_at_ms=started_at_ms,
    )
    return reach(turn, target)


def members_gone(turn: Turn, at_ms: int, why: Cause, *, by: Inference) -> None:
    """Conclude what a departure does to the group: a rebalance, and its end if nobody is left."""
    group = turn.group
    if not turn.may_infer:
        return
    if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        prove(turn, GroupState.PREPARING_REBALANCE, group.generation, at_ms, why, by=by)
    if group.state is GroupState.PREPARING_REBALANCE and not group.members and not _waits(turn, why):
        kind = CauseKind.ALL_MEMBERS_LEFT if why.kind is CauseKind.MEMBER_LEFT else why.kind
        emptied = Cause(
            kind=kind, member_id=why.member_id, client_id=why.client_id, client_host=why.client_host
        )
        prove(turn, GroupState.EMPTY, group.generation + 1, at_ms, emptied, by=by)


def _waits(turn: Turn, why: Cause) -> bool:
    """Say whether an emptied join phase may go on, for all that is known.

    Who else has joined is not seen before the join phase ends, but its end with nobody is in the topic.
    Without the topic: Kafka's first join phase of an Empty group lasts its initial delay whoever
    leaves, unless a timer takes the last member; later ones last the longest rebalance timeout of
    their members, which is nothing where nobody is left, and ids only handed out hold nobody up.
    """
    last = turn.group.rebalance
    if turn.context.offsets_enabled:
        return True
    return last is not None and last.initial and why.kind is not CauseKind.SESSION_TIMEOUT
