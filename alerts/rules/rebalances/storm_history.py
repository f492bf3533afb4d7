"""The history for RebalanceStorm: which rebalances started, who started each, and which are explained.

A rebalance is counted unless one of these explains it:

- the voluntary departure of a member that was there when the window opened, as in a rolling restart,
  or that belongs to the first deployment of a group which was empty then and has settled since;
- an arrival that takes the place of such a departure, for as long as the member stays;
- an arrival, still there, into a group that was empty or unknown when the window opened;
- the first replacement of a static member in the window;
- the coming and going of a batch job that has read all there was (``storm_runs``);
- the second step of a cooperative rebalance, at most one for each first step;
- a leader that joins again right after an assignment, at most three times in a row.

Departures by timeout always count, and so does a member that joins and leaves within the window.
"""

from collections.abc import Mapping
from enum import IntEnum
from itertools import takewhile

from alerts.alert import checksum
from alerts.rules.engine import Leave, Loss, StormMemory, Trigger
from alerts.rules.rebalances import rebalance_starts, storm_actors, storm_runs
from coordinator_model.kafka import MAYBE_LEAVES, REJOINS, SETTLED, WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.state import Basis, Departure, Group, Step, Transition

HISTORY_MIN = 64
HISTORY_MAX = 1_024
"""Rebalances remembered at least; a high threshold raises the number."""

SECOND_STEP_MS = 10_000
"""A member that had to give up partitions rejoins within this time after Stable."""

LEADER_LOOKS = 3
"""How often in a row a leader may rejoin right after an assignment: kafka-python's leader does so if its
metadata came later than its assignment, mostly once; on a busy machine three times were seen (3.0.12)."""

ARRIVED_MS = 5_000
"""A member that joined within this time before its rebalance starts is an arrival."""

SETTLED_MS = 5_000
"""A group that was empty when the window opened counts as deployed after this long in Stable."""

SAME_MOMENT_MS = 1_000
"""The lines of a departure and of its rebalance are no further apart than this."""

_REVOKED = "need to revoke partitions"
_COOPERATIVE = ("cooperative", "stream")
_SECOND_STEPS = REJOINS - {CauseKind.PARTITIONS_CHANGED} | {CauseKind.UNKNOWN}
"""A member rejoins after giving up partitions; with other topics, it starts a rebalance of its own."""


class Role(IntEnum):
    """Whether and how a rolling restart explains a rebalance; saved as a number."""

    PLAIN = 0
    DEPARTURE = 1
    ARRIVAL = 2
    REPLACEMENT = 3
    SECOND_STEP = 4
    LEADER_AGAIN = 5
    """A leader that still rejoins at once after ``LEADER_LOOKS`` second steps: counted."""


def history_max(rebalances: int) -> int:
    """Return how many rebalances to remember for a threshold."""
    return min(max(HISTORY_MIN, 2 * rebalances), HISTORY_MAX)


def note(memory: StormMemory, group: Group, step: Step, *, window_ms: int, limit: int) -> bool:
    """Add what a step shows; True if a rebalance started."""
    _settle(memory, step)
    for departure in step.departures:
        _note_departure(memory, departure)
    began = False
    for transition in step.transitions:
        begins = rebalance_starts.begins(transition)
        _note_end(memory, group, transition, begins=begins)
        if begins:
            _note_start(memory, group, step, transition, window_ms)
            began = True
    storm_actors.learn(memory, group, step)
    _learn_processes(memory, group)
    # A better version of a known transition may lie before later ones.
    memory.triggers = sorted(memory.triggers, key=lambda trigger: trigger.at_ms)[-limit:]
    memory.leaves = memory.leaves[-limit:]
    memory.losses = memory.losses[-limit:]
    return began


def forget(memory: StormMemory, *, now_ms: int, window_ms: int) -> bool:
    """Drop what no judgement needs any more; True if nothing is left."""
    memory.triggers = [trigger for trigger in memory.triggers if trigger.at_ms > now_ms - window_ms]
    # An arrival may take the place of a departure up to one window before it.
    memory.leaves = [leave for leave in memory.leaves if leave.at_ms > now_ms - 2 * window_ms]
    memory.losses = [loss for loss in memory.losses if loss.at_ms > now_ms - window_ms]
    storm_actors.drop_unused(memory)
    return not (memory.triggers or memory.leaves or memory.losses)


