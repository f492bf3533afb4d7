"""How far the members of a modern group are on the way to their target assignment, and which hold it up."""

from enum import StrEnum

import msgspec

from coordinator_model.groups.modern.names import named
from coordinator_model.observations import Assignment, MemberState
from coordinator_model.state import AWAY, CONSUMER, Modern, ModernMember


class Why(StrEnum):
    """Why other members, or the group, wait for a member."""

    REVOKING = "revoking"
    """It has to give partitions up and has not confirmed that; its rebalance timeout runs."""
    BEHIND = "behind"
    """It has sent no heartbeat since the target assignment was computed."""
    AWAY = "away"
    """It is static and left for a while; its session timeout runs."""
    WAITING = "waiting"
    """It waits for partitions of other members; if no member has them, for its own next heartbeat."""


class HoldUp(msgspec.Struct, frozen=True, kw_only=True):
    """One member that has not reached the target assignment."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    why: Why
    partitions: Assignment
    """The partitions that it has to give up, or waits for: topic (or task) -> partitions."""
    held_by: dict[str, Assignment]
    """For a waiting member: the members that still have these partitions."""
    since_ms: int
    until_ms: int
    """When the coordinator removes it at the latest; -1 unknown."""


class MemberProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only members of modern groups have."""

    epoch: int
    previous_epoch: int
    state: MemberState
    since_ms: int
    """When its epoch or state last changed."""
    protocol: str
    """The protocol it speaks: classic, consumer, share or streams."""
    rack_id: str | None
    subscribed: tuple[str, ...]
    regex: str
    assignor: str
    target: Assignment
    revoking: Assignment


class GroupProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only modern groups have."""

    epoch: int
    assignment_epoch: int
    topology_epoch: int
    """Streams groups; -1 for others."""
    held_up_by: tuple[HoldUp, ...]
    """Members for which others wait come before members that only wait."""


def progress_of(modern: Modern) -> GroupProgress:
    """Return a group's epochs and the members that hold it up."""
    return GroupProgress(
        epoch=modern.epochs[0],
        assignment_epoch=modern.epochs[1],
        topology_epoch=modern.topology_epoch,
        held_up_by=hold_ups(modern),
    )


def member_progress(modern: Modern, member: ModernMember, group_type: str) -> MemberProgress:
    """Return how far one member is."""
    metadata, current = member.metadata, member.current
    is_classic = metadata is not None and metadata.classic_session_ms >= 0
    return MemberProgress(
        epoch=member.epoch,
        previous_epoch=0 if current is None else current.previous_epoch,
        state=member.state,
        since_ms=member.since_ms,
        protocol="classic" if is_classic and group_type == CONSUMER else group_type,
        rack_id=None if metadata is None else metadata.rack_id,
        subscribed=() if metadata is None else metadata.topics,
        regex="" if metadata is None else metadata.regex,
        assignor="" if metadata is None else metadata.assignor,
        target=named(modern, modern.targets.get(member.member_id, {})),
        revoking=named(modern, member.revoking),
    )


def hold_ups(modern: Modern) -> tuple[HoldUp, ...]:
    """Return the members that have not reached the target assignment, those that others wait for first."""
    found = [
        _hold_up(modern, member)
        for member in modern.members.values()
        if not member.is_reconciled_to(modern.epochs[1])
    ]
    return tuple(sorted(found, key=lambda one: (one.why is Why.WAITING, one.since_ms, one.member_id)))


def _hold_up(modern: Modern, member: ModernMember) -> HoldUp:
    target = modern.targets.get(member.member_id, {})
    why, partitions = _why(member, target)
    metadata = member.metadata
    until_ms = -1
    if why is Why.REVOKING and metadata is not None and metadata.rebalance_timeout_ms > 0:
        until_ms = member.since_ms + metadata.rebalance_timeout_ms
    held_by = _held_by(modern, member.member_id, partitions) if why is Why.WAITING else {}
    return HoldUp(
        member_id=member.member_id,
        client_id="" if metadata is None else metadata.client_id,
        client_host="" if metadata is None else metadata.client_host,
        instance_id=None if metadata is None else metadata.instance_id,
        why=why,
        partitions=named(modern, partitions),
        held_by={name: named(modern, held) for name, held in held_by.items()},
        since_ms=member.since_ms,
        until_ms=until_ms,
    )


def _why(member: ModernMember, target: Assignment) -> tuple[Why, Assignment]:
    if member.epoch == AWAY:
        return Why.AWAY, target
    if member.state is MemberState.UNREVOKED:
        return Why.REVOKING, member.revoking
    if member.state is MemberState.UNRELEASED:
        return Why.WAITING, minus(target, member.assigned)
    return Why.BEHIND, minus(member.assigned, target)


def _held_by(modern: Modern, waiting: str, partitions: Assignment) -> dict[str, Assignment]:
    held = {}
    for member in modern.members.values():
        if member.member_id == waiting:
            continue
        part = common(plus(member.assigned, member.revoking), partitions)
        if part:
            held[member.member_id] = part
    return held


def plus(one: Assignment, other: Assignment) -> Assignment:
    """Return what is in either."""
    if not other:
        return one
    both = {**one}
    for topic, numbers in other.items():
        both[topic] = tuple(sorted({*both.get(topic, ()), *numbers}))
    return both


def minus(one: Assignment, other: Assignment) -> Assignment:
    """Return what of ``one`` is not in ``other``."""
    left = {
        topic: tuple(p for p in numbers if p not in other.get(topic, ())) for topic, numbers in one.items()
    }
    return {topic: numbers for topic, numbers in left.items() if numbers}


def common(one: Assignment, other: Assignment) -> Assignment:
    """Return what is in both."""
    both = {topic: tuple(p for p in numbers if p in other.get(topic, ())) for topic, numbers in one.items()}
    return {topic: numbers for topic, numbers in both.items() if numbers}
