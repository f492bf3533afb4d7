"""Which groups of a list are shown, and in which order.  Pure."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import msgspec

from coordinator_model.kafka import GroupState
from streaming.group_store import KeptGroup

Item = tuple[str, KeptGroup]
"""Cluster, group."""
Key = Callable[[Item], Any]

SORTS = ("trouble", "name", "state", "lag", "members", "rebalances")
ORDERS = ("asc", "desc")
Trouble = tuple[int, ...]
"""A place in the order of trouble; smaller comes first."""
_CALM: Mapping[GroupState, Trouble] = {GroupState.STABLE: (5,), GroupState.EMPTY: (4,), GroupState.DEAD: (4,)}
_RESTLESS: Trouble = (3,)
"""Places of groups without alerts, behind those of severities."""
_NOBODY: Set[str] = frozenset()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for; "" matches everything."""

    cluster: str = ""
    state: str = ""
    group_type: str = ""
    text: str = ""
    """Part of the name, in whatever case."""
    alert: str = ""
    """Name of an open alert."""
    owner: str = ""
    sort: str = "trouble"
    """One of SORTS."""
    order: str = "asc"
    """asc: the most troubled, the first name, the smallest number first."""
    offset: int = 0
    limit: int = 100


def matching(
    groups: Iterable[Item],
    wanted: Wanted,
    alerts: Mapping[tuple[str, str], Set[str]],
    owner_of: Callable[[str, str], str],
) -> list[Item]:
    """Return the groups that match all filters.

    Args:
        groups: those of the wanted cluster.
        wanted: the filters.
        alerts: (cluster, group) -> names of its open alerts.
        owner_of: returns the owner of a group.
    """
    found, text = list(groups), wanted.text.casefold()
    if wanted.state:
        found = [one for one in found if one[1].state == wanted.state]
    if wanted.group_type:
        found = [one for one in found if one[1].group_type == wanted.group_type]
    if text:
        found = [one for one in found if text in one[1].group.casefold()]
    if wanted.alert:
        found = [one for one in found if wanted.alert in alerts.get((one[0], one[1].group), _NOBODY)]
    if wanted.owner:
        found = [one for one in found if owner_of(one[0], one[1].group) == wanted.owner]
    return found


def page_of(groups: Iterable[Item], wanted: Wanted, key: Key) -> list[Item]:
    """Return one page of groups, in the wanted order; equal ones by name."""
    count = wanted.offset + wanted.limit
    if wanted.order == "desc":
        # A stable sort: the names still ascend among equal ones.
        found = heapq.nlargest(count, sorted(groups, key=_by_name), key=key)
    else:
        found = heapq.nsmallest(count, groups, key=lambda one: (key(one), *_by_name(one)))
    return found[wanted.offset :]


def _by_name(item: Item) -> tuple[str, str]:
    return item[0], item[1].group


def by_trouble(troubles: Mapping[tuple[str, str], Trouble]) -> Key:
    """Return the order by the loudest alert, then unsettled groups, then the rest."""

    def trouble(item: Item) -> Trouble:
        name, group = item
        return troubles.get((name, group.group), _CALM.get(group.state, _RESTLESS))

    return trouble


def key_of(sort: str, troubles: Mapping[tuple[str, str], Trouble], lag_of: Callable[[Item], int]) -> Key:
    """Return the order that somebody asks for; ``lag_of`` gives a group's records behind, -1: unknown."""
    keys: dict[str, Key] = {
        "trouble": by_trouble(troubles),
        "name": lambda one: one[1].group,
        "state": lambda one: str(one[1].state),
        "lag": lag_of,
        "members": lambda one: one[1].members,
        "rebalances": lambda one: sum(one[1].rebalances.values()),
    }
    return keys[sort]
