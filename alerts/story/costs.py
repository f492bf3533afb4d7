"""The cost of one rebalance in a story: the numbers, and the sentence about them.

The transition that ends a rebalance carries the numbers; later transitions carry the records read again.  A
number that no source gives is None, and the sentence says so.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
from msgspec import UNSET, UnsetType

from alerts.alert import times
from alerts.rules.rebalances import noun_of, partition_time, rate
from coordinator_model.kafka import SETTLED, GroupState
from coordinator_model.state import Basis, ToldCost, Transition


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a rebalance, both steps of a cooperative one together; None: no source gives it."""

    steps: int
    """2 or more: a cooperative rebalance; its second step assigns what the first one revoked."""
    phases_ms: dict[str, int | None]
    """State -> how long the group was in it."""
    eager: bool | None = None
    """Every member gave up all partitions before it joined."""
    initial: bool = False
    """The group was empty before, so no member was interrupted."""
    partitions: int | None = None
    """Partitions that the group reads (tasks, for a streams group)."""
    partition_ms: int | None = None
    """Time without an owner, summed over partitions."""
    moved: int | None = None
    """How many partitions changed hands."""
    least: int | None = None
    """How many had to move for an even assignment."""
    reread: int | None = None
    """Records read again afterwards."""
    rate_before: float | None = None
    """Offsets committed per second in the minutes before …"""
    rate_during: float | None = None
    """… and during the rebalance."""


def is_unseen(step: Transition, after: Transition | None) -> bool:
    """Say whether a join phase was filled in: a record shows its end, and no source showed its start."""
    return (
        step.to_state is GroupState.PREPARING_REBALANCE
        and step.basis is Basis.INFERRED
        and step.source == "model"
        and after is not None
        and after.at_ms == step.at_ms
    )


def spent(parts: Sequence[Sequence[Transition]], reread: int | None) -> Spent:
    """Return the cost of a rebalance that has ended.

    Args:
        parts: its transitions; further steps of a cooperative one are separate.
        reread: records read again afterwards; None: unknown.
    """
    bare = Spent(steps=len(parts), phases_ms=_phases(parts), reread=reread)
    told = [one[-1].cost for one in parts]
    costs = [cost for cost in told if not isinstance(cost, UnsetType)]
    if len(costs) < len(parts):
        return bare
    first, last = costs[0], costs[-1]
    return msgspec.structs.replace(
        bare,
        eager=first.eager,
        initial=first.initial,
        partitions=last.partitions,
        partition_ms=_in_all(one.partition_ms for one in costs),
        moved=_in_all(one.moved for one in costs),
        least=_in_all(one.least for one in costs),
        rate_before=first.rate_before,
        rate_during=first.rate_during if len(costs) == 1 else None,
    )


def carried(one: Transition, replaced: Transition) -> Transition:
    """Return a transition with the costs of the one that it replaces, since costs are reported once."""
    reread = [count for count in (one.reread, replaced.reread) if not isinstance(count, UnsetType)]
    cost = one.cost
    if cost is UNSET and one.to_state is replaced.to_state and not isinstance(replaced.cost, UnsetType):
        is_end = one.to_state is GroupState.STABLE
        cost = _later(replaced.cost, one.at_ms - replaced.at_ms) if is_end else replaced.cost
    return msgspec.structs.replace(one, cost=cost, reread=sum(reread) if reread else UNSET)


def _later(cost: ToldCost, by_ms: int) -> ToldCost:
    """Return the cost of a rebalance that ended later than first assumed."""
    if not cost.eager or cost.partition_ms is None or cost.partitions is None:
        return msgspec.structs.replace(cost, partition_ms=cost.partition_ms if by_ms == 0 else None)
    return msgspec.structs.replace(cost, partition_ms=cost.partition_ms + cost.partitions * by_ms)


