"""Every record of ``__consumer_offsets`` as data, and the one interpreter that reads them all.

``RECORDS`` holds every format: a new record type is one more entry, a new field one more line. It follows the
schemas of Apache Kafka 4.3.1, with what 4.0 wrote differently and 4.4 adds. The stream reads plain offset
commits faster, many at once; a test compares that with this table.

Longer than 400 lines, because the table is one thing and the interpreter cannot be read without it.
"""

import base64
from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from coordinator_model.decoding.wire import DecodeError, Fault, Reader

Value: TypeAlias = Any
"""int, str, bytes, None, or lists and dicts of them."""
Read: TypeAlias = Callable[[Reader], Value]


class Kind(Enum):
    """The wire types that schemas are made of."""

    INT8 = auto()
    INT16 = auto()
    UINT16 = auto()
    INT32 = auto()
    INT64 = auto()
    UUID = auto()
    STRING = auto()
    BYTES = auto()


INT8, INT16, UINT16, INT32, INT64, UUID, STRING, BYTES = Kind


class Array(NamedTuple):
    """Many of one type, after their count."""

    of: "Type"


class Struct(NamedTuple):
    """Named fields in order; flexible ones end with a section of tagged fields."""

    fields: tuple["Field", ...]


Type: TypeAlias = Kind | Array | Struct


class Field(NamedTuple):
    """One field: its name in lowerCamelCase, its type, and the value versions that have it."""

    name: str
    type: Type
    since: int = 0
    until: int = 2**15 - 1
    nullable: bool = False
    tag: int | None = None
    """Number of a tagged field, which is in the struct's tagged section instead of in order."""


class Record(NamedTuple):
    """One record type.  Keys are never flexible; values are from version ``flexible`` on."""

    type: int
    name: str
    key: tuple[Field, ...]
    value: tuple[Field, ...]
    newest: int = 0
    flexible: int = 0
    older: tuple[Field, ...] | None = None
    """What a preview release wrote under the same version number; tried when ``value`` does not fit."""


def _array_of(*fields: Field) -> Array:
    return Array(Struct(fields))


_NEVER = 2**15 - 1
_GROUP = (Field("groupId", STRING),)
_MEMBER = (Field("groupId", STRING), Field("memberId", STRING))
_COMMIT = (Field("group", STRING), Field("topic", STRING), Field("partition", INT32))

_PARTITIONS = Field("partitions", Array(INT32))
_EPOCHS = Field("assignmentEpochs", Array(INT32), nullable=True, tag=0)
_TOPIC_PARTITIONS = _array_of(Field("topicId", UUID), _PARTITIONS)
_TOPIC_PARTITION_EPOCHS = _array_of(Field("topicId", UUID), _PARTITIONS, _EPOCHS)
_NAMED_TOPIC_PARTITIONS = _array_of(Field("topicId", UUID), Field("topicName", STRING), _PARTITIONS)
_NAMED_TOPICS = _array_of(Field("topicId", UUID), Field("topicName", STRING))
_TASKS = _array_of(Field("subtopologyId", STRING), _PARTITIONS)
_TASK_EPOCHS = _array_of(Field("subtopologyId", STRING), _PARTITIONS, _EPOCHS)
_KEY_VALUES = _array_of(Field("key", STRING), Field("value", STRING))
_TOPIC_INFOS = _array_of(
    Field("name", STRING),
    Field("partitions", INT32),
    Field("replicationFactor", INT16),
    Field("topicConfigs", _KEY_VALUES),
)
_TARGET = (
    Field("assignmentEpoch", INT32),
    Field("assignmentTimestamp", INT64, tag=0),
)

