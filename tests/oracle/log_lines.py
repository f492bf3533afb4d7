"""The lines of the coordinator's log, word for word as Kafka 4.3.1 writes them, without the prefix."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coordinator_model.kafka.java_order import printed
from tests.oracle.group import Group, Member
from tests.oracle.values.stored import OffsetCommitted


class Line(NamedTuple):
    """One line; ``group_id`` is there even where Kafka's words do not name it."""

    level: str
    kind: str
    group_id: str
    message: str


def _info(kind: str, group: Group | str, message: str) -> Line:
    return Line("INFO", kind, group if isinstance(group, str) else group.group_id, message)


def _warn(kind: str, group: Group, message: str) -> Line:
    return Line("WARN", kind, group.group_id, message)


# --- joins --------------------------------------------------------------------------------------------


def id_handed_out(group: Group, member_id: str) -> Line:
    """A dynamic member got an id and must come back with it."""
    return _info(
        "member_id_handed_out",
        group,
        f"Dynamic member with unknown member id joins group {group.group_id} in {group.state} state. "
        f"Created a new member id {member_id} and requesting the member to rejoin with this id.",
    )


def dynamic_added(group: Group, member_id: str) -> Line:
    """An old client is in at once."""
    return _info(
        "dynamic_member_added",
        group,
        f"Dynamic member with unknown member id joins group {group.group_id} in state {group.state}. "
        f"Created a new member id {member_id} and added the member to the group.",
    )


def pending_joined(group: Group, member_id: str) -> Line:
    """The second step of a join."""
    return _info(
        "pending_member_joined",
        group,
        f"Pending dynamic member with id {member_id} joins group {group.group_id} in {group.state} state. "
        "Adding to the group now.",
    )


def _static(group: Group, instance_id: str) -> str:
    return (
        f"Static member with groupInstanceId={instance_id} and unknown member id joins "
        f"group {group.group_id} in {group.state} state. "
    )


def static_added(group: Group, instance_id: str, member_id: str) -> Line:
    """A static member is new."""
    return _info(
        "static_member_added",
        group,
        f"{_static(group, instance_id)}Created a new member id {member_id} for this member "
        "and added to the group.",
    )


def static_replaced(group: Group, instance_id: str, old_member_id: str) -> Line:
    """A static member is back, under another id."""
    return _info(
        "static_member_replaced",
        group,
        f"{_static(group, instance_id)}Replacing previously mapped member {old_member_id} "
        "with this groupInstanceId.",
    )


def static_without_rebalance(group: Group) -> Line:
    """A static member is back and nobody else notices."""
    return _info(
        "static_join_without_rebalance",
        group,
        "Static member which joins during Stable stage and doesn't affect "
        "the selected protocol will not trigger a rebalance.",
    )


def static_reverted(group: Group, new_id: str, instance_id: str | None, old_id: str, error: str) -> Line:
    """A replacement could not be stored."""
    return _warn(
        "write_failed",
        group,
        f"Failed to persist metadata for group {group.group_id} static member {new_id} with "
        f"group instance id {instance_id} due to {error}. Reverting to old member id {old_id}.",
    )


def unexpected_rejoin(group: Group, member_id: str) -> Line:
    """A member of an Empty group, which cannot be."""
    return _warn(
        "unexpected_rejoin",
        group,
        f"Attempt to add rejoining member {member_id} of group {group.group_id} "
        f"in unexpected group state {group.state}",
    )


def fenced(group: Group, member_id: str, instance_id: str | None, operation: str) -> Line:
    """Somebody else has this instance id."""
    mapped = group.static_members.get(instance_id or "")
    return _info(
        "instance_fenced",
        group,
        f"Request memberId={member_id} for static member with groupInstanceId={instance_id} "
        f"is fenced by existing memberId={mapped} during operation {operation}",
    )


# --- rebalances ---------------------------------------------------------------------------------------


def preparing(group: Group, reason: str) -> Line:
    """A rebalance begins; the printed state is already the new one."""
    return _info(
        "preparing_to_rebalance",
        group,
        f"Preparing to rebalance group {group.group_id} in state {group.state} "
        f"with old generation {group.generation_id} (reason: {reason}).",
    )


