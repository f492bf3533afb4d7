"""Reading the log into memory, and giving memory up (Kafka: ``replay``, ``onLoaded``, ``onUnloaded``)."""

from collections.abc import Sequence

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases
from tests.oracle.due import CleanupDue
from tests.oracle.group import Group, Member
from tests.oracle.offset_store import Place
from tests.oracle.shard import Shard
from tests.oracle.timeline import commit
from tests.oracle.values.errors import Errors
from tests.oracle.values.requests import Protocol
from tests.oracle.values.responses import JoinGroupResponse, SyncGroupResponse
from tests.oracle.values.stored import (
    GroupMember,
    GroupMetadata,
    GroupTombstone,
    OffsetCommitted,
    OffsetTombstone,
    Record,
    TransactionMarker,
)


def read(shard: Shard, log: Sequence[Record]) -> None:
    """Bring the log into memory, all of it as committed."""
    for offset, record in enumerate(log):
        _replay(shard, record, offset)
    commit(shard.journal.take())


def _replay(shard: Shard, record: Record, offset: int) -> None:
    match record:
        case GroupMetadata():
            shard.groups.put(record.group, _group_of(record))
        case GroupTombstone():
            shard.groups.pop(record.group)
        case OffsetTombstone():
            shard.offsets.forget(Place(record.group, record.topic, record.partition))
        case TransactionMarker():
            for _ in shard.offsets.end_transaction(record.producer_id, committed=record.committed):
                pass
        case OffsetCommitted():
            if record.group not in shard.groups.live:
                shard.groups.put(record.group, Group(group_id=record.group, state_since_ms=shard.now_ms))
            shard.offsets.put(record, offset)


def _group_of(record: GroupMetadata) -> Group:
    """Return the group as a new coordinator takes it up: Stable or Empty, whatever was going on."""
    group = Group(
        group_id=record.group,
        state=GroupState.STABLE if record.members else GroupState.EMPTY,
        state_since_ms=record.current_state_timestamp,
        generation_id=record.generation,
        protocol_type=record.protocol_type or None,
        protocol_name=record.protocol,
        leader_id=record.leader,
    )
    for member in record.members:
        group.add(_member_of(record, member))
    group.subscribed_topics = group.compute_subscribed_topics()
    return group


def _member_of(record: GroupMetadata, member: GroupMember) -> Member:
    has_timeout = member.rebalance_timeout != -1
    return Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout if has_timeout else member.session_timeout,
        session_timeout_ms=member.session_timeout,
        protocol_type=record.protocol_type,
        protocols=(Protocol(name=record.protocol or "", metadata=member.subscription),),
        assignment=member.assignment,
    )


def on_loaded(shard: Shard) -> None:
    """Begin: every session from zero; a group that is too large for this broker rebalances."""
    for group in list(shard.groups.live.values()):
        shard.host.moved(group, GroupState.DEAD, group.state, CauseKind.COORDINATOR_MOVED)
        shard.host.log(log_lines.group_loaded(group))
        for member in group.members.values():
            shard.expect_heartbeat(group, member)
        size, size_max = len(group.members), shard.config.group_max_size
        if size > size_max:
            reason = (
                f"Freshly-loaded group {group.group_id} (size {size}) is over capacity {size_max}. "
                "Rebalancing in order to give a chance for consumers to commit offsets"
            )
            phases.prepare(shard, group, reason)
    shard.set_timer(CleanupDue(), shard.config.offsets_retention_check_interval_ms)


def on_unloaded(shard: Shard) -> None:
    """End: every group is Dead, and whoever is parked is sent to the new coordinator."""
    for group in list(shard.groups.live.values()):
        shard.host.log(log_lines.group_unloaded(group))
        shard.move(group, GroupState.DEAD, CauseKind.COORDINATOR_MOVED)
        for member in group.members.values():
            _send_away(shard, group, member)


def _send_away(shard: Shard, group: Group, member: Member) -> None:
    error = Errors.NOT_COORDINATOR
    if group.previous_state is GroupState.PREPARING_REBALANCE:
        response = JoinGroupResponse(error_code=error, member_id=member.member_id)
        phases.answer_join(shard, member, response)
    elif group.previous_state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        phases.answer_sync(shard, member, SyncGroupResponse(error_code=error))
