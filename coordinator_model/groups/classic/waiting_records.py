"""What ran ahead of its log lines, kept until they come or the grace is over.

The topic and the log are read at different speeds.  While the INFO log is live, a record of a
generation whose join phase has not been seen to end waits here: its lines tell when and why.  When
they do not come, the log is losing lines, and that is said (``Step.contradicted``).
"""

from collections.abc import Callable

import msgspec

from coordinator_model.groups.classic.from_records import is_ahead_of_log
from coordinator_model.groups.core import Context
from coordinator_model.kafka import GroupState
from coordinator_model.observations import GroupRecorded, JoinAnswered, Seen, pack, unpack
from coordinator_model.state import Group, Step

GRACE_MS = 5_000
HELD_MAX = 8
"""Records that wait at once: eight generations within the grace without a line are no delay any more."""

Apply = Callable[[Group, Seen, Context, Step], None]


def must_wait(group: Group, seen: Seen, context: Context) -> bool:
    """Say whether ``seen`` tells of a generation whose log lines are still to come."""
    if not context.info_live or context.backlog:
        return False
    if isinstance(seen.what, GroupRecorded):
        return is_ahead_of_log(group, seen.what, seen.at_ms)
    return _is_first_answer(seen) and _answered_ahead(group, seen.what)


def _is_first_answer(seen: Seen) -> bool:
    return isinstance(seen.what, JoinAnswered) and seen.what.error_code == 0


def _answered_ahead(group: Group, what: object) -> bool:
    """Say whether a join was answered for a generation that the log has not told of.

    One answer of a generation is enough to wait with: the others only repeat what it proves.
    """
    if not isinstance(what, JoinAnswered) or group.group_type != "classic":
        return False
    return what.generation > group.generation and not any(
        isinstance(held.what, JoinAnswered) and held.what.generation >= what.generation
        for held in _waiting(group)
    )


def hold(group: Group, seen: Seen) -> bool:
    """Keep ``seen`` for later; False if too much is waiting already."""
    waiting = _waiting(group)
    if len(waiting) >= HELD_MAX:
        return False
    _keep(group, [*waiting, seen])
    return True


def release(group: Group, context: Context, step: Step, apply: Apply) -> None:
    """Apply, oldest first, what no longer has to wait."""
    while group.held_record is not None:
        first, *rest = _waiting(group)
        _keep(group, [])
        if must_wait(group, first, context):
            _keep(group, [first, *rest])
            return
        _keep(group, rest)
        apply(group, first, context, step)


def give_up(group: Group, now_ms: int, context: Context, step: Step, apply: Apply) -> None:
    """Adopt what has waited out its grace: the log should have told of it and did not."""
    while group.held_record is not None and group.held_until_ms <= now_ms:
        # Of a group that nobody knew, any record is the first; its lines may be older than we are.
        if context.info_live and group.state is not GroupState.DEAD and not step.contradicted:
            step.contradicted = True
            step.divergences.append("log_line_missing")
        _adopt_first(group, context, step, apply)


def adopt_loaded(group: Group, loaded_ms: int, context: Context, step: Step, apply: Apply) -> None:
    """Adopt what was there when a coordinator loaded the group: it goes on from that.

    The lines were another broker's.  They may be lost with it, or still be on their way.
    """
    while group.held_record is not None and group.held_until_ms <= loaded_ms + GRACE_MS:
        _adopt_first(group, context, step, apply)


def _adopt_first(group: Group, context: Context, step: Step, apply: Apply) -> None:
    blind = msgspec.structs.replace(context, info_live=False)
    first, *rest = _waiting(group)
    _keep(group, rest)
    apply(group, first, blind, step)
    release(group, context, step, apply)


def _waiting(group: Group) -> list[Seen]:
    return [] if group.held_record is None else unpack(group.held_record)


def _keep(group: Group, waiting: list[Seen]) -> None:
    group.held_record = pack(waiting) if waiting else None
    group.held_until_ms = waiting[0].at_ms + GRACE_MS if waiting else -1
