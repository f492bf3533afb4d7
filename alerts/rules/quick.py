"""Answers a call that brings no news, mostly a heartbeat, without running a rule: 2 µs.

The header of the memory holds the due time of the ``timed`` rules; the due time of the others follows from
the group and is computed here.
"""

from typing import Final

from alerts.rules.engine import NEVER, Thresholds
from alerts.rules.members import SESSION_TIMEOUT_IMMINENT, shortest_silence_ms, silence_due_ms
from alerts.rules.memories import HEADER, MEMORY_VERSION, NO_GROUP_MEMORY, is_watching
from alerts.rules.rebalances import (
    STUCK_COMPLETING_REBALANCE,
    STUCK_PREPARING_REBALANCE,
    completing_due_ms,
    preparing_due_ms,
)
from coordinator_model.kafka import GroupState
from coordinator_model.shard import Judgement
from coordinator_model.state import Group

_LARGE: Final = 16
"""For larger groups the deadlines of all members are not recomputed at each heartbeat."""


def quick(group: Group, thresholds: Thresholds, memory: bytes | None, now_ms: int) -> Judgement | None:
    """Return the answer if nothing needs judging now, None if something does."""
    due_ms, bound_ms = NEVER, 0
    if memory is not None:
        if is_watching(memory):
            return None
        *_, due_ms, bound_ms = HEADER.unpack_from(memory)
        if due_ms <= now_ms:
            return None
    if group.state is not GroupState.STABLE:
        found = _stuck_due_ms(group, thresholds, now_ms)
    elif bound_ms > now_ms:
        found = bound_ms
    else:
        found, memory = _silence_due_ms(group, thresholds, memory, now_ms)
    if found is None:
        return Judgement(memory=memory, alerts=[], due_ms=None if due_ms == NEVER else due_ms)
    if found <= now_ms:
        return None
    return Judgement(memory=memory, alerts=[], due_ms=found if found < due_ms else due_ms)


def _silence_due_ms(
    group: Group, thresholds: Thresholds, memory: bytes | None, now_ms: int
) -> tuple[int | None, bytes | None]:
    """Return when a member of a Stable group may have been silent for too long, and the memory.

    For a large group the result is a lower bound that is remembered: heartbeats only postpone deadlines, and
    a member heard for the first time has at least the shortest one.
    """
    if not thresholds.of(SESSION_TIMEOUT_IMMINENT.options).enabled:
        return None, memory
    found = silence_due_ms(group, thresholds, now_ms)
    if found is None or found <= now_ms or len(group.members) <= _LARGE:
        return found, memory
    bound_ms = min(found, now_ms + shortest_silence_ms(group, thresholds))
    if memory is None:
        return bound_ms, HEADER.pack(MEMORY_VERSION, 0, NEVER, bound_ms) + NO_GROUP_MEMORY
    version, flags, due_ms, _ = HEADER.unpack_from(memory)
    return bound_ms, HEADER.pack(version, flags, due_ms, bound_ms) + memory[HEADER.size :]


def _stuck_due_ms(group: Group, thresholds: Thresholds, now_ms: int) -> int | None:
    dues = []
    if thresholds.of(STUCK_COMPLETING_REBALANCE.options).enabled:
        dues.append(completing_due_ms(group, thresholds, now_ms))
    if thresholds.of(STUCK_PREPARING_REBALANCE.options).enabled:
        dues.append(preparing_due_ms(group, thresholds))
    return min((due for due in dues if due is not None), default=None)
