"""The sentences of the group coordinator's log, as templates, and the observation that each gives.

``{g}`` is the group; it and most other fields are free text (``templates.py`` reads them).

Each names the running brokers that logged it, or the versions whose classes contain it. Not here: "Preparing
to rebalance" (``coordinator_log.py``), where two free texts need more care.

Longer than 400 lines, because it is one table.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from coordinator_model import observations as on
from coordinator_model.decoding.coordinator_reasons import (
    REASON_LENGTH_MAX,
    client_reason_of,
    instance_of,
    split_ids,
)
from coordinator_model.decoding.templates import Template
from coordinator_model.kafka import NOT_PROVIDED, CauseKind, how_it_left
from coordinator_model.observations import int32_of

Values = Mapping[str, str]
Build = Callable[[Values], on.AnyObservation]


class LogLineError(Exception):
    """A known sentence with an impossible value; ``reason`` is one of a small fixed vocabulary."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """out_of_range: a number that Kafka's types cannot hold."""
        self.detail = detail


def int32(digits: str) -> int:
    """Return a generation, epoch, count, partition or broker id.

    Raises:
        LogLineError: it is out of range.
    """
    number = int32_of(digits)
    if number is None:
        raise LogLineError("out_of_range", f"{digits[:40]} is no INT32")
    return number


class Shape(NamedTuple):
    """One sentence: its template, and the observation that it gives."""

    template: Template
    build: Build
    known: str
    """Its origin: "4+" was logged by a running broker 4.3.1, "3+" by 3.9.2 and by 3.4.1 (a line of each is

    in ``tests/golden/logs``); "4-" and "3-" were read, with the types of their arguments, in the classes of
    these versions; "" is for any other sentence with this beginning.
    """


def _shape(sentence: str, build: Build, known: str) -> Shape:
    return Shape(Template(sentence), build, known)


def _noted(kind: str) -> Build:
    return lambda v: on.LogNoted(kind=kind, group=v.get("g"))


def _handed_out(v: Values) -> on.MemberIdHandedOut:
    return on.MemberIdHandedOut(group=v["g"], member_id=v["m"], state=v["s"])


def _joined(v: Values) -> on.MemberJoined:
    return on.MemberJoined(group=v["g"], member_id=v["m"], instance_id=instance_of(v.get("i", "None")))


def _static_replaced(v: Values) -> on.StaticMemberReplaced:
    return on.StaticMemberReplaced(group=v["g"], instance_id=v["i"], old_member_id=v["m"])


def _stabilized(v: Values) -> on.JoinPhaseEnded:
    return on.JoinPhaseEnded(group=v["g"], generation=int32(v["n"]), member_count=int32(v["k"]))


def _assignment(v: Values) -> on.AssignmentReceived:
    return on.AssignmentReceived(
        group=v["g"], generation=int32(v["n"]), leader_id=v["m"], member_count=int32(v["k"])
    )


def _emptied(v: Values) -> on.GroupEmptied:
    return on.GroupEmptied(group=v["g"], generation=int32(v["n"]))


def _kicked(v: Values) -> on.MembersKicked:
    return on.MembersKicked(group=v["g"], member_ids=split_ids(v["x"]))


def _left(v: Values) -> on.MemberLeft:
    return on.MemberLeft(group=v["g"], member_id=v["m"], client_reason=client_reason_of(v["x"]))


def _pending_left(v: Values) -> on.MemberLeft:
    reason = client_reason_of(v.get("x", NOT_PROVIDED))
    return on.MemberLeft(group=v["g"], member_id=v["m"], client_reason=reason, pending=True)


def _fenced(v: Values) -> on.InstanceFenced:
    return on.InstanceFenced(member_id=v["m"], instance_id=v["i"], by_member_id=v["m2"], operation=v["op"])


def _leader(v: Values) -> on.LeaderReplaced:
    return on.LeaderReplaced(old_leader_id=v["m"], new_leader_id=v.get("m2"))


def _deleted(v: Values) -> on.AnyObservation:
    # Kafka 4 prints the sentence with an empty list when nothing was deleted.
    return on.GroupsDeleted(names=v["x"]) if v["x"] else on.LogNoted(kind="nothing_deleted")


