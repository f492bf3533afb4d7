"""Which groups a line means that names none, or names several at once."""

from collections.abc import Iterable, Mapping

from coordinator_model import observations as on
from coordinator_model.snapshot import Header, Slot
from coordinator_model.timeline import Live

CLAIMANTS_MAX = 10_000
"""Producers with an open transaction in one shard; of more, the oldest are forgotten, and so their end."""


def groups_meant(what: on.AnyObservation, slots: Mapping[str, Slot], lives: Mapping[str, Live]) -> list[str]:
    """Return the groups that an observation is about, as the shard knows them now."""
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
    """Return the group that an observation names, or those that its producer has named.

    The marker that ends a transaction names a producer only, so who commits for which group is kept.
    """
    if isinstance(what, on.TransactionEnded):
        return header.claimants.pop(what.producer_id, [])
    if isinstance(what, on.OffsetsClaimed) and what.error_code == 0:
        _remember_claimant(header.claimants, what)
    return [what.group] if isinstance(what, on.GroupObservation) else []


def _remember_claimant(claimants: dict[int, list[str]], what: on.OffsetsClaimed) -> None:
    groups = claimants.setdefault(what.producer_id, [])
    if what.group not in groups:
        groups.append(what.group)
    if len(claimants) > CLAIMANTS_MAX:
        del claimants[next(iter(claimants))]


def split_names(names: str, known: Mapping[str, object]) -> list[str]:
    """Return the known groups in a list joined by ", ", which may also stand within a group's name."""
    parts = names.split(", ") if names else []
    found: list[str] = []
    start = 0
    while start < len(parts):
        for end in range(len(parts), start, -1):
            name = ", ".join(parts[start:end])
            if name in known:
                found.append(name)
                start = end
                break
        else:
            start += 1
    return found


def group_of_member(
    member_ids: Iterable[str], slots: Mapping[str, Slot], lives: Mapping[str, Live]
) -> list[str]:
    """Return the group that has the first of these members that any group has.

    Sleeping groups are searched as bytes first: such lines come in floods when two processes fight
    for one instance id, and decoding every group for each would stop the shard.
    """
    for member_id in member_ids:
        needle = member_id.encode("utf-8", "surrogatepass")
        for name in sorted(slots) if needle else ():
            live = lives.get(name)
            if live is None and needle not in bytes(slots[name].raw):
                continue
            if member_id in (live or Live.wake(slots[name])).group.members:
                return [name]
    return []
