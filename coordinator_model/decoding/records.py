"""Turns records of ``__consumer_offsets`` into observations.

``schemas.py`` decodes the bytes; this module turns the fields into observations of a group.
"""

import base64
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from coordinator_model.decoding.modern_records import part_of
from coordinator_model.decoding.schemas import RECORDS, Value, decode_key, decode_value
from coordinator_model.decoding.wire import DecodeError, Fault, Reader
from coordinator_model.observations import (
    Commit,
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    ModernRecord,
    OffsetsCommitted,
    is_time_ms,
)

Recorded: TypeAlias = OffsetsCommitted | GroupRecorded | GroupTombstone | ModernRecord
"""The observations that one record can give."""

LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2
COMMIT_TYPES = frozenset({LEGACY_OFFSET_COMMIT, OFFSET_COMMIT})
_CONSUMER_PROTOCOL = "consumer"
"""Only this protocol type has a known format of the members' opaque bytes (Connect has its own)."""
_VERSION_AND_COUNT, _SHORT, _INT = struct.Struct(">hi"), struct.Struct(">h"), struct.Struct(">i")
_TIME_AND_COUNT, _TIMEOUTS_AND_SIZE = struct.Struct(">qi"), struct.Struct(">iii")
_GROUP_KEY, _GROUP_VALUE = b"\x00\x02", b"\x00\x03"
"""Record type, and version of the value, of the group records that are read without the tables."""
_NULL_TEXT = b"\xff\xff"
_SUBSCRIPTIONS_CACHED = 1_024
"""Members of a group mostly subscribe alike, and so do its generations."""
_ASSIGNMENTS_CACHED, _CACHED_ASSIGNMENT_BYTES_MAX = 1_024, 512
"""Most members keep their assignment from one generation to the next; long ones would take much memory."""

_GROUP_TYPES: Mapping[str, str] = {
    "ConsumerGroup": "consumer",
    "ShareGroup": "share",
    "StreamsGroup": "streams",
}


class CommitKey(NamedTuple):
    """The group, topic and partition of an offset."""

    group: str
    topic: str
    partition: int


class CommitValue(NamedTuple):
    """A committed offset and when the coordinator took it (its clock, epoch milliseconds)."""

    offset: int
    committed_at_ms: int


def kind_of(record_type: int, *, tombstone: bool) -> str:
    """Return the name under which a record is counted."""
    name = RECORDS[record_type].name
    return f"{name}Tombstone" if tombstone else name


def read_commit_key(data: bytes) -> CommitKey:
    """Return an offset commit's key (types 0 and 1).

    Raises:
        DecodeError: it is not one.
    """
    record_type, key = decode_key(data)
    if record_type not in COMMIT_TYPES:
        raise DecodeError(Fault.UNKNOWN_TYPE, f"type {record_type} is no offset commit")
    return CommitKey(key["group"], key["topic"], key["partition"])


def read_commit_value(record_type: int, data: bytes) -> CommitValue:
    """Return the fields of an offset commit's value.

    Raises:
        DecodeError: it is not one.
    """
    _, value = decode_value(record_type, data)
    return _checked_commit(value)


def _checked_commit(value: Mapping[str, Value]) -> CommitValue:
    """Return the fields of an offset commit.

    Raises:
        DecodeError: no coordinator wrote such an offset at such a time.
    """
    offset, at_ms = value["offset"], value["commitTimestamp"]
    if offset < 0 or not is_time_ms(at_ms):
        raise DecodeError(Fault.OUT_OF_RANGE, f"offset {offset} committed at {at_ms}")
    return CommitValue(offset, at_ms)


def observe(key: bytes | None, value: bytes | None, *, recorded_at_ms: int) -> Recorded:
    """Return the observation of one record; ``recorded_at_ms`` dates a commit's tombstone.

    Raises:
        DecodeError: the record cannot be read.
    """
    if key is None:
        raise DecodeError(Fault.NULL_KEY)
    plain = _plain_group(key, value)
    if plain is not None:
        return plain
    record_type, fields = decode_key(key)
    content = None if value is None else decode_value(record_type, value)[1]
    if record_type in COMMIT_TYPES:
        return _observe_commit(fields, content, recorded_at_ms)
    if record_type == GROUP_METADATA:
        return _observe_group(fields["group"], content)
    return ModernRecord(
        group=fields["groupId"],
        group_type=group_type_of(record_type),
        record_type=record_type,
        name=RECORDS[record_type].name,
        tombstone=content is None,
        member_id=fields.get("memberId", ""),
        part=None if content is None else part_of(record_type, fields, content),
        expression=fields.get("regularExpression", ""),
    )