def stabilized(group: Group) -> Line:
    """The join phase is over."""
    return _info(
        "stabilized",
        group,
        f"Stabilized group {group.group_id} generation {group.generation_id} "
        f"with {len(group.members)} members.",
    )


def emptied(group: Group) -> Line:
    """The join phase is over, and nobody is left."""
    return _info(
        "group_emptied", group, f"Group {group.group_id} with generation {group.generation_id} is now empty."
    )


def not_rejoined(group: Group, member_ids: Sequence[str]) -> Line:
    """Dynamic members missed the rebalance timeout."""
    return _info(
        "dynamic_members_removed",
        group,
        f"Group {group.group_id} removed dynamic members who haven't joined: {printed(member_ids)}",
    )


def leader_replaced(group: Group, old: Member, new: Member | None) -> Line:
    """The leader missed the rebalance timeout; Kafka prints the whole new leader, not only its id."""
    start = (
        f"Group leader [memberId: {old.member_id}, groupInstanceId: {old.group_instance_id or 'None'}] "
        "failed to join before the rebalance timeout"
    )
    if new is not None:
        return _info("leader_replaced", group, f"{start}. Member {new} was elected as the new leader.")
    return _info(
        "no_member_joined",
        group,
        f"{start} and the group couldn't proceed to the next generation because no member joined.",
    )


def nobody_rejoined(group: Group) -> Line:
    """Only static members are left, and all are missing: the join timer is set again."""
    message = f"Group {group.group_id} could not complete rebalance because no members rejoined."
    return Line("ERROR", "nobody_rejoined", group.group_id, message)


def dead_group(group: Group) -> Line:
    """A join phase ends in a group that is gone."""
    return _info("dead_group", group, f"Group {group.group_id} is dead, skipping rebalance stage.")


def assignment_received(group: Group, leader_id: str) -> Line:
    """The leader delivered; the record comes next."""
    return _info(
        "assignment_received",
        group,
        f"Assignment received from leader {leader_id} for group {group.group_id} for generation "
        f"{group.generation_id}. The group has {len(group.members)} members, "
        f"{len(group.static_members)} of which are static.",
    )


def assignment_missing(group: Group, member_ids: Iterable[str]) -> Line:
    """The leader forgot members (Java prints the address of an empty array for each)."""
    listed = ", ".join(f"{member_id}=[B@0" for member_id in member_ids)
    return _warn(
        "empty_assignment",
        group,
        f"Setting empty assignments for members {{{listed}}} of {group.group_id} "
        f"for generation {group.generation_id}.",
    )


def empty_assignment(group: Group, member_id: str) -> Line:
    """A member gets nothing."""
    return _warn(
        "empty_assignment",
        group,
        f"Sending empty assignment to member {member_id} of {group.group_id} "
        f"for generation {group.generation_id} with no errors",
    )


def empty_not_written(group: Group, error: str) -> Line:
    """The record of an empty group could not be stored."""
    return _warn("write_failed", group, f"Failed to write empty metadata for group {group.group_id}: {error}")


def late_sync_timer(group: Group) -> Line:
    """A sync timer meets a group that is no longer in its sync phase."""
    message = (
        f"Received unexpected notification of sync expiration after group {group.group_id} "
        f"already transitioned to {group.state} state."
    )
    return Line("ERROR", "late_timer", group.group_id, message)


# --- who goes -----------------------------------------------------------------------------------------


def failed(group: Group, member_id: str) -> Line:
    """A session ran out."""
    return _info(
        "member_failed",
        group,
        f"Member {member_id} in group {group.group_id} has failed, removing it from the group.",
    )


def pending_expired(group: Group, member_id: str) -> Line:
    """An id was never used."""
    return _info(
        "pending_member_expired",
        group,
        f"Pending member {member_id} in group {group.group_id} has been removed "
        "after session timeout expiration.",
    )


def late_session_timer(group: Group, member_id: str) -> Line:
    """A session ran out in a group that is gone."""
    return _info(
        "late_timer",
        group,
        f"Received notification of heartbeat expiration for member {member_id} after group {group.group_id} "
        "had already been unloaded or deleted.",
    )


