"""What one record of a consumer, share or streams group holds, as far as the model needs it.

The bytes are ``schemas.py``'s business.  Parts travel inside ``observations.ModernRecord``: small arrays
with a tag, so **new fields go to the end with a default**.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from coordinator_model.schemas import Value

Assignment: TypeAlias = dict[str, tuple[int, ...]]
"""Topic id -> partitions.  Of a streams group: subtopology -> partitions for active tasks,
``"<subtopology> standby"`` and ``"<subtopology> warmup"`` for the others."""


class MemberState(StrEnum):
    """Where a member stands on its way to its target assignment.

    Consumer and share groups number them 0, 1, 2, streams groups 1, 2, 3.
    """

    STABLE = "stable"
    """Has all it may have at its epoch."""
    UNREVOKED = "unrevoked"
    """Was told to give partitions (tasks) up and has not confirmed it yet."""
    UNRELEASED = "unreleased"
    """Waits for partitions (tasks) that other members still own."""
    UNKNOWN = "unknown"


class Part(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Base of what records hold."""


class GroupEpoch(Part, tag="epoch", frozen=True, kw_only=True):
    """Types 3, 11, 17: the group's epoch, which grows with each reason to assign anew."""

    epoch: int
    metadata_hash: int = 0
    """Of the subscribed topics and their partitions (4.1 and later; 0: no topics, or 4.0)."""
    topology_epoch: int = -1
    """Streams: the topology that was found valid; -1 none."""


class TargetEpoch(Part, tag="tepoch", frozen=True, kw_only=True):
    """Types 6, 12, 20: the group epoch for which the target assignment was computed."""

    epoch: int


class MemberMetadata(Part, tag="member", frozen=True, kw_only=True):
    """Types 5, 10, 19: who a member is and what it wants."""

    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str = ""
    classic_session_ms: int = -1
    """Session timeout of a member that speaks the classic protocol; -1: it speaks the group's own."""
    topology_epoch: int = -1
    process_id: str = ""


class Target(Part, tag="target", frozen=True, kw_only=True):
    """Types 7, 13, 21: what a member shall have."""

    assigned: Assignment


class Current(Part, tag="current", frozen=True, kw_only=True):
    """Types 8, 14, 22: what a member has.

    ``epoch`` -2 is a static member that went for a while.
    """

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Assignment
    revoking: Assignment = {}
    """What it was told to give up."""


class Regex(Part, tag="regex", frozen=True, kw_only=True):
    """Type 16: the topics that a subscribed expression stands for."""

    expression: str
    topics: tuple[str, ...] = ()


class TopicNames(Part, tag="names", frozen=True, kw_only=True):
    """Types 4 and 15: ids of topics with their names, and what else says that partitions changed."""

    names: dict[str, str]
    initializing: Assignment = {}
    """Share groups: partitions whose start is not settled yet."""


class Topology(Part, tag="topology", frozen=True, kw_only=True):
    """Type 23: a streams group's topology."""

    epoch: int
    topics: tuple[str, ...] = ()
    """Source topics, named or made by repartitioning, over all subtopologies."""


AnyPart: TypeAlias = (
    GroupEpoch | TargetEpoch | MemberMetadata | Target | Current | Regex | TopicNames | Topology
)

_CONSUMER_STATES = {0: MemberState.STABLE, 1: MemberState.UNREVOKED, 2: MemberState.UNRELEASED}
_STREAMS_STATES = {1: MemberState.STABLE, 2: MemberState.UNREVOKED, 3: MemberState.UNRELEASED}
_TASKS = (("activeTasks", ""), ("standbyTasks", " standby"), ("warmupTasks", " warmup"))


def part_of(record_type: int, key: Mapping[str, Value], value: Mapping[str, Value]) -> AnyPart | None:
    """Return what a decoded record (no tombstone) holds; None for types that tell the model nothing."""
    read = _READERS.get(record_type)
    return None if read is None else read(key, value)


def _group_epoch(_: Mapping[str, Value], value: Mapping[str, Value]) -> GroupEpoch:
    return GroupEpoch(
        epoch=value["epoch"],
        metadata_hash=value.get("metadataHash", 0),
        topology_epoch=value.get("validatedTopologyEpoch", -1),
    )


