"""Applies answers to JoinGroup: members, their timeouts, and which join began the rebalance.

A parked join is answered, and so logged, when the join phase ends; its arrival time is the time of the
request.  The earliest join of a generation began the rebalance, unless another cause came before.
"""

from coordinator_model.groups.classic.corrections import refine_start
from coordinator_model.groups.classic.failover import came_back, joined_again, refused
from coordinator_model.groups.core import (
    Inference,
    Turn,
    add,
    began_while_completing,
    cause,
    client_id_in,
    create,
    depart,
    departure_of,
    heard,
    how_it_went_missing,
    join_refused,
    learn_client,
    member_of_instance,
    place,
    place_of,
    prove,
    removed_unseen,
    rename,
    restart_session,
    start_by_absence,
    wait_for,
)
from coordinator_model.kafka import NOT_IN_CHARGE, CauseKind, Error, GroupState, follows_others, why_it_joined
from coordinator_model.observations import JoinAnswered
from coordinator_model.state import Basis, Cause, Group, Member


def join_answered(turn: Turn, what: JoinAnswered) -> None:
    """Apply the answer to JoinGroup: the member joined, got an id, or was refused."""
    if what.error_code == Error.NONE:
        heard(turn, what.client, what.member_id)
        _join_accepted(turn, what)
    elif what.error_code == Error.MEMBER_ID_REQUIRED:
        heard(turn, what.client, what.member_id)
        if turn.may_infer:
            create(turn, by=Inference.ID_HANDED_OUT, at_ms=what.arrived_at_ms)
        wait_for(turn.group, what.member_id, turn.at_ms)
    elif what.error_code == Error.UNKNOWN_MEMBER_ID:
        turn.group.pending.pop(what.requested_member_id, None)
        waited_ms = turn.at_ms - what.arrived_at_ms
        removed_unseen(turn, what.requested_member_id, turn.group.generation, waited_ms=waited_ms)
    elif what.error_code == Error.GROUP_MAX_SIZE_REACHED:
        _turned_away(turn, what)
    elif what.error_code in NOT_IN_CHARGE:
        refused(turn, what.error_code)
    else:
        join_refused(turn, what)


def _turned_away(turn: Turn, what: JoinAnswered) -> None:
    """Remove a member that the coordinator has just removed without a line: the group is full."""
    group = turn.group
    group.pending.pop(what.requested_member_id, None)
    if what.requested_member_id in group.members:
        depart(turn, what.requested_member_id, CauseKind.UNKNOWN, reason="group.max.size reached")


def _join_accepted(turn: Turn, what: JoinAnswered) -> None:
    group = turn.group
    if what.instance_id is None:
        joined_again(turn, what.generation, what.arrived_at_ms)
    came_back(turn, GroupState.STABLE, what.generation, turn.at_ms)
    why = _why_joined(group, what)
    if place(GroupState.COMPLETING_REBALANCE, what.generation) > place_of(group):
        _end_join_phase(turn, what, why)
    if turn.may_infer:
        refine_start(turn, what, why)
    is_over = group.state is GroupState.EMPTY and what.generation == group.generation
    if what.generation < group.generation or is_over or group.state is GroupState.DEAD:
        return  # the answer belongs to an old join, or to a group that other sources have not shown yet
    member = _joiner(turn, what)
    if what.generation == group.generation:
        _learn_generation(turn, what)
    if member is not None and place_of(group) == place(GroupState.COMPLETING_REBALANCE, what.generation):
        restart_session(member, turn.at_ms, may_set_back=False)


def _learn_generation(turn: Turn, what: JoinAnswered) -> None:
    """Store what the answer says of the running generation as a whole."""
    group = turn.group
    if what.leader_id:
        group.leader_id, group.leader_basis = _leader(what), Basis.OBSERVED
    if what.protocol:
        group.protocol, group.protocol_type = what.protocol, what.protocol_type or group.protocol_type
    if what.member_ids and turn.may_infer and turn.at_ms >= group.stored_at_ms:
        _left_behind(turn, what)


def _leader(what: JoinAnswered) -> str:
    """Return the new leader's member id.

    To a static leader that came back the coordinator names the id that it had, so that it does not assign
    again (Kafka: ``updateStaticMemberThenRebalanceOrCompleteJoin``); that old id is fenced from then on.
    """
    was_its_own = what.instance_id is not None and client_id_in(what.leader_id) == what.instance_id
    return what.member_id if was_its_own else what.leader_id


