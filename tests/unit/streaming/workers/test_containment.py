"""A failure of our own code costs what it happened to, and is said; the rest goes on."""

import dataclasses
import logging
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus
from alerts.rules import judge
from alerts.rules.registry import CLUSTER_RULES, RULES
from coordinator_model import groups as classic
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.base import CLUSTER_SHARD
from coordinator_model.shard import awake_groups, live_group, shard, snapshot
from coordinator_model.shard import live_sources as evidence
from coordinator_model.shard.snapshot import SnapshotError
from streaming.workers.decode_stage import OFFSETS
from streaming.workers.shard_state import STATE_VERSION, ShardStage
from streaming.workers.zstd import ZSTD
from tests.unit.coordinator_model.kafka_bytes import (
    assignment,
    commit_key,
    commit_value,
    group_key,
    group_value,
    subscription,
)
from tests.unit.streaming.hostile import (
    GROUP,
    NOW_MS,
    SHARDS,
    Job,
    Row,
    control,
    story,
)

HOME = shard_of(GROUP, SHARDS)
NEIGHBOUR = next(name for name in map(str, range(100)) if shard_of(name, SHARDS) == HOME)
NAME = "GroupsQuarantined"


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def record(group: str, generation: int, behind_ms: int) -> Row:
    value = group_value(generation, subscribed=subscription("t"), assigned=assignment({"t": [0]}))
    return Row(OFFSETS, value, group_key(group), behind_ms)


def lived(*, meanwhile: Callable[[Job], object] = lambda _: None) -> Job:
    """Return a job after two generations of an ordinary group, each of its neighbour's beside it."""
    job = Job()
    first, second = story()
    job.clocked([*first, record(NEIGHBOUR, 1, 3_000)], behind_ms=6_000)
    job.clocked([], behind_ms=8_000)
    meanwhile(job)
    job.clocked([*second, record(NEIGHBOUR, 2, 13_000)], behind_ms=20_000)
    for behind_ms in range(21_000, 32_000, 1_000):
        job.clocked([], behind_ms=behind_ms, ask=True)
    return job


def quarantine_alerts(job: Job) -> list[Alert]:
    alerts = [msgspec.json.decode(one, type=Alert) for one in job.told("alert")]
    return [one for one in alerts if one.name == NAME]


def calm(job: Job, minutes: int = 11) -> None:
    """Let minutes pass in which nothing fails."""
    for second in range(0, minutes * 60, 20):
        job.clocked([], behind_ms=40_000 + second * 1_000, ask=True)


ORDINARY = lived()
TRANSITIONS = ORDINARY.told("transition", GROUP)


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("a bug")


def failing_for(group: str, works: Callable[..., Any]) -> Callable[..., Any]:
    """Return what works for every group but one."""

    def act(one: Any, *others: Any, **named: Any) -> Any:
        name = getattr(one, "group", one)
        if getattr(name, "group", name) == group:
            fail()
        return works(one, *others, **named)

    return act


def test_without_a_failure_nobody_is_quarantined() -> None:
    """An ordinary life raises no such alert."""
    assert quarantine_alerts(ORDINARY) == []
    assert len(TRANSITIONS) == 7


def test_a_rule_that_fails_costs_its_own_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other rules, and the group's transitions, are as without it; the alert names group and rule."""
    broken = tuple(
        dataclasses.replace(rule, evaluate=failing_for(NEIGHBOUR, rule.evaluate))
        if rule.name == "IdleMembers"
        else rule
        for rule in RULES
    )
    monkeypatch.setattr(judge, "RULES", broken)
    job = lived()

    assert job.told("transition", GROUP) == TRANSITIONS
    assert job.told("transition", NEIGHBOUR) == ORDINARY.told("transition", NEIGHBOUR)
    (alert, *_) = quarantine_alerts(job)
    assert NEIGHBOUR in alert.summary
    assert "IdleMembers: ZeroDivisionError: a bug" in alert.cause