def _phases(parts: Sequence[Sequence[Transition]]) -> dict[str, int | None]:
    """Return how long each state lasted, several stays added up."""
    found: dict[str, int | None] = {}
    for step, after in (two for steps in parts for two in pairwise(steps)):
        if step.to_state in SETTLED:
            continue
        lasted_ms = None if is_unseen(step, after) else max(0, after.at_ms - step.at_ms)
        found[step.to_state] = _in_all((found.get(step.to_state, 0), lasted_ms))
    return found


def _in_all(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)


# --- words -------------------------------------------------------------------------------------------


def in_words(cost: Spent, group_type: str) -> str:
    """Return the cost of a rebalance as a sentence, followed by what is unknown."""
    noun = noun_of(group_type)
    told = [_unowned(cost, noun), _moves(cost, noun), _reread(cost), _throughput(cost)]
    known = "; ".join(part for part in told if part)
    missing = _missing(cost, noun)
    steps = "both steps" if cost.steps == 2 else "all steps"
    whose = f" of {steps}" if cost.steps > 1 else ""
    if not known:
        why = "" if cost.partitions is not None else f", as no source told who had which {noun}s"
        return f"Cost{whose}: not known{why}."
    rest = f" Not known: {', '.join(missing)}." if missing else ""
    return f"Cost{whose}: {known}.{rest}"


def _unowned(cost: Spent, noun: str) -> str:
    if cost.initial:
        count = "" if cost.partitions is None else f"; {times(cost.partitions, noun)} to read"
        return f"nobody was stopped, as the group was empty{count}"
    if cost.partition_ms is None or cost.partitions is None:
        return ""
    time = partition_time(cost.partition_ms, noun)
    if cost.eager:
        return f"all {times(cost.partitions, noun)} stood still (eager), {time} without an owner"
    if cost.partition_ms == 0:
        return f"none of {times(cost.partitions, noun)} was without an owner"
    return f"{time} without an owner (of {times(cost.partitions, noun)})"


def _moves(cost: Spent, noun: str) -> str:
    if cost.initial or cost.moved is None:
        return ""
    if cost.moved == 0:
        return f"no {noun} moved"
    moved = f"{times(cost.moved, noun)} moved"
    if cost.least is None:
        return moved
    return f"{moved}, {cost.least} had to" if cost.moved > cost.least else f"{moved}, no more than had to"


def _reread(cost: Spent) -> str:
    if cost.reread is None:
        return ""
    again = "was" if cost.reread == 1 else "were"
    return f"{times(cost.reread, 'record')} {again} read again" if cost.reread else "no record was read again"


def _throughput(cost: Spent) -> str:
    if not cost.rate_before or cost.rate_during is None or cost.initial:
        return ""
    return f"offsets committed: {rate(cost.rate_before)} before, {rate(cost.rate_during)} during"


def _missing(cost: Spent, noun: str) -> list[str]:
    told = {
        f"how long {noun}s had no owner": cost.initial or cost.partition_ms is not None,
        f"how many {noun}s moved": cost.initial or cost.moved is not None,
        "how many had to": cost.initial or cost.moved in {None, 0} or cost.least is not None,
        "what was read again": cost.reread is not None,
    }
    return [what for what, is_known in told.items() if not is_known]


def summed_up(costs: Sequence[Spent]) -> str:
    """Return the cost of a story's rebalances together, with a leading blank; "" if nothing is known."""
    stopped = [one for one in costs if not one.initial]
    lost = [one.partition_ms for one in stopped if one.partition_ms is not None]
    again = [one.reread for one in costs if one.reread is not None]
    told = []
    if lost and sum(lost):
        told.append(f"{_least(len(lost) < len(stopped))}{partition_time(sum(lost))} without an owner")
    if again and sum(again):
        told.append(f"{_least(len(again) < len(costs))}{times(sum(again), 'record')} read again")
    return f" They cost {' and '.join(told)}." if told else ""


def _least(is_partly_unknown: bool) -> str:
    return "at least " if is_partly_unknown else ""
