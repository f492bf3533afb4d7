"""Moves that nobody told: made where the INFO log does not speak, and marked inferred."""

from coordinator_model.group import Basis, Cause, CauseKind
from coordinator_model.members import forget_pending
from coordinator_model.states import GroupState
from coordinator_model.transitions import Target, Turn, reach

_UNKNOWN = Cause(kind=CauseKind.UNKNOWN)


def prove(
    turn: Turn,
    to: GroupState,
    generation: int,
    at_ms: int,
    why: Cause,
    *,
    start: Cause = _UNKNOWN,
    started_at_ms: int = -1,
) -> bool:
    """Conclude that the group is, or has been, in this state; does nothing while the INFO log is live."""
    if not turn.may_infer:
        return False
    target = Target(
        to=to,
        generation=generation,
        at_ms=at_ms,
        cause=why,
        basis=Basis.INFERRED,
        start=start,
        started_at_ms=started_at_ms,
    )
    return reach(turn, target)


def members_gone(turn: Turn, at_ms: int, why: Cause) -> None:
    """Conclude what a departure does to the group: a rebalance, and its end if nobody is left."""
    group = turn.group
    if not turn.may_infer:
        return
    if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        prove(turn, GroupState.PREPARING_REBALANCE, group.generation, at_ms, why)
    forget_pending(group, at_ms)
    if group.state is GroupState.PREPARING_REBALANCE and not group.members and not group.pending:
        kind = CauseKind.ALL_MEMBERS_LEFT if why.kind is CauseKind.MEMBER_LEFT else why.kind
        emptied = Cause(
            kind=kind, member_id=why.member_id, client_id=why.client_id, client_host=why.client_host
        )
        prove(turn, GroupState.EMPTY, group.generation + 1, at_ms, emptied)
