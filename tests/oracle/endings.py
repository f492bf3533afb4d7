"""How groups and offsets end: deleted, expired, or with their topic."""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.java_order import copied_order
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines
from tests.oracle.due import CleanupDue
from tests.oracle.group import Group
from tests.oracle.offset_store import Place, Stored
from tests.oracle.shard import Ending, Result, Shard
from tests.oracle.values.errors import Errors, RefusedError
from tests.oracle.values.requests import DeleteGroups, TopicsDeleted
from tests.oracle.values.responses import DeletedGroup, DeleteGroupsResponse
from tests.oracle.values.stored import GroupTombstone, OffsetTombstone, Record


def delete_groups(shard: Shard, request: DeleteGroups) -> Result:
    """Serve a DeleteGroups, in the order of Java's set; only Empty groups can go."""
    records: list[Record] = []
    results = []
    deleted = []
    offset_count = 0
    for group_id in copied_order(request.groups_names):
        try:
            _validate_delete(shard.group(group_id))
        except RefusedError as refused:
            results.append(DeletedGroup(group_id=group_id, error_code=refused.error))
            continue
        tombstones = _all_tombstones(shard, group_id)
        offset_count += len(tombstones)
        records += [*tombstones, GroupTombstone(group=group_id)]
        results.append(DeletedGroup(group_id=group_id))
        deleted.append(group_id)
    shard.host.log(log_lines.deleted(deleted, offset_count))
    return Result(
        records=records,
        response=DeleteGroupsResponse(results=tuple(results)),
        endings=dict.fromkeys(deleted, Ending(CauseKind.GROUP_DELETED, "DeleteGroups")),
    )


def _validate_delete(group: Group) -> None:
    if group.state is GroupState.DEAD:
        raise RefusedError(Errors.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY:
        raise RefusedError(Errors.NON_EMPTY_GROUP)


def _all_tombstones(shard: Shard, group_id: str) -> list[OffsetTombstone]:
    """Return a tombstone for each offset, and for those that only a transaction holds."""
    places = [place for place, _ in shard.offsets.of_group(group_id)]
    return [_tombstone(place) for place in dict.fromkeys(places + shard.offsets.pending_of(group_id))]


def _tombstone(place: Place) -> OffsetTombstone:
    return OffsetTombstone(group=place.group, topic=place.topic, partition=place.partition)


# --- expiry -------------------------------------------------------------------------------------------


def on_cleanup_due(shard: Shard) -> Result:
    """Write tombstones of expired offsets, and of Empty groups that have none, however young they are."""
    records: list[Record] = []
    endings = {}
    for group in list(shard.groups.live.values()):
        expired, all_gone = _expired(shard, group)
        records += [_tombstone(place) for place in expired]
        if all_gone and group.state is GroupState.EMPTY:
            records.append(GroupTombstone(group=group.group_id))
            reason = "its offsets expired" if expired else "it has no offsets"
            endings[group.group_id] = Ending(CauseKind.OFFSETS_EXPIRED, reason)
    if records:
        shard.host.log(log_lines.cleaned_up(len(records)))
    shard.set_timer(CleanupDue(), shard.config.offsets_retention_check_interval_ms)
    return Result(records=records, endings=endings)


def _expired(shard: Shard, group: Group) -> tuple[list[Place], bool]:
    """Return which offsets expire, and whether none remain, not even in a transaction."""
    stored = shard.offsets.of_group(group.group_id)
    is_settled = not shard.offsets.pending_of(group.group_id)
    expired = [place for place, offset in stored if _has_expired(shard, group, place, offset)]
    return expired, is_settled and len(expired) == len(stored)


def _has_expired(shard: Shard, group: Group, place: Place, stored: Stored) -> bool:
    base_ms = _base_ms(group, stored)
    if base_ms is None or group.is_subscribed_to(place.topic) or shard.offsets.is_pending(place):
        return False
    if stored.value.expire_timestamp >= 0:
        return shard.now_ms >= stored.value.expire_timestamp
    return shard.now_ms - base_ms >= shard.config.offsets_retention_ms


def _base_ms(group: Group, stored: Stored) -> int | None:
    """Return since when an offset is of no use; None if nothing of its group expires now."""
    if group.protocol_type is None:
        return stored.value.commit_timestamp
    if group.state is GroupState.EMPTY:
        return group.state_since_ms if group.state_since_ms >= 0 else stored.value.commit_timestamp
    is_known = group.uses_consumer_protocol and group.subscribed_topics is not None
    if is_known and group.state is GroupState.STABLE:
        return stored.value.commit_timestamp
    return None


def topics_deleted(shard: Shard, event: TopicsDeleted) -> Result:
    """Forget the offsets of topics that are gone; one recreated under the same name keeps its own."""
    ids = {topic.name: topic.topic_id for topic in event.topics}
    places = [
        place
        for place, stored in [
            *shard.offsets.main.live.items(),
            *((claim.place, stored) for claim, stored in shard.offsets.pending.live.items()),
        ]
        if place.topic in ids and stored.value.topic_id in ("", ids[place.topic])
    ]
    named = [(topic.name, topic.topic_id) for topic in event.topics]
    shard.host.log(log_lines.topics_deleted(len(places), named))
    return Result(records=[_tombstone(place) for place in places])