def _target_epoch(_: Mapping[str, Value], value: Mapping[str, Value]) -> TargetEpoch:
    return TargetEpoch(epoch=value["assignmentEpoch"])


def _member(_: Mapping[str, Value], value: Mapping[str, Value]) -> MemberMetadata:
    # Absent and null alike: no member of the classic protocol (an absent tag is an empty struct to Kafka,
    # which no coordinator writes).
    classic = value.get("classicMemberMetadata")
    return MemberMetadata(
        client_id=value["clientId"],
        client_host=value["clientHost"],
        instance_id=value.get("instanceId"),
        rack_id=value.get("rackId"),
        topics=tuple(value.get("subscribedTopicNames", ())),
        regex=value.get("subscribedTopicRegex") or "",
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs", -1),
        assignor=value.get("serverAssignor") or "",
        classic_session_ms=-1 if classic is None else max(classic["sessionTimeoutMs"], 0),
        topology_epoch=value.get("topologyEpoch", -1),
        process_id=value.get("processId", ""),
    )


def _partitions(topics: Iterable[Mapping[str, Value]], name: str = "topicId", suffix: str = "") -> Assignment:
    return {topic[name] + suffix: tuple(sorted(topic["partitions"])) for topic in topics}


def _tasks(value: Mapping[str, Value], ending: str = "") -> Assignment:
    found: Assignment = {}
    for field, suffix in _TASKS:
        found.update(_partitions(value[field + ending], "subtopologyId", suffix))
    return found


def _target(_: Mapping[str, Value], value: Mapping[str, Value]) -> Target:
    return Target(assigned=_partitions(value["topicPartitions"]))


def _streams_target(_: Mapping[str, Value], value: Mapping[str, Value]) -> Target:
    return Target(assigned=_tasks(value))


def _current(_: Mapping[str, Value], value: Mapping[str, Value]) -> Current:
    return Current(
        epoch=value["memberEpoch"],
        previous_epoch=value["previousMemberEpoch"],
        state=_CONSUMER_STATES.get(value["state"], MemberState.UNKNOWN),
        assigned=_partitions(value["assignedPartitions"]),
        revoking=_partitions(value.get("partitionsPendingRevocation", ())),
    )


def _streams_current(_: Mapping[str, Value], value: Mapping[str, Value]) -> Current:
    return Current(
        epoch=value["memberEpoch"],
        previous_epoch=value["previousMemberEpoch"],
        state=_STREAMS_STATES.get(value["state"], MemberState.UNKNOWN),
        assigned=_tasks(value),
        revoking=_tasks(value, "PendingRevocation"),
    )


def _regex(key: Mapping[str, Value], value: Mapping[str, Value]) -> Regex:
    return Regex(expression=key["regularExpression"], topics=tuple(sorted(value["topics"])))


def _partition_metadata(_: Mapping[str, Value], value: Mapping[str, Value]) -> TopicNames:
    return TopicNames(names={topic["topicId"]: topic["topicName"] for topic in value["topics"]})


def _share_partitions(_: Mapping[str, Value], value: Mapping[str, Value]) -> TopicNames:
    initializing = value.get("initializingTopics", [])
    named = (*initializing, *value["initializedTopics"], *value["deletingTopics"])
    return TopicNames(
        names={topic["topicId"]: topic["topicName"] for topic in named},
        initializing=_partitions(initializing),
    )


def _topology(_: Mapping[str, Value], value: Mapping[str, Value]) -> Topology:
    topics: set[str] = set()
    for part in value["subtopologies"]:
        topics.update(part["sourceTopics"])
        topics.update(topic["name"] for topic in part["repartitionSourceTopics"])
    return Topology(epoch=value["epoch"], topics=tuple(sorted(topics)))


_READERS: Mapping[int, Callable[[Mapping[str, Value], Mapping[str, Value]], AnyPart]] = {
    3: _group_epoch,
    4: _partition_metadata,
    5: _member,
    6: _target_epoch,
    7: _target,
    8: _current,
    10: _member,
    11: _group_epoch,
    12: _target_epoch,
    13: _target,
    14: _current,
    15: _share_partitions,
    16: _regex,
    17: _group_epoch,
    19: _member,
    20: _target_epoch,
    21: _streams_target,
    22: _streams_current,
    23: _topology,
}
