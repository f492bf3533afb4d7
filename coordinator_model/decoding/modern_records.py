"""Reads the content of a decoded record of a consumer, share or streams group."""

from collections.abc import Callable, Iterable, Mapping

from coordinator_model.decoding.schemas import Value
from coordinator_model.observations import (
    AnyPart,
    Assignment,
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Regex,
    Target,
    TargetEpoch,
    TopicNames,
    Topology,
)

_CONSUMER_STATES = {0: MemberState.STABLE, 1: MemberState.UNREVOKED, 2: MemberState.UNRELEASED}

_STREAMS_STATES = {1: MemberState.STABLE, 2: MemberState.UNREVOKED, 3: MemberState.UNRELEASED}

_TASKS = (("activeTasks", ""), ("standbyTasks", " standby"), ("warmupTasks", " warmup"))


def part_of(record_type: int, key: Mapping[str, Value], value: Mapping[str, Value]) -> AnyPart | None:
    """Return the content of a decoded record (no tombstone); None for types that the model does not need."""
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
