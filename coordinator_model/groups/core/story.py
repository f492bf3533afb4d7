"""The last transitions that were emitted for a group; corrections emit one of them again.

A correction takes the place of the row that it replaces: it has the same previous state, and a time between
the row's neighbours.  A transition that is too old to be stored here is not corrected.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_model.kafka import GroupState
from coordinator_model.state import Group

ROWS_MAX = 12
"""More than the inferred transitions that can be corrected, and the rows between them."""
RETIRED_MAX = 8

STATES = (
    GroupState.DEAD,
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
    GroupState.NOT_READY,
)
"""Saved as their numbers: the tuple may only grow."""
_NUMBERS = {state: number for number, state in enumerate(STATES)}
_ANY_TIME = (-(2**62), 2**62)


class Row(NamedTuple):
    """One emitted transition."""

    came_from: GroupState
    to: GroupState
    generation: int
    at_ms: int


def rows(group: Group) -> list[Row]:
    """Return the last emitted transitions, in the order of the story."""
    return [Row(STATES[came_from], STATES[to], *rest) for came_from, to, *rest in group.told]


def append(group: Group, row: Row) -> None:
    """Append an emitted transition to the story."""
    group.told = (*group.told, _packed(row))[-ROWS_MAX:]


def replace(group: Group, index: int, row: Row) -> None:
    """Replace one row by its correction."""
    _retire(group, group.told[index])
    group.told = (*group.told[:index], _packed(row), *group.told[index + 1 :])


def take_back(group: Group) -> None:
    """Drop the last row, which the next one replaces."""
    _retire(group, group.told[-1])
    group.told = group.told[:-1]


def between(known: list[Row], index: int) -> tuple[int, int]:
    """Return the times (epoch ms) between which the row at ``index`` must lie: those of its neighbours."""
    lowest, highest = _ANY_TIME
    if 0 < index <= len(known):
        lowest = known[index - 1].at_ms
    elif known and len(known) == ROWS_MAX:
        lowest = known[0].at_ms  # the rows before it are forgotten
    if index + 1 < len(known):
        highest = known[index + 1].at_ms
    return lowest, highest


def free_time(
    group: Group, to: GroupState, generation: int, at_ms: int, within: tuple[int, int]
) -> int | None:
    """Return a time for a row that no other row of the same state and generation has; None: there is none.

    It is ``at_ms``, or the nearest free time: a transition's id is made of the three, and has one content.
    """
    lowest, highest = within
    wanted = max(lowest, min(at_ms, highest))
    number = _NUMBERS[to]
    used = {at for _, state, there, at in group.told if (state, there) == (number, generation)}
    used.update(at for state, there, at in group.retold if (state, there) == (number, generation))
    return next(
        (at for at in _nearest(wanted, len(used)) if lowest <= at <= highest and at not in used), None
    )


def _nearest(at_ms: int, steps: int) -> Iterator[int]:
    yield at_ms
    for step in range(1, steps + 1):
        yield at_ms - step
        yield at_ms + step


def _packed(row: Row) -> tuple[int, int, int, int]:
    return _NUMBERS[row.came_from], _NUMBERS[row.to], row.generation, row.at_ms


def _retire(group: Group, packed: tuple[int, int, int, int]) -> None:
    group.retold = (*group.retold, packed[1:])[-RETIRED_MAX:]