def group_type_of(record_type: int) -> str:
    """Return consumer, share or streams for the record types of groups that are not classic."""
    name = RECORDS[record_type].name
    return next(kind for prefix, kind in _GROUP_TYPES.items() if name.startswith(prefix))


def _observe_commit(key: Value, value: Value, recorded_at_ms: int) -> OffsetsCommitted:
    offset, at_ms = (None, recorded_at_ms) if value is None else _checked_commit(value)
    topic_id = "" if value is None else value.get("topicId") or ""
    commit = Commit(key["topic"], key["partition"], offset, at_ms, topic_id=_half_of(topic_id))
    return OffsetsCommitted(group=key["group"], commits=(commit,))


def _half_of(topic_id: str) -> int:
    """Return the first 8 bytes of an id as Kafka prints it; 0 for none."""
    raw = base64.urlsafe_b64decode(topic_id + "==") if topic_id else b""
    return int.from_bytes(raw[:8], "big", signed=True)


def _observe_group(group: str, value: Value) -> GroupRecorded | GroupTombstone:
    if value is None:
        return GroupTombstone(group=group)
    opaque = value["protocolType"] != _CONSUMER_PROTOCOL
    since_ms = value.get("currentStateTimestamp", -1)
    if not is_time_ms(since_ms):
        raise DecodeError(Fault.OUT_OF_RANGE, f"a state since {since_ms}")
    return GroupRecorded(
        group=group,
        generation=value["generation"],
        protocol_type=value["protocolType"],
        protocol=value["protocol"],
        leader_id=value["leader"],
        state_since_ms=since_ms,
        members=tuple(_member(member, opaque=opaque) for member in value["members"]),
    )


def _member(value: Value, *, opaque: bool) -> MemberRecord:
    return MemberRecord(
        member_id=value["memberId"],
        client_id=value["clientId"],
        client_host=value["clientHost"],
        session_timeout_ms=value["sessionTimeout"],
        rebalance_timeout_ms=value.get("rebalanceTimeout", -1),
        instance_id=value.get("groupInstanceId"),
        topics=None if opaque else subscribed_topics(value["subscription"]),
        assigned=None if opaque else assigned_partitions(value["assignment"]),
    )


# --- fast paths for the most frequent group records ---------------------------------------------------


def _plain_group(key: bytes, value: bytes | None) -> GroupRecorded | None:
    """Return a sound record of a classic group, faster than by the tables; None for others.

    A snapshot of a large cluster consists of these, in the version that brokers have written since Kafka 2.3.
    Slices may reach beyond the bytes, since places only grow: if the last one ends at the end, all were
    within.
    """
    if value is None or key[:2] != _GROUP_KEY or value[:2] != _GROUP_VALUE:
        return None
    try:
        group, key_end = _plain_text(key, 2)
        protocol_type, place = _plain_text(value, 2)
        generation = _INT.unpack_from(value, place)[0]
        protocol, place = _plain_text(value, place + 4)
        leader_id, place = _plain_text(value, place)
        state_since_ms, count = _TIME_AND_COUNT.unpack_from(value, place)
        place += _TIME_AND_COUNT.size
        members = []
        for _ in range(count):
            member, place = _plain_member(value, place, opaque=protocol_type != _CONSUMER_PROTOCOL)
            members.append(member)
    except (IndexError, ValueError, struct.error):
        return None
    is_whole = key_end == len(key) and place == len(value) and count >= 0 and is_time_ms(state_since_ms)
    if not is_whole or group is None or protocol_type is None:
        return None
    return GroupRecorded(
        group=group,
        generation=generation,
        protocol_type=protocol_type,
        protocol=protocol,
        leader_id=leader_id,
        state_since_ms=state_since_ms,
        members=tuple(members),
    )


def _plain_member(data: bytes, place: int, *, opaque: bool) -> tuple[MemberRecord, int]:
    """Return the member that begins at ``place`` and where it ends.

    A record consists mostly of its members, so three of their texts are read here, without a call.

    Raises:
        IndexError, ValueError, struct.error: the member is not sound.
    """
    id_end = place + 2 + (data[place] << 8 | data[place + 1])
    dynamic = data.startswith(_NULL_TEXT, id_end)
    instance_id, client = (None, id_end + 2) if dynamic else _plain_text(data, id_end)
    client_end = client + 2 + (data[client] << 8 | data[client + 1])
    host_end = client_end + 2 + (data[client_end] << 8 | data[client_end + 1])
    rebalance_timeout_ms, session_timeout_ms, size = _TIMEOUTS_AND_SIZE.unpack_from(data, host_end)
    subscription = host_end + _TIMEOUTS_AND_SIZE.size
    subscription_end = subscription + size
    (assignment_size,) = _INT.unpack_from(data, subscription_end)
    end = subscription_end + 4 + assignment_size
    if data[place] | data[client] | data[client_end] >= 0x80 or size < 0 or assignment_size < 0:
        raise ValueError
    member = MemberRecord(
        member_id=data[place + 2 : id_end].decode(),
        client_id=data[client + 2 : client_end].decode(),
        client_host=data[client_end + 2 : host_end].decode(),
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        instance_id=instance_id,
        topics=None if opaque else subscribed_topics(data[subscription:subscription_end]),
        assigned=None if opaque else assigned_partitions(data[subscription_end + 4 : end]),
    )
    return member, end


