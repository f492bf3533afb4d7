"""A night: the clock writes, batches read it, the shards tell their deadlines, and the clock hears them.

The topics, the time and Spark's loop are made; the clock, both stages and what lies between them are real.
"""

import time
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from coordinator_model.kafka import shard_of
from streaming.control import EndsRecord, GroupEnds, SettingsRecord, encode_record
from streaming.devkit.bench.material import Population, commit_key, commit_value, group_key, group_value
from streaming.driver.clock import Clock
from streaming.driver.control_writer import ControlWriter
from streaming.driver.driver_time import DriverTime
from streaming.driver.quiet import QUIET_S, Quiet
from streaming.driver.report_turns import Asking
from streaming.health import Progress
from streaming.workers import CONTROL, EVENTS, OFFSETS, DecodeStage, ShardStage
from tests.unit.streaming.fakes import Acknowledgement, FakeConnections, SavedShard, Written
from tests.unit.streaming.made_plans import plan

SHARDS, GROUPS = 20, 12
FEEDS = {"__consumer_offsets": OFFSETS, "events": EVENTS, "control": CONTROL}
EPOCH_MS = 1_790_000_000_000
LINE = (
    "[{at}] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition={shard}] Preparing to rebalance "
    "group {group} in state PreparingRebalance with old generation 1 (reason: Adding new member m-1 with "
    "group instance id null; client reason: not provided). "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
Record = tuple[int, bytes | None, bytes | None]
"""Timestamp, key, value."""


class Cluster:
    """Topics, an hour hand, and a job whose batches take 0.7 s each second if there is something to read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, events_partitions: int) -> None:
        self.s = 1_000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.s)
        self.topics: dict[tuple[str, int], list[Record]] = {}
        for topic, partitions in (
            ("__consumer_offsets", SHARDS),
            ("events", events_partitions),
            ("control", 1),
        ):
            self.topics |= {(topic, n): [] for n in range(partitions)}
        self.read = dict.fromkeys(self.topics, 0)
        self.progress = Progress("prod", clock=lambda: self.s)
        self.progress.reading.begin(SHARDS, {})
        self.quiet = Quiet(SHARDS + 1, now=lambda: self.s)
        self.control = ControlWriter(cast("Any", self), self.quiet, now=lambda: self.s)
        made = plan() if events_partitions else plan(events_topic=None)
        self.clock = Clock(
            made,
            run="r",
            shard_count=SHARDS,
            events_partitions=events_partitions,
            producer=cast("Any", self),
            events_producer=cast("Any", self),
            ask=Asking(SHARDS, self.progress.reading, now=lambda: self.s),
            reading=self.progress.reading,
            reports=self.progress,
            told=DriverTime(self.ms, lambda: self.s * 1000),
            quiet=self.quiet,
            along=self.control.write_waiting,
        )
        self.clock._inputs._admin = cast("Any", self)
        self.saved = {shard: SavedShard() for shard in range(-1, SHARDS)}
        self.batches: list[float] = []
        """When each began."""
        self.calls: list[int] = []
        """How many shards each called."""
        self.transitions: list[tuple[float, str]] = []
        """When a batch that told one ended, and of which group."""
        self.late_s: list[float] = []
        """How long after its time each alert was told."""
        self._ends_s = 0.0
        self.control.send(
            "control", value=encode_record(SettingsRecord(at_ms=EPOCH_MS, run="r", settings={}))
        )

    def ms(self) -> float:
        """Return the wall clock."""
        return EPOCH_MS + self.s * 1000

    @property
    def connections(self) -> FakeConnections:
        """Return the connections of an admin client, to one broker."""
        ends: dict[str, dict[int, int]] = {}
        for (topic, partition), records in self.topics.items():
            ends.setdefault(topic, {})[partition] = len(records)
        return FakeConnections(dict.fromkeys(range(SHARDS), 1), {}, other_ends=ends)

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        """Return no leaders."""
        return [{"name": topic, "partitions": []} for topic in topics]

    def send(
        self,
        topic: str,
        *,
        value: bytes,
        key: bytes | None = None,
        partition: int = 0,
        timestamp_ms: int | None = None,
    ) -> Acknowledgement:
        """Append a record."""
        at_ms = round(self.ms()) if timestamp_ms is None else timestamp_ms
        self.topics[topic, partition].append((at_ms, key, value))
        return Acknowledgement(Written(topic, partition, at_ms, len(self.topics[topic, partition]) - 1))

    def passes(self, seconds: float) -> None:
        """Let time pass in tenths of a second, with ticks of the clock and batches."""
        for _ in range(round(seconds * 10)):
            self.s = round(self.s + 0.1, 1)
            if round(self.s * 10) % 5 == 0:
                if self.clock._inputs._offsets is not None:
                    for asked in (self.clock._inputs._offsets, self.clock._inputs._events):
                        if asked is not None:
                            asked._connections = cast("Any", self.connections)
                self.clock.tick()
            if round(self.s * 10) % 10 == 1 and self.s >= self._ends_s:
                self.batch()

    def batch(self) -> None:
        """Run a batch if there is something to read; its rows arrive 0.7 s later."""
        rows = [
            {
                "feed": FEEDS[topic],
                "partition": n,
                "offset": offset,
                "timestamp_ms": at_ms,
                "key": key,
                "value": value,
            }
            for (topic, n), records in self.topics.items()
            for offset, (at_ms, key, value) in enumerate(records)
            if offset >= self.read[topic, n]
        ]
        if not rows:
            return
        self.read = {place: len(records) for place, records in self.topics.items()}
        self.batches.append(self.s)
        self.quiet.batch_begun()
        schema = {
            "feed": pa.int8(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp_ms": pa.int64(),
        }
        fields = pa.schema([*schema.items(), ("key", pa.binary()), ("value", pa.binary())])
        stage = DecodeStage(shard_count=SHARDS, run="r")
        cells: dict[int, list[bytes]] = {}
        for out in stage([pa.RecordBatch.from_pylist(rows, schema=fields)]):
            for shard, payload in zip(*(column.to_pylist() for column in out.columns), strict=True):
                cells.setdefault(shard, []).append(payload)
        self.calls.append(len(cells))
        told: list[tuple[str, str, bytes]] = []
        for shard, payloads in cells.items():
            frames = iter([pd.DataFrame({"payload": payloads})])
            for frame in ShardStage(cluster="prod", shard_count=SHARDS)(
                ("prod", shard), frames, self.saved[shard]
            ):
                told += frame.itertuples(index=False, name=None)
        self._ends_s = self.s + 0.7
        self._take(told)

    def _take(self, told: list[tuple[str, str, bytes]]) -> None:
        for kind, key, value in told:
            if kind == "due":
                self.quiet.due(int(key), int(value))
            elif kind == "transition":
                self.transitions.append((self._ends_s, key))
            elif kind == "alert":
                detected_s = (msgspec.json.decode(value)["detected_at_ms"] - EPOCH_MS) / 1000
                self.late_s.append(self._ends_s - detected_s)
        self.progress.reading.reported(int(key) for kind, key, _ in told if kind == "reported")
        self.progress.reading.reached(
            {topic: [self.read[place] for place in self.topics if place[0] == topic] for topic in FEEDS}
        )


@pytest.fixture(params=[0, 2], ids=["offsets", "quiet"])
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Return a cluster of groups at rest, and a job that has started, with the brokers' logs or without."""
    one = Cluster(monkeypatch, request.param)
    population = Population(GROUPS, members=2, partitions=2, shard_count=SHARDS)
    for number in range(GROUPS):
        name, topic = population.group(number), population.topic(number)
        value = group_value(population, number, 1, round(one.ms()))
        one.send("__consumer_offsets", key=group_key(name), value=value, partition=population.shard(number))
        one.send(
            "__consumer_offsets",
            key=commit_key(name, topic, 0),
            value=commit_value(7, round(one.ms())),
            partition=population.shard(number),
        )
    one.passes(60)
    return one


with_logs = pytest.mark.parametrize("cluster", [2], indirect=True, ids=["quiet"])


def test_a_night_in_which_nothing_happens_has_a_batch_each_ten_seconds(cluster: Cluster) -> None:
    """With the brokers' logs or without: no deadline of a group at rest keeps the clock awake."""
    before = len(cluster.batches)
    cluster.passes(120)
    assert len(cluster.batches) - before <= 120 / QUIET_S + 1
    assert max(cluster.calls[before:]) <= 7  # the cluster's, and those whose turn it is to report


def _log_a_rebalance(cluster: Cluster, past_s: float = 0.3) -> str:
    """Let the broker log, so long past the second, that a group begins to rebalance; return the group."""
    cluster.passes(31 + past_s)
    group = "team-00.service-000000"
    at = f"{datetime.fromtimestamp(cluster.ms() / 1000, UTC):%Y-%m-%d %H:%M:%S},{past_s * 1000:03.0f}"
    line = LINE.format(at=at, shard=shard_of(group, SHARDS), group=group)
    cluster.send("events", key=b"1", value=line.encode())
    return group


@with_logs
def test_a_line_in_the_night_is_told_by_the_next_batch(cluster: Cluster) -> None:
    """As if the clock had been written all the time: that batch has a clock that settles the line as well."""
    group = _log_a_rebalance(cluster)
    before, written_s = len(cluster.batches), cluster.s
    cluster.transitions.clear()
    cluster.passes(9)
    ((told_s, told_of),) = cluster.transitions
    assert told_of == group
    assert told_s - written_s == pytest.approx(1.5)
    assert len(cluster.batches) - before <= 3


@with_logs
def test_a_deadline_in_the_night_is_met_on_time(cluster: Cluster) -> None:
    """A group hangs in its join phase: the alert comes after a minute, not ten seconds later."""
    _log_a_rebalance(cluster)
    cluster.passes(70)
    assert cluster.late_s == [pytest.approx(1.5)]


@with_logs
@pytest.mark.parametrize("past_s", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_line_in_the_night_makes_no_batch_but_those_that_settle_it(cluster: Cluster, past_s: float) -> None:
    """Nobody waits for the second of that line to be over: that a log spoke once more is no news.

    A second batch takes the clock that proves the line read, where the first began too soon after the line.
    """
    _log_a_rebalance(cluster, past_s)
    before = len(cluster.batches)
    cluster.passes(8.5)
    assert len(cluster.batches) - before == (1 if 0.1 <= past_s <= 0.4 else 2)


@with_logs
def test_an_answer_that_confirms_makes_no_batch_of_its_own(cluster: Cluster) -> None:
    """One that a settling clock would not prove read waits for the next clock, ten seconds later."""
    group = _log_a_rebalance(cluster)
    before, shard = len(cluster.batches), shard_of(group, SHARDS)
    for _ in range(6):  # until the line is settled
        ends = [GroupEnds(group=group, ends={"shop.events-000.v1": {0: 7}})]
        told = EndsRecord(at_ms=round(cluster.ms()), run="r", groups=ends)
        cluster.control.later("control", encode_record(told), [shard])
        cluster.passes(0.1)
    cluster.passes(8.4)
    assert len(cluster.batches) - before == 1
    cluster.passes(3)
    assert len(cluster.batches) - before == 2