RECORDS: Mapping[int, Record] = {
    record.type: record
    for record in (
        Record(
            0,
            "LegacyOffsetCommit",
            _COMMIT,
            (Field("offset", INT64), Field("metadata", STRING), Field("commitTimestamp", INT64)),
            flexible=_NEVER,
        ),
        Record(
            1,
            "OffsetCommit",
            _COMMIT,
            (
                Field("offset", INT64),
                Field("leaderEpoch", INT32, since=3),
                Field("metadata", STRING),
                Field("commitTimestamp", INT64),
                Field("expireTimestamp", INT64, since=1, until=1),
                Field("topicId", UUID, since=4, tag=0),
            ),
            newest=4,
            flexible=4,
        ),
        Record(
            2,
            "GroupMetadata",
            (Field("group", STRING),),
            (
                Field("protocolType", STRING),
                Field("generation", INT32),
                Field("protocol", STRING, nullable=True),
                Field("leader", STRING, nullable=True),
                Field("currentStateTimestamp", INT64, since=2),
                Field(
                    "members",
                    _array_of(
                        Field("memberId", STRING),
                        Field("groupInstanceId", STRING, since=3, nullable=True),
                        Field("clientId", STRING),
                        Field("clientHost", STRING),
                        Field("rebalanceTimeout", INT32, since=1),
                        Field("sessionTimeout", INT32),
                        Field("subscription", BYTES),
                        Field("assignment", BYTES),
                    ),
                ),
            ),
            newest=4,
            flexible=4,
        ),
        Record(
            3,
            "ConsumerGroupMetadata",
            _GROUP,
            (Field("epoch", INT32), Field("metadataHash", INT64, tag=0)),
        ),
        Record(
            4,
            "ConsumerGroupPartitionMetadata",
            _GROUP,
            (
                Field(
                    "topics",
                    _array_of(
                        Field("topicId", UUID),
                        Field("topicName", STRING),
                        Field("numPartitions", INT32),
                        Field(
                            "partitionMetadata",
                            _array_of(Field("partition", INT32), Field("racks", Array(STRING))),
                        ),
                    ),
                ),
            ),
        ),
        Record(
            5,
            "ConsumerGroupMemberMetadata",
            _MEMBER,
            (
                Field("instanceId", STRING, nullable=True),
                Field("rackId", STRING, nullable=True),
                Field("clientId", STRING),
                Field("clientHost", STRING),
                Field("subscribedTopicNames", Array(STRING)),
                Field("subscribedTopicRegex", STRING, nullable=True),
                Field("rebalanceTimeoutMs", INT32),
                Field("serverAssignor", STRING, nullable=True),
                Field(
                    "classicMemberMetadata",
                    Struct(
                        (
                            Field("sessionTimeoutMs", INT32),
                            Field(
                                "supportedProtocols",
                                _array_of(Field("name", STRING), Field("metadata", BYTES)),
                            ),
                        )
                    ),
                    nullable=True,
                    tag=0,
                ),
            ),
        ),
        Record(6, "ConsumerGroupTargetAssignmentMetadata", _GROUP, _TARGET),
        Record(
            7,
            "ConsumerGroupTargetAssignmentMember",
            _MEMBER,
            (Field("topicPartitions", _TOPIC_PARTITIONS),),
        ),
        Record(
            8,
            "ConsumerGroupCurrentMemberAssignment",
            _MEMBER,
            (
                Field("memberEpoch", INT32),
                Field("previousMemberEpoch", INT32),
                Field("state", INT8),
                Field("assignedPartitions", _TOPIC_PARTITION_EPOCHS),
                Field("partitionsPendingRevocation", _TOPIC_PARTITION_EPOCHS),
            ),
        ),
        # 9, ShareGroupPartitionMetadata, was in the 4.0 preview only.
        Record(
            10,
            "ShareGroupMemberMetadata",
            _MEMBER,
            (
                Field("rackId", STRING, nullable=True),
                Field("clientId", STRING),
                Field("clientHost", STRING),
                Field("subscribedTopicNames", Array(STRING)),
            ),
        ),
        Record(
            11,
            "ShareGroupMetadata",
            _GROUP,
            (Field("epoch", INT32), Field("metadataHash", INT64)),
            older=(Field("epoch", INT32),),
        ),
        Record(12, "ShareGroupTargetAssignmentMetadata", _GROUP, _TARGET),
        Record(
            13, "ShareGroupTargetAssignmentMember", _MEMBER, (Field("topicPartitions", _TOPIC_PARTITIONS),)
        ),
        Record(
            14,
            "ShareGroupCurrentMemberAssignment",
            _MEMBER,
            (
                Field("memberEpoch", INT32),
                Field("previousMemberEpoch", INT32),
                Field("state", INT8),
                Field("assignedPartitions", _TOPIC_PARTITIONS),
            ),
        ),
        Record(
            15,
            "ShareGroupStatePartitionMetadata",
            _GROUP,
            (
                Field("initializingTopics", _NAMED_TOPIC_PARTITIONS),
                Field("initializedTopics", _NAMED_TOPIC_PARTITIONS),
                Field("deletingTopics", _NAMED_TOPICS),
            ),
            older=(
                Field("initializedTopics", _NAMED_TOPIC_PARTITIONS),
                Field("deletingTopics", _NAMED_TOPICS),
            ),
        ),
        Record(
            16,
            "ConsumerGroupRegularExpression",
            (Field("groupId", STRING), Field("regularExpression", STRING)),
            (Field("topics", Array(STRING)), Field("version", INT64), Field("timestamp", INT64)),
        ),
        Record(
            17,
            "StreamsGroupMetadata",
            _GROUP,
            (
                Field("epoch", INT32),
                Field("metadataHash", INT64),
                Field("validatedTopologyEpoch", INT32, tag=0),
                Field("lastAssignmentConfigs", _KEY_VALUES, nullable=True, tag=1),
                Field("storedDescriptionTopologyEpoch", INT32, tag=2),
                Field("failedDescriptionTopologyEpoch", INT32, tag=3),
            ),
        ),
        # 18, StreamsGroupPartitionMetadata, was in development builds only.
        Record(
            19,
            "StreamsGroupMemberMetadata",
            _MEMBER,
            (
                Field("instanceId", STRING, nullable=True),
                Field("rackId", STRING, nullable=True),
                Field("clientId", STRING),
                Field("clientHost", STRING),
                Field("rebalanceTimeoutMs", INT32),
                Field("topologyEpoch", INT32),
                Field("processId", STRING),
                Field("userEndpoint", Struct((Field("host", STRING), Field("port", UINT16))), nullable=True),
                Field("clientTags", _KEY_VALUES),
            ),
        ),
        Record(20, "StreamsGroupTargetAssignmentMetadata", _GROUP, _TARGET),
        Record(
            21,
            "StreamsGroupTargetAssignmentMember",
            _MEMBER,
            (Field("activeTasks", _TASKS), Field("standbyTasks", _TASKS), Field("warmupTasks", _TASKS)),
        ),
        Record(
            22,
            "StreamsGroupCurrentMemberAssignment",
            _MEMBER,
            (
                Field("memberEpoch", INT32),
                Field("previousMemberEpoch", INT32),
                Field("state", INT8),
                Field("activeTasks", _TASK_EPOCHS),
                Field("standbyTasks", _TASK_EPOCHS),
                Field("warmupTasks", _TASK_EPOCHS),
                Field("activeTasksPendingRevocation", _TASK_EPOCHS),
                Field("standbyTasksPendingRevocation", _TASK_EPOCHS),
                Field("warmupTasksPendingRevocation", _TASK_EPOCHS),
            ),
        ),
        Record(
            23,
            "StreamsGroupTopology",
            _GROUP,
            (
                Field("epoch", INT32),
                Field(
                    "subtopologies",
                    _array_of(
                        Field("subtopologyId", STRING),
                        Field("sourceTopics", Array(STRING)),
                        Field("sourceTopicRegex", Array(STRING)),
                        Field("stateChangelogTopics", _TOPIC_INFOS),
                        Field("repartitionSinkTopics", Array(STRING)),
                        Field("repartitionSourceTopics", _TOPIC_INFOS),
                        Field(
                            "copartitionGroups",
                            _array_of(
                                Field("sourceTopics", Array(INT16)),
                                Field("sourceTopicRegex", Array(INT16)),
                                Field("repartitionSourceTopics", Array(INT16)),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
}


# --- the interpreter -------------------------------------------------------------------------------

_PRIMITIVES: Mapping[Kind, Read] = {
    INT8: Reader.int8,
    INT16: Reader.int16,
    UINT16: Reader.uint16,
    INT32: Reader.int32,
    INT64: Reader.int64,
    UUID: Reader.uuid,
}


def _length_of(kind: Type, *, flexible: bool) -> Callable[[Reader], int | None]:
    """Return a reader of the length before a string, bytes or array."""
    if flexible:
        return Reader.compact_length
    return Reader.short_length if kind is STRING else Reader.int_length


def _sized(
    field: Field, length: Callable[[Reader], int | None], body: Callable[[Reader, int], Value]
) -> Read:
    """Return a reader of something that follows its own length, or is null."""

    def read(reader: Reader) -> Value:
        size = length(reader)
        if size is not None:
            return body(reader, size)
        if field.nullable:
            return None
        raise DecodeError(Fault.BAD_LENGTH, f"{field.name} is null")

    return read


def _at_once(field: Field, read_sized: Read) -> Read:
    """Return a reader of something non-flexible with its length: group records are made of these."""

    def read(reader: Reader) -> Value:
        value = read_sized(reader)
        if value is None:
            raise DecodeError(Fault.BAD_LENGTH, f"{field.name} is null")
        return value

    return read_sized if field.nullable else read


def _nullable_struct(field: Field, body: Read) -> Read:
    """Return a reader of a struct behind its presence mark.

    Kafka writes that mark as a signed byte where the field is in order (-1 null, 1 present), and
    as a varint where the field is tagged (0 null, 1 present).
    """
    if field.tag is None:
        return lambda reader: None if reader.int8() < 0 else body(reader)
    return lambda reader: None if reader.uvarint() == 0 else body(reader)


def _reader_of(field: Field, version: int, *, flexible: bool) -> Read:
    """Return a reader of ``field`` in this version."""
    kind = field.type
    if isinstance(kind, Struct):
        body = _struct(kind.fields, version, flexible=flexible)
        return _nullable_struct(field, body) if field.nullable else body
    length = _length_of(kind, flexible=flexible)
    if isinstance(kind, Array):
        if kind.of is INT32:
            return _sized(field, length, lambda reader, count: list(reader.int32s(count)))
        element = _reader_of(Field(field.name, kind.of), version, flexible=flexible)
        return _sized(field, length, lambda reader, count: reader.array(count, element))
    if kind is STRING:
        return _sized(field, length, Reader.text) if flexible else _at_once(field, Reader.short_text)
    if kind is BYTES:
        return _sized(field, length, Reader.take) if flexible else _at_once(field, Reader.blob)
    return _PRIMITIVES[kind]


def _struct(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Read:
    """Return a reader of ``fields`` and, if flexible, the tagged section after them."""
    here = [field for field in fields if field.since <= version <= field.until]
    ordered = [(f.name, _reader_of(f, version, flexible=flexible)) for f in here if f.tag is None]
    tagged = {f.tag: (f.name, _reader_of(f, version, flexible=flexible)) for f in here if f.tag is not None}

    def read(reader: Reader) -> Value:
        value = {}
        for name, read_field in ordered:
            value[name] = read_field(reader)
        if flexible:
            _read_tags(reader, tagged, value)
        return value

    return read


def _read_tags(reader: Reader, tagged: Mapping[int, tuple[str, Read]], value: dict[str, Value]) -> None:
    """Add the tagged fields that are present and known to ``value``; skip the others."""
    for tag, payload in reader.tags():
        if tag in tagged:
            name, read_field = tagged[tag]
            value[name] = read_field(payload)
            payload.finish()


@cache
def _key_reader(record_type: int) -> Read:
    return _struct(RECORDS[record_type].key, 0, flexible=False)


@cache
def _value_readers(record_type: int, version: int) -> tuple[Read, ...]:
    """Return the possible readers of this version, the most likely first."""
    record = RECORDS[record_type]
    layouts = [record.value] if record.older is None else [record.value, record.older]
    return tuple(_struct(fields, version, flexible=version >= record.flexible) for fields in layouts)


def record_of(record_type: int) -> Record:
    """Return the schema of a record type.

    Raises:
        DecodeError: no release has this type.
    """
    record = RECORDS.get(record_type)
    if record is None:
        raise DecodeError(Fault.UNKNOWN_TYPE, f"record type {record_type}")
    return record


def decode_key(data: bytes) -> tuple[int, dict[str, Value]]:
    """Return a record key as (record type, fields).

    Raises:
        DecodeError: the bytes are not a key of a known type.
    """
    if not data:
        raise DecodeError(Fault.EMPTY, "key")
    reader = Reader(data)
    record = record_of(reader.int16())
    key: dict[str, Value] = _key_reader(record.type)(reader)
    reader.finish()
    return record.type, key


def decode_value(record_type: int, data: bytes) -> tuple[int, dict[str, Value]]:
    """Return a record value as (version, fields); bytes stay bytes, absent tagged fields are left out.

    Raises:
        DecodeError: the bytes are not a value of this type.
    """
    record = record_of(record_type)
    if not data:
        raise DecodeError(Fault.EMPTY, "value")
    version = Reader(data).int16()
    if not 0 <= version <= record.newest:
        raise DecodeError(Fault.UNKNOWN_VERSION, f"{record.name} version {version}")
    first, *others = _value_readers(record_type, version)
    try:
        return version, _read_whole(first, data)
    except DecodeError:
        for other in others:
            try:
                return version, _read_whole(other, data)
            except DecodeError:
                continue
        raise


def _read_whole(read: Read, data: bytes) -> dict[str, Value]:
    """Return the fields after the version, which must fill the bytes."""
    reader = Reader(data, 2)
    value: dict[str, Value] = read(reader)
    reader.finish()
    return value


def describe(key: bytes | None, value: bytes | None) -> dict[str, Value]:
    """Return a record as ``groupwatch decode`` prints it, ready for JSON.

    A tombstone has neither version nor value.  Bytes that cannot be read give ``{"error": fault and
    detail}``; nothing is raised.
    """
    try:
        if key is None:
            raise DecodeError(Fault.NULL_KEY)
        record_type, fields = decode_key(key)
        version, content = (None, None) if value is None else decode_value(record_type, value)
    except DecodeError as error:
        return {"error": str(error)}
    return {
        "type": record_type,
        "name": RECORDS[record_type].name,
        "key": fields,
        "version": version,
        "value": _printable(content),
    }


def _printable(value: Value) -> Value:
    """Return ``value`` with bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _printable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_printable(part) for part in value]
    return value