def _plain_text(data: bytes, place: int) -> tuple[str | None, int]:
    """Return the nullable text at ``place`` and where it ends.

    Raises:
        IndexError, ValueError: there is none.
    """
    high, start = data[place], place + 2
    if high < 0x80:
        end = start + (high << 8 | data[place + 1])
        return data[start:end].decode(), end
    if high == data[place + 1] == 0xFF:
        return None, start
    raise ValueError


# --- what the clients of protocol type "consumer" put into a member's opaque bytes ---------------------


@lru_cache(maxsize=_SUBSCRIPTIONS_CACHED)
def subscribed_topics(subscription: bytes) -> tuple[str, ...] | None:
    """Return the topics of a ConsumerProtocol subscription, None if the bytes are something else.

    Only the part that every version begins with is read: some clients announce a version and leave
    its newer fields out, and their topics are still known.
    """
    try:
        reader = _protocol_reader(subscription)
        return tuple(reader.array(_count(reader), _protocol_text))
    except DecodeError:
        return None


def assigned_partitions(assignment: bytes) -> dict[str, tuple[int, ...]] | None:
    """Return topic -> partitions of a ConsumerProtocol assignment, None if the bytes are something else.

    No bytes at all is a member that got nothing, as Kafka's own Admin client reads it.
    """
    if not assignment:
        return {}
    plain = _plainly_assigned(assignment)
    if plain is not None:
        return plain
    assigned: dict[str, list[int]] = {}
    try:
        reader = _protocol_reader(assignment)
        for topic, partitions in reader.array(_count(reader), _protocol_partitions):
            assigned.setdefault(topic, []).extend(partitions)
    except DecodeError:
        return None
    return {topic: tuple(partitions) for topic, partitions in assigned.items()}


def _plainly_assigned(data: bytes) -> dict[str, tuple[int, ...]] | None:
    """Return the same for sound bytes that name each topic once, in a fifth of the time; None for others.

    A snapshot of a large cluster consists of these.
    """
    return _cached_assignment(data) if len(data) <= _CACHED_ASSIGNMENT_BYTES_MAX else _plain_assignment(data)


def _plain_assignment(data: bytes) -> dict[str, tuple[int, ...]] | None:
    assigned: dict[str, tuple[int, ...]] = {}
    try:
        version, topics = _VERSION_AND_COUNT.unpack_from(data)
        place = _VERSION_AND_COUNT.size
        for _ in range(topics):
            (size,) = _SHORT.unpack_from(data, place)
            names_end = place + 2 + size
            (count,) = _INT.unpack_from(data, names_end)
            if size < 0 or count < 0:
                return None
            assigned[data[place + 2 : names_end].decode()] = struct.unpack_from(
                f">{count}i", data, names_end + 4
            )
            place = names_end + 4 + 4 * count
    except (struct.error, UnicodeDecodeError):
        return None
    return assigned if version >= 0 and len(assigned) == topics else None


_cached_assignment = lru_cache(maxsize=_ASSIGNMENTS_CACHED)(_plain_assignment)
"""Several members may get one and the same dict; like all that is observed it is never changed."""


def _protocol_reader(data: bytes) -> Reader:
    """Return a reader behind the version, any of which but a negative one is read alike."""
    reader = Reader(data)
    if reader.int16() < 0:
        raise DecodeError(Fault.UNKNOWN_VERSION)
    return reader


def _present(length: int | None) -> int:
    if length is None:
        raise DecodeError(Fault.BAD_LENGTH, "null")
    return length


def _count(reader: Reader) -> int:
    return _present(reader.int_length())


def _protocol_text(reader: Reader) -> str:
    text = reader.short_text()
    if text is None:
        raise DecodeError(Fault.BAD_LENGTH, "null")
    return text


def _protocol_partitions(reader: Reader) -> tuple[str, tuple[int, ...]]:
    return _protocol_text(reader), reader.int32s(_count(reader))
