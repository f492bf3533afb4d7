"""The table of handlers: how each observation changes one group, and the only way to apply it.

``apply`` lets an observation wait, drops it as too old, or passes it to the handler in its line of
``EFFECTS``; ``pass_time`` acts on deadlines.  Handlers of lines and records apply what was observed, those of
requests infer from answers; ``core`` makes the transitions.  This module reads no clock and keeps no state of
its own: the same observations give the same transitions, byte for byte.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from coordinator_model import observations as on
from coordinator_model.groups import classic, core, modern, offsets
from coordinator_model.groups.classic import taken_over
from coordinator_model.groups.core import Context, Turn, restart_all_sessions, turn_of
from coordinator_model.kafka import NOT_IN_CHARGE, GroupState
from coordinator_model.observations import (
    NEVER,
    CommitsAnswered,
    GroupHeard,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    Heartbeats,
    Seen,
    Source,
)
from coordinator_model.state import Group, Step

Handler = Callable[[Turn, Any], None]


class Effect(NamedTuple):
    """The handlers of one type of observation."""

    classic: Handler | None
    """The handler for a classic group; None: it concerns only modern groups, whatever the group is now."""
    modern: Handler | None
    """The handler for a consumer, share or streams group; None: kept, as the group may become classic."""


def _noticed_only(turn: Turn, what: on.GroupObservation) -> None:
    """Do nothing more: the observation shows the group, and its coordinator."""


def _in_both(handler: Handler) -> Effect:
    return Effect(handler, handler)


EFFECTS: Mapping[type[on.Observation], Effect] = {
    # --- lines of the coordinator's log
    on.MemberIdHandedOut: Effect(classic.member_id_handed_out, None),
    on.MemberJoined: Effect(classic.member_joined, None),
    on.StaticMemberReplaced: Effect(classic.static_member_replaced, None),
    on.RebalanceStarted: Effect(classic.rebalance_started, None),
    on.JoinPhaseEnded: Effect(classic.join_phase_ended, None),
    on.AssignmentReceived: Effect(classic.assignment_received, None),
    on.GroupEmptied: Effect(classic.group_emptied, None),
    on.MembersKicked: Effect(classic.members_kicked, None),
    on.MemberFailed: Effect(classic.member_failed, None),
    on.PendingMemberExpired: Effect(classic.pending_member_expired, None),
    on.MemberLeft: Effect(classic.member_left, None),
    on.NobodyRejoined: _in_both(_noticed_only),
    on.SimpleGroupCreated: _in_both(classic.simple_group_created),
    on.GroupLoaded: Effect(classic.group_loaded, modern.ignored),
    on.GroupUnloaded: _in_both(classic.group_unloaded),
    on.GroupDied: _in_both(classic.group_died),
    on.GroupConverted: _in_both(classic.group_converted),
    on.GroupsDeleted: Effect(classic.groups_deleted, modern.groups_deleted),
    on.LeaderReplaced: _in_both(classic.leader_replaced),
    on.InstanceFenced: _in_both(core.line_fenced),
    on.InstanceRefused: Effect(None, core.line_fenced),
    on.ModernMemberGone: Effect(None, modern.modern_member_gone),
    # --- records of __consumer_offsets
    on.GroupRecorded: Effect(classic.group_recorded, modern.group_recorded),
    on.GroupTombstone: Effect(classic.group_tombstone, modern.ignored),
    on.ModernRecord: Effect(None, modern.modern_write),
    on.ModernWrite: Effect(None, modern.modern_write),
    on.OffsetsCommitted: _in_both(offsets.offsets_committed),
    # --- answers in the request log
    on.Heartbeats: Effect(classic.heartbeats, modern.heartbeats),
    on.JoinAnswered: Effect(classic.join_answered, modern.join_answered),
    on.SyncAnswered: Effect(classic.sync_answered, modern.sync_answered),
    on.LeaveAnswered: Effect(classic.leave_answered, modern.leave_answered),
    on.CommitsAnswered: Effect(classic.commits_answered, modern.commits_answered),
    on.EpochAnswered: Effect(None, modern.epoch_answered),
    on.DeleteAnswered: _in_both(classic.delete_answered),
    on.TransactionalCommit: _in_both(classic.transactional_commit),
    on.TransactionEnded: _in_both(offsets.transaction_ended),
}
"""One line for each observation that groups handle; ``observations/traits.py`` has its traits."""

_TELLS_GENERATION = on.types_that(lambda one: one.tells_generation)


def new_group(group_id: str, *, ended_ms: int = -1) -> Group:
    """Return a group that no source has shown yet, or not since it ended."""
    return Group(group=group_id, ended_ms=ended_ms)


def is_new(group: Group) -> bool:
    """Return whether no observation so far was about this group."""
    return group.last_seen_ms < 0


def apply(group: Group, seen: Seen, context: Context) -> Step:
    """Apply one observation to ``group`` (changed in place) and return its effects.

    An observation of the backlog changes the group and emits nothing.
    """
    if is_plain_commit(group, seen):
        return commit(group, seen, context)
    step = Step()
    if type(seen.what) is Heartbeats and _is_plain_beat(group, seen, seen.what) and beat(group, seen):
        return step
    if not seen.is_ahead and classic.must_wait(group, seen, context) and classic.hold(group, seen):
        _noticed(group, seen, context, step)
    else:
        _apply(group, seen, context, step)
    classic.release(group, context, step, _apply)
    return Step() if context.backlog else step


def is_plain_commit(group: Group, seen: Seen) -> bool:
    """Return whether it is a commit that does nothing but what its own handler does, as nearly all do.

    Records have no broker and no age, so what remains is a group that lives, by one of both models, and that
    nothing waits in.
    """
    if (
        type(seen.what) is not on.OffsetsCommitted
        or group.state is GroupState.DEAD
        or group.held_record is not None
        or seen.is_ahead
    ):
        return False
    is_settled = group.modern is None or group.group_type != "classic"
    return is_settled and seen.source is Source.OFFSETS and seen.broker < 0


def commit(group: Group, seen: Seen, context: Context) -> Step:
    """Apply a plain commit; the short way of ``apply`` for nearly all records."""
    step, what = Step(), seen.what
    assert isinstance(what, on.OffsetsCommitted)  # noqa: S101 - nothing else is a commit
    group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    offsets.offsets_committed(turn_of(group, seen, context, step), what)
    return Step() if context.backlog else step


def _is_plain_beat(group: Group, seen: Seen, what: Heartbeats) -> bool:
    """Return whether heartbeats only restart the timer of their sender, if ``beat`` takes them.

    The Stable generation is theirs, their coordinator is the known one, and they are of this life of the
    group, so nothing is left to prove.
    """
    if what.error_code or what.generation != group.generation or group.state is not GroupState.STABLE:
        return False
    is_known = seen.broker >= 0 and seen.broker == group.coordinator and seen.source is Source.REQUEST_LOG
    return is_known and not seen.is_ahead and not _is_old(group, seen)


def beat(group: Group, seen: Seen) -> bool:
    """Apply heartbeats or commits that ``coalescing.are_quiet`` found to be quiet; False if they may be more.

    The short way of ``apply`` for nearly all lines of a request log.
    """
    what = seen.what
    if group.modern is not None or group.held_record is not None:
        return False
    if type(what) is CommitsAnswered:
        member = group.members.get(what.member_id)
        if member is None or group.group_type != "classic" or core.is_of_another_life(group, seen):
            return False
        classic.commit_quietly(member, what)
    elif type(what) is Heartbeats and what.protocol == "classic":
        member = group.members.get(what.member_id)
        if member is None:
            return False
        classic.beat_quietly(member, what)
    elif type(what) is GroupHeard:
        if group.group_type != "classic" or not _hear(group, what):
            return False
    else:
        return False
    group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    group.coordinator = seen.broker
    return True


def _hear(group: Group, what: GroupHeard) -> bool:
    """Apply what several members were heard to do, or nothing of it: then False."""
    if what.since_ms <= group.ended_ms or what.since_ms < group.loaded_ms:
        return False
    if any(heard.member_id not in group.members for heard in what.members):
        return False
    for heard in what.members:
        classic.hear_quietly(group.members[heard.member_id], heard)
    return True


def due_at(group: Group, context: Context) -> int | None:
    """Return the earliest time (epoch ms) at which the model itself must act; None if nothing is due."""
    session_ms = core.next_deadline(group, context)
    if group.held_record is None:
        return session_ms
    return group.held_until_ms if session_ms is None else min(group.held_until_ms, session_ms)


def pass_time(group: Group, now_ms: int, context: Context) -> Step:
    """Act on the deadlines at ``now_ms``: records whose lines never came, sessions that ran out."""
    step = Step()
    classic.give_up(group, now_ms, context, step, _apply)
    turn = Turn(group=group, context=context, step=step, at_ms=now_ms, recorded_at_ms=now_ms, source="model")
    core.run_out(turn, now_ms)
    return Step() if context.backlog else step


def _apply(group: Group, seen: Seen, context: Context, step: Step) -> None:
    if seen.is_ahead:
        step.divergences.append(core.LINE_AHEAD)
        if core.has_no_age(group, is_recorded=context.offsets_enabled):
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
    effect = EFFECTS.get(type(seen.what))
    if effect is not None:
        _take_effect(group, seen, effect, context, step)


def _take_effect(group: Group, seen: Seen, effect: Effect, context: Context, step: Step) -> None:
    if _is_about_modern(group, seen.what, effect):
        _apply_modern(group, seen, effect.modern, context, step)
    elif effect.classic is not None:
        effect.classic(turn_of(group, seen, context, step), seen.what)


def _is_about_modern(group: Group, what: on.AnyObservation, effect: Effect) -> bool:
    """Return whether the model of the modern protocols applies an observation."""
    if effect.classic is None:
        return True
    if group.modern is None:
        return type(what) is Heartbeats and what.protocol != "classic"
    return effect.modern is not effect.classic


def _apply_modern(group: Group, seen: Seen, handler: Handler | None, context: Context, step: Step) -> None:
    """Apply an observation by the model of the modern protocols; a group may change between both models."""
    if handler is None:
        modern.wait(group, seen)
        return
    if modern.converts(group, seen.what):
        blind = msgspec.structs.replace(context, info_live=False)
        classic.give_up(group, NEVER, blind, step, _apply)
    turn, beside = turn_of(group, seen, context, step), modern.leftovers(group, seen.what)
    if beside is not None:
        for record in beside:
            modern.begin_anew(group, record)
            classic_handler = EFFECTS[type(record)].classic
            if classic_handler is not None:
                classic_handler(turn, record)
        return
    before = group.modern
    handler(turn, seen.what)
    for line in modern.waited(group, before, seen.at_ms):
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
            restart_all_sessions(group, seen.at_ms)
        group.coordinator = seen.broker


def _is_old(group: Group, seen: Seen) -> bool:
    """Return whether a line belongs to another life of the group, or only repeats its newest record."""
    if core.is_of_another_life(group, seen):
        return True
    is_old = core.is_before_record(group, seen)
    if is_old:
        core.learn_coordinator(group, seen)
    return is_old


def _is_void(group: Group, seen: Seen) -> bool:
    """Return whether an observation is about an ended life of the group.

    A line of a broker that has lost the group counts only if it has a generation, which shows by itself
    whether it is stale; other lines of such a broker are about members that it lost as well.
    """
    if group.state is GroupState.DEAD and seen.at_ms < group.state_since_ms:
        return True
    if seen.source is not Source.COORDINATOR_LOG:
        return False
    if isinstance(seen.what, GroupLoaded):  # reported twice
        return seen.broker == group.coordinator and seen.at_ms < group.state_since_ms
    is_foreign = group.coordinator >= 0 and seen.broker >= 0 and seen.broker != group.coordinator
    if isinstance(seen.what, GroupUnloaded):
        return is_foreign
    return is_foreign and not _is_newer(group, seen)


def _is_newer(group: Group, seen: Seen) -> bool:
    """Return whether another broker than the last one reports a generation that was not seen before."""
    what = seen.what
    return type(what) in _TELLS_GENERATION and (
        what.generation >= group.generation  # type: ignore[union-attr]  # all of these name one
        and seen.at_ms >= group.state_since_ms
    )
