"""Buffers records and answers that came before their log lines, until the lines come or the grace is over.

The topic and the log are read at different speeds.  While the INFO log is live, a record of a generation
whose join phase has not been seen to end waits here: its lines say when and why.  If the lines do not come,
the log is losing lines, and the step reports that (``Step.contradicted``).
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
"""Limit of records that wait at once: eight generations without a line are more than a delay."""

Apply = Callable[[Group, Seen, Context, Step], None]


def must_wait(group: Group, seen: Seen, context: Context) -> bool:
    """Return whether ``seen`` shows a generation whose log lines have not come yet."""
    if not context.info_live or context.backlog:
        return False
    if isinstance(seen.what, GroupRecorded):
        return is_ahead_of_log(group, seen.what, seen.at_ms)
    return _is_first_answer(seen) and _answered_ahead(group, seen.what)


def _is_first_answer(seen: Seen) -> bool:
    return isinstance(seen.what, JoinAnswered) and seen.what.error_code == 0


def _answered_ahead(group: Group, what: object) -> bool:
    """Return whether a join was answered for a generation that the log has not shown.

    One answer of a generation is enough to buffer: the others prove the same.
    """
    if not isinstance(what, JoinAnswered) or group.group_type != "classic":
        return False
    return what.generation > group.generation and not any(
        isinstance(held.what, JoinAnswered) and held.what.generation >= what.generation
        for held in _waiting(group)
    )


def hold(group: Group, seen: Seen) -> bool:
    """Buffer ``seen``; False if the buffer is full."""
    waiting = _waiting(group)
    if len(waiting) >= HELD_MAX:
        return False
    _keep(group, [*waiting, seen])
    return True


def release(group: Group, context: Context, step: Step, apply: Apply) -> None:
    """Apply, oldest first, the buffered observations that need not wait any longer."""
    while group.held_record is not None:
        first, *rest = _waiting(group)
        _keep(group, [])
        if must_wait(group, first, context):
            _keep(group, [first, *rest])
            return
        _keep(group, rest)
        apply(group, first, context, step)


def give_up(group: Group, now_ms: int, context: Context, step: Step, apply: Apply) -> None:
    """Apply the observations whose grace is over: the log should have reported them and did not."""
    while group.held_record is not None and group.held_until_ms <= now_ms:
        # The first record of an unknown group is no gap in the log: its lines may be older than our start.
        if context.info_live and group.state is not GroupState.DEAD and not step.contradicted:
            step.contradicted = True
            step.divergences.append("log_line_missing")
        _adopt_first(group, context, step, apply)


def adopt_loaded(group: Group, loaded_ms: int, context: Context, step: Step, apply: Apply) -> None:
    """Apply the records that were there when a coordinator loaded the group: it goes on from them.

    Their lines came from another broker.  They may be lost with it, or still be on their way.
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