def _simple(v: Values) -> on.SimpleGroupCreated:
    return on.SimpleGroupCreated(group=v["g"])


def _group_loaded(v: Values) -> on.GroupLoaded:
    return on.GroupLoaded(
        group=v["g"],
        group_type=v.get("s", "classic"),
        member_count=int32(v.get("k", "-1")),
        generation=int32(v.get("n", "-1")),
    )


def _group_unloaded(v: Values) -> on.GroupUnloaded:
    return on.GroupUnloaded(group=v["g"], generation=int32(v["n"]))


def _epoch(v: Values) -> int:
    digits = _DIGITS.search(v["epoch"])
    return int32(digits[0]) if digits else -1


_DIGITS = re.compile(r"-?\d+", re.ASCII)
_UNKNOWN_ID = "with unknown member id joins group {g} in {s} state. Created a new member id {m} "
_STATIC = "Static member with groupInstanceId={i} and unknown member id joins group {g} in {s} state. "
_BY_LEAVE = "has left group through explicit `LeaveGroup` request; client reason: {x}"
_NOT_IN_TIME = "failed to join before the rebalance timeout"
_SCALA_LEADER = (
    "Group leader [member.id: {m}, group.instance.id: {i}] failed to join before rebalance timeout, "
)

_MEMBERS = (
    _shape(
        f"Dynamic member {_UNKNOWN_ID}and requesting the member to rejoin with this id.", _handed_out, "4+"
    ),
    _shape(f"Dynamic member {_UNKNOWN_ID}and request the member to rejoin with this id.", _handed_out, "3+"),
    _shape(
        "Dynamic member with unknown member id joins group {g} in state {s}. Created a new member id {m} "
        "and added the member to the group.",
        _joined,
        "4+",
    ),
    _shape(f"Dynamic Member {_UNKNOWN_ID}for this member and add to the group.", _joined, "3+"),
    _shape(
        "Pending dynamic member with id {m} joins group {g} in {s} state. Adding to the group now.",
        _joined,
        "4+",
    ),
    _shape(f"{_STATIC}Created a new member id {{m}} for this member and added to the group.", _joined, "4+"),
    _shape(f"{_STATIC}Created a new member id {{m}} for this member and add to the group.", _joined, "3+"),
    _shape(
        f"{_STATIC}Replacing previously mapped member {{m}} with this groupInstanceId.",
        _static_replaced,
        "4+ 3+",
    ),
    _shape(
        "Member {m} in group {g} has failed, removing it from the group.",
        lambda v: on.MemberFailed(group=v["g"], member_id=v["m"]),
        "4+ 3+",
    ),
    _shape(
        "Pending member {m} in group {g} has been removed after session timeout expiration.",
        lambda v: on.PendingMemberExpired(group=v["g"], member_id=v["m"]),
        "4+ 3+",
    ),
    _shape(f"[Group {{g}}] Pending member {{m}} {_BY_LEAVE}", _pending_left, "4+"),
    _shape(f"[Group {{g}}] Member {{m}} {_BY_LEAVE}", _left, "4+"),
    _shape(
        "Member MemberMetadata(memberId={m}, groupInstanceId={i}, clientId={client}, clientHost={host}, "
        "sessionTimeoutMs={n}, rebalanceTimeoutMs={k}, supportedProtocols={protocols}) "
        "has left group {g} through explicit `LeaveGroup`; client reason: {x}",
        _left,
        "3+",
    ),
    _shape(
        "Pending member with memberId={m} has left group {g} through explicit `LeaveGroup` request",
        _pending_left,
        "3+",
    ),
)
_GENERATIONS = (
    _shape("Stabilized group {g} generation {n} with {k} members.", _stabilized, "4+"),
    _shape(
        "Stabilized group {g} generation {n} (__consumer_offsets-{partition}) with {k} members.",
        _stabilized,
        "3+",
    ),
    _shape(
        "Assignment received from leader {m} for group {g} for generation {n}. "
        "The group has {k} members, {static} of which are static.",
        _assignment,
        "4+ 3+",
    ),
    _shape("Group {g} with generation {n} is now empty.", _emptied, "4+"),
    _shape("Group {g} with generation {n} is now empty (__consumer_offsets-{partition})", _emptied, "3+"),
    _shape("Group {g} removed dynamic members who haven't joined: {x}", _kicked, "4+ 3+"),
    _shape(
        "Group {g} could not complete rebalance because no members rejoined.",
        lambda v: on.NobodyRejoined(group=v["g"]),
        "4+ 3+",
    ),
    # Both versions print the new leader whole: ClassicGroupMember.toString, and MemberMetadata.toString.
    _shape(
        f"Group leader [memberId: {{m}}, groupInstanceId: {{i}}] {_NOT_IN_TIME}. "
        "Member ClassicGroupMember(memberId='{m2}', groupInstanceId='{rest}) was elected as the new leader.",
        _leader,
        "4+",
    ),
    _shape(
        f"Group leader [memberId: {{m}}, groupInstanceId: {{i}}] {_NOT_IN_TIME} "
        "and the group couldn't proceed to the next generation because no member joined.",
        _leader,
        "4+",
    ),
    _shape(
        f"{_SCALA_LEADER}while new leader MemberMetadata(memberId={{m2}}, groupInstanceId={{rest}}) "
        "was elected.",
        _leader,
        "3+",
    ),
    _shape(
        f"{_SCALA_LEADER}and the group couldn't proceed to next generationbecause no member joined.",
        _leader,
        "3+",
    ),
)
_FENCED = "Request memberId={m} for static member with groupInstanceId={i} is fenced by "
_GROUPS = (
    _shape(f"{_FENCED}existing memberId={{m2}} during operation {{op}}", _fenced, "4+"),
    _shape(f"{_FENCED}current memberId={{m2}} during operation {{op}}", _fenced, "3+"),
    _shape("The following groups were deleted: {x}. A total of {n} offsets were removed.", _deleted, "4+ 3+"),
    _shape("[GroupId {g}] Creating a simple consumer group via manual offset commit.", _simple, "4+"),
    _shape("Loaded {s} group {g} with {k} members.", _group_loaded, "4+"),
    _shape("Loading group metadata for {g} with generation {n}", _group_loaded, "3+"),
    _shape("[GroupId={g}] Unloading group metadata for generation {n}.", _group_unloaded, "4+"),
    _shape("[GroupId={g}] Unloaded group metadata for group epoch {n}.", _group_unloaded, "4+"),
    _shape("Unloading group metadata for {g} with generation {n}", _group_unloaded, "3+"),
    _shape(
        "Group {g} transitioned to Dead in generation {n}",
        lambda v: on.GroupDied(group=v["g"], generation=int32(v["n"])),
        "3+",
    ),
)
_SHARDS = (
    _shape(
        "Scheduling loading of metadata from {topic}-{partition} with epoch {epoch}",
        lambda v: on.ShardLoading(epoch=_epoch(v)),
        "4+",
    ),
    _shape(
        "Finished loading of metadata from {topic}-{partition} with epoch {epoch} in {x}",
        lambda v: on.ShardLoaded(epoch=_epoch(v)),
        "4+",
    ),
    _shape(
        "Finished unloading metadata for {topic}-{partition} with epoch {epoch}.",
        lambda v: on.ShardUnloaded(),
        "4+",
    ),
    _shape(
        "Scheduling loading of offsets and group metadata from {topic}-{partition} for epoch {epoch}",
        lambda v: on.ShardLoading(epoch=_epoch(v)),
        "3+",
    ),
    _shape(
        "Finished loading offsets and group metadata from {topic}-{partition} in {k} milliseconds "
        "for epoch {epoch}, of which {x}",
        lambda v: on.ShardLoaded(epoch=_epoch(v)),
        "3+",
    ),
    _shape(
        "Finished unloading {topic}-{partition} for coordinator epoch {epoch}. Removed {x}",
        lambda v: on.ShardUnloaded(),
        "3+",
    ),
)


