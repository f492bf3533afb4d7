"""The table of records against Kafka's own classes, bytes written by hand, and damage."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.schemas import RECORDS, decode_key, decode_value, describe
from coordinator_model.decoding.wire import DecodeError, Fault
from tests.unit.coordinator_model.kafka_bytes import (
    commit_key,
    commit_value,
    compact_text,
    group_key,
    group_value,
    tags,
    text,
    uvarint,
)

GOLDEN_FOLDER = Path(__file__).parents[3] / "golden" / "records"
GOLDEN: list[dict[str, Any]] = [
    json.loads(line)
    for file in sorted(GOLDEN_FOLDER.glob("*.jsonl"))
    for line in file.read_text("utf-8").splitlines()
]
TOPIC_ID = bytes(range(16))
NEVER_RELEASED = {9, 18}


def _key(record_type: int, *texts: str) -> bytes:
    return struct.pack(">h", record_type) + b"".join(map(text, texts))


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['name']}-v{row['version']}-{row['style']}")
def test_reads_what_kafka_writes(row: dict[str, Any]) -> None:
    """A record written by Kafka's classes is described as Kafka's JSON converters describe it."""
    assert describe(bytes.fromhex(row["key"]), bytes.fromhex(row["value"])) == {
        "type": row["type"],
        "name": row["name"],
        "key": row["key_json"],
        "version": row["version"],
        "value": row["value_json"],
    }


def test_golden_records_cover_the_table() -> None:
    """Every type and version of the table has golden records, and no golden record lacks its entry."""
    ours = {(record.type, version) for record in RECORDS.values() for version in range(record.newest + 1)}
    assert {(row["type"], row["version"]) for row in GOLDEN} == ours
    assert set(RECORDS) == set(range(24)) - NEVER_RELEASED


def _beyond(record_type: int) -> bytes:
    """Return the version after the newest one of a type that we know."""
    return (RECORDS[record_type].newest + 1).to_bytes(2, "big")


@pytest.mark.parametrize("record_type", RECORDS)
def test_tombstones_have_no_value(record_type: int) -> None:
    """A null value is described by its key alone."""
    key = bytes.fromhex(next(row["key"] for row in GOLDEN if row["type"] == record_type))
    described = describe(key, None)
    assert described["name"] == RECORDS[record_type].name
    assert described["version"] is None
    assert described["value"] is None


@pytest.mark.parametrize(
    ("version", "more"),
    [
        (0, {}),
        (1, {"expireTimestamp": 99}),
        (2, {}),
        (3, {"leaderEpoch": 7}),
        (4, {"leaderEpoch": 7, "topicId": "AAECAwQFBgcICQoLDA0ODw"}),
    ],
)
def test_offset_commit_in_every_version(version: int, more: dict[str, Any]) -> None:
    """Each version of an offset commit has exactly its own fields."""
    value = commit_value(42, 1000, version=version, metadata="note", topic_id=TOPIC_ID)
    assert decode_value(1, value) == (
        version,
        {"offset": 42, "metadata": "note", "commitTimestamp": 1000, **more},
    )


@pytest.mark.parametrize("version", range(5))
def test_group_metadata_in_every_version(version: int) -> None:
    """Each version of a group has exactly its own fields; bytes are printed as base64."""
    described = describe(group_key("g"), group_value(5, version=version, subscribed=b"\1\2", members=1))
    member = {
        "memberId": "m1",
        "clientId": "client",
        "clientHost": "/10.0.0.1",
        "sessionTimeout": 10_000,
        "subscription": "AQI=",
        "assignment": "",
    }
    if version >= 1:
        member["rebalanceTimeout"] = 60_000
    if version >= 3:
        member["groupInstanceId"] = "static"
    group = {
        "protocolType": "consumer",
        "generation": 5,
        "protocol": "range",
        "leader": "m1",
        "members": [member],
    }
    if version >= 2:
        group["currentStateTimestamp"] = 1234
    assert described == {
        "type": 2,
        "name": "GroupMetadata",
        "key": {"group": "g"},
        "version": version,
        "value": group,
    }


def test_absent_tags_are_left_out_and_unknown_ones_skipped() -> None:
    """A commit without a topic id has none; a tag of the future does no harm."""
    value = commit_value(1, 2, topic_id=None, extra_tags=((7, b"future"),))
    assert decode_value(1, value)[1] == {"offset": 1, "leaderEpoch": 7, "metadata": "", "commitTimestamp": 2}


def test_a_tag_must_be_as_long_as_it_says() -> None:
    """A topic id in a tag of 17 bytes is damage, not a topic id."""
    value = commit_value(1, 2, topic_id=bytes(17))
    with pytest.raises(DecodeError) as caught:
        decode_value(1, value)
    assert caught.value.fault is Fault.TRAILING_BYTES


def test_streams_tags_of_kafka_4_4() -> None:
    """The two description epochs that 4.4 adds are read."""
    value = struct.pack(">hiq", 0, 3, 9) + tags((2, struct.pack(">i", 4)), (3, struct.pack(">i", 5)))
    assert describe(_key(17, "g"), value)["value"] == {
        "epoch": 3,
        "metadataHash": 9,
        "storedDescriptionTopologyEpoch": 4,
        "failedDescriptionTopologyEpoch": 5,
    }


def test_share_groups_of_kafka_4_0() -> None:
    """The preview's shorter records under the same version are read as well."""
    assert describe(_key(11, "g"), struct.pack(">hi", 0, 3) + tags())["value"] == {"epoch": 3}
    topic = TOPIC_ID + compact_text("t") + uvarint(2) + struct.pack(">i", 6) + tags()
    value = struct.pack(">h", 0) + uvarint(2) + topic + uvarint(1) + tags()
    assert describe(_key(15, "g"), value)["value"] == {
        "initializedTopics": [{"topicId": "AAECAwQFBgcICQoLDA0ODw", "topicName": "t", "partitions": [6]}],
        "deletingTopics": [],
    }