def counted(memory: StormMemory, *, now_ms: int, window_ms: int) -> list[Trigger]:
    """Return the unexplained rebalances of the window, oldest first."""
    opened_ms = now_ms - window_ms
    by_member = {leave.member: leave for leave in memory.leaves}
    places = sorted(leave.at_ms for leave in memory.leaves if _was_there(memory, leave, opened_ms, window_ms))
    replaced: set[int] = set()
    found = []
    for trigger in memory.triggers:
        if trigger.at_ms <= opened_ms or trigger.role == Role.SECOND_STEP:
            continue
        if trigger.role == Role.DEPARTURE:
            leave = by_member.get(trigger.member)
            explained = _is_first_departure(memory, leave, opened_ms) or storm_runs.explains(
                memory, leave, window_ms
            )
        elif trigger.role == Role.ARRIVAL:
            explained = (
                _is_deployment(memory, trigger, by_member)
                or storm_runs.explains(memory, by_member.get(trigger.member), window_ms)
                or (not trigger.gone and _takes_place(places, trigger.at_ms - window_ms))
            )
        else:
            explained = trigger.role == Role.REPLACEMENT and trigger.member not in replaced
            replaced.add(trigger.member)
        if not explained:
            found.append(trigger)
    return found


def _was_there(memory: StormMemory, leave: Leave, opened_ms: int, window_ms: int) -> bool:
    """Say whether the departed member was there when its window opened, or in the first deployment."""
    own_opened_ms = opened_ms if leave.at_ms > opened_ms else leave.at_ms - window_ms
    return leave.joined_at_ms <= max(own_opened_ms, memory.settled_ms)


def _is_first_departure(memory: StormMemory, leave: Leave | None, opened_ms: int) -> bool:
    return leave is not None and leave.joined_at_ms <= max(opened_ms, memory.settled_ms)


def _is_deployment(memory: StormMemory, trigger: Trigger, by_member: Mapping[int, Leave]) -> bool:
    """Say whether an arrival belongs to a first deployment: the member is still there, or restarted since."""
    is_restarted = trigger.at_ms <= memory.settled_ms and trigger.member in by_member
    return trigger.fresh and (not trigger.gone or is_restarted)


def _settle(memory: StormMemory, step: Step) -> None:
    """Close the first deployment of a group that began empty, when its quiet ends.

    Otherwise the rolling restart of a service deployed within the window would be a storm, although each
    member leaves and returns once.  The first departure closes the deployment for good.
    """
    if any(transition.to_state is GroupState.EMPTY for transition in step.transitions):
        memory.settled_ms = -1
        return
    began = [t.at_ms for t in step.transitions if rebalance_starts.begins(t)]
    times = began + [departure.at_ms for departure in step.departures]
    if not times or memory.leaves or memory.stable_at_ms < 0:
        return
    if min(times) - memory.stable_at_ms >= SETTLED_MS and any(t.initial for t in memory.triggers):
        memory.settled_ms = memory.stable_at_ms


def _takes_place(places: list[int], after_ms: int) -> bool:
    """Use up the oldest departure after ``after_ms``, if there is one."""
    for index, left_ms in enumerate(places):
        if left_ms > after_ms:
            del places[index]
            return True
    return False


def _note_departure(memory: StormMemory, departure: Departure) -> None:
    member = checksum(departure.member_id)
    # A departure may come twice: one that looked voluntary proves to be a timeout.
    memory.leaves = [leave for leave in memory.leaves if leave.member != member]
    memory.losses = [loss for loss in memory.losses if loss.member != member]
    if departure.how is CauseKind.SESSION_TIMEOUT:
        _note_loss(memory, departure, member)
    is_voluntary = departure.how in MAYBE_LEAVES
    if is_voluntary:
        memory.leaves.append(Leave(at_ms=departure.at_ms, joined_at_ms=departure.joined_at_ms, member=member))
    for trigger in memory.triggers:
        if trigger.member != member:
            continue
        if trigger.role == Role.ARRIVAL:
            trigger.gone = True
        elif trigger.role == Role.DEPARTURE and not is_voluntary:
            trigger.role, trigger.kind = Role.PLAIN, departure.how


def _note_loss(memory: StormMemory, departure: Departure, member: int) -> None:
    connection = checksum(departure.connection)
    for loss in memory.losses:
        loss.same_process = loss.same_process or loss.connection == connection != 0
    memory.losses.append(
        Loss(
            at_ms=departure.at_ms,
            joined_at_ms=departure.joined_at_ms,
            member=member,
            client_host=departure.client_host,
            connection=connection,
        )
    )


def _learn_processes(memory: StormMemory, group: Group) -> None:
    """Mark losses whose member returned on its old connection: a crash would have closed it."""
    waiting = {loss.connection: loss for loss in memory.losses if loss.connection and not loss.same_process}
    if not waiting:
        return
    for member in group.members.values():
        loss = waiting.get(checksum(member.connection))
        if loss is not None and loss.member != checksum(member.member_id):
            loss.same_process = True


def _note_end(memory: StormMemory, group: Group, transition: Transition, *, begins: bool) -> None:
    """Close the running rebalance when the group is Stable or Empty, or starts another."""
    if not begins and transition.to_state not in SETTLED:
        return
    if transition.to_state is GroupState.STABLE:
        memory.stable_at_ms = transition.at_ms
    if memory.triggers and memory.triggers[-1].lasted_ms < 0:
        memory.triggers[-1].lasted_ms = max(0, transition.at_ms - memory.triggers[-1].at_ms)
        memory.triggers[-1].size = len(group.members)


