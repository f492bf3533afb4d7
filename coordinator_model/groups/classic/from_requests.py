"""Applies the answers to a classic group's requests.

While the INFO log is live they update members only: clients, timeouts, heartbeats, joins and syncs. Without
it they also make transitions, each of them inferred: an answer proves that the coordinator *is* in a state,
not when it got there.
"""

from coordinator_model.groups.classic.corrections import disprove, explain_start
from coordinator_model.groups.classic.failover import came_back, refused
from coordinator_model.groups.classic.storing import stored_late
from coordinator_model.groups.core import (
    GUESS_TOLERANCE_MS,
    TOLERANCE_MS,
    Inference,
    Turn,
    add,
    bring_back,
    cause,
    cause_by,
    commit_refused,
    depart,
    departure_of,
    end,
    expire_silent,
    heartbeat_fenced,
    is_former,
    learn_client,
    leave_fenced,
    member_of_instance,
    members_gone,
    prove,
    removed_unseen,
    rename,
    restart_session,
    start_by_newcomer,
    sync_refused,
    told_deleted,
)
from coordinator_model.groups.offsets import claim
from coordinator_model.kafka import NOT_IN_CHARGE, WITHOUT_MEMBERS, CauseKind, Error, GroupState, how_it_left
from coordinator_model.observations import (
    CommitsAnswered,
    DeleteAnswered,
    Heartbeats,
    LeaveAnswered,
    MemberHeard,
    SyncAnswered,
    TransactionalCommit,
)
from coordinator_model.state import Basis, Cause, Member

JOINS_WITHIN_MS = 100
"""A client that got an id joins with it sooner than this."""

_UNKNOWN = Cause(kind=CauseKind.UNKNOWN)


def _present(
    turn: Turn,
    member_id: str,
    generation: int,
    what: Heartbeats | SyncAnswered | CommitsAnswered | TransactionalCommit,
) -> Member | None:
    """Return the member of an accepted request; an unknown one was a member before we started to read."""
    group = turn.group
    member = group.members.get(member_id)
    has_members = group.state not in WITHOUT_MEMBERS
    if member is None and 0 <= generation == group.generation and has_members:
        member = _met_again(turn, member_id) or _met(turn, member_id, what.instance_id)
    if member is not None:
        learn_client(member, what.client)
    return member


def _met(turn: Turn, member_id: str, instance_id: str | None) -> Member | None:
    """Return a member seen for the first time; None if it has left: its request was under way then."""
    if not member_id or departure_of(turn.group, member_id) is not None:
        return None
    if turn.at_ms < turn.group.stored_at_ms:
        return None  # the newest record names all members of its time
    static = member_of_instance(turn.group, instance_id)
    if static is not None:
        # The coordinator knows one process per instance id.
        if is_former(turn, static, member_id):
            return None
        rename(turn, static.member_id, member_id)
        return static
    member = add(turn, member_id, instance_id=instance_id)
    if member is not None:
        member.joined_at_ms = -1
        turn.step.arrivals.remove(member_id)
    return member


def _met_again(turn: Turn, member_id: str) -> Member | None:
    """Return a member whose departure was inferred wrongly."""
    gone = departure_of(turn.group, member_id)
    if gone is None or gone.basis is not Basis.INFERRED:
        return None
    return bring_back(turn.group, gone) if turn.at_ms > gone.at_ms + GUESS_TOLERANCE_MS else None


def _prove_start(turn: Turn, generation: int, told_ms: int) -> None:
    """Infer from an answer at ``told_ms`` that a rebalance began before it."""
    group = turn.group
    why, began_ms = start_by_newcomer(group, told_ms) or (_UNKNOWN, told_ms - 1)
    began_ms = max(began_ms, group.state_since_ms)
    if (
        prove(
            turn,
            GroupState.PREPARING_REBALANCE,
            generation,
            began_ms,
            why,
            by=Inference.REBALANCE_IN_PROGRESS,
        )
        and group.rebalance
    ):
        group.rebalance.told_at_ms = told_ms


