"""What a batch says goes to Kafka first, whole, and then to the view."""

import json
import time
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest
from kafka.errors import UnknownError

from alerts.alert.alert import Alert
from coordinator_model.observations.base import CLUSTER_SHARD
from streaming.control.marks import MarkHeldError
from streaming.control.records import AdoptRecord, SettingsRecord
from streaming.driver.adoption import records
from streaming.kafka_clients.fenced import FencedProducer
from streaming.pipeline.beginning import Beginning
from streaming.pipeline.sinks import BatchSink, Row
from tests.unit.streaming.fakes import FakeProducer, NotAcknowledgedError
from tests.unit.streaming.made_plans import plan


class Frame:
    """A batch as Spark hands it over."""

    def __init__(self, *rows: Row) -> None:
        self.rows = rows
        self.actions = 0

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Return the rows, and count that it was asked to."""
        self.actions += 1
        columns = zip(*self.rows, strict=True) if self.rows else ([], [], [])
        return pa.table(dict(zip(("kind", "key", "value"), map(list, columns), strict=True)))


class Receiver:
    """The view and the progress, in the order in which they hear."""

    def __init__(self, out: FakeProducer) -> None:
        self.out = out
        self.heard: list[Any] = []

    def apply(self, cluster: str, rows: Any) -> None:
        """Note the rows, and how much was written by then."""
        self.heard.append((cluster, list(rows), len(self.out.sent)))

    def done(self, reported: Any) -> None:
        """Note who reported."""
        self.heard.append(list(reported))


def _sink(out: FakeProducer, receiver: Receiver) -> BatchSink:
    return BatchSink(
        plan(),
        "r",
        producer=cast("Any", out),
        outputs=_outputs(out),
        apply=receiver.apply,
        done=receiver.done,
    )


def _outputs(out: FakeProducer) -> FencedProducer:
    return FencedProducer(plan().output, "id", open_producer=lambda *_, **__: out)


ROWS: tuple[Row, ...] = (
    ("transition", "g", b'{"id": 1}'),
    ("alert", "a1", b'{"id": "a1"}'),
    ("report", "g", b"{}"),
    ("reported", "7", b"{}"),
    ("reported", str(CLUSTER_SHARD), b"{}"),
)


def test_transitions_and_alerts_are_written_as_they_are() -> None:
    """Each to its topic, under its key, byte for byte; reports are for the view alone."""
    out = FakeProducer()
    frame = Frame(*ROWS)
    _sink(out, Receiver(out))(cast("Any", frame), 1)
    assert [(one["topic"], one["key"], one["value"]) for one in out.sent] == [
        ("transitions", b"g", b'{"id": 1}'),
        ("alerts", b"a1", b'{"id": "a1"}'),
    ]
    assert out.flushed == 1
    assert out.transactions == ["init", "begin", "commit"]
    assert frame.actions == 1


def test_the_view_hears_after_kafka_has_it() -> None:
    """All rows reach the view once everything is written, and then the shards that reported count."""
    out = FakeProducer()
    receiver = Receiver(out)
    _sink(out, receiver)(cast("Any", Frame(*ROWS)), 1)
    assert receiver.heard == [("prod", list(ROWS), 2), [7, CLUSTER_SHARD]]


def test_a_batch_that_is_not_acknowledged_fails_whole() -> None:
    """The batch is repeated, so the view must not have heard of it."""
    out = FakeProducer(failing=frozenset({"alerts"}))
    receiver = Receiver(out)
    with pytest.raises(TimeoutError):
        _sink(out, receiver)(cast("Any", Frame(*ROWS)), 1)
    assert receiver.heard == []
    assert out.transactions == ["init", "begin", "abort"]


def test_an_empty_batch_writes_nothing_and_is_a_batch() -> None:
    """It still counts as progress."""
    out = FakeProducer()
    receiver = Receiver(out)
    _sink(out, receiver)(cast("Any", Frame()), 1)
    assert out.sent == []
    assert receiver.heard == [("prod", [], 0), []]


def test_a_contradiction_goes_back_into_the_stream() -> None:
    """What one shard found out about a broker's log reaches the cluster's shard by the control topic."""
    out = FakeProducer()
    value = b'{"broker": 2, "lost": "coordinator_log", "group": "g", "at_ms": 4}'
    _sink(out, Receiver(out))(cast("Any", Frame(("contradiction", "g", value))), 1)
    (sent,) = out.sent
    told = json.loads(sent["value"])
    assert (sent["topic"], told["kind"], told["broker"], told["lost"]) == (
        "control",
        "contradicted",
        2,
        "coordinator_log",
    )
    assert (told["run"], told["at_ms"]) == ("r", 4)


def test_a_group_upset_by_a_move_goes_back_into_the_stream() -> None:
    """The cluster's shard counts what each shard saw."""
    out = FakeProducer()
    told = {"group": "g", "rebalanced_ms": 9, "partition": 2, "moved_ms": 7, "came_from": 1, "went_to": 3}
    _sink(out, Receiver(out))(cast("Any", Frame(("upset", "g", json.dumps(told).encode()))), 1)
    (sent,) = out.sent
    record = json.loads(sent["value"])
    assert sent["topic"] == "control"
    assert {name: record[name] for name in told} == told
    assert (record["kind"], record["run"], record["at_ms"]) == ("upset", "r", 9)


