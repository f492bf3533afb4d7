"""Keeps the running rebalance up to date: its duration, its count in a row, the generations it burned."""

from coordinator_model.groups.core.session_timer import restart_session, went_silent
from coordinator_model.kafka import WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.state import Cause, Group, Rebalance

NEWCOMER_MS = 1_000
"""A generation that a new member ends within this time is ordinary start-up; it does not count as burned."""
LOOP_MEMORY_MS = 300_000
"""If a member joins within this time after a sync timeout emptied the group, the same loop goes on."""


def note_move(group: Group, came_from: GroupState, at_ms: int, cause: Cause, *, counted: bool) -> None:
    """Update ``group.rebalance`` and the members' flags after a transition."""
    if group.state is GroupState.PREPARING_REBALANCE:
        _start(group, came_from, at_ms, cause)
        if counted:
            group.rebalances[str(cause.kind)] = group.rebalances.get(cause.kind, 0) + 1
    elif group.state is GroupState.COMPLETING_REBALANCE:
        _join_phase_ended(group, at_ms)
    elif group.rebalance is not None and group.state is not GroupState.DEAD:
        group.rebalance.ended_at_ms = at_ms
    if group.state in WITHOUT_MEMBERS:
        _nobody_is_left(group)


def _start(group: Group, came_from: GroupState, at_ms: int, cause: Cause) -> None:
    last = group.rebalance
    running = Rebalance(
        started_at_ms=at_ms,
        old_generation=group.generation,
        cause=cause,
        initial=came_from is GroupState.EMPTY,
        unstable_since_ms=at_ms,
        leader_id=group.leader_id,
    )
    if last is not None and _goes_on(last, came_from, at_ms):
        running.unstable_since_ms = last.unstable_since_ms
        running.completing_since_ms = last.completing_since_ms
        running.burned = last.burned + _burned_now(last, came_from, at_ms, cause)
    group.rebalance = running
    for member in group.members.values():
        member.rejoined = False
        member.synced = False
        member.heartbeats_refused = 0


def began_while_completing(group: Group) -> bool:
    """Return whether the rebalance began while the group waited for its assignment, not in Stable."""
    running = group.rebalance
    if group.state is not GroupState.PREPARING_REBALANCE or running is None:
        return group.state is GroupState.COMPLETING_REBALANCE
    return is_loop(running)


def is_loop(running: Rebalance) -> bool:
    """Return whether the group has not been Stable since before the previous rebalance began."""
    return running.unstable_since_ms < running.started_at_ms


def unburn(group: Group, generation: int, joined_at_ms: int) -> None:
    """Take back a burned generation whose record is read after the group has left it.

    Args:
        group: the group, in the join phase that followed.
        generation: whose assignment was stored after all.
        joined_at_ms: when its join phase had ended, as its record shows.
    """
    running = group.rebalance
    if running is None or group.state is not GroupState.PREPARING_REBALANCE:
        return
    if running.old_generation != generation or running.burned == 0:
        return
    if not _is_start_up(running.cause, running.started_at_ms - joined_at_ms):
        running.burned -= 1


def _goes_on(last: Rebalance, came_from: GroupState, at_ms: int) -> bool:
    """Return whether a rebalance continues the loop of the previous one."""
    if came_from is GroupState.COMPLETING_REBALANCE:
        return True
    return (
        came_from is GroupState.EMPTY
        and last.cause.kind is CauseKind.SYNC_TIMEOUT
        and at_ms - last.ended_at_ms <= LOOP_MEMORY_MS
    )


def _burned_now(last: Rebalance, came_from: GroupState, at_ms: int, cause: Cause) -> int:
    """Return 1 if the generation that ends here completed its join phase and was never Stable."""
    if came_from is not GroupState.COMPLETING_REBALANCE:
        return 0
    return 0 if _is_start_up(cause, at_ms - last.joined_at_ms) else 1


def _is_start_up(cause: Cause, lasted_ms: int) -> bool:
    return cause.kind is CauseKind.MEMBER_JOINED and lasted_ms <= NEWCOMER_MS


def _join_phase_ended(group: Group, at_ms: int) -> None:
    if group.rebalance is None:  # first seen in the middle of a rebalance whose start no source shows
        unknown = Cause(kind=CauseKind.UNKNOWN)
        group.rebalance = Rebalance(
            started_at_ms=at_ms, old_generation=group.generation - 1, cause=unknown, unstable_since_ms=at_ms
        )
    running = group.rebalance
    running.joined_at_ms = at_ms
    if running.completing_since_ms < 0:
        running.completing_since_ms = at_ms
    running.silent = tuple(m.member_id for m in group.members.values() if went_silent(m, at_ms))
    # Kafka: ClassicGroup restarts every session timer when it answers the parked joins.
    for member in group.members.values():
        restart_session(member, at_ms, may_set_back=True)
        member.rejoined = True
        member.synced = False


def _nobody_is_left(group: Group) -> None:
    group.members = {}
    group.leader_id = None
    group.protocol = None