@pytest.mark.parametrize(("mark", "expected"), [(b"\xff", None), (b"\x01", {"host": "h", "port": 65535})])
def test_a_nullable_struct_in_order_has_a_byte_before_it(mark: bytes, expected: object) -> None:
    """-1 is null, 1 is followed by the struct."""
    endpoint = b"" if expected is None else compact_text("h") + b"\xff\xff" + tags()
    names = compact_text(None) + compact_text(None) + compact_text("c") + compact_text("/h")
    value = bytes(2) + names + struct.pack(">ii", 1, 2) + compact_text("p") + mark + endpoint + b"\1" + tags()
    assert describe(_key(19, "g", "m"), value)["value"]["userEndpoint"] == expected


@pytest.mark.parametrize("classic", [None, {"sessionTimeoutMs": 7, "supportedProtocols": []}])
def test_a_nullable_struct_in_a_tag_has_a_varint_before_it(classic: object) -> None:
    """0 is null and is written, which is not the same as a missing tag."""
    payload = b"\0" if classic is None else b"\1" + struct.pack(">i", 7) + b"\1" + tags()
    names = compact_text(None) + compact_text(None) + compact_text("c") + compact_text("/h")
    fields = b"\1" + compact_text("") + struct.pack(">i", 5) + compact_text(None)
    described = describe(_key(5, "g", "m"), bytes(2) + names + fields + tags((0, payload)))["value"]
    assert described["classicMemberMetadata"] == classic


@pytest.mark.parametrize("group", ["😀", "a[b], c", "\ud7ff", "", "x" * 32_767, "\0"])
def test_group_ids_may_be_odd(group: str) -> None:
    """Emoji, brackets, commas, NUL, nothing at all, and Kafka's longest string."""
    assert decode_key(commit_key(group, "t", -1)) == (1, {"group": group, "topic": "t", "partition": -1})