@pytest.mark.parametrize("changes", [{"last_ms": 8}, {"over": True}], ids=["fails", "works-again"])
def test_a_quarantined_group_goes_back_into_the_stream(changes: dict[str, Any]) -> None:
    """Dated by its last failure; the end of that has none, and is heard when it is read."""
    out, told = FakeProducer(), {"group": "g", "partition": 2, "since_ms": 7, "last_ms": -1} | changes
    _sink(out, Receiver(out))(cast("Any", Frame(("quarantined", "g", json.dumps(told).encode()))), 1)
    (sent,) = out.sent
    record = json.loads(sent["value"])
    assert (record["kind"], record["run"], record["at_ms"]) == ("quarantined", "r", told["last_ms"])


def test_what_a_batch_relays_does_not_depend_on_when_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is written again an hour later writes the same bytes."""
    told = [
        ("contradiction", {"broker": 2, "lost": "coordinator_log", "group": "g", "at_ms": 4}),
        ("upset", {"group": "g", "rebalanced_ms": 9, "partition": 2, "moved_ms": 7}),
        ("quarantined", {"group": "g", "partition": 2, "since_ms": 7, "last_ms": 8}),
    ]
    rows = [(kind, "g", json.dumps(one).encode()) for kind, one in told]
    first, again = FakeProducer(), FakeProducer()
    _sink(first, Receiver(first))(cast("Any", Frame(*rows)), 1)
    later_ns = time.time_ns() + 3_600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later_ns)
    _sink(again, Receiver(again))(cast("Any", Frame(*rows)), 1)

    assert [one["value"] for one in again.sent] == [one["value"] for one in first.sent]


def _alert(number: int, **changes: Any) -> bytes:
    whole = {
        "id": f"a{number}",
        "revision": 0,
        "name": "RebalanceStorm",
        "cluster": "prod",
        "group": "g",
        "status": "firing",
        "severity": "warning",
        "starts_at_ms": 1,
        "ends_at_ms": None,
        "detected_at_ms": 1,
        "summary": "",
        "cause": "",
    }
    return json.dumps(whole | changes).encode()


def test_a_start_tells_the_settings_and_then_the_open_alerts_in_portions() -> None:
    """Hundreds of alerts fit no single record."""
    began = Beginning(
        format=1,
        cluster="prod",
        run="r",
        shard_count=1,
        started_at_ms=1,
        own_output=False,
        offsets_topic=None,
        events_topic=None,
        offsets_ends=[],
        events_ends=[],
        events_starts=[],
        control_end=0,
    )
    alerts = [msgspec.json.decode(_alert(n), type=Alert) for n in range(450)]
    first, *rest = records(plan(settings=b'{"x":1}'), began, alerts, 5)
    assert isinstance(first, SettingsRecord)
    assert first.settings == {"x": 1}
    parts = [one for one in rest if isinstance(one, AdoptRecord)]
    assert [len(part.alerts) for part in parts] == [200, 200, 50]


class Splitting(FakeProducer):
    """A client whose flush fails for a reason of its own, as kafka-python's does when a batch is split."""

    def flush(self, timeout: float | None = None) -> None:
        """Fail."""
        raise UnknownError("Future not done")


@pytest.mark.parametrize("failing", [frozenset[str](), frozenset({"alerts"})])
def test_a_batch_fails_of_what_its_records_say(failing: frozenset[str]) -> None:
    """Not of what the client says while it waits: that would be in ``/ready`` and in MonitorStalled."""
    out = Splitting(failing=failing)
    sink = _sink(out, Receiver(out))
    if failing:
        with pytest.raises(NotAcknowledgedError):
            sink.write(ROWS)
    else:
        sink.write(ROWS)


def test_a_job_that_must_not_write_any_more_writes_nothing() -> None:
    """It is asked after the batch was worked out, which may have taken a suspended machine's night."""
    out = FakeProducer()

    def ensure() -> None:
        raise MarkHeldError("another groupwatch")

    receiver = Receiver(out)
    sink = BatchSink(
        plan(),
        "r",
        producer=cast("Any", out),
        outputs=_outputs(out),
        apply=receiver.apply,
        done=receiver.done,
        ensure=ensure,
    )
    with pytest.raises(MarkHeldError):
        sink(cast("Any", Frame(*ROWS)), 0)
    assert (out.sent, receiver.heard) == ([], [])
