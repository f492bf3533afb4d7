"""Which groups a line means that names none, or names several at once."""

from collections.abc import Iterable, Mapping

from coordinator_model import observations as on
from coordinator_model.snapshot import Slot
from coordinator_model.timeline import Live


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
