"""What a monitor sees of a simulated coordinator: lines of its log, records, and the request log."""

from collections.abc import Iterable, Iterator, Mapping

from coordinator_model import observations as on
from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.decoding.records import subscribed_topics
from coordinator_model.observations import Seen, Source
from tests import oracle as ora
from tests.oracle.values import responses as res
from tests.unit.made_seen import seen

SHARDS = 50
FIRST_PORT = 40_000


def lines_and_records(coordinator: ora.Coordinator, shard: int) -> Iterator[Seen]:
    """Yield the coordinator's lines and records, in order."""
    prefix = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard}] "
    for number, one in enumerate(coordinator.outcomes):
        if isinstance(one, ora.Logged):
            line = parse_coordinator_line(prefix + one.message, shard_count=SHARDS).observation
            if line is not None:
                yield seen(one.at_ms, line, offset=number)
        elif isinstance(one, ora.Appended):
            yield from _record(one, shard, number)


def answers_and_records(
    coordinator: ora.Coordinator, tickets: Mapping[int, ora.Ticket], shard: int
) -> Iterator[Seen]:
    """Yield what is left without the INFO lines: records, and each answer when it left."""
    for number, one in enumerate(coordinator.outcomes):
        if isinstance(one, ora.Appended):
            yield from _record(one, shard, number)
        elif isinstance(one, ora.Answered) and one.ticket in tickets:
            for index, what in enumerate(_answered(tickets[one.ticket], one)):
                yield seen(one.at_ms, what, Source.REQUEST_LOG, offset=8 * number + index)


def heard(source: Source, times_ms: Iterable[int]) -> Seen:
    """Say that the broker's log told something in all these seconds, as a log of many groups does."""
    seconds = tuple(sorted({at_ms // 1_000 for at_ms in times_ms}))
    what = on.LogSeconds(broker=1, heard=source, seconds=seconds)
    return seen(seconds[-1] * 1_000, what, source)


def _record(one: ora.Appended, shard: int, number: int) -> Iterator[Seen]:
    what = _recorded(one.record, one.at_ms)
    if what is not None:
        yield seen(one.at_ms, what, Source.OFFSETS, partition=shard, offset=number)


def _recorded(record: ora.Record, at_ms: int) -> on.AnyObservation | None:
    match record:
        case ora.GroupMetadata():
            return on.GroupRecorded(
                group=record.group,
                generation=record.generation,
                protocol_type=record.protocol_type,
                protocol=record.protocol,
                leader_id=record.leader,
                state_since_ms=record.current_state_timestamp,
                members=tuple(map(_member, record.members)),
            )
        case ora.GroupTombstone():
            return on.GroupTombstone(group=record.group)
        case ora.OffsetCommitted():
            commit = on.Commit(record.topic, record.partition, record.offset, record.commit_timestamp)
            return on.OffsetsCommitted(group=record.group, commits=(commit,))
        case ora.OffsetTombstone():
            commit = on.Commit(record.topic, record.partition, None, at_ms)
            return on.OffsetsCommitted(group=record.group, commits=(commit,))
        case _:
            return None


def _member(member: ora.GroupMember) -> on.MemberRecord:
    return on.MemberRecord(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
        instance_id=member.group_instance_id,
        topics=subscribed_topics(member.subscription),
    )


def _answered(ticket: ora.Ticket, told: ora.Answered) -> Iterator[on.AnyObservation]:
    """Say what the request log's line of an answer says."""
    asked, answer = ticket.request, told.response
    match asked, answer:
        case ora.JoinGroup(), res.JoinGroupResponse():
            yield _joined(asked, answer, ticket.arrived_at_ms)
        case ora.SyncGroup(), res.SyncGroupResponse():
            yield on.SyncAnswered(
                group=asked.group_id,
                member_id=asked.member_id,
                error_code=answer.error_code,
                generation=asked.generation_id,
                arrived_at_ms=ticket.arrived_at_ms,
                by_leader=bool(asked.assignments),
                instance_id=asked.group_instance_id,
            )
        case ora.Heartbeat(), res.HeartbeatResponse():
            yield on.Heartbeats(
                group=asked.group_id,
                member_id=asked.member_id,
                generation=asked.generation_id,
                error_code=answer.error_code,
                times=(told.at_ms,),
                instance_id=asked.group_instance_id,
            )
        case ora.LeaveGroup(), res.LeaveGroupResponse():
            for leaving, left in zip(asked.members, answer.members, strict=True):
                yield on.LeaveAnswered(
                    group=asked.group_id,
                    member_id=leaving.member_id,
                    error_code=answer.error_code or left.error_code,
                    instance_id=leaving.group_instance_id,
                    reason=leaving.reason,
                )
        case ora.DeleteGroups(), res.DeleteGroupsResponse():
            for one in answer.results:
                yield on.DeleteAnswered(group=one.group_id, error_code=one.error_code)


def _joined(asked: ora.JoinGroup, answer: res.JoinGroupResponse, arrived_ms: int) -> on.JoinAnswered:
    return on.JoinAnswered(
        group=asked.group_id,
        member_id=answer.member_id or asked.member_id,
        error_code=answer.error_code,
        generation=answer.generation_id,
        leader_id=answer.leader,
        arrived_at_ms=arrived_ms,
        requested_member_id=asked.member_id,
        instance_id=asked.group_instance_id,
        session_timeout_ms=asked.session_timeout_ms,
        rebalance_timeout_ms=asked.effective_rebalance_timeout_ms,
        protocol_type=asked.protocol_type,
        protocol=answer.protocol_name,
        reason=asked.reason,
        member_ids=tuple(one.member_id for one in answer.members),
        client=on.Client(client_id=asked.client_id, host=asked.client_host),
        protocols=tuple(one.name for one in asked.protocols),
    )
