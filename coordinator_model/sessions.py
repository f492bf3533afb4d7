"""Session timers: when must a member have been heard, and what follows if it was not.

They run only where their silence proves something: the INFO log is not live (it would tell), the
request log is, and this very member's heartbeats were seen before.  In a join phase a member waits
in its parked JoinGroup and owes no heartbeat, so only a Stable group's members can run out.
"""

from coordinator_model.by_requests import members_gone
from coordinator_model.causes import cause_by
from coordinator_model.group import Basis, CauseKind, Group, Member
from coordinator_model.members import depart
from coordinator_model.states import GroupState
from coordinator_model.transitions import Context, Turn

SESSION_GRACE_MS = 1_000
"""How much later than its deadline a heartbeat may still be read."""


def next_deadline(group: Group, context: Context) -> int | None:
    """Return when the first session timer is known to have run out, None if none can."""
    if not _can_run_out(group, context):
        return None
    due = (_deadline(member) for member in group.members.values())
    return min((at_ms + SESSION_GRACE_MS for at_ms in due if at_ms is not None), default=None)


def run_out(turn: Turn, now_ms: int) -> None:
    """Take out the members whose session has ended by ``now_ms``, earliest first."""
    group = turn.group
    if not _can_run_out(group, turn.context):
        return
    ended = [
        (at_ms, member.member_id)
        for member in group.members.values()
        if (at_ms := _deadline(member)) is not None and at_ms + SESSION_GRACE_MS <= now_ms
    ]
    for at_ms, member_id in sorted(ended):
        turn.at_ms = turn.recorded_at_ms = at_ms
        depart(turn, member_id, CauseKind.SESSION_TIMEOUT, basis=Basis.INFERRED)
        members_gone(turn, at_ms, cause_by(group, CauseKind.SESSION_TIMEOUT, member_id))


def _can_run_out(group: Group, context: Context) -> bool:
    return (
        context.requests_live
        and not context.info_live
        and group.group_type == "classic"
        and group.state is GroupState.STABLE
    )


def _deadline(member: Member) -> int | None:
    if member.last_heartbeat_ms < 0 or member.session_timeout_ms <= 0:
        return None
    return max(member.session_base_ms, member.last_heartbeat_ms) + member.session_timeout_ms