# --- Heartbeat -----------------------------------------------------------------------------------


def heartbeats(turn: Turn, what: Heartbeats) -> None:
    """Apply accepted or refused heartbeats."""
    if what.error_code == Error.NONE:
        _heartbeats_accepted(turn, what)
    elif what.error_code == Error.REBALANCE_IN_PROGRESS:
        _heartbeats_refused(turn, what)
    elif what.error_code == Error.UNKNOWN_MEMBER_ID:
        removed_unseen(turn, what.member_id, what.generation)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    elif what.error_code == Error.FENCED_INSTANCE_ID:
        heartbeat_fenced(turn, what)


def _heartbeats_accepted(turn: Turn, what: Heartbeats) -> None:
    group = turn.group
    disprove(turn, what.generation, what.member_id, what.times[-1])
    came_back(turn, GroupState.STABLE, what.generation, what.times[-1])
    if group.state is GroupState.DEAD:
        # A group is first seen in mid-life: groups are Stable nearly all the time.
        prove(
            turn, GroupState.STABLE, what.generation, what.times[0], _UNKNOWN, by=Inference.HEARTBEAT_ACCEPTED
        )
    elif what.generation > group.generation:
        joined = cause(CauseKind.JOIN_COMPLETED)
        prove(
            turn,
            GroupState.COMPLETING_REBALANCE,
            what.generation,
            what.times[0],
            joined,
            by=Inference.HEARTBEAT_ACCEPTED,
        )
    member = _present(turn, what.member_id, what.generation, what)
    if member is not None:
        _beat(member, what.times)


def _beat(member: Member, times: tuple[int, ...]) -> None:
    if member.last_heartbeat_ms < 0:
        member.first_beat_ms = times[0]
    member.last_heartbeat_ms = max(member.last_heartbeat_ms, times[-1])
    restart_session(member, times[-1], may_set_back=False)


def beat_quietly(member: Member, what: Heartbeats) -> None:
    """Apply accepted heartbeats of a member that the group has, in its Stable generation.

    It has the effect of ``_heartbeats_accepted`` in that case: nothing is left to prove or to correct.
    """
    learn_client(member, what.client)
    _beat(member, what.times)


def hear_quietly(member: Member, heard: MemberHeard) -> None:
    """Apply what ``beat_quietly`` and ``commit_quietly`` would of the same member."""
    learn_client(member, heard.client)
    if heard.beats:
        _beat(member, heard.beats)
    if heard.commits:
        _progress(member, heard.commits)


def _heartbeats_refused(turn: Turn, what: Heartbeats) -> None:
    """Apply error 27: the join phase runs, and this live member has not joined it yet."""
    group = turn.group
    came_back(turn, GroupState.PREPARING_REBALANCE, what.generation, what.times[-1])
    if what.generation >= group.generation and what.times[-1] >= group.state_since_ms:
        first_ms = max(what.times[0], group.state_since_ms)
        expire_silent(turn, first_ms, heard=what.member_id)
        _prove_start(turn, what.generation, first_ms)
    member = _present(turn, what.member_id, what.generation, what)
    if member is None:
        return
    restart_session(member, what.times[-1], may_set_back=False)
    if group.state is GroupState.PREPARING_REBALANCE and what.generation == group.generation:
        member.heartbeats_refused += len(what.times)
        member.rejoined = False


# --- SyncGroup, LeaveGroup, commits, DeleteGroups ----------------------------------------------------


def sync_answered(turn: Turn, what: SyncAnswered) -> None:
    """Apply the answer to SyncGroup: the member got its assignment, or was refused."""
    if what.error_code == Error.NONE:
        _sync_accepted(turn, what)
    elif what.error_code == Error.REBALANCE_IN_PROGRESS:
        _sync_refused(turn, what)
    elif what.error_code == Error.UNKNOWN_MEMBER_ID:
        removed_unseen(turn, what.member_id, what.generation)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    else:
        sync_refused(turn, what)


