"""Reads one line of a broker's request log: a group request with its answer.

The message is ``Completed request:`` and one JSON object, in one field order for each Kafka version that
writes JSON (2.8 and later).  Only the fields that the model needs are decoded, and lines of other APIs are
recognised by their first bytes alone.

Longer than 400 lines: one reader for each group API, over the same few ways to read a field.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from coordinator_model import observations as on
from coordinator_model.decoding.request_fields import (
    AskedTopic,
    ClaimLine,
    CommitLine,
    DeleteLine,
    EpochLine,
    HeartbeatLine,
    JoinLine,
    LeaveLine,
    Leaving,
    MarkersLine,
    RenderedLine,
    RequestLine,
    SyncLine,
)
from coordinator_model.kafka import Error

START = b"Completed request:"
_API = re.compile(
    rb'Completed request:\s*\{(?:"isForwarded":\w+,)?"requestHeader":\{"requestApiKey":(\d{1,5}),'
)
_LOGGER = b" (kafka.request.logger)"
SLOW_MS = 1_000
"""Heartbeats are answered at once, unless the coordinator waits for a replica."""


class RequestLineError(Exception):
    """The line cannot be read; ``reason`` is one of a small fixed vocabulary."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """request_not_json, request_not_rendered, request_json_invalid or out_of_range (a number in it)."""
        self.detail = detail


class Answered(NamedTuple):
    """The content of one line: its kind (the API, or other_api) and the observations."""

    kind: str
    observations: tuple[on.AnyObservation, ...]


_CONNECTION = re.compile(r".+:\d+-(.+):\d+(?:-\d+){1,2}")
_CONNECTION_LENGTH_MAX = 400
"""Two addresses with their scopes and ports take 200 characters at most; the expression backtracks."""
_KEPT_LENGTH_MAX = 1_000
"""Limit of characters of a sender; longer texts are not cached: clients choose some of them."""


def host_of(connection: str) -> str:
    """Return the remote host of ``local:port-remote:port-processor-index`` as "/10.0.0.7", or ""."""
    found = _CONNECTION.fullmatch(connection) if len(connection) <= _CONNECTION_LENGTH_MAX else None
    return f"/{found[1]}" if found else ""


def _client(line: RequestLine) -> on.Client:
    client_id, software = line.request_header.client_id or "", line.client_information.software_name
    return client_of(client_id, line.connection, line.principal, software)


def client_of(client_id: str, connection: str, principal: str, software: str) -> on.Client:
    """Return the sender of a request; the same object for the same sender, unless its texts are long."""
    size = len(client_id) + len(connection) + len(principal) + len(software)
    build = _known_client if size <= _KEPT_LENGTH_MAX else _known_client.__wrapped__
    return build(client_id, connection, principal, software)


@lru_cache(maxsize=65536)
def _known_client(client_id: str, connection: str, principal: str, software: str) -> on.Client:
    return on.Client(
        client_id=client_id,
        host=host_of(connection),
        connection=connection,
        principal=principal,
        software=software,
    )


def _before(at_ms: int, took_ms: float) -> int:
    return max(at_ms - round(took_ms), -1)


def _arrived_ms(line: RequestLine, at_ms: int) -> int:
    return _before(at_ms, line.total_time_ms)


def _stall(line: RequestLine, group: str, error_code: int, at_ms: int) -> tuple[on.ShardStalled, ...]:
    """Return a stall of all groups of the partition, if an answer waited for its write.

    A broker that shuts down answers the same error at once.
    """
    is_stalled = error_code == Error.COORDINATOR_NOT_AVAILABLE and line.remote_time_ms >= SLOW_MS
    return (on.ShardStalled(group=group, since_ms=_arrived_ms(line, at_ms)),) if is_stalled else ()


def _join(line: JoinLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked, answer = line.request, line.response
    return (
        on.JoinAnswered(
            group=asked.group_id,
            member_id=answer.member_id or asked.member_id,
            error_code=answer.error_code,
            generation=answer.generation_id,
            leader_id=answer.leader,
            arrived_at_ms=_arrived_ms(line, at_ms),
            requested_member_id=asked.member_id,
            instance_id=asked.group_instance_id,
            session_timeout_ms=asked.session_timeout_ms,
            # JoinGroup v0 has no rebalance timeout: the coordinator takes the session timeout.
            rebalance_timeout_ms=asked.session_timeout_ms
            if asked.rebalance_timeout_ms < 0
            else asked.rebalance_timeout_ms,
            protocol_type=asked.protocol_type,
            protocol=answer.protocol_name,
            reason=asked.reason,
            member_ids=tuple(member.member_id for member in answer.members),
            client=_client(line),
            protocols=tuple(protocol.name for protocol in asked.protocols),
        ),
    )


def _sync(line: SyncLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked = line.request
    return (
        *_stall(line, asked.group_id, line.response.error_code, at_ms),
        on.SyncAnswered(
            group=asked.group_id,
            member_id=asked.member_id,
            error_code=line.response.error_code,
            generation=asked.generation_id,
            arrived_at_ms=_arrived_ms(line, at_ms),
            by_leader=bool(asked.assignments),
            instance_id=asked.group_instance_id,
            client=_client(line),
        ),
    )


def _heartbeat(line: HeartbeatLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked = line.request
    # A request that waited for a replica took effect in the coordinator when it came.
    came_ms = at_ms if line.remote_time_ms < SLOW_MS else _before(at_ms, line.remote_time_ms)
    return (
        *_stall(line, asked.group_id, line.response.error_code, at_ms),
        on.Heartbeats(
            group=asked.group_id,
            member_id=asked.member_id,
            generation=asked.generation_id,
            error_code=line.response.error_code,
            times=(came_ms,),
            client=_client(line),
            instance_id=asked.group_instance_id,
        ),
    )


def _leave(line: LeaveLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked, answer = line.request, line.response
    # Versions 0-2 carry one member beside the group; an error for the whole request concerns each member.
    leaving = (
        asked.members if asked.members is not None else (Leaving(asked.member_id, asked.group_instance_id),)
    )
    errors = [member.error_code for member in answer.members]
    errors += [0] * (len(leaving) - len(errors))
    return tuple(
        on.LeaveAnswered(
            group=asked.group_id,
            member_id=member.member_id,
            error_code=answer.error_code or error,
            instance_id=member.group_instance_id,
            reason=member.reason,
            client=_client(line),
        )
        for member, error in zip(leaving, errors, strict=False)
    )


_OFFSETS_TOPIC = "__consumer_offsets"
"""The brokers' own name for it, even if the stream reads a copy with another name."""
_OF_THE_MEMBER = (82, 25, 22, 113, 110, 27, 16, 15, 14)


