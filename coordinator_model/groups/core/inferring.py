"""Makes inferred transitions where the INFO log is not live."""

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
    """Infer that the group is, or has been, in this state; does nothing while the INFO log is live.

    An answer that is older than the group's newest record proves nothing beyond that record.
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
    """Infer what a departure causes: a rebalance, and Empty if no member is left."""
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
    """Return whether a join phase without members may still be running.

    A join of another client shows only when the join phase ends; an end without members is in the topic.
    Without the topic: Kafka's first join phase of an Empty group lasts its initial delay whoever leaves,
    unless a timer removes the last member.  Later join phases last the longest rebalance timeout of their
    members, which is 0 without members; ids that were only handed out prolong none.
    """
    last = turn.group.rebalance
    if turn.context.offsets_enabled:
        return True
    return last is not None and last.initial and why.kind is not CauseKind.SESSION_TIMEOUT
