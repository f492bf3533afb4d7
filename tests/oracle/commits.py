"""Commits, deletes and reads of offsets (Kafka: ``OffsetMetadataManager``)."""

import msgspec

from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines
from tests.oracle.group import Group
from tests.oracle.offset_store import Place, Stored
from tests.oracle.shard import Result, Shard
from tests.oracle.values.errors import Errors, RefusedError
from tests.oracle.values.requests import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    PartitionOffset,
    TopicOffsets,
    TopicPartitions,
    TxnOffsetCommit,
)
from tests.oracle.values.responses import (
    FetchedOffset,
    FetchedTopic,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    PartitionResult,
    TopicResult,
    TxnOffsetCommitResponse,
)
from tests.oracle.values.stored import OffsetCommitted, OffsetTombstone

_GROUP_NOT_FOUND_SINCE = 9
_WITH_MEMBERS = (GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


def commit(shard: Shard, request: OffsetCommit) -> Result:
    """Serve an OffsetCommit; in Stable and PreparingRebalance it counts as a heartbeat.

    Raises:
        RefusedError: what every partition is answered with.
    """
    generation_id = request.generation_id_or_member_epoch
    group = shard.find(request.group_id)
    if group is None:
        if generation_id >= 0:
            is_new = request.api_version >= _GROUP_NOT_FOUND_SINCE
            raise RefusedError(Errors.GROUP_ID_NOT_FOUND if is_new else Errors.ILLEGAL_GENERATION)
        shard.host.log(log_lines.simple_group(request.group_id))
        group = shard.create(request.group_id)
    _validate(shard, group, request, generation_id)
    if group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        shard.expect_heartbeat(group, group.members[request.member_id])
    expires_ms = shard.now_ms + request.retention_time_ms if request.retention_time_ms != -1 else -1
    records, topics = _records(shard, request.group_id, request.topics, -1, expires_ms)
    return Result(records=records, response=OffsetCommitResponse(topics=topics))


def commit_in_transaction(shard: Shard, request: TxnOffsetCommit) -> Result:
    """Serve a TxnOffsetCommit; the group's state does not matter to it, and no session is prolonged.

    Raises:
        RefusedError: what every partition is answered with.
    """
    group = shard.find(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise RefusedError(Errors.ILLEGAL_GENERATION)
        group = shard.create(request.group_id)
    _validate(shard, group, request, request.generation_id)
    records, topics = _records(shard, request.group_id, request.topics, request.producer_id, -1)
    return Result(records=records, response=TxnOffsetCommitResponse(topics=topics))


def _validate(
    shard: Shard, group: Group, request: OffsetCommit | TxnOffsetCommit, generation_id: int
) -> None:
    """Check who commits, in the coordinator's order (Kafka: ``ClassicGroup.validateOffsetCommit``)."""
    transactional = isinstance(request, TxnOffsetCommit)
    if group.state is GroupState.DEAD:
        raise RefusedError(Errors.COORDINATOR_NOT_AVAILABLE)
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return
    if generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        # Kafka has the two labels the wrong way round.
        operation = "offset-commit" if transactional else "txn-offset-commit"
        shard.validate_member(group, request.member_id, request.group_instance_id, operation)
        if generation_id != group.generation_id:
            raise RefusedError(Errors.ILLEGAL_GENERATION)
    elif not transactional and group.state is not GroupState.EMPTY:
        raise RefusedError(Errors.UNKNOWN_MEMBER_ID)
    if not transactional and group.state is GroupState.COMPLETING_REBALANCE:
        raise RefusedError(Errors.REBALANCE_IN_PROGRESS)


def _records(
    shard: Shard, group_id: str, topics: tuple[TopicOffsets, ...], producer_id: int, expires_ms: int
) -> tuple[list[OffsetCommitted], tuple[TopicResult, ...]]:
    records: list[OffsetCommitted] = []
    results = []
    for topic in topics:
        partitions = []
        for one in topic.partitions:
            error = Errors.OFFSET_METADATA_TOO_LARGE if _is_too_long(shard, one) else Errors.NONE
            partitions.append(PartitionResult(partition_index=one.partition_index, error_code=error))
            if error is Errors.NONE:
                record = _record(group_id, topic, one, producer_id=producer_id, expires_ms=expires_ms)
                records.append(msgspec.structs.replace(record, commit_timestamp=shard.now_ms))
        results.append(TopicResult(name=topic.name, partitions=tuple(partitions)))
    return records, tuple(results)


def _is_too_long(shard: Shard, one: PartitionOffset) -> bool:
    # Java counts UTF-16 units, whatever the option's name says of bytes.
    units = len((one.committed_metadata or "").encode("utf-16-be", "surrogatepass")) // 2
    return units > shard.config.offset_metadata_max_bytes


def _record(
    group_id: str, topic: TopicOffsets, one: PartitionOffset, *, producer_id: int, expires_ms: int
) -> OffsetCommitted:
    return OffsetCommitted(
        group=group_id,
        topic=topic.name,
        partition=one.partition_index,
        offset=one.committed_offset,
        leader_epoch=one.committed_leader_epoch,
        metadata=one.committed_metadata or "",
        expire_timestamp=expires_ms,
        # Transactional commits carry no topic id.
        topic_id=topic.topic_id if producer_id < 0 else "",
        producer_id=producer_id,
    )


def every_partition(topics: tuple[TopicOffsets, ...], error: Errors) -> tuple[TopicResult, ...]:
    """Return the answer of a commit that failed as a whole."""
    return tuple(
        TopicResult(
            name=topic.name,
            partitions=tuple(
                PartitionResult(partition_index=one.partition_index, error_code=error)
                for one in topic.partitions
            ),
        )
        for topic in topics
    )


# --- OffsetDelete -------------------------------------------------------------------------------------


def delete(shard: Shard, request: OffsetDelete) -> Result:
    """Serve an OffsetDelete: topics in use are refused one by one, what is not stored is no error.

    Raises:
        RefusedError: GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP where subscriptions cannot be known.
    """
    group = shard.group(request.group_id)
    if group.state is GroupState.DEAD:
        raise RefusedError(Errors.GROUP_ID_NOT_FOUND)
    if group.is_in(*_WITH_MEMBERS) and not group.uses_consumer_protocol:
        raise RefusedError(Errors.NON_EMPTY_GROUP)
    records = []
    results = []
    for topic in request.topics:
        in_use = group.is_subscribed_to(topic.name)
        error = Errors.GROUP_SUBSCRIBED_TO_TOPIC if in_use else Errors.NONE
        partitions = tuple(
            PartitionResult(partition_index=index, error_code=error) for index in topic.partition_indexes
        )
        results.append(TopicResult(name=topic.name, partitions=partitions))
        if not in_use:
            records += _tombstones(shard, group, topic)
    return Result(records=records, response=OffsetDeleteResponse(topics=tuple(results)))


def _tombstones(shard: Shard, group: Group, topic: TopicPartitions) -> list[OffsetTombstone]:
    places = [Place(group.group_id, topic.name, index) for index in topic.partition_indexes]
    return [
        OffsetTombstone(group=place.group, topic=place.topic, partition=place.partition)
        for place in places
        if place in shard.offsets.main.live or shard.offsets.is_pending(place)
    ]


# --- OffsetFetch --------------------------------------------------------------------------------------


def fetch(shard: Shard, request: OffsetFetch) -> OffsetFetchResponse:
    """Return stored offsets; ``require_stable`` reads what is not committed yet and sees transactions."""
    view = shard.groups.live if request.require_stable else shard.groups.committed
    group = view.get(request.group_id)
    stored: dict[Place, Stored] = {}
    if group is not None and group.state is not GroupState.DEAD:
        stored = dict(shard.offsets.of_group(request.group_id, committed=not request.require_stable))
    topics = request.topics
    if topics is None:
        topics = _all_of(stored)
    return OffsetFetchResponse(
        topics=tuple(
            FetchedTopic(
                name=topic.name,
                partitions=tuple(
                    _fetched(shard, request, stored, Place(request.group_id, topic.name, index))
                    for index in topic.partition_indexes
                ),
            )
            for topic in topics
        )
    )


def _all_of(stored: dict[Place, Stored]) -> tuple[TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for place in stored:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return tuple(
        TopicPartitions(name=name, partition_indexes=tuple(indexes)) for name, indexes in by_topic.items()
    )


def _fetched(shard: Shard, request: OffsetFetch, stored: dict[Place, Stored], place: Place) -> FetchedOffset:
    if request.require_stable and shard.offsets.is_pending(place):
        return FetchedOffset(partition_index=place.partition, error_code=Errors.UNSTABLE_OFFSET_COMMIT)
    found = stored.get(place)
    if found is None:
        return FetchedOffset(partition_index=place.partition)
    return FetchedOffset(
        partition_index=place.partition,
        committed_offset=found.value.offset,
        committed_leader_epoch=found.value.leader_epoch,
        metadata=found.value.metadata,
    )