def test_an_alert_of_another_rule_is_told_though_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule before it raises, and the one behind it still fires."""

    def alerts_of(job: Job) -> list[str]:
        return [msgspec.json.decode(one, type=Alert).name for one in job.told("alert") if one]

    def rewind(job: Job) -> None:
        for number, offset in enumerate((900, 5)):
            commit = commit_value(offset, NOW_MS + 9_000 + number)
            job.clocked(
                [Row(OFFSETS, commit, commit_key(GROUP, "t", 0), 9_000 + number)], behind_ms=9_100 + number
            )

    expected = [name for name in alerts_of(lived(meanwhile=rewind)) if name != NAME]
    broken = tuple(
        dataclasses.replace(rule, evaluate=fail) if rule.name == "RebalanceStorm" else rule for rule in RULES
    )
    monkeypatch.setattr(judge, "RULES", broken)

    assert [name for name in alerts_of(lived(meanwhile=rewind)) if name != NAME] == expected


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(classic, "apply", id="observation"),
        pytest.param(classic, "due_at", id="deadline"),
        pytest.param(awake_groups, "report_of", id="report"),
        pytest.param(live_group, "encode_group", id="encoding"),
    ],
)
def test_what_fails_on_one_group_leaves_its_neighbours_alone(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    """An observation, a deadline, a report, or the group's own bytes: only the named group suffers."""
    monkeypatch.setattr(module, name, failing_for(NEIGHBOUR, getattr(module, name)))
    job = lived()

    assert job.told("transition", GROUP) == TRANSITIONS
    assert {one["group"] for one in job.failures()} == {NEIGHBOUR}
    assert any(NEIGHBOUR in one.summary for one in quarantine_alerts(job))


def test_a_cut_that_fails_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move of the coordinator on which our code fails is counted, and the groups go on."""
    monkeypatch.setattr(evidence, "note_leader", fail)
    leaders = f'"kind":"leaders","at_ms":{NOW_MS + 7_000},"leaders":{{"{HOME}":[1,5]}}'
    job = lived(meanwhile=lambda job: job.batch([control(leaders)]))

    assert job.told("transition", GROUP) == TRANSITIONS
    assert [one["detail"] for one in job.failures()] == ["ZeroDivisionError: a bug"]
    assert f"partition {HOME} as a whole" in quarantine_alerts(job)[0].summary


def test_the_alert_ends_when_nothing_has_failed_for_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One alert while groups are quarantined, resolved when none is any more."""
    with monkeypatch.context() as patched:
        patched.setattr(classic, "apply", failing_for(NEIGHBOUR, classic.apply))
        job = lived()
    assert quarantine_alerts(job)[-1].status is AlertStatus.FIRING
    calm(job)

    told = quarantine_alerts(job)
    assert {one.id for one in told} == {told[0].id}
    assert told[-1].status is AlertStatus.RESOLVED


def _with_blob(job: Job, home: int, change: Callable[[bytes], bytes]) -> None:
    saved = job.states[home].saved
    assert saved is not None
    job.states[home].saved = (STATE_VERSION, saved[1], change(saved[2]))


def _with_damaged_group(blob: bytes) -> bytes:
    header, slots = snapshot.decode(blob, ZSTD)
    for slot in slots:
        if slot.name == NEIGHBOUR:
            slot.raw = msgspec.Raw(msgspec.msgpack.encode(["x", 7]))
    return snapshot.encode(header, slots)


def test_a_group_whose_bytes_cannot_be_read_begins_anew() -> None:
    """Its neighbours go on, the alert says that its state was lost, and its next record makes it known."""
    job = lived(meanwhile=lambda job: _with_blob(job, HOME, _with_damaged_group))

    assert job.told("transition", GROUP) == TRANSITIONS
    alert = quarantine_alerts(job)[-1]
    assert NEIGHBOUR in alert.summary
    assert "state lost" in "".join(alert.evidence)
    last = msgspec.json.decode(job.told("report", NEIGHBOUR)[-1])
    assert (last["generation"], last["state"]) == (2, "Stable")


@pytest.mark.parametrize("memory", [b"", b"\x01", b"\x01" * 40, b"\xff" * 40])
def test_a_memory_of_the_rules_that_cannot_be_read_is_empty(memory: bytes) -> None:
    """What they remembered of that group is lost and said; its transitions and its neighbours' go on."""

    def forget(blob: bytes) -> bytes:
        header, slots = snapshot.decode(blob, ZSTD)
        for slot in slots:
            if slot.name == NEIGHBOUR:
                slot.memory = memory
        return snapshot.encode(header, slots)

    job = lived(meanwhile=lambda job: _with_blob(job, HOME, forget))

    assert job.told("transition", GROUP) == TRANSITIONS
    assert job.told("transition", NEIGHBOUR) == ORDINARY.told("transition", NEIGHBOUR)
    if memory[:1] == b"\x01":  # another version is an empty memory, as ever
        assert NEIGHBOUR in quarantine_alerts(job)[-1].summary


