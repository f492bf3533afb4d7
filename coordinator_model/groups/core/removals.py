"""Members that the coordinator says it does not know: removed, and nothing told when or why."""

from typing import Final

from coordinator_model.groups.core.causes import cause_by
from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.inferring import members_gone
from coordinator_model.groups.core.members import depart
from coordinator_model.groups.core.session_timer import has_run_out
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import NEW_MEMBER_MS, CauseKind
from coordinator_model.state import Basis

PARKED_MS: Final = 100
"""A request that was answered no sooner waited for its answer."""


def removed_unseen(turn: Turn, member_id: str, generation: int, *, waited_ms: int = 0) -> None:
    """Take out a member whose request was answered with error 25 (unknown member id).

    Kafka checks the member before anything else, so the answer says nothing of the generation.  A member owes
    no heartbeats while its join waits: if that is answered so it has left, as its LeaveGroup tells next.
    """
    group = turn.group
    member = group.members.get(member_id)
    if member is None or not turn.may_infer or generation > group.generation:
        return
    is_late = has_run_out(member, turn.at_ms) and not PARKED_MS <= waited_ms < NEW_MEMBER_MS
    how = CauseKind.SESSION_TIMEOUT if is_late else CauseKind.UNKNOWN
    depart(turn, member_id, how, basis=Basis.INFERRED)
    members_gone(turn, turn.at_ms, cause_by(group, how, member_id), by=Inference.MEMBER_UNKNOWN)