def _sync_refused(turn: Turn, what: SyncAnswered) -> None:
    """Apply error 27: the group is in the join phase again, or went there while this sync was parked."""
    came_back(turn, GroupState.PREPARING_REBALANCE, what.generation, turn.at_ms)
    if what.generation >= turn.group.generation:
        # Parked syncs are answered at the moment at which the next rebalance begins.
        expire_silent(turn, turn.at_ms, heard=what.member_id, within_ms=TOLERANCE_MS)
        _prove_start(turn, what.generation, turn.at_ms)


def _sync_accepted(turn: Turn, what: SyncAnswered) -> None:
    group = turn.group
    stored = cause(CauseKind.ASSIGNMENT_STORED)
    stored_late(turn, what)
    came_back(turn, GroupState.STABLE, what.generation, turn.at_ms)
    prove(turn, GroupState.STABLE, what.generation, turn.at_ms, stored, by=Inference.SYNC_ACCEPTED)
    member = _present(turn, what.member_id, what.generation, what)
    if member is None or what.generation != group.generation:
        return
    member.synced = True
    restart_session(member, turn.at_ms, may_set_back=False)
    member.progressed_at_ms = max(member.progressed_at_ms, turn.at_ms)
    if what.by_leader:
        group.leader_id, group.leader_basis = what.member_id, Basis.OBSERVED


def leave_answered(turn: Turn, what: LeaveAnswered) -> None:
    """Apply the answer to LeaveGroup: the member left, or had been removed before."""
    if what.error_code == Error.UNKNOWN_MEMBER_ID:
        removed_unseen(turn, what.member_id, turn.group.generation)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    elif what.error_code == Error.NONE:
        _leave_accepted(turn, what)
    elif what.error_code == Error.FENCED_INSTANCE_ID:
        leave_fenced(turn, what)


def _leave_accepted(turn: Turn, what: LeaveAnswered) -> None:
    group = turn.group
    static = member_of_instance(group, what.instance_id)
    member_id = what.member_id or (static.member_id if static else "")
    handed_out_ms = group.pending.pop(member_id, None)
    is_here = member_id in group.members
    is_unknown = member_id != "" and not is_here and departure_of(group, member_id) is None
    how = how_it_left(what.reason)
    if is_unknown and _ended_join_phase(turn, handed_out_ms):
        return
    if handed_out_ms is not None:
        _left_while_joining(turn, member_id, handed_out_ms)
    else:
        depart(turn, member_id, how, reason=what.reason or "", client=what.client)
    detail = f"client reason: {what.reason}" if what.reason else ""
    why = cause_by(group, how, member_id, detail)
    explain_start(turn, why)
    if is_here or is_unknown or handed_out_ms is not None:
        # Kafka: a Stable group rebalances even if a pending member leaves.
        members_gone(turn, turn.at_ms, why, by=Inference.LEAVE_ACCEPTED)


def _ended_join_phase(turn: Turn, handed_out_ms: int | None) -> bool:
    """Return whether the join phase ended because a client left that had an id and had not joined.

    The joins that waited for that client are answered before its LeaveGroup is.  A client of which nothing is
    known is such a one as well: an answer that is read again says the same of it.
    """
    last = turn.group.rebalance
    if last is None or turn.group.state is not GroupState.COMPLETING_REBALANCE:
        return False
    return (handed_out_ms or 0) <= last.joined_at_ms and turn.at_ms - last.joined_at_ms <= JOINS_WITHIN_MS


