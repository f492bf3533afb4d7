"""Dates the storage of an assignment: its record has the time at which it was appended, not replicated.

The coordinator answers, and the group is Stable, once the replicas have the record.  While a replica is
missing that takes seconds.  After 5 s (``offsets.commit.timeout.ms``) the coordinator gives up and begins the
next rebalance, though the record stays and is replicated later.

Source: ``GroupCoordinator.doSyncGroup`` (3.x), ``GroupMetadataManager.classicGroupSync`` (4.x).
"""

import re

from coordinator_model.groups.core import (
    GUESS_TOLERANCE_MS,
    Target,
    Turn,
    cause,
    correct_silently,
    make,
    restate,
    transition_id_of,
)
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.observations import RebalanceStarted, SyncAnswered
from coordinator_model.state import Group

_GIVEN_UP = re.compile(r"Error .* when storing group assignment ?during SyncGroup")


def given_up(turn: Turn, what: RebalanceStarted, started: Target) -> bool:
    """Begin a rebalance in place of the storage that the coordinator gave up; False if it gave up none."""
    group = turn.group
    is_same = (group.state, group.generation) == (GroupState.STABLE, what.generation)
    if not is_same or _GIVEN_UP.match(what.reason.text) is None:
        return False
    never = transition_id_of(turn, _stored(group, group.state_since_ms))
    last = group.rebalance
    since_ms = None if last is None else last.joined_at_ms
    correct_silently(group, state=GroupState.COMPLETING_REBALANCE, since_ms=since_ms)
    if last is not None:
        last.ended_at_ms = -1
    make(turn, started, replaces=never)
    return True


def stored_late(turn: Turn, what: SyncAnswered) -> None:
    """Date a generation by its leader's answer, if that came much later than the record or line."""
    group = turn.group
    is_same = (group.state, group.generation) == (GroupState.STABLE, what.generation)
    is_told = group.stored_generation == what.generation or not turn.context.offsets_enabled
    if not (what.by_leader and is_same and is_told):
        return
    since_ms = group.state_since_ms
    if what.arrived_at_ms > since_ms + GUESS_TOLERANCE_MS or turn.at_ms <= since_ms + GUESS_TOLERANCE_MS:
        return
    too_early = transition_id_of(turn, _stored(group, since_ms))
    told = restate(turn, _stored(group, turn.at_ms), too_early)
    correct_silently(group, since_ms=told.at_ms)
    if group.rebalance is not None:
        group.rebalance.ended_at_ms = told.at_ms


def _stored(group: Group, at_ms: int) -> Target:
    return Target(
        to=GroupState.STABLE,
        generation=group.generation,
        at_ms=at_ms,
        cause=cause(CauseKind.ASSIGNMENT_STORED),
    )
