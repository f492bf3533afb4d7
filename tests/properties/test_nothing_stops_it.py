"""Whatever stands in a topic or in a checkpoint: no stage raises, none hangs, and other groups go on."""

import logging
from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.base import CLUSTER_SHARD
from coordinator_model.shard import snapshot
from coordinator_model.shard.snapshot import SnapshotError
from streaming.workers.decode_stage import CONTROL, EVENTS, OFFSETS
from streaming.workers.shard_state import STATE_VERSION, ShardStage
from streaming.workers.zstd import ZSTD
from tests.properties.examples import examples
from tests.unit.streaming.hostile import (
    GROUP,
    NOW_MS,
    RUN,
    SHARDS,
    Job,
    Row,
    hostile_rows,
    lived,
    time_limit,
)

HOME = shard_of(GROUP, SHARDS)
CLOCK_KEY = b"groupwatch-clock"
ROWS = [row.value for row in hostile_rows().values() if row.value and len(row.value) < 2_000]
NUMBERS = st.sampled_from(
    (0, -1, 1, 2**31 - 1, 2**31, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)
)
WILD = st.recursive(
    st.one_of(NUMBERS, st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=5), NUMBERS.map(str)), inner, max_size=4),
    ),
    max_leaves=6,
)
KINDS = (
    *("clock", "settings", "adopt", "contradicted", "groups", "leaders", "brokers", "topics", "upset"),
    *("ends", "quarantined", "refilled", "mark"),
)
FIELDS = (
    *("sequence", "ends", "positions", "skew_ms", "ask", "settings", "alerts", "broker", "lost", "group"),
    *("asked_at_ms", "groups", "leaders", "shrunk", "brokers", "partitions", "rebalanced_ms", "partition"),
    *(
        "moved_ms",
        "came_from",
        "went_to",
        "since_ms",
        "transaction_ms",
        "last_ms",
        "count",
        "error",
        "shards",
    ),
    *("complete", "over", "lead_ms", "wrong_ms"),
)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


