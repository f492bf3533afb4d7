"""Removes members that the coordinator answers with error 25 (unknown member id), without time or reason."""

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
"""A request whose answer took at least this long was parked."""


def removed_unseen(turn: Turn, member_id: str, generation: int, *, waited_ms: int = 0) -> None:
    """Remove a member whose request was answered with error 25 (unknown member id).

    Kafka checks the member before anything else, so the answer proves nothing about the generation.  A member
    sends no heartbeats while its join is parked; error 25 to that join means that the member left, and its
    LeaveGroup is logged next.
    """
    group = turn.group
    member = group.members.get(member_id)
    if member is None or not turn.may_infer or generation > group.generation:
        return
    is_late = has_run_out(member, turn.at_ms) and not PARKED_MS <= waited_ms < NEW_MEMBER_MS
    how = CauseKind.SESSION_TIMEOUT if is_late else CauseKind.UNKNOWN
    depart(turn, member_id, how, basis=Basis.INFERRED)
    members_gone(turn, turn.at_ms, cause_by(group, how, member_id), by=Inference.MEMBER_UNKNOWN)
