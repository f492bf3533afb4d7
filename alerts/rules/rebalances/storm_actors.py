"""Identifies who started a rebalance: one client on one host, across all its member ids.

Sources overtake each other, so two actors often prove to be the same after the rebalance was recorded.
"""

import re
from collections.abc import Iterable

from alerts.rules.engine import Actor, StormMemory
from coordinator_model.state import Departure, Group, Step, Transition

_INSTANCE = re.compile(
    r"static member .* with instance id (.+?)(?: joined with change of protocol|; client reason: |$)"
)


def index_of(memory: StormMemory, group: Group, step: Step, transition: Transition, member_id: str) -> int:
    """Return the index of the actor that started the rebalance, -1 if no source says."""
    if not member_id:
        return -1
    found = _known(group, step, member_id, instance_of(transition))
    found.client_id = transition.cause.client_id or found.client_id
    found.client_host = transition.cause.client_host or found.client_host
    for index, actor in enumerate(memory.actors):
        if actor.member_id == member_id or _is_same_client(actor, found):
            actor.member_id = member_id
            actor.instance_id = found.instance_id or actor.instance_id
            return index
    memory.actors.append(found)
    return len(memory.actors) - 1


def _is_same_client(actor: Actor, other: Actor) -> bool:
    """Say whether two actors are one client on one host; two unknown ones are not."""
    client = (actor.client_id, actor.client_host)
    return all(client) and client == (other.client_id, other.client_host)


def instance_of(transition: Transition) -> str:
    """Return the instance id in the coordinator's reason, or ""."""
    found = _INSTANCE.search(transition.cause.detail)
    return found[1] if found else ""


def _known(group: Group, step: Step, member_id: str, instance_id: str | None) -> Actor:
    """Return what the group knows of a present or recently departed member.

    A replaced static member is looked up by its instance id: its new member id is not known yet.
    """
    here = group.members.get(member_id)
    if here is None and instance_id:
        here = next((one for one in group.members.values() if one.instance_id == instance_id), None)
    gone: Iterable[Departure] = (*step.departures, *reversed(group.departures))
    member = here or next((one for one in gone if one.member_id == member_id), None)
    return Actor(
        client_id=member.client_id if member else "",
        client_host=member.client_host if member else "",
        member_id=member_id,
        instance_id=(member.instance_id if member else None) or instance_id or None,
    )


def learn(memory: StormMemory, group: Group, step: Step) -> None:
    """Add clients and hosts, which the log does not give for a new member, and merge equal actors."""
    for index, actor in enumerate(memory.actors):
        if actor.client_id and actor.client_host:
            continue
        known = _known(group, step, actor.member_id, actor.instance_id)
        actor.client_id = actor.client_id or known.client_id
        actor.client_host = actor.client_host or known.client_host
        actor.instance_id = actor.instance_id or known.instance_id
        for other_index, other in enumerate(memory.actors):
            if other_index != index and _is_same_client(other, actor):
                other.member_id = actor.member_id
                _reassign(memory, index, other_index)
                break


def _reassign(memory: StormMemory, old: int, new: int) -> None:
    for trigger in memory.triggers:
        if trigger.actor == old:
            trigger.actor = new


def drop_unused(memory: StormMemory) -> None:
    """Forget actors without a remembered rebalance."""
    used = sorted({trigger.actor for trigger in memory.triggers if trigger.actor >= 0})
    if len(used) == len(memory.actors):
        return
    place = {old: new for new, old in enumerate(used)}
    memory.actors = [memory.actors[index] for index in used]
    for trigger in memory.triggers:
        trigger.actor = place.get(trigger.actor, -1)