def test_a_rule_about_the_cluster_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alert about quarantined groups is told all the same, and names what failed."""
    broken = tuple(
        dataclasses.replace(rule, evaluate=fail) if rule.name == "SourceSilent" else rule
        for rule in CLUSTER_RULES
    )
    monkeypatch.setattr(judge, "CLUSTER_RULES", broken)
    alert = quarantine_alerts(lived())[-1]

    assert "the data of the whole cluster" in alert.summary
    assert "SourceSilent: ZeroDivisionError: a bug" in alert.cause


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda _: b"\x07" * 90, id="other-bytes"),
        pytest.param(lambda blob: blob[:-9], id="cut"),
        pytest.param(lambda blob: blob[:40] + bytes([blob[40] ^ 1]) + blob[41:], id="one-bit"),
        pytest.param(lambda blob: b"\x93" + blob[1:60], id="cut-and-older"),
    ],
)
def test_a_damaged_shard_begins_anew_and_says_so(damage: Callable[[bytes], bytes]) -> None:
    """The query goes on, new records fill the shard, and it is said until the driver tells it is full."""
    job = lived(meanwhile=lambda job: _with_blob(job, HOME, damage))

    assert msgspec.json.decode(job.told("report", GROUP)[-1])["generation"] == 2
    assert {key for kind, key, _ in job.rows if kind == "rebuilding"} == {str(HOME)}
    assert f"partition {HOME} as a whole" in quarantine_alerts(job)[-1].summary
    before = len(job.told("rebuilding"))
    refilled = f'"kind":"refilled","at_ms":{NOW_MS + 33_000},"shards":[{HOME}],"complete":true'
    job.clocked([control(refilled)], behind_ms=33_500)
    job.clocked([], behind_ms=35_000, ask=True)
    job.clocked([], behind_ms=37_000, ask=True)
    job.clocked([], behind_ms=38_000, ask=True)
    assert len(job.told("rebuilding")) - before <= 1
    assert quarantine_alerts(job)[-1].status is AlertStatus.RESOLVED


def test_a_damaged_shard_of_the_whole_cluster_begins_anew() -> None:
    """What concerns the cluster is counted from there on; no group notices."""
    job = lived(meanwhile=lambda job: _with_blob(job, CLUSTER_SHARD, lambda _: b"\x01"))

    assert job.told("transition", GROUP) == TRANSITIONS
    assert {key for kind, key, _ in job.rows if kind == "rebuilding"} == {str(CLUSTER_SHARD)}
    assert "the data of the whole cluster" in quarantine_alerts(job)[-1].summary


def test_a_shard_whose_step_fails_as_a_whole_goes_on_without_its_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever our code does, the next batch is judged; that the state was lost is said."""
    steps = iter((True, *(False,) * 1_000))
    works = shard.Shard.step

    def step(self: shard.Shard, *given: Any) -> Any:
        if self.header.shard == HOME and self.header.live_since_ms >= 0 and next(steps):
            fail()
        return works(self, *given)

    monkeypatch.setattr(shard.Shard, "step", step)
    job = lived()

    assert msgspec.json.decode(job.told("report", GROUP)[-1])["generation"] == 2
    assert job.told("rebuilding")


def test_a_group_that_cannot_be_saved_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that msgpack has no room for in one slot costs that slot."""
    header, slots = snapshot.decode(_blob_of(lived(), HOME), ZSTD)
    slots[0].due_ms = 2**70
    blob = snapshot.encode_apart(header, slots)

    kept, left = snapshot.decode(blob)
    assert [slot.name for slot in left] == [slot.name for slot in slots[1:]]
    assert slots[0].name in kept.quarantined


def test_a_header_that_cannot_be_saved_loses_the_part_that_cannot() -> None:
    """The groups stay."""
    header, slots = snapshot.decode(_blob_of(lived(), HOME), ZSTD)
    header.epoch = 2**70
    kept, left = snapshot.decode(snapshot.encode_apart(header, slots))

    assert len(left) == len(slots)
    assert kept.epoch == -1
    assert "" in kept.quarantined


def _blob_of(job: Job, home: int) -> bytes:
    saved = job.states[home].saved
    assert saved is not None
    blob = saved[2]
    assert isinstance(blob, bytes)
    return blob


def test_a_newer_version_and_another_number_of_shards_are_refused() -> None:
    """That is no damage: the operator must choose, and is told what."""
    blob = _blob_of(lived(), HOME)
    version_8 = msgspec.msgpack.encode([8, *msgspec.msgpack.decode(blob)[1:5]])
    with pytest.raises(SnapshotError, match="has version 8"):
        ShardStage(cluster="c", shard_count=SHARDS).advance(HOME, [], version_8)
    with pytest.raises(SnapshotError, match="begin a new checkpoint"):
        ShardStage(cluster="c", shard_count=SHARDS + 1).advance(HOME, [], blob)
