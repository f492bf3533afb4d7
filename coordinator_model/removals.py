"""Members that the coordinator says it does not know: removed, and nothing told when or why."""

from coordinator_model.causes import cause_by
from coordinator_model.group import Basis, CauseKind
from coordinator_model.inferring import members_gone
from coordinator_model.members import depart
from coordinator_model.silence import has_run_out
from coordinator_model.transitions import Turn


def removed_unseen(turn: Turn, member_id: str, generation: int) -> None:
    """Take out a member whose request was answered with error 25 (unknown member id).

    Kafka checks the member before anything else, so the answer says nothing of the generation.
    """
    group = turn.group
    member = group.members.get(member_id)
    if member is None or not turn.may_infer or generation > group.generation:
        return
    how = CauseKind.SESSION_TIMEOUT if has_run_out(member, turn.at_ms) else CauseKind.UNKNOWN
    depart(turn, member_id, how, basis=Basis.INFERRED)
    members_gone(turn, turn.at_ms, cause_by(group, how, member_id))
