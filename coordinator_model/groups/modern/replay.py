"""Replays records of one write on a stored modern group, as the coordinator does, and notes the changes."""

from dataclasses import dataclass, field

import msgspec

from coordinator_model.observations import (
    Current,
    GroupEpoch,
    MemberMetadata,
    ModernRecord,
    Regex,
    Target,
    TargetEpoch,
    TopicNames,
    Topology,
)
from coordinator_model.state import FIRST_EPOCH_MAX, Modern, ModernMember

_GROUP = frozenset({3, 11, 17})
_MEMBER = frozenset({5, 10, 19})
_TARGET_EPOCH = frozenset({6, 12, 20})
_TARGET = frozenset({7, 13, 21})
_CURRENT = frozenset({8, 14, 22})
_REGEX = frozenset({16})
_SHARE_TOPICS = frozenset({15})
_TOPOLOGY = frozenset({23})


@dataclass(slots=True)
class Changes:
    """The changes by the records of one write."""

    touched: set[str] = field(default_factory=set)
    """Members with any record in it."""
    joined: list[str] = field(default_factory=list)
    gone: dict[str, ModernMember] = field(default_factory=dict)
    """Former member -> its state before."""
    wants_else: list[str] = field(default_factory=list)
    """Members whose subscription differs from before."""
    updated: list[str] = field(default_factory=list)
    """Members whose other metadata changed."""
    moved: list[str] = field(default_factory=list)
    """Members whose current assignment was written and differs."""
    epochs: list[int] = field(default_factory=list)
    """Group epochs written, each higher than the one before."""
    resolved: list[str] = field(default_factory=list)
    """Expressions whose topics were found for the first time."""
    topics_changed: bool = False
    """Whether partitions of subscribed topics, topics of an expression, or a share group's topics changed."""
    topology_changed: bool = False
    """Streams: whether the topology changed; topics found or missing are a change of topics."""
    retargeted: bool = False
    """Whether a target assignment was completed."""
    ended: bool = False
    """Whether the group's own record was deleted, without a new one."""
    uncommitted_ms: int = -1
    """The last time at which the write was not replicated yet; -1: it was replicated at once."""


def replay(modern: Modern, record: ModernRecord, at_ms: int, changes: Changes) -> None:
    """Apply one record."""
    if record.tombstone:
        _delete(modern, record, at_ms, changes)
    elif record.part is not None:
        _put(modern, record, at_ms, changes)


def _put(modern: Modern, record: ModernRecord, at_ms: int, changes: Changes) -> None:
    part = record.part
    if isinstance(part, Current):
        _current(modern, record.member_id, part, at_ms, changes)
    elif isinstance(part, MemberMetadata):
        _metadata(modern, record.member_id, part, at_ms, changes)
    elif isinstance(part, GroupEpoch):
        _epoch(modern, part, changes)
    elif isinstance(part, TargetEpoch):
        changes.retargeted |= part.epoch != modern.assignment_epoch
        modern.assignment_epoch = part.epoch
    elif isinstance(part, Target):
        modern.targets[record.member_id] = part.assigned
    else:
        _put_topics(modern, part, changes)


def _put_topics(modern: Modern, part: Regex | TopicNames | Topology | None, changes: Changes) -> None:
    if isinstance(part, Regex):
        known = modern.regexes.get(part.expression)
        if known is None:
            changes.resolved.append(part.expression)
        changes.topics_changed |= known is not None and known != part.topics
        modern.regexes[part.expression] = part.topics
    elif isinstance(part, TopicNames):
        changes.topics_changed |= part.initializing != modern.initializing or not (
            part.names.keys() <= modern.names.keys()
        )
        modern.names.update(part.names)
        modern.initializing = part.initializing
    elif isinstance(part, Topology):
        changes.topology_changed |= part.epoch != modern.topology_epoch
        modern.topology_epoch = part.epoch


def _epoch(modern: Modern, part: GroupEpoch, changes: Changes) -> None:
    if part.epoch > modern.epoch:
        changes.epochs.append(part.epoch)
    if modern.epoch < 0 and modern.assignment_epoch < 0:
        # Kafka: a new group begins at epoch 1 (before 4.3 at 0), and so does its assignment.
        modern.assignment_epoch = min(part.epoch - 1, FIRST_EPOCH_MAX)
    if modern.epoch >= 0:
        changes.topics_changed |= part.metadata_hash != modern.metadata_hash
        changes.topics_changed |= part.topology_epoch != modern.valid_topology_epoch
    modern.epoch, modern.metadata_hash = part.epoch, part.metadata_hash
    modern.valid_topology_epoch = part.topology_epoch
    changes.ended = False


def _member(modern: Modern, member_id: str, at_ms: int, changes: Changes) -> ModernMember:
    changes.touched.add(member_id)
    member = modern.members.get(member_id)
    if member is None:
        member = modern.members[member_id] = ModernMember(member_id=member_id, since_ms=at_ms)
        changes.joined.append(member_id)
    return member


def _metadata(modern: Modern, member_id: str, part: MemberMetadata, at_ms: int, changes: Changes) -> None:
    member = _member(modern, member_id, at_ms, changes)
    before = member.metadata
    if before is not None and member_id not in changes.joined:
        if (before.topics, before.regex) != (part.topics, part.regex):
            changes.wants_else.append(member_id)
        elif before != part:
            changes.updated.append(member_id)
    member.metadata = part


def _current(modern: Modern, member_id: str, part: Current, at_ms: int, changes: Changes) -> None:
    member = _member(modern, member_id, at_ms, changes)
    before = member.current
    if before is None or (before.epoch, before.state) != (part.epoch, part.state):
        member.since_ms = at_ms
    if before is None or _without_past(before) != _without_past(part):
        changes.moved.append(member_id)
    member.current = part


def _without_past(part: Current) -> Current:
    """Return a current assignment without its previous epoch: a change of that alone is no change."""
    return msgspec.structs.replace(part, previous_epoch=0)


def _delete(modern: Modern, record: ModernRecord, at_ms: int, changes: Changes) -> None:
    kind, member_id = record.record_type, record.member_id
    if kind in _MEMBER:
        _forget_member(modern, member_id, changes)
    elif kind in _CURRENT:
        _forget_current(modern, member_id, at_ms, changes)
    elif kind in _TARGET:
        modern.targets.pop(member_id, None)
    elif kind in _REGEX:
        modern.regexes.pop(record.expression, None)
    else:
        _delete_of_group(modern, kind, changes)


def _delete_of_group(modern: Modern, kind: int, changes: Changes) -> None:
    if kind in _TARGET_EPOCH:
        modern.assignment_epoch = -1
    elif kind in _GROUP:
        modern.epoch, modern.metadata_hash, modern.valid_topology_epoch = -1, 0, -1
        changes.ended = True
    elif kind in _SHARE_TOPICS:
        modern.initializing = {}
    elif kind in _TOPOLOGY:
        modern.topology_epoch = -1


def _forget_member(modern: Modern, member_id: str, changes: Changes) -> None:
    member = modern.members.pop(member_id, None)
    if member is None:
        return
    if member_id in changes.joined:  # it joined and left in one write
        changes.joined.remove(member_id)
    else:
        changes.gone.setdefault(member_id, member)


def _forget_current(modern: Modern, member_id: str, at_ms: int, changes: Changes) -> None:
    member = modern.members.get(member_id)
    if member is None:
        return
    # Its state before is still needed: the record of the member itself is deleted next.
    changes.gone.setdefault(member_id, msgspec.structs.replace(member))
    member.current, member.since_ms = None, at_ms