def _modern_gone(v: Values) -> on.ModernMemberGone:
    kind = how_it_left(v.get("x"))
    reason = client_reason_of(v["x"]) if "x" in v else None
    text = "explicit `LeaveGroup` request" if "x" in v else "left"
    return on.ModernMemberGone(
        group=v["g"], member_id=v["m"], kind=kind.value, text=text, client_reason=reason
    )


def _modern_fenced(v: Values) -> on.ModernMemberGone:
    text = v["x"].rstrip(".")
    kinds = (kind for words, kind in _FENCED_BECAUSE if words in text)
    kind = next(kinds, CauseKind.UNKNOWN)
    return on.ModernMemberGone(group=v["g"], member_id=v["m"], kind=kind.value, text=text[:REASON_LENGTH_MAX])


def _instance_refused(v: Values, *, fenced: bool) -> on.InstanceRefused:
    return on.InstanceRefused(
        group=v["g"], member_id=v["m"], instance_id=v["i"], by_member_id=v["m2"], fenced=fenced
    )


_FENCED_BECAUSE = (
    ("session expired", CauseKind.SESSION_TIMEOUT),
    ("failed to transition from epoch", CauseKind.REBALANCE_TIMEOUT),
    ("failed to join within the rebalance timeout", CauseKind.REBALANCE_TIMEOUT),
    ("failed to sync within timeout", CauseKind.SYNC_TIMEOUT),
)
_EXPLICITLY = "has left group through explicit `LeaveGroup` request; client reason: {x}"
# How members of consumer, share and streams groups leave: only that is missing in their records.
_MODERN = (
    _shape(
        "[GroupId {g}] Static member {m} with instance id {i} temporarily left the consumer group.",
        _noted("modern_member_away"),
        "4+",
    ),
    _shape(
        "[GroupId {g}] Static member {m} with instance id {i} left the consumer group.", _modern_gone, "4+"
    ),
    _shape(f"[GroupId {{g}}] Static member {{m}} with instance id {{i}} {_EXPLICITLY}", _modern_gone, "4-"),
    _shape(f"[GroupId {{g}}] Dynamic member {{m}} {_EXPLICITLY}", _modern_gone, "4-"),
    _shape("[GroupId {g}][MemberId {i}] Member {m} left the streams group.", _modern_gone, "4+"),
    _shape("[GroupId {g}] Member {m} left the consumer group.", _modern_gone, "4+"),
    _shape(
        "[GroupId {g}] Converted the {x} group to a {t} group.",
        lambda v: on.GroupConverted(group=v["g"], to_classic=v["t"] == "classic"),
        "4+",
    ),
    _shape("[GroupId {g}] Member {m} left the share group.", _modern_gone, "4+"),
    _shape(
        "[GroupId {g}] Static member {m} with instance id {i} cannot join the group because the "
        "instance id is owned by member {m2}.",
        lambda v: _instance_refused(v, fenced=False),
        "4-",
    ),
    _shape(
        "[GroupId {g}] Static member {m} with instance id {i} is fenced by existing member {m2}.",
        lambda v: _instance_refused(v, fenced=True),
        "4-",
    ),
    _shape("[GroupId {g}] Streams member {m} fenced from the group because {x}.", _modern_fenced, "4+"),
    _shape("[GroupId {g}] Member {m} fenced from the group because {x}.", _modern_fenced, "4+"),
)
# Known lines that change nothing in a classic group; counted by kind.
_NOTED = (
    (
        "Static member which joins during Stable stage and doesn't affect {x}",
        "static_join_without_rebalance",
        "4+ 3+",
    ),
    (
        "Attempt to add rejoining member {m} of group {g} in unexpected group state {s}",
        "unexpected_rejoin",
        "4- 3-",
    ),
    ("Group {g} is dead, skipping rebalance stage.", "dead_group", "4- 3-"),
    (
        "Received notification of heartbeat expiration for member {m} after group {g} had already been {x}",
        "late_timer",
        "4- 3+",
    ),
    ("Received unexpected notification of sync expiration {x}", "late_timer", "4- 3-"),
    (
        "Sending empty assignment to member {m} of {g} for generation {n} with no errors",
        "empty_assignment",
        "4+ 3+",
    ),
    ("Setting empty assignments for members {m} of {g} for generation {n}.", "empty_assignment", "4+ 3+"),
    ("Failed to persist metadata for group {g} static member {x}", "write_failed", "4-"),
    ("Failed to persist metadata for group {g}: {x}", "write_failed", "3-"),
    ("Failed to write empty metadata for group {g}: {x}", "write_failed", "4- 3-"),
    ("Appending metadata message for group {g} generation {n} failed {x}", "write_failed", "3-"),
    ("Failed to write {x}", "write_failed", "4-"),
    (
        "Generated {n} tombstone records while cleaning up group metadata in {k} milliseconds.",
        "groups_expired",
        "4+",
    ),
    (
        "Generated {n} tombstone records in {k} milliseconds while deleting offsets for {x}",
        "topics_deleted",
        "4-",
    ),
    (
        "Generated {n} records in {k} milliseconds while cleaning share group state {x}",
        "topics_deleted",
        "4-",
    ),
    ("The following offsets of the group {g} were deleted: {x}", "offsets_deleted", "3+"),
    ("Removed {n} offsets associated with deleted partitions: {x}", "topics_deleted", "3-"),
    ("Removed {n} expired offsets in {k} milliseconds.", "offsets_expired", "3-"),
    ("Loaded member {m} in group {g} with generation {n}.", "member_loaded", "3+"),
    ("Scheduling unloading of {x}", "shard_unloading", "4+ 3+"),
    ("Started unloading metadata for {topic}-{partition} with epoch {epoch}.", "shard_unloading", "4+"),
    ("Ignored {x}", "load_ignored", "4+"),
    ("Not loading offsets and group metadata for {x}", "load_ignored", "3-"),
    ("Not removing offsets and group metadata for {x}", "load_ignored", "3-"),
    ("Already loading offsets and group metadata from {x}", "load_ignored", "3-"),
    ("The coordinator {topic}-{partition} is already {x}", "load_ignored", "4-"),
    ("Elected as the group coordinator for partition {partition} in epoch {epoch}", "elected", "3+"),
    ("Resigned as the group coordinator for partition {partition} in epoch {epoch}", "resigned", "3+"),
    ("Failed to load metadata from {topic}-{partition} with epoch {epoch} due to {x}", "load_failed", "4-"),
    ("Error loading offsets from {x}", "load_failed", "3-"),
    ("Failed to unload {x}", "unload_failed", "4-"),
    ("Cannot load coordinator {x}", "load_failed", "4-"),
    ("The state machine of the coordinator {x}", "out_of_sync", "4-"),
    ("Replaying record {x}", "out_of_sync", "4-"),
    ("Skipped the materialization of transactional offset commit {x}", "transactional_commit_skipped", "4-"),
    ("Cannot upgrade classic group {g} to consumer group{x}", "conversion_refused", "4-"),
    ("Cannot downgrade consumer group {g} to classic group{x}", "conversion_refused", "4-"),
    ("Cannot join the consumer group {g} with the classic protocol {x}", "conversion_refused", "4-"),
    ("The write event {x}", "timer_failed", "4-"),
    ("Existing deleting entries found in share group {x}", "share_group_state", "4-"),
    ("Some topics for share group id {x}", "share_group_state", "4-"),
    ("Initializing topic {x}", "share_group_state", "4-"),
    (
        "Cannot downgrade the consumer group {g}: fail to parse the Consumer Protocol {x}",
        "conversion_refused",
        "4-",
    ),
    ("Failed to parse Consumer Protocol {x}", "subscription_not_parsed", "4- 3-"),
    ("Loaded metadata from {x}", "load_buffer_grown", "4-"),
    ("Loaded offsets and group metadata from {x}", "load_buffer_grown", "3-"),
    ("Attempted to load offsets and group metadata from {x}", "load_ignored", "3-"),
    ("Attempt to load group {x}", "load_ignored", "3-"),
    ("Unknown record type {x}", "record_type_unknown", "4-"),
    ("Unknown message key with version {x}", "record_type_unknown", "3-"),
    ("Failed to invoke {x}", "answer_failed", "3-"),
    ("Loaded group {g} with an unknown group type {x}", "group_type_unknown", "4-"),
    ("onUnloaded group with an unknown group type {x}", "group_type_unknown", "4-"),
    ("group: {g} with leader: {m} has received offset commits {x}", "mixed_commits", "3-"),
    ("Unable to cleanup {x}", "share_group_state", "4-"),
    ("Unable to delete share group {x}", "share_group_state", "4-"),
    ("Unable to initialize share group {x}", "share_group_state", "4-"),
    ("Received error while {x}", "share_group_state", "4-"),
    ("Result is null for the {x}", "share_group_state", "4-"),
    ("Error deleting share group {x}", "share_group_state", "4-"),
    ("Failed to delete share group {x}", "share_group_state", "4-"),
    ("Failed to read summary of the share partition{x}", "share_group_state", "4-"),
    ("Failed to retrieve {x}", "share_group_state", "4-"),
    ("Partition end offset fetch failed {x}", "share_group_state", "4-"),
    ("Persister initialization failed{x}", "share_group_state", "4-"),
    ("Could not delete offsets for deleted topics {x}", "write_failed", "4-"),
    ("Execution of {x}", "internal_error", "4-"),
    ("Completion of event {x}", "internal_error", "4-"),
    ("Operation {x}", "internal_error", "4-"),
    ("Deserializing record {x}", "internal_error", "4-"),
    ("Draining threw exception{x}", "internal_error", "4-"),
    ("Exiting with exception{x}", "internal_error", "4-"),
    ("Failed to reject event {x}", "internal_error", "4-"),
    ("Failed to run event {x}", "internal_error", "4-"),
    ("Shutting down. Draining the remaining events.", "coordinator_stopped", "4-"),
    ("Shutdown completed", "coordinator_stopped", "4-"),
    ("Group coordinator is already {x}", "coordinator_started", "4-"),
    ("Coordinator loader is already shutting down.", "coordinator_stopped", "4-"),
    ("Starting up.", "coordinator_started", "4+ 3+"),
    ("Startup complete.", "coordinator_started", "4+ 3+"),
    ("Shutting down.", "coordinator_stopped", "4+ 3+"),
    ("Shutdown complete.", "coordinator_stopped", "4+ 3+"),
    ("Shutting down event processor.", "coordinator_stopped", "4+"),
    ("Event processor closed.", "coordinator_stopped", "4+"),
    ("Closing coordinator runtime.", "coordinator_stopped", "4+"),
    ("Coordinator runtime closed.", "coordinator_stopped", "4+"),
    ("Coordinator runtime is already shutting down.", "coordinator_stopped", "4-"),
    # Streams groups; before the others, or the member would be taken for a part of the group's name.
    ("[GroupId {g}][MemberId {m}] Member joins the streams group{x}", "modern_member_joined", "4+"),
    ("[GroupId {g}][MemberId {m}] {x}", "modern_group", "4+"),
    ("[GroupId {g}] {x} fenced from the group because {y}", "modern_member_fenced", ""),
    ("[GroupId {g}] {x} is fenced by existing member {y}", "modern_member_fenced", ""),
    ("[GroupId {g}] {x} left the {s} group.", "modern_member_left", ""),
    (
        "[GroupId {g}] {x} has left group through explicit `LeaveGroup` request; client reason: {y}",
        "modern_member_left",
        "",
    ),
    ("[GroupId {g}] {x} joins the {s} group{y}", "modern_member_joined", "4+"),
    ("[GroupId {g}] {x} re-joins the {s} group{y}", "modern_member_joined", "4+"),
    # Free text with brackets of its own follows the group, so the group is not read.
    ("[GroupId {x}", "modern_group", "4+"),
)
_SPECIFIC = (*_GENERATIONS, *_MEMBERS, *_GROUPS, *_SHARDS, *_MODERN)
SHAPES: tuple[Shape, ...] = (
    *_SPECIFIC,
    *(_shape(sentence, _noted(kind), known) for sentence, kind, known in _NOTED),
)
"""Every sentence; the first that fits gives the content of the line."""
_KEY_SIZE = min(len(shape.template.start) for shape in SHAPES)
_BY_START: dict[str, tuple[Shape, ...]] = {}
for _one in SHAPES:
    _key = _one.template.start[:_KEY_SIZE]
    _BY_START[_key] = (*_BY_START.get(_key, ()), _one)


def shapes_for(text: str) -> tuple[Shape, ...]:
    """Return the sentences with the beginning of ``text``, in the order in which they are to be tried."""
    return _BY_START.get(text[:_KEY_SIZE], ())