def _end_join_phase(turn: Turn, what: JoinAnswered, start: Cause) -> None:
    joined, started_at_ms = cause(CauseKind.JOIN_COMPLETED), what.arrived_at_ms
    absent = start_by_absence(turn, what.arrived_at_ms)
    if absent is not None and (start.kind is CauseKind.UNKNOWN or absent[1] < what.arrived_at_ms):
        start, started_at_ms = absent
    prove(
        turn,
        GroupState.COMPLETING_REBALANCE,
        what.generation,
        turn.at_ms,
        joined,
        by=Inference.JOIN_ANSWERED,
        start=start,
        started_at_ms=started_at_ms,
    )


def _joiner(turn: Turn, what: JoinAnswered) -> Member | None:
    """Return the member that joined, with everything in its request."""
    group = turn.group
    static = member_of_instance(group, what.instance_id)
    if static is not None and static.member_id != what.member_id:
        rename(turn, static.member_id, what.member_id)
    group.pending.pop(what.member_id, None)
    is_first_join = what.member_id not in group.members
    if is_first_join and turn.at_ms < group.stored_at_ms:
        return None  # the newest record names all members of its time
    member = add(turn, what.member_id, instance_id=what.instance_id, at_ms=what.arrived_at_ms)
    if member is None:
        return None
    learn_client(member, what.client)
    if what.session_timeout_ms > 0:
        member.session_timeout_ms = what.session_timeout_ms
    # Kafka: JoinGroup v0 has no rebalance timeout; the session timeout serves as one.
    timeout_ms = what.rebalance_timeout_ms if what.rebalance_timeout_ms >= 0 else what.session_timeout_ms
    member.rebalance_timeout_ms = timeout_ms if timeout_ms >= 0 else member.rebalance_timeout_ms
    member.progressed_at_ms = max(member.progressed_at_ms, turn.at_ms)
    if is_first_join:
        restart_session(member, turn.at_ms, may_set_back=True)
    member.joined_at_ms = min(member.joined_at_ms, what.arrived_at_ms)
    member.rejoined = True
    return member


def _why_joined(group: Group, what: JoinAnswered) -> Cause:
    """Return the cause of a rebalance that this join would have begun.

    Kafka: a new member and a leader that joins a Stable group always begin a rebalance; a follower does only
    if its subscription or user data has changed.
    """
    reason = what.reason or ""
    return Cause(
        kind=_kind_of_start(group, what, reason),
        member_id=what.member_id,
        client_id=what.client.client_id,
        client_host=what.client.host,
        detail=reason[:1_000],
    )


def _kind_of_start(group: Group, what: JoinAnswered, reason: str) -> CauseKind:
    told = why_it_joined(reason)
    if told is not None:
        return told
    static = member_of_instance(group, what.instance_id)
    if static is not None and static.member_id != what.member_id:
        # Kafka: a Stable group rebalances for it only if that changes the protocol of the whole group.
        is_completing = began_while_completing(group)
        return CauseKind.STATIC_MEMBER_REPLACED if is_completing else CauseKind.PROTOCOL_CHANGED
    if _is_new(group, what):
        return CauseKind.MEMBER_JOINED
    if follows_others(reason):
        return CauseKind.UNKNOWN
    return CauseKind.LEADER_REJOINED if _led(group, what) else CauseKind.SUBSCRIPTION_CHANGED


def _is_new(group: Group, what: JoinAnswered) -> bool:
    """Return whether this join added the member; the leader's answer may have named the member before."""
    member = group.members.get(what.member_id)
    return member is None or member.joined_at_ms >= what.arrived_at_ms


def _led(group: Group, what: JoinAnswered) -> bool:
    """Return whether the member led the generation before the one that it joined."""
    last = group.rebalance
    if last is not None and last.old_generation + 1 == what.generation:
        return last.leader_id == what.member_id
    return group.leader_id == what.member_id


def _left_behind(turn: Turn, what: JoinAnswered) -> None:
    """Remove the members that are missing in the list that the leader got."""
    group = turn.group
    for member_id in [m for m in group.members if m not in what.member_ids]:
        depart(turn, member_id, how_it_went_missing(turn, group.members[member_id]), basis=Basis.INFERRED)
    for member_id in what.member_ids:
        group.pending.pop(member_id, None)
        if departure_of(group, member_id) is None:
            add(turn, member_id)