def _left_while_joining(turn: Turn, member_id: str, handed_out_ms: int) -> None:
    """Infer that a leaving client that got its id a while ago had joined, and left the join phase.

    Clients join with their id at once; the join is answered only when the join phase ends.
    """
    group = turn.group
    if turn.at_ms - handed_out_ms < JOINS_WITHIN_MS or group.state is GroupState.PREPARING_REBALANCE:
        return
    why = cause_by(group, CauseKind.MEMBER_JOINED, member_id)
    at_ms = max(handed_out_ms, group.state_since_ms)
    prove(turn, GroupState.PREPARING_REBALANCE, group.generation, at_ms, why, by=Inference.LEFT_WHILE_JOINING)


def commits_answered(turn: Turn, what: CommitsAnswered) -> None:
    """Apply the answer to commits; a refusal proves only something about the member.

    Kafka checks the member (25, 82), then the generation (22), then the state (27).
    """
    if what.error_code == Error.UNKNOWN_MEMBER_ID:
        removed_unseen(turn, what.member_id, what.generation)
    elif what.error_code == Error.REBALANCE_IN_PROGRESS and what.generation > turn.group.generation:
        joined = cause(CauseKind.JOIN_COMPLETED)
        prove(
            turn,
            GroupState.COMPLETING_REBALANCE,
            what.generation,
            what.times[0],
            joined,
            by=Inference.COMMIT_REFUSED,
        )
    elif what.error_code == Error.NONE and what.member_id:
        _commits_accepted(turn, what)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    if what.error_code != Error.NONE:
        commit_refused(turn, what)


def _commits_accepted(turn: Turn, what: CommitsAnswered) -> None:
    came_back(turn, GroupState.PREPARING_REBALANCE, what.generation, what.times[-1])
    if what.generation > turn.group.generation or turn.group.state is GroupState.DEAD:
        stored = cause(CauseKind.ASSIGNMENT_STORED)
        prove(turn, GroupState.STABLE, what.generation, what.times[0], stored, by=Inference.COMMIT_ACCEPTED)
    member = _present(turn, what.member_id, what.generation, what)
    if member is not None:
        _progress(member, what.times)


def _progress(member: Member, times: tuple[int, ...]) -> None:
    restart_session(member, times[-1], may_set_back=False)
    member.progressed_at_ms = max(member.progressed_at_ms, times[-1])


def commit_quietly(member: Member, what: CommitsAnswered) -> None:
    """Apply accepted commits of a member that the group has, as ``beat_quietly`` does heartbeats."""
    learn_client(member, what.client)
    _progress(member, what.times)


def transactional_commit(turn: Turn, what: TransactionalCommit) -> None:
    """Apply a transactional commit, which the coordinator also accepts in the sync phase.

    A commit without a member (generation -1) is accepted in any group, and proves nothing about it.
    """
    if what.error_code == Error.NONE:
        claim(turn.group, what)
    else:
        commit_refused(turn, what)
    if what.error_code == Error.UNKNOWN_MEMBER_ID:
        removed_unseen(turn, what.member_id, what.generation)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    elif what.error_code == Error.NONE and what.member_id and turn.group.group_type == "classic":
        _claim_accepted(turn, what)


def _claim_accepted(turn: Turn, what: TransactionalCommit) -> None:
    came_back(turn, GroupState.PREPARING_REBALANCE, what.generation, turn.at_ms)
    prove(
        turn,
        GroupState.COMPLETING_REBALANCE,
        what.generation,
        turn.at_ms,
        cause(CauseKind.JOIN_COMPLETED),
        by=Inference.TRANSACTIONAL_COMMIT_ACCEPTED,
    )
    member = _present(turn, what.member_id, what.generation, what)
    if member is not None:  # no coordinator restarts the session timer for it
        member.progressed_at_ms = max(member.progressed_at_ms, turn.at_ms)


def delete_answered(turn: Turn, what: DeleteAnswered) -> None:
    """End a group that DeleteGroups deleted, where no line reports it."""
    if what.error_code == Error.NONE and not told_deleted(turn) and turn.may_infer:
        end(turn, cause(CauseKind.GROUP_DELETED), by=Inference.DELETE_ACCEPTED)
