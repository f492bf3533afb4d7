"""Finds the groups of a line that names no group, or several at once."""

from collections.abc import Container, Iterable, Mapping
from itertools import accumulate, islice

import msgspec

from coordinator_model import observations as on
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import Header

PRODUCER_GROUPS_MAX = 1_000
"""Limit of groups for which one producer's open transaction has committed; real producers have one."""
CLAIMANTS_MAX = 10_000
"""Limit of producers with an open transaction in one shard; of more, the oldest are dropped."""


def groups_meant(what: on.AnyObservation, slots: Mapping[str, Slot], lives: Mapping[str, Live]) -> list[str]:
    """Return the groups that an observation concerns, by the groups that the shard has."""
    if isinstance(what, on.GroupObservation):
        return [what.group]
    if isinstance(what, on.GroupsDeleted):
        return split_names(what.names, slots)
    if isinstance(what, on.InstanceFenced):
        return group_of_member((what.by_member_id, what.member_id), slots, lives)
    if isinstance(what, on.LeaderReplaced):
        return group_of_member((what.old_leader_id, what.new_leader_id or ""), slots, lives)
    return []


def groups_named(what: on.AnyObservation, header: Header) -> list[str]:
    """Return the group that an observation names, or the groups for which its producer has committed.

    The marker that ends a transaction names only a producer, so the groups of each producer are stored.
    """
    if isinstance(what, on.TransactionEnded):
        return header.claimants.pop(what.producer_id, [])
    if isinstance(what, on.TransactionalCommit) and what.error_code == 0:
        _remember_claimant(header.claimants, what)
    return [what.group] if isinstance(what, on.GroupObservation) else []


def _remember_claimant(claimants: dict[int, list[str]], what: on.TransactionalCommit) -> None:
    groups = claimants.setdefault(what.producer_id, [])
    if what.group not in groups and len(groups) < PRODUCER_GROUPS_MAX:
        groups.append(what.group)
    if len(claimants) > CLAIMANTS_MAX:
        del claimants[next(iter(claimants))]


def split_names(names: str, known: Mapping[str, object]) -> list[str]:
    """Return the known groups in a list joined by ", ", a separator that group names may contain too.

    Of several names that begin at one place the longest counts.  Runs of pieces are compared by sums of their
    hashes, so that the time is linear in the length of the list, whatever the list and the names contain.
    """
    parts = names.split(", ") if names else []
    wanted = _sums_by_size(known, len(parts)) if len(parts) > 1 else {}
    sizes = sorted(wanted)[: _LOOKS_MAX // len(parts)] if wanted else []
    factors = [(size, pow(_BASE, size, _PRIME), wanted[size]) for size in reversed(sizes)]
    sums = _sums(parts) if sizes else []
    found: list[str] = []
    start = 0
    while start < len(parts):
        runs = (
            size
            for size, factor, some in factors
            if start + size < len(sums) and (sums[start + size] - sums[start] * factor) % _PRIME in some
        )
        names_here = (", ".join(parts[start : start + size]) for size in (*islice(runs, 1), 1))
        name = next((one for one in names_here if one in known), None)
        if name is not None:
            found.append(name)
        start += 1 if name is None else name.count(", ") + 1
    return found


_LOOKS_MAX = 250_000
"""Limit of runs compared for one line; if groups have more sizes, the longest are left out."""
_PRIME, _BASE = 2**61 - 1, 1_000_003


def _sums_by_size(known: Iterable[str], size_max: int) -> dict[int, set[int]]:
    """Return the sums of the names that contain ", ", by the number of their pieces."""
    found: dict[int, set[int]] = {}
    for name in known:
        size = name.count(", ") + 1
        if 1 < size <= size_max:
            found.setdefault(size, set()).add(_sums(name.split(", "))[-1])
    return found


def _sums(parts: Iterable[str]) -> list[int]:
    """Return the sums of no part, of the first, of the first two …: polynomials of their hashes."""
    return list(accumulate(map(hash, parts), lambda total, one: (total * _BASE + one) % _PRIME, initial=0))


def group_of_member(
    member_ids: Iterable[str], slots: Mapping[str, Slot], lives: Mapping[str, Live]
) -> list[str]:
    """Return the group of the first of these members that any group has.

    Sleeping groups are searched as bytes first: such lines come in floods when two processes fight for one
    instance id, and decoding every group for each would stop the shard.
    """
    for member_id in member_ids:
        needle = member_id.encode("utf-8", "surrogatepass")
        for name in sorted(slots) if needle else ():
            live = lives.get(name)
            if live is None and needle not in bytes(slots[name].raw):
                continue
            if member_id in _members_of(slots[name], live):
                return [name]
    return []


def _members_of(slot: Slot, live: Live | None) -> Container[str]:
    """Return a group's members; unreadable bytes hide only that group's members."""
    try:
        return (live or Live.decode(slot)).group.members
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