def _note_start(
    memory: StormMemory, group: Group, step: Step, transition: Transition, window_ms: int
) -> None:
    guess = transition.id[:8] if transition.basis is Basis.INFERRED else ""
    if transition.replaces:
        wrong = transition.replaces[:8]
        memory.triggers = [trigger for trigger in memory.triggers if trigger.transition != wrong]
    initial = transition.from_state in WITHOUT_MEMBERS
    member_id, kind = transition.cause.member_id, rebalance_starts.kind_of(transition)
    if kind is CauseKind.UNKNOWN and not member_id:
        member_id, kind = rebalance_starts.deduced(step)
    role, member_id = _role(memory, group, step, transition, member_id=member_id, kind=kind)
    place = rebalance_starts.place(group, transition, storm_actors.instance_of(transition))
    memory.triggers.append(
        Trigger(
            at_ms=transition.at_ms,
            kind=kind,
            role=role,
            actor=storm_actors.index_of(memory, group, step, transition, member_id),
            member=checksum(place if role is Role.REPLACEMENT else member_id),
            fresh=role is Role.ARRIVAL and _was_empty(memory, initial, transition.at_ms - window_ms),
            initial=initial,
            observed=transition.basis is Basis.OBSERVED,
            transition=guess,
            size=len(group.members),
            # In the modern protocols some rebalances end in the very record that starts them.
            lasted_ms=0 if transition.to_state in SETTLED else -1,
        )
    )


def _was_empty(memory: StormMemory, initial: bool, opened_ms: int) -> bool:
    """Say whether the group was empty at ``opened_ms``: then the first rebalance since then began there."""
    first = next((trigger for trigger in memory.triggers if trigger.at_ms > opened_ms), None)
    return initial if first is None else first.initial


def _role(
    memory: StormMemory, group: Group, step: Step, transition: Transition, *, member_id: str, kind: CauseKind
) -> tuple[Role, str]:
    """Return the role of a rebalance and the member that started it."""
    if rebalance_starts.is_away(group, transition):
        return Role.REPLACEMENT, member_id
    if kind is CauseKind.MEMBER_LEFT:
        return Role.DEPARTURE, member_id or _left_just_now(step, group, transition.at_ms)
    if kind is CauseKind.STATIC_MEMBER_REPLACED:
        return Role.REPLACEMENT, member_id
    if _is_second_step(memory, group, transition, member_id=member_id, kind=kind):
        is_one_too_many = _second_steps_in_a_row(memory) >= LEADER_LOOKS
        return Role.LEADER_AGAIN if is_one_too_many else Role.SECOND_STEP, member_id
    if kind is CauseKind.MEMBER_JOINED and not _was_member(group, step, member_id, transition.at_ms):
        return Role.ARRIVAL, member_id
    return Role.PLAIN, member_id


def _left_just_now(step: Step, group: Group, at_ms: int) -> str:
    """Return the member that departed with a rebalance that names none (leave by instance id)."""
    near = [one for one in (*group.departures, *step.departures) if at_ms - one.at_ms <= SAME_MOMENT_MS]
    return near[-1].member_id if near else ""


def _was_member(group: Group, step: Step, member_id: str, at_ms: int) -> bool:
    member = group.members.get(member_id)
    if member is None or member_id in step.arrivals or member.joined_at_ms < 0:
        return False
    return member.joined_at_ms < at_ms - ARRIVED_MS


def _is_second_step(
    memory: StormMemory, group: Group, transition: Transition, *, member_id: str, kind: CauseKind
) -> bool:
    is_revoking = _REVOKED in transition.cause.detail
    looks_again = kind is CauseKind.LEADER_REJOINED and not is_revoking
    if not looks_again and _second_steps_in_a_row(memory) > 0:
        return False
    if is_revoking or rebalance_starts.is_resolved(transition):
        return True
    since_stable_ms = transition.at_ms - memory.stable_at_ms
    if memory.stable_at_ms < 0 or since_stable_ms > SECOND_STEP_MS or kind not in _SECOND_STEPS:
        return False
    # Some clients' leaders (kafka-python 3) check the topics once more after each assignment.
    is_eager = not (group.protocol or "").startswith(_COOPERATIVE)
    if is_eager and kind is not CauseKind.LEADER_REJOINED:
        return False
    if kind is CauseKind.UNKNOWN and not member_id:
        return True  # the topic alone: nobody came or went, so somebody who is here joined again
    member = group.members.get(member_id)
    return member is not None and 0 <= member.joined_at_ms < memory.stable_at_ms


def _second_steps_in_a_row(memory: StormMemory) -> int:
    """Return how many of the newest rebalances in a row are second steps, surplus ones included."""
    steps = (Role.SECOND_STEP, Role.LEADER_AGAIN)
    return sum(1 for _ in takewhile(lambda trigger: trigger.role in steps, reversed(memory.triggers)))
