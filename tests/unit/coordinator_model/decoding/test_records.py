"""What a record tells about its group."""

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding import records
from coordinator_model.decoding.records import (
    assigned_partitions,
    kind_of,
    observe,
    read_commit_key,
    read_commit_value,
    subscribed_topics,
)
from coordinator_model.decoding.wire import DecodeError, Fault
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import (
    Commit,
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    ModernRecord,
    OffsetsCommitted,
)
from coordinator_model.observations.seen import pack, unpack
from tests.unit.coordinator_model.kafka_bytes import (
    assignment,
    commit_key,
    commit_value,
    group_key,
    group_value,
    subscription,
    text,
)
from tests.unit.made_seen import seen

GOLDEN_FOLDER = Path(__file__).parents[3] / "golden" / "records"
AT_MS = 5_000
GROUP_TYPES = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), "consumer"),
    **dict.fromkeys(range(10, 16), "share"),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), "streams"),
}


def _golden(record_type: int) -> list[dict[str, Any]]:
    rows = (
        json.loads(line)
        for file in sorted(GOLDEN_FOLDER.glob("*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    )
    return [row for row in rows if row["type"] == record_type]


@pytest.mark.parametrize("version", range(5))
def test_a_commit_in_every_version(version: int) -> None:
    """Offset and commit time come from the value, whatever its version."""
    what = observe(commit_key("g", "t", 3), commit_value(42, 1000, version=version), recorded_at_ms=AT_MS)
    topic_id = int.from_bytes(b"\x01" * 8, "big") if version == 4 else 0
    assert what == OffsetsCommitted(group="g", commits=(Commit("t", 3, 42, 1000, topic_id=topic_id),))


def test_a_legacy_commit() -> None:
    """Type 0 is read like type 1."""
    what = observe(commit_key("g", "t", 3, 0), commit_value(42, 1000, version=0), recorded_at_ms=AT_MS)
    assert what == OffsetsCommitted(group="g", commits=(Commit("t", 3, 42, 1000),))


def test_a_commits_tombstone_is_dated_by_its_record() -> None:
    """A deleted offset is None, at the time of the record."""
    what = observe(commit_key("g", "t", 3), None, recorded_at_ms=AT_MS)
    assert what == OffsetsCommitted(group="g", commits=(Commit("t", 3, None, AT_MS),))


def test_a_groups_tombstone() -> None:
    """The group's record was deleted."""
    assert observe(group_key("g"), None, recorded_at_ms=AT_MS) == GroupTombstone(group="g")


@pytest.mark.parametrize("version", range(5))
def test_a_generation_in_every_version(version: int) -> None:
    """What a version does not hold is unknown; the rest is told with subscription and assignment."""
    value = group_value(
        7, version=version, subscribed=subscription("a", "b"), assigned=assignment({"a": [0, 1]}), members=2
    )
    known = {"rebalance_timeout_ms": 60_000} if version >= 1 else {}
    members = tuple(
        MemberRecord(
            member_id=f"m{number}",
            client_id="client",
            client_host="/10.0.0.1",
            session_timeout_ms=10_000,
            instance_id="static" if version >= 3 and number == 1 else None,
            topics=("a", "b"),
            assigned={"a": (0, 1)},
            **known,
        )
        for number in (1, 2)
    )
    assert observe(group_key("g"), value, recorded_at_ms=AT_MS) == GroupRecorded(
        group="g",
        generation=7,
        protocol_type="consumer",
        protocol="range",
        leader_id="m1",
        state_since_ms=1234 if version >= 2 else -1,
        members=members,
    )


def test_an_empty_group() -> None:
    """A group without members has no protocol and no leader."""
    what = observe(group_key("g"), group_value(3, members=0), recorded_at_ms=AT_MS)
    assert isinstance(what, GroupRecorded)
    assert (what.generation, what.protocol, what.leader_id, what.members) == (3, None, None, ())


def test_what_other_protocols_store_is_not_guessed_at() -> None:
    """Connect's opaque bytes are left alone even where they would parse."""
    value = group_value(
        1, protocol_type="connect", subscribed=subscription("t"), assigned=assignment({"t": [1]})
    )
    what = observe(group_key("connect-x"), value, recorded_at_ms=AT_MS)
    assert isinstance(what, GroupRecorded)
    assert (what.members[0].topics, what.members[0].assigned) == (None, None)


@pytest.mark.parametrize("record_type", GROUP_TYPES)
@pytest.mark.parametrize("tombstone", [False, True])
def test_records_of_modern_groups(record_type: int, *, tombstone: bool) -> None:
    """Each type says whose record it is and of which kind of group."""
    row = _golden(record_type)[0]
    value = None if tombstone else bytes.fromhex(row["value"])
    what = observe(bytes.fromhex(row["key"]), value, recorded_at_ms=AT_MS)
    assert isinstance(what, ModernRecord)
    assert (what.part is None) == tombstone
    assert msgspec.structs.replace(what, part=None) == ModernRecord(
        group=row["key_json"]["groupId"],
        group_type=GROUP_TYPES[record_type],
        record_type=record_type,
        name=row["name"],
        tombstone=tombstone,
        member_id=row["key_json"].get("memberId", ""),
        expression=row["key_json"].get("regularExpression", ""),
    )


def test_a_modern_record_with_a_torn_value_is_refused() -> None:
    """Its value is read to the end although only its presence is told."""
    row = _golden(8)[0]
    with pytest.raises(DecodeError) as caught:
        observe(bytes.fromhex(row["key"]), bytes.fromhex(row["value"])[:-1], recorded_at_ms=AT_MS)
    assert caught.value.fault is Fault.TRUNCATED


def test_a_record_without_key_is_refused() -> None:
    """No coordinator writes one."""
    with pytest.raises(DecodeError) as caught:
        observe(None, b"x", recorded_at_ms=AT_MS)
    assert caught.value.fault is Fault.NULL_KEY


def test_a_commits_parts_are_read_alone() -> None:
    """Key and value of a commit are read by themselves, and nothing else is taken for a commit's key."""
    assert read_commit_key(commit_key("g", "t", 3)) == ("g", "t", 3)
    assert read_commit_value(1, commit_value(42, 1000)) == (42, 1000)
    with pytest.raises(DecodeError):
        read_commit_key(group_key("g"))


def test_kinds_are_schema_names() -> None:
    """Records are counted under Kafka's names, tombstones apart."""
    assert kind_of(1, tombstone=False) == "OffsetCommit"
    assert kind_of(2, tombstone=True) == "GroupMetadataTombstone"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_subscriptions_of_any_version(version: int) -> None:
    """All versions begin alike, also those that are yet to come and those whose clients left fields out."""
    assert subscribed_topics(subscription("a", "b", version=version)) == ("a", "b")
    assert subscribed_topics(subscription("a", version=version)[:-4]) == ("a",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xff" + bytes(8),
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\5ab",
    ],
)
def test_wrong_bytes_are_no_subscription(data: bytes) -> None:
    """Torn, negative, absurd and null are all None."""
    assert subscribed_topics(data) is None


def test_assignments() -> None:
    """Partitions by topic; a topic named twice keeps both parts; no bytes are nothing assigned."""
    assert assigned_partitions(assignment({"a": [0, 2], "b": []})) == {"a": (0, 2), "b": ()}
    twice = b"\0\0\0\0\0\2" + 2 * (text("a") + b"\0\0\0\1\0\0\0\4") + bytes(4)
    assert assigned_partitions(twice) == {"a": (4, 4)}
    assert assigned_partitions(b"") == {}
    assert assigned_partitions(assignment({"a": [0, 2]})[:12]) is None


def test_damaged_assignments_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for sound bytes takes nothing for sound that the careful way would read otherwise."""
    chance = random.Random(7)
    whole = assignment({"a": [0, 2], "bc": [], "d": [5]})
    damaged = [whole, assignment({})]
    for _ in range(3_000):
        place, kind = chance.randrange(len(whole)), chance.randrange(3)
        other = bytes([chance.choice((0, 1, 2, 127, 128, 255))])
        tail = {0: b"", 1: other + whole[place + 1 :], 2: other + whole[place:]}[kind]
        damaged.append(whole[:place] + tail)
    quickly = [assigned_partitions(data) for data in damaged]
    monkeypatch.setattr(records, "_plainly_assigned", lambda _: None)
    assert quickly == [assigned_partitions(data) for data in damaged]


def _told(key: bytes, value: bytes) -> object:
    try:
        return observe(key, value, recorded_at_ms=AT_MS)
    except DecodeError as error:
        return error.fault


def test_damaged_groups_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for sound records of groups tells what the tables tell, of damaged ones as well."""
    chance = random.Random(11)
    wants, has = subscription("a", "b"), assignment({"a": [0, 2], "b": []})
    values = [group_value(7, members=count, subscribed=wants, assigned=has) for count in range(3)]
    values.append(group_value(7, protocol_type="connect", members=2))
    rows = [(group_key(f"g{number}"), value) for number, value in enumerate(values)]
    for _ in range(4_000):
        parts = list(chance.choice(rows[:4]))
        which = chance.randrange(12) and 1
        whole, kind = parts[which], chance.randrange(4)
        place, other = chance.randrange(len(whole)), bytes([chance.choice((0, 1, 2, 3, 127, 128, 255))])
        tail = {0: b"", 1: other + whole[place + 1 :], 2: other + whole[place:], 3: whole[place + 1 :]}[kind]
        parts[which] = whole[:place] + tail
        rows.append((parts[0], parts[1]))
    quickly = [_told(*row) for row in rows]
    assert all(isinstance(one, GroupRecorded) for one in quickly[:4])
    monkeypatch.setattr(records, "_plain_group", lambda *_: None)
    assert quickly == [_told(*row) for row in rows]


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_wrong_bytes_stop_nothing(data: bytes) -> None:
    """Whatever a client stores, its group can be read, told and packed."""
    what = observe(group_key("g"), group_value(1, subscribed=data, assigned=data), recorded_at_ms=AT_MS)
    told = seen(AT_MS, what, Source.OFFSETS)
    assert unpack(pack([told])) == [told]


@settings(deadline=None)
@given(st.binary(max_size=80), st.none() | st.binary(max_size=80))
def test_any_bytes_are_observed_or_refused(key: bytes, value: bytes | None) -> None:
    """Nothing but DecodeError comes out."""
    with suppress(DecodeError):
        observe(b"\0" + key, value, recorded_at_ms=AT_MS)
