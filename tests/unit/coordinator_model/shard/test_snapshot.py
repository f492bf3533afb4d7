"""Saved shards: what is written is read, by this version and by every later one."""

from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from coordinator_model.observations.base import Source
from coordinator_model.observations.bounds import NEVER
from coordinator_model.observations.control import LogSeconds
from coordinator_model.observations.log import MemberFailed
from coordinator_model.observations.requests import Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.buffered import Buffered, Run
from coordinator_model.ordering.order import Order
from coordinator_model.shard import snapshot
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import Header, SnapshotError
from coordinator_model.state.group import Group, Member

GOLDEN = Path(__file__).parents[3] / "golden" / "state"


def seen(what: MemberFailed | Heartbeats | LogSeconds) -> Seen:
    return Seen(
        at_ms=30,
        source=Source.REQUEST_LOG,
        partition=1,
        offset=2,
        index=0,
        broker=1,
        recorded_at_ms=31,
        backlog=False,
        what=what,
    )


def make_blob() -> bytes:
    """Return a shard with something in every part; it wrote v1.bin and v2.bin when their version was made."""
    member = Member(member_id="m", client_id="c", session_timeout_ms=45_000, assigned={"t": (0, 1)})
    group = Group(group="g", generation=3, members={"m": member}, commits={"t": {0: (5, 6)}})
    beat = Heartbeats(group="g", member_id="m", generation=3, error_code=0, times=(29, 30))
    order = Order(
        now_ms=25,
        control_ms=27,
        held=[Buffered(30, seen(MemberFailed(group="g", member_id="m")))],
        runs=[Run(1, seen(beat))],
    )
    header = Header(
        shard=4,
        shard_count=50,
        order=order,
        settings=b'{"rules":{}}',
        live_since_ms=20,
        done_ms=25,
        info_live=True,
        coordinator=1,
        epoch=9,
        lost={2: 19},
        heard={1: [(2_000, 1_000)]},
    )
    slot = Slot(name="g", due_ms=99, memory=b"\x01rules", raw=snapshot.encode_group(group))
    return snapshot.encode(header, [slot])


def test_saving_and_loading_changes_nothing() -> None:
    """A shard that was saved and loaded is saved to the same bytes."""
    blob = make_blob()
    header, slots = snapshot.decode(blob)

    assert snapshot.encode(header, slots) == blob


@pytest.mark.parametrize("version", [1, 2])
def test_blobs_of_every_released_version_load(version: int) -> None:
    """A checkpoint outlives an upgrade: what an older version saved is read with all it says."""
    header, slots = snapshot.decode((GOLDEN / f"v{version}.bin").read_bytes())
    group = snapshot.decode_group(slots[0].raw)

    assert (header.shard, header.shard_count, header.coordinator, header.epoch) == (4, 50, 1, 9)
    assert (header.settings, header.live_since_ms, header.lost) == (b'{"rules":{}}', 20, {2: 19})
    assert header.order.held[0].seen.what == MemberFailed(group="g", member_id="m")
    assert header.order.runs[0].times == (29, 30)
    assert (slots[0].name, slots[0].due_ms, slots[0].memory) == ("g", 99, b"\x01rules")
    assert (group.generation, group.members["m"].assigned, group.commits) == (
        3,
        {"t": (0, 1)},
        {"t": {0: (5, 6)}},
    )


def test_groups_stay_undecoded_until_they_are_touched() -> None:
    """Loading a shard reads no group; what a step does not touch is copied as bytes."""
    header, slots = snapshot.decode(make_blob())
    slots[0].raw = msgspec.Raw(msgspec.msgpack.encode("no group at all"))
    shard = Shard.load(snapshot.encode(header, slots), cluster="c", shard=4, shard_count=50)
    shard.step([], None)

    assert snapshot.decode(shard.save())[1] == slots


def test_a_shard_of_version_1_is_saved_as_version_2() -> None:
    """After an upgrade the first step packs the shard, with all its groups."""
    old = (GOLDEN / "v1.bin").read_bytes()
    new = Shard.load(old, cluster="c", shard=4, shard_count=50).save()

    assert (old[1], new[1]) == (1, 2)
    assert snapshot.decode(new) == snapshot.decode(old)


def test_a_codec_that_nobody_gave_is_refused() -> None:
    """What the job compressed by a library of its own is no damage to somebody without it."""
    frame = msgspec.msgpack.decode(make_blob())
    body = msgspec.msgpack.encode([frame[0], "other", *frame[2:5]])[1:]
    blob = b"\x96" + body + b"\xce" + crc32(body).to_bytes(4, "big")

    with pytest.raises(SnapshotError, match="compressed by other"):
        snapshot.decode(blob)


def test_a_newer_version_is_refused_with_the_way_out() -> None:
    """A downgrade is refused before anything is written over, and says what to do."""
    blob = msgspec.msgpack.encode([snapshot.VERSION + 1, {"unknown": True}])

    with pytest.raises(SnapshotError, match="start the newer groupwatch"):
        snapshot.decode(blob)


@pytest.mark.parametrize(
    "blob", [b"", b"\xc1", b"\x93\x01\x02\x03"], ids=["empty", "no-msgpack", "wrong-shape"]
)
def test_a_damaged_blob_is_refused(blob: bytes) -> None:
    """Damage is told from a newer version."""
    with pytest.raises(SnapshotError, match="damaged"):
        snapshot.decode(blob)


def test_a_slot_that_waits_for_nothing_is_never_due() -> None:
    """The deadline that is none lies beyond all times and fits into a signed 64-bit column of Spark."""
    assert Slot(name="g").due_ms == NEVER
    assert NEVER < 2**63