ORDINARY = lived().told("transition", GROUP)
CAREFUL = settings(
    examples(50),  # each example is a whole life of a job
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Return a record that means something, with some of its bytes changed, put in, or cut off."""
    value = bytearray(draw(st.sampled_from(ROWS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(value) - 1)))
        how = draw(st.sampled_from(("flip", "insert", "cut", "number")))
        if how == "flip" and value:
            value[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "insert":
            value[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif how == "cut":
            del value[at:]
        else:
            value[at:at] = str(draw(NUMBERS)).encode()
    return bytes(value)


KEYS = st.one_of(
    st.none(),
    st.just(CLOCK_KEY),
    st.just(b"1"),
    st.binary(max_size=40),
    st.integers(0, 30).flatmap(lambda kind: st.binary(max_size=30).map(lambda rest: bytes([0, kind]) + rest)),
)
VALUES = st.one_of(st.none(), st.binary(max_size=200), spoilt())
FEEDS = st.sampled_from((OFFSETS, EVENTS, CONTROL))
ANY_ROW = st.builds(Row, FEEDS, VALUES, KEYS, st.integers(-10_000, 6_000))


@CAREFUL
@given(st.lists(ANY_ROW, min_size=1, max_size=30))
def test_any_bytes_in_any_topic(rows: list[Row]) -> None:
    """No exception leaves a stage, and an ordinary group in the same topics is mirrored to the end."""
    job = lived(*rows)

    report = msgspec.json.decode(job.told("report", GROUP)[-1])
    assert report["state"] in {"Stable", "CompletingRebalance", "PreparingRebalance", "Empty", "Dead"}
    assert job.failures() == []


@CAREFUL
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), WILD, max_size=8)),
        min_size=1,
        max_size=10,
    )
)
def test_control_records_of_the_right_shape_with_wild_values(told: list[tuple[str, dict[str, Any]]]) -> None:
    """Whatever a record of ours says, it is taken as far as it makes sense, or counted."""
    rows = []
    for kind, fields in told:
        body = {"kind": kind, "run": RUN, "at_ms": NOW_MS + 5_000, **fields}
        rows.append(Row(CONTROL, msgspec.json.encode(body), None, 5_000))
    job = lived(*rows)

    assert job.told("report", GROUP) or any(kind in {"settings", "clock"} for kind, _ in told)
    assert job.failures() == []


# --- checkpoints ---------------------------------------------------------------------------------------


def blob_of(job: Job, home: int) -> bytes:
    saved = job.states[home].saved
    assert saved is not None
    blob = saved[2]
    assert isinstance(blob, bytes)
    return blob


SOUND = lived()
BLOBS = {home: blob_of(SOUND, home) for home in (HOME, CLUSTER_SHARD)}


def go_on(home: int, blob: bytes, due_ms: Any = -1) -> Job:
    """Return a job that goes on from a checkpoint in which one shard has this blob."""
    job = Job()
    job.batch([])
    for shard, state in SOUND.states.items():
        job.states[shard].saved = state.saved
    job.states[home].saved = (STATE_VERSION, due_ms, blob)
    with time_limit(60):
        for behind_ms in (40_000, 41_000, 42_000, 43_000, 44_000):
            job.clocked([], behind_ms=behind_ms, ask=True)
    return job


@CAREFUL
@given(
    st.sampled_from((HOME, CLUSTER_SHARD)),
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(0, 2**16)),
)
def test_changed_bytes_of_a_shard_are_damage(
    home: int, flips: list[tuple[int, int]], cut: int | None
) -> None:
    """They are found by the checksum, whatever they would have meant: the shard begins anew and says so."""
    blob = bytearray(BLOBS[home])
    for at, change in flips:
        blob[at % len(blob)] ^= change
    if cut is not None:
        del blob[cut % len(blob) :]
    assume(bytes(blob) != BLOBS[home])
    assume(not blob.startswith(b"\x93"))  # version 1 had no checksum at first
    job = go_on(home, bytes(blob))

    assert {key for kind, key, _ in job.rows if kind == "rebuilding"} == {str(home)}


def opened(blob: bytes) -> list[Any]:
    """Return what is in a sound blob: its version and codec, then header, index and slots of each chunk."""
    version, codec, size, head, chunks, _ = msgspec.msgpack.decode(blob)
    header, index = msgspec.msgpack.decode(ZSTD.unpack(head, size), strict=False)
    slots = [
        msgspec.msgpack.decode(ZSTD.unpack(chunk, one[-1]), strict=False)
        for one, chunk in zip(index, chunks, strict=True)
    ]
    return [version, codec, [header, index], slots]


def closed(whole: list[Any]) -> bytes:
    """Return a blob of what ``opened`` returned, with sizes and checksum as they must be."""
    version, codec, head, slots = whole
    chunks = [msgspec.msgpack.encode(one) for one in slots]
    if isinstance(head, list) and isinstance(head[-1], list):
        for one, chunk in zip(head[-1], chunks, strict=False):
            if isinstance(one, list):
                one[-1:] = [len(chunk)]
    raw = msgspec.msgpack.encode(head)
    packed = [ZSTD.pack(chunk) for chunk in chunks]
    body = msgspec.msgpack.encode([version, codec, len(raw), ZSTD.pack(raw), packed])[1:]
    return b"\x96" + body + b"\xce" + crc32(body).to_bytes(4, "big")


@st.composite
def rewritten(draw: st.DrawFn, blob: bytes) -> bytes:
    """Return a sound blob that says something else: as one of our own bugs, or nobody, would write it."""
    whole = opened(blob)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = whole
        for _ in range(draw(st.integers(1, 9))):
            inner = [one for one in (place.values() if isinstance(place, dict) else place) if _holds(one)]
            if not inner:
                break
            place = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(sorted(place, key=repr) if isinstance(place, dict) else range(len(place))))
        place[key] = draw(st.one_of(NUMBERS, NUMBERS, WILD, st.binary(max_size=10)))
    try:
        return closed(whole)
    except (OverflowError, TypeError, UnicodeEncodeError, AttributeError):
        return msgspec.msgpack.encode(whole[0])


def _holds(one: Any) -> bool:
    return isinstance(one, list | dict) and bool(one)


def test_the_blobs_of_these_tests_are_as_the_job_writes_them() -> None:
    """What is rewritten is what is saved."""
    for blob in BLOBS.values():
        assert closed(opened(blob)) == blob


@CAREFUL
@given(st.data())
def test_a_shard_that_says_nonsense_stops_nothing(data: st.DataObject) -> None:
    """Numbers, texts and structures in the place of others: what fails is contained, and nothing hangs."""
    home = data.draw(st.sampled_from((HOME, CLUSTER_SHARD)))
    blob = data.draw(rewritten(BLOBS[home]))
    try:
        header, _ = snapshot.load(blob, ZSTD)
        assume(header.shard_count == SHARDS)
    except snapshot.DamagedError:
        pass
    except SnapshotError:
        assume(False)
    go_on(home, blob)


@pytest.mark.parametrize("due_ms", [None, float("nan"), "x", -(2**63), 2**63 - 1])
def test_a_row_of_state_that_nobody_wrote_is_looked_at(due_ms: Any) -> None:
    """A due time that is none wakes the shard, which is what it costs."""
    job = go_on(HOME, BLOBS[HOME], due_ms)

    assert job.told("report", GROUP)


def test_the_stage_refuses_only_what_the_operator_must_decide() -> None:
    """A newer version, and another number of shards."""
    stage = ShardStage(cluster="c", shard_count=SHARDS + 1)
    with pytest.raises(SnapshotError):
        stage.advance(HOME, [], BLOBS[HOME])
