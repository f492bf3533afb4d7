"""The last transitions that were told of a group, for corrections: they tell one of them again.

A correction stands in the place of the row that it replaces: it comes from where that one came from, and
lies in time between that one's neighbours.  What is too long ago to be known here is not told again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_model.kafka import GroupState
from coordinator_model.state import Group

ROWS_MAX = 12
"""More than the guesses that can be corrected, and what was told between them."""
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
"""Saved as their numbers: it may only grow."""
_NUMBERS = {state: number for number, state in enumerate(STATES)}
_ANY_TIME = (-(2**62), 2**62)


class Row(NamedTuple):
    """One transition that was told."""

    came_from: GroupState
    to: GroupState
    generation: int
    at_ms: int


def rows(group: Group) -> list[Row]:
    """Return what was told last, in the order of the story."""
    return [Row(STATES[came_from], STATES[to], *rest) for came_from, to, *rest in group.told]


def append(group: Group, row: Row) -> None:
    """Note that the story went on."""
    group.told = (*group.told, _packed(row))[-ROWS_MAX:]


def replace(group: Group, index: int, row: Row) -> None:
    """Note that one row was told again."""
    _retire(group, group.told[index])
    group.told = (*group.told[:index], _packed(row), *group.told[index + 1 :])


def take_back(group: Group) -> None:
    """Note that the last row is replaced by the next one."""
    _retire(group, group.told[-1])
    group.told = group.told[:-1]


def between(known: list[Row], index: int) -> tuple[int, int]:
    """Return the times between which the row at ``index`` must lie: those of its neighbours."""
    lowest, highest = _ANY_TIME
    if 0 < index <= len(known):
        lowest = known[index - 1].at_ms
    elif known and len(known) == ROWS_MAX:
        lowest = known[0].at_ms  # what came before it is forgotten
    if index + 1 < len(known):
        highest = known[index + 1].at_ms
    return lowest, highest


def free_time(
    group: Group, to: GroupState, generation: int, at_ms: int, within: tuple[int, int]
) -> int | None:
    """Return a time for a row that no other has with the same state and generation; None: there is none.

    It is ``at_ms``, or the nearest to that: an id is made of the three, and has one content.
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