def worst_error(codes: set[int]) -> int:
    """Return the most telling error: of member or generation, then of the group, then of a partition."""
    for code in _OF_THE_MEMBER:
        if code in codes:
            return code
    return max(codes - {0}, default=0)


_ASKED_TOPICS = msgspec.json.Decoder(tuple[AskedTopic, ...])


def _refused_offsets(topics: msgspec.Raw) -> tuple[tuple[str, int, int], ...]:
    found = (
        (topic.name or topic.topic_id, partition.partition_index, partition.committed_offset)
        for topic in _ASKED_TOPICS.decode(topics)
        for partition in topic.partitions
    )
    return tuple(islice(found, on.CLAIMS_MAX))


def _commit(line: CommitLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked = line.request
    codes = {partition.error_code for topic in line.response.topics for partition in topic.partitions}
    epoch = asked.generation_id_or_member_epoch
    error_code = worst_error(codes)
    return (
        *_stall(line, asked.group_id, error_code, at_ms),
        on.CommitsAnswered(
            group=asked.group_id,
            member_id=asked.member_id,
            generation=asked.generation_id if epoch is None else epoch,
            error_code=error_code,
            times=(at_ms,),
            client=_client(line),
            instance_id=asked.group_instance_id,
            claims=_refused_offsets(asked.topics) if error_code else (),
        ),
    )


def _claim(line: ClaimLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    asked = line.request
    errors = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in line.response.topics
        for partition in topic.partitions
    }
    error_code = worst_error(set(errors.values()))
    return (
        *_stall(line, asked.group_id, error_code, at_ms),
        on.TransactionalCommit(
            group=asked.group_id,
            member_id=asked.member_id,
            generation=asked.generation_id,
            error_code=error_code,
            producer_id=asked.producer_id,
            offsets=tuple(
                (topic.name, partition.partition_index, partition.committed_offset)
                for topic in asked.topics
                for partition in topic.partitions
                if errors.get((topic.name, partition.partition_index)) == 0
            ),
            client=_client(line),
            instance_id=asked.group_instance_id,
        ),
    )


def _markers(line: MarkersLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    written = {
        (marker.producer_id, partition.partition_index)
        for marker in line.response.markers
        for topic in marker.topics
        for partition in topic.partitions
        if topic.name == _OFFSETS_TOPIC and partition.error_code == 0
    }
    return tuple(
        on.TransactionEnded(
            producer_id=marker.producer_id, committed=marker.transaction_result, partition=partition
        )
        for marker in line.request.markers
        for topic in marker.topics
        for partition in topic.partition_indexes
        if (marker.producer_id, partition) in written and topic.name == _OFFSETS_TOPIC
    )


def _delete(line: DeleteLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
    errors = {result.group_id: result.error_code for result in line.response.results}
    return tuple(
        on.DeleteAnswered(group=group, error_code=errors.get(group, 0)) for group in line.request.groups_names
    )


def _epoch(protocol: str) -> Callable[[EpochLine, int], tuple[on.AnyObservation, ...]]:
    """Return a reader of heartbeats of a protocol whose members have epochs.

    A heartbeat of a member that keeps its epoch is only a sign of life, and is coalesced.
    """

    def read(line: EpochLine, at_ms: int) -> tuple[on.AnyObservation, ...]:
        asked, answer = line.request, line.response
        if asked.member_epoch is None:
            return (on.LogNoted(kind=f"{protocol}_group_heartbeat"),)
        if answer.error_code == 0 and asked.member_epoch == answer.member_epoch > 0:
            beat = on.Heartbeats(
                group=asked.group_id,
                member_id=asked.member_id,
                generation=asked.member_epoch,
                error_code=0,
                times=(at_ms,),
                client=_client(line),
                instance_id=asked.instance_id,
                protocol=protocol,
            )
            return (beat,)
        answered = on.EpochAnswered(
            group=asked.group_id,
            protocol=protocol,
            # Version 0 lets the coordinator choose the id of a member that joins.
            member_id=asked.member_id or answer.member_id or "",
            asked=asked.member_epoch,
            epoch=answer.member_epoch,
            error_code=answer.error_code,
            arrived_at_ms=_arrived_ms(line, at_ms),
            interval_ms=answer.heartbeat_interval_ms,
            instance_id=asked.instance_id,
            client=_client(line),
        )
        return (*_stall(line, asked.group_id, answer.error_code, at_ms), answered)

    return read


_Read = Callable[[bytes, int], tuple[on.AnyObservation, ...]]
_LineT = TypeVar("_LineT", bound=RequestLine)


def _reader(shape: type[_LineT], build: Callable[[_LineT, int], tuple[on.AnyObservation, ...]]) -> _Read:
    decoder = msgspec.json.Decoder(shape)
    return lambda body, at_ms: build(decoder.decode(body), at_ms)


_READERS: Mapping[int, tuple[str, _Read]] = {
    8: ("offset_commit", _reader(CommitLine, _commit)),
    11: ("join_group", _reader(JoinLine, _join)),
    12: ("heartbeat", _reader(HeartbeatLine, _heartbeat)),
    13: ("leave_group", _reader(LeaveLine, _leave)),
    14: ("sync_group", _reader(SyncLine, _sync)),
    27: ("write_txn_markers", _reader(MarkersLine, _markers)),
    28: ("txn_offset_commit", _reader(ClaimLine, _claim)),
    42: ("delete_groups", _reader(DeleteLine, _delete)),
    68: ("consumer_group_heartbeat", _reader(EpochLine, _epoch("consumer"))),
    76: ("share_group_heartbeat", _reader(EpochLine, _epoch("share"))),
    88: ("streams_group_heartbeat", _reader(EpochLine, _epoch("streams"))),
}
_NOTED: Mapping[int, str] = {
    9: "offset_fetch",
    10: "find_coordinator",
    15: "describe_groups",
    16: "list_groups",
    47: "offset_delete",
    69: "consumer_group_describe",
    77: "share_group_describe",
    89: "streams_group_describe",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
}
"""APIs that concern groups and that the classic model does not need: counted by name, not decoded."""
_RENDERED = msgspec.json.Decoder(RenderedLine)
_OUT_OF_RANGE = re.compile(r"Expected `(?:int|float)` [<>]|(?:Integer value|Number) out of range")
"""msgspec's messages for a number beyond the bounds of its field, or of all numbers."""


def parse_request_line(message: bytes, at_ms: int) -> Answered:
    """Return the content of a line.

    Args:
        message: from ``Completed request:`` on; the logger's name at the end may still be there.
        at_ms: when the line was written, which is when the answer had been sent.

    Raises:
        RequestLineError: it is not JSON, was not rendered, or lacks a field that its API always has.
    """
    api = _API.match(message)
    if api is None:
        raise RequestLineError(_why_no_api(message))
    number = int(api[1])
    reader = _READERS.get(number)
    if reader is None:
        noted = _NOTED.get(number)
        return Answered(noted, (on.LogNoted(kind=noted),)) if noted else Answered("other_api", ())
    kind, read = reader
    body = message[len(START) :].strip().removesuffix(_LOGGER)
    try:
        return Answered(kind, read(body, at_ms))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestLineError(_why_not_decoded(body, error), str(error)[:200]) from None


def _why_no_api(message: bytes) -> str:
    # Before 2.8 the broker printed Java's own toString.
    is_json = message[len(START) :].lstrip()[:1] == b"{"
    return "request_json_invalid" if is_json else "request_not_json"


def _why_not_decoded(body: bytes, error: Exception) -> str:
    """Requests in flight when DEBUG was switched on have "" in place of the request."""
    if isinstance(error, msgspec.ValidationError) and _OUT_OF_RANGE.match(str(error)):
        return "out_of_range"
    try:
        parts = _RENDERED.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "request_json_invalid"
    is_empty = b'""' in {bytes(parts.request), bytes(parts.response)}
    return "request_not_rendered" if is_empty else "request_json_invalid"
