"""The mirror of Kafka's classic group coordinator: any mixture of sources in, transitions out.

Three sources, one machine.  ``by_log`` and ``by_records`` apply what was observed, ``by_requests``
and ``sessions`` what follows from requests and silence; ``held`` makes records wait for their log
lines; ``transitions`` alone moves a group.  Nothing here reads a clock or keeps state of its own:
the same observations give the same transitions, byte for byte.
"""

import msgspec

from coordinator_model.groups import (
    classic,
    core,
    offsets,
)
from coordinator_model.groups import newer as modern
from coordinator_model.groups.classic import NOT_IN_CHARGE, taken_over
from coordinator_model.groups.core import Context, Turn, begin_sessions_anew, turn_of
from coordinator_model.kafka import GroupState
from coordinator_model.observations import (
    NEVER,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    Heartbeats,
    Seen,
    Source,
    types_that,
)
from coordinator_model.state import Group, Step

__all__ = ["Context", "apply", "beat", "due_at", "new_group", "pass_time"]

_HANDLERS = {
    **classic.LOG_HANDLERS,
    **classic.RECORD_HANDLERS,
    **offsets.COMMIT_HANDLERS,
    **classic.REQUEST_HANDLERS,
    **classic.JOIN_HANDLERS,
    **offsets.TRANSACTION_HANDLERS,
}
_TELLS_GENERATION = types_that(lambda one: one.tells_generation)


def new_group(group_id: str, *, ended_ms: int = -1) -> Group:
    """Return a group nobody has told us anything about yet, or not since it ended."""
    return Group(group=group_id, ended_ms=ended_ms)


def is_new(group: Group) -> bool:
    """Say whether nothing that was told of the group so far meant it."""
    return group.last_seen_ms < 0


def apply(group: Group, seen: Seen, context: Context) -> Step:
    """Apply one observation to ``group`` (changed in place) and say what it did.

    What stood in the backlog changes the group and says nothing.
    """
    step = Step()
    if not seen.is_ahead and classic.must_wait(group, seen, context) and classic.hold(group, seen):
        _noticed(group, seen, context, step)
    else:
        _apply(group, seen, context, step)
    classic.release(group, context, step, _apply)
    return Step() if context.backlog else step


def beat(group: Group, seen: Seen) -> bool:
    """Apply heartbeats that ``folding.are_quiet`` has found to be nothing else; False if they may be more.

    The short way of ``apply`` for what nearly all lines of a request log are.
    """
    what = seen.what
    if type(what) is not Heartbeats or what.protocol != "classic":
        return False
    member = group.members.get(what.member_id)
    if member is None or group.modern is not None or group.held_record is not None:
        return False
    group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    classic.beat_quietly(member, what)
    return True


def due_at(group: Group, context: Context) -> int | None:
    """Return the earliest time at which the model itself must act, None if nothing is awaited."""
    session_ms = core.next_deadline(group, context)
    if group.held_record is None:
        return session_ms
    return group.held_until_ms if session_ms is None else min(group.held_until_ms, session_ms)


def pass_time(group: Group, now_ms: int, context: Context) -> Step:
    """Act on the deadlines due at ``now_ms``: records whose lines never came, sessions that ran out."""
    step = Step()
    classic.give_up(group, now_ms, context, step, _apply)
    turn = Turn(group=group, context=context, step=step, at_ms=now_ms, recorded_at_ms=now_ms, source="model")
    core.run_out(turn, now_ms)
    return Step() if context.backlog else step


def _apply(group: Group, seen: Seen, context: Context, step: Step) -> None:
    handler = _HANDLERS.get(type(seen.what))
    if seen.is_ahead:
        step.divergences.append(core.LINE_AHEAD)
    if core.has_no_age(group, seen, is_recorded=context.offsets_enabled):
        return
    if _is_old(group, seen):
        step.divergences.append(core.OLD_LINE)
        return
    if _is_void(group, seen):
        return
    _noticed(group, seen, context, step)
    modern.begin_anew(group, seen.what)
    if isinstance(seen.what, GroupLoaded):
        group.loaded_ms = seen.at_ms
        classic.adopt_loaded(group, seen.at_ms, context, step, _apply)
    if modern.takes(group, seen.what):
        _apply_modern(group, seen, context, step)
    elif handler is not None:
        handler(turn_of(group, seen, context, step), seen.what)


def _apply_modern(group: Group, seen: Seen, context: Context, step: Step) -> None:
    """Hand an observation to the model of the newer protocols, between which and this one groups change."""
    if modern.converts(group, seen.what):
        blind = msgspec.structs.replace(context, info_live=False)
        classic.give_up(group, NEVER, blind, step, _apply)
    turn, beside = turn_of(group, seen, context, step), modern.leftovers(group, seen.what)
    if beside is not None:
        for record in beside:
            modern.begin_anew(group, record)
            _HANDLERS[type(record)](turn, record)
        return
    for line in modern.apply(turn, seen):
        _apply(group, line, context, step)


def _noticed(group: Group, seen: Seen, context: Context, step: Step) -> None:
    group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    is_over = group.state is GroupState.DEAD and isinstance(seen.what, GroupsDeleted)
    if seen.broker < 0 or seen.broker == group.coordinator or is_over:
        return
    if seen.source is Source.COORDINATOR_LOG or (
        seen.source is Source.REQUEST_LOG
        and (group.coordinator < 0 or not context.info_live)
        and getattr(seen.what, "error_code", 0) not in NOT_IN_CHARGE
    ):
        if group.coordinator >= 0:
            if seen.source is Source.REQUEST_LOG:
                asked_at_ms = getattr(seen.what, "arrived_at_ms", seen.at_ms)
                taken_over(turn_of(group, seen, context, step), asked_at_ms)
                group.taken = asked_at_ms, group.coordinator
            begin_sessions_anew(group, seen.at_ms)
        group.coordinator = seen.broker


def _is_old(group: Group, seen: Seen) -> bool:
    """Say whether a line means another life of the group, or nothing that its newest record does not say."""
    if core.is_of_another_life(group, seen):
        return True
    is_old = core.is_before_record(group, seen)
    if is_old:
        core.learn_coordinator(group, seen)
    return is_old


def _is_void(group: Group, seen: Seen) -> bool:
    """Say whether an observation is about a life of the group that is over.

    A line of a broker that has lost the group counts only if it tells a generation, which shows by
    itself whether it is stale; the rest of what such a broker says is about members it lost as well.
    """
    if group.state is GroupState.DEAD and seen.at_ms < group.state_since_ms:
        return True
    if seen.source is not Source.COORDINATOR_LOG:
        return False
    if isinstance(seen.what, GroupLoaded):  # told twice
        return seen.broker == group.coordinator and seen.at_ms < group.state_since_ms
    is_foreign = group.coordinator >= 0 and seen.broker >= 0 and seen.broker != group.coordinator
    if isinstance(seen.what, GroupUnloaded):
        return is_foreign
    return is_foreign and not _is_newer(group, seen)


def _is_newer(group: Group, seen: Seen) -> bool:
    """Say whether a line of another broker than the last one tells of a generation we have not seen."""
    what = seen.what
    return type(what) in _TELLS_GENERATION and (
        what.generation >= group.generation  # type: ignore[union-attr]  # all of these name one
        and seen.at_ms >= group.state_since_ms
    )