def left(group: Group, member_id: str, reason: str, *, pending: bool = False) -> Line:
    """A member said goodbye."""
    return _info(
        "pending_member_left" if pending else "member_left",
        group,
        f"[Group {group.group_id}] {'Pending member' if pending else 'Member'} {member_id} "
        f"has left group through explicit `LeaveGroup` request; client reason: {reason}",
    )


# --- offsets and groups -------------------------------------------------------------------------------


def simple_group(group_id: str) -> Line:
    """Somebody commits without being a member."""
    return _info(
        "simple_group_created",
        group_id,
        f"[GroupId {group_id}] Creating a simple consumer group via manual offset commit.",
    )


def deleted(group_ids: Sequence[str], offset_count: int) -> Line:
    """DeleteGroups was served; printed even if nothing was deleted."""
    return _info(
        "groups_deleted",
        "",
        f"The following groups were deleted: {', '.join(group_ids)}. "
        f"A total of {offset_count} offsets were removed.",
    )


def cleaned_up(tombstone_count: int) -> Line:
    """Offsets expired."""
    return _info(
        "groups_expired",
        "",
        f"Generated {tombstone_count} tombstone records while cleaning up group metadata in 0 milliseconds.",
    )


def topics_deleted(tombstone_count: int, topics: Sequence[tuple[str, str]]) -> Line:
    """Offsets of topics that are gone were forgotten."""
    listed = printed(f"DeletedTopic[id={topic_id}, name={name}]" for name, topic_id in topics)
    return _info(
        "topics_deleted",
        "",
        f"Generated {tombstone_count} tombstone records in 0 milliseconds "
        f"while deleting offsets for topics {listed}.",
    )


def not_materialized(offset: OffsetCommitted, producer_id: int, offset_at: int, latest_at: int) -> Line:
    """A transaction commits an offset that a later commit has overtaken."""
    return _info(
        "transactional_commit_skipped",
        offset.group,
        f"Skipped the materialization of transactional offset commit {offset} for producer id {producer_id} "
        f"in group {offset.group} with topic {offset.topic}, partition {offset.partition} since its record "
        f"offset {offset_at} is smaller than the record offset {latest_at} of the last committed offset.",
    )


# --- the partition ------------------------------------------------------------------------------------


def group_loaded(group: Group) -> Line:
    """A group was read from the log."""
    return _info(
        "group_loaded", group, f"Loaded classic group {group.group_id} with {len(group.members)} members."
    )


def group_unloaded(group: Group) -> Line:
    """A group is given up."""
    return _info(
        "group_unloaded",
        group,
        f"[GroupId={group.group_id}] Unloading group metadata for generation {group.generation_id}.",
    )


def _place(partition: int) -> str:
    return f"__consumer_offsets-{partition}"


def loading(partition: int, epoch: int) -> Line:
    """The broker was elected."""
    return _info(
        "shard_loading", "", f"Scheduling loading of metadata from {_place(partition)} with epoch {epoch}"
    )


def loaded(partition: int, epoch: int, took_ms: int, record_count: int) -> Line:
    """The log has been read (its size in bytes is not mirrored)."""
    return _info(
        "shard_loaded",
        "",
        f"Finished loading of metadata from {_place(partition)} with epoch {epoch} in {took_ms}ms where 0ms "
        f"was spent in the scheduler. Loaded {record_count} records which total to 0 bytes.",
    )


def unloading(partition: int, epoch: int) -> tuple[Line, Line]:
    """The broker resigned."""
    place = f"{_place(partition)} with epoch OptionalInt[{epoch}]"
    return (
        _info("shard_unloading", "", f"Scheduling unloading of metadata for {place}"),
        _info("shard_unloading", "", f"Started unloading metadata for {place}."),
    )


def unloaded(partition: int, epoch: int) -> Line:
    """Everything is given up."""
    place = f"{_place(partition)} with epoch OptionalInt[{epoch}]"
    return _info("shard_unloaded", "", f"Finished unloading metadata for {place}.")


def timer_failed(key: str, error: str) -> Line:
    """What a timer wanted to write could not be written, and will not be tried again."""
    message = f"The write event Timeout(key={key}) for the timer {key} failed due to {error}. Ignoring it. "
    return Line("ERROR", "timer_failed", "", message)