COMMIT = commit_value(1, 2)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        (None, COMMIT, Fault.NULL_KEY),
        (b"", COMMIT, Fault.EMPTY),
        (b"\0", COMMIT, Fault.TRUNCATED),
        (commit_key("g", "t", 1), b"", Fault.EMPTY),
        (commit_key("g", "t", 1), b"\0", Fault.TRUNCATED),
        (commit_key("g", "t", 1), _beyond(1) + COMMIT[2:], Fault.UNKNOWN_VERSION),
        (commit_key("g", "t", 1), b"\xff\xff" + COMMIT[2:], Fault.UNKNOWN_VERSION),
        (commit_key("g", "t", 1, 0), b"\0\4" + COMMIT[2:], Fault.UNKNOWN_VERSION),
        (commit_key("g", "t", 1), COMMIT[:-1], Fault.TRUNCATED),
        (commit_key("g", "t", 1), COMMIT + b"\0", Fault.TRAILING_BYTES),
        (commit_key("g", "t", 1) + b"\0", COMMIT, Fault.TRAILING_BYTES),
        (b"\0\1" + b"\xff\xff" + text("t") + bytes(4), COMMIT, Fault.BAD_LENGTH),
        (b"\0\1" + b"\0\2\xc3\x28" + text("t") + bytes(4), COMMIT, Fault.BAD_UTF8),
        (_key(9, "g"), None, Fault.UNKNOWN_TYPE),
        (_key(18, "g"), None, Fault.UNKNOWN_TYPE),
        (_key(24, "g"), None, Fault.UNKNOWN_TYPE),
        (_key(-1, "g"), None, Fault.UNKNOWN_TYPE),
        (group_key("g"), group_value(1, members=0)[:-4] + b"\xff\xff\xff\xff", Fault.BAD_LENGTH),
        (group_key("g"), group_value(1, members=0)[:-4] + b"\x7f\xff\xff\xff", Fault.TRUNCATED),
    ],
)
def test_each_kind_of_damage_has_its_name(key: bytes | None, value: bytes | None, fault: Fault) -> None:
    """The error begins with the fault that the metric will carry."""
    error = describe(key, value)["error"]
    assert error.split(":")[0] == fault.value


def _damaged(row: dict[str, Any], cut: int, flip: int) -> tuple[bytes, bytes]:
    """Return a golden record with one bit of its bytes flipped, then cut."""
    key, value = bytes.fromhex(row["key"]), bytearray.fromhex(row["value"])
    value[flip // 8 % len(value)] ^= 1 << flip % 8
    return key, bytes(value[: cut % (len(value) + 1)])


@settings(deadline=None)
@given(st.sampled_from(GOLDEN), st.integers(0, 5_000), st.integers(0, 40_000))
def test_damage_never_raises_anything_else(row: dict[str, Any], cut: int, flip: int) -> None:
    """A cut or flipped value is described or refused, and the description is JSON."""
    key, value = _damaged(row, cut, flip)
    described = describe(key, value)
    json.dumps(described, allow_nan=False)
    assert ("error" in described) != ("value" in described)


@settings(deadline=None)
@given(st.sampled_from(GOLDEN), st.data())
def test_every_cut_is_noticed(row: dict[str, Any], data: st.DataObject) -> None:
    """A record that lost bytes at its end is never taken for a whole one (but for 4.0's shorter layouts)."""
    value = bytes.fromhex(row["value"])
    cut = data.draw(st.integers(0, len(value) - 1))
    if RECORDS[row["type"]].older is None:
        with pytest.raises(DecodeError):
            decode_value(row["type"], value[:cut])


@settings(deadline=None)
@given(st.binary(max_size=64), st.none() | st.binary(max_size=64))
def test_any_bytes_are_described(key: bytes, value: bytes | None) -> None:
    """Describe never raises."""
    assert "error" in describe(key, value) or "type" in describe(key, value)
