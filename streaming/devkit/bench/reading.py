"""The rows about reading: a backlog of commits, and heartbeats from the request log."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.devkit.bench import rig
from streaming.devkit.bench.material import Beats, Commits, Generations, Population
from streaming.devkit.bench.mixed_lines import Mixed
from streaming.devkit.bench.processes import cpu_s
from streaming.devkit.kafka import EVENTS_TOPIC, EmbeddedKafka
from streaming.pipeline import Beginning, capture

COMMITS = 1_600_000
COMMITTING_GROUPS = (1_000, 10_000)
COMMIT_PARTITIONS = 32
"""Of each group, as in the row ``state``."""
HEARTBEATS = 1_000_000
BROKERS = 4
"""As many partitions has the events topic, one for the lines of each."""
INTERVAL_MS = 3_000
_WARMING_TURNS = 3
"""Turns of each before any counts: in those, Java's compiler takes a third of the machine."""
_TURNS = 5
"""Turns of each that count."""
_WARMING_ROUNDS = 2


def backlog(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure a first start over a full offsets topic, of 1,000 and of 10,000 groups; returns the row."""
    return {f"groups_{groups}": _backlog(spark, folder, groups, scale) for groups in COMMITTING_GROUPS}


def _backlog(spark: SparkSession, folder: Path, groups: int, scale: float) -> dict[str, Any]:
    population = Population(groups=max(10, int(groups * min(1.0, scale))), partitions=COMMIT_PARTITIONS)
    rounds = max(1, int(COMMITS * scale) // (population.groups * COMMIT_PARTITIONS))
    tasks = spark.sparkContext.defaultParallelism
    from_ms = time.time_ns() // 1_000_000 - rounds * 5_000
    with EmbeddedKafka(folder / f"kafka-{groups}", request_log=False, coordinator_log=False) as kafka:
        rig.say(f"backlog: writing the commits of {population.groups} groups")
        commits = Commits(population, tasks, rounds, from_ms)
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, Generations(population, tasks, from_ms))
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, commits)
        targets = {rig.OFFSETS_TOPIC: rig.ends(kafka, rig.OFFSETS_TOPIC)}
        turns = [
            _started(spark, kafka, rig.plan_for(kafka, folder, f"backlog-{groups}-{number}"), targets)
            for number in range(_WARMING_TURNS + _TURNS)
        ]
    return _row(turns) | {
        "groups": population.groups,
        "cold_s": round(turns[0].ours_s, 3),
        "ready_s": round(turns[-1].ready_s, 3),
    }


def _started(
    spark: SparkSession, kafka: EmbeddedKafka, plan: ClusterPlan, targets: dict[str, list[int]]
) -> "Turn":
    """Read the backlog by Spark alone, handed over, and by a job."""
    pipeline.ensure_topics(plan)
    spent = _Spent(kafka)
    floor_s = rig.floor(spark, plan, capture(plan), targets)
    spent.mark()
    handed_s = rig.handed_over(spark, plan, capture(plan), targets)
    spent.mark()
    with rig.job(spark, plan) as (one, query):
        ours_s, batches = rig.follow(query, targets)
        spent.mark()
        rig.await_ready(one)
        batches.note(query)
    rows = sum(targets[rig.OFFSETS_TOPIC])
    turn = Turn(rows, floor_s, handed_s, ours_s, batches.seconds(max(batches.told)), spent.cpu_s)
    turn.tell("backlog")
    return turn


class _Spent:
    """CPU seconds between marks, the broker's left out."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._brokers = [pid for pid in map(kafka.pid, kafka.broker_ids) if pid is not None]
        self._at_s = cpu_s(self._brokers)
        self.cpu_s: tuple[float, ...] = ()

    def mark(self, *, counts: bool = True) -> None:
        """End a part, and begin the next; ``counts`` is false for what nobody wants to know."""
        now_s = cpu_s(self._brokers)
        if counts:
            self.cpu_s += (now_s - self._at_s,)
        self._at_s = now_s


class Turn(NamedTuple):
    """One measurement of each: seconds from the start to the end of the batch that read the last row."""

    rows: int
    floor_s: float
    handed_s: float
    """Of the floor with its rows handed to Python."""
    ours_s: float
    ready_s: float = 0.0
    """Until every shard had reported all its groups as well."""
    cpu_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    """CPU seconds of the floor, of handing over and of ours, the brokers' left out; 0: not measured."""

    @property
    def ratio(self) -> float:
        """Return our rate as a part of the floor's."""
        return self.floor_s / self.ours_s

    def tell(self, name: str) -> None:
        """Report the figures on stderr."""
        rig.say(
            f"{name}: floor {self.rows / self.floor_s:,.0f} rows/s, handed over "
            f"{self.rows / self.handed_s:,.0f}, ours {self.rows / self.ours_s:,.0f}; "
            f"CPU {' / '.join(f'{one:.1f}' for one in self.cpu_s)} s"
        )


def _row(turns: list[Turn]) -> dict[str, Any]:
    counted = sorted(turns[-_TURNS:], key=lambda turn: turn.ratio)
    middle = counted[len(counted) // 2]
    return {
        "rows": middle.rows,
        "floor_s": round(middle.floor_s, 3),
        "floor_rows_per_s": round(middle.rows / middle.floor_s),
        "handed_over_s": round(middle.handed_s, 3),
        "handed_over_ratio": round(middle.floor_s / middle.handed_s, 3),
        "ours_s": round(middle.ours_s, 3),
        "ours_rows_per_s": round(middle.rows / middle.ours_s),
        "ratio": round(middle.ratio, 3),
        "ratios": [round(turn.ratio, 3) for turn in turns],
        "floor_cpu_s": _least_and_most(turn.cpu_s[0] for turn in counted),
        "handed_over_cpu_s": _least_and_most(turn.cpu_s[1] for turn in counted),
        "ours_cpu_s": _least_and_most(turn.cpu_s[2] for turn in counted),
        "rows_a_cpu_s": round(min(turn.rows / max(0.01, turn.cpu_s[2]) for turn in counted)),
        "cpu_ratio_to_handed_over": round(middle.cpu_s[1] / max(0.01, middle.cpu_s[2]), 3),
        "cpu_s_per_million": round(max(1e6 * turn.cpu_s[2] / turn.rows for turn in counted), 2),
    }


def _least_and_most(values: Iterable[float]) -> list[float]:
    ordered = sorted(values)
    return [round(ordered[0], 2), round(ordered[-1], 2)]


def heartbeats(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure a restart over heartbeats of known groups; returns the row."""
    return _lines(spark, folder, "heartbeats", Beats, scale=scale)


def mixed(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure a restart over what a cluster really logs: heartbeats, commits, some of KIP-848."""
    return _lines(spark, folder, "mixed", Mixed, scale=scale)


def enveloped(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure the same lines in the JSON of a shipper."""
    return _lines(spark, folder, "enveloped", partial(Mixed, is_enveloped=True), scale=scale)


MakeLines = Callable[[Population, int, int, int, int], rig.Fill]
"""Makes what writes rounds of lines of a population: brokers, rounds, interval in ms, start in epoch ms."""


def _lines(spark: SparkSession, folder: Path, name: str, make: MakeLines, *, scale: float) -> dict[str, Any]:
    population = Population(groups=max(10, int(10_000 * min(1.0, scale))))
    rounds = max(2, int(HEARTBEATS * scale) // (population.groups * population.members))
    with EmbeddedKafka(
        folder / f"kafka-{name}", request_log=False, coordinator_log=False, events_partitions=BROKERS
    ) as kafka:
        rig.say(f"writing {population.groups} groups of {population.members}")
        _found_groups(spark, kafka, population)
        plan = rig.plan_for(kafka, folder, name)
        pipeline.ensure_topics(plan)
        began = capture(plan)
        with rig.job(spark, plan) as (one, _):
            rig.await_ready(one)
        stage = _Stage(spark, kafka, plan, began)
        turns = [
            _caught_up(stage, partial(make, population, BROKERS, count, INTERVAL_MS), count)
            for count in (*[_WARMING_ROUNDS] * _WARMING_TURNS, *[rounds] * _TURNS)
        ]
    for turn in turns:
        turn.tell(name)
    return _row(turns) | {
        "groups": population.groups,
        "members": population.groups * population.members,
    }


def _found_groups(spark: SparkSession, kafka: EmbeddedKafka, population: Population) -> None:
    tasks = spark.sparkContext.defaultParallelism
    generations = Generations(population, tasks, time.time_ns() // 1_000_000)
    rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, generations)


class _Stage(NamedTuple):
    """Where a turn is played."""

    spark: SparkSession
    kafka: EmbeddedKafka
    plan: ClusterPlan
    began: Beginning


def _caught_up(stage: _Stage, make: Callable[[int], rig.Fill], rounds: int) -> Turn:
    """Let lines come while the job is down, and read them."""
    spark, kafka, plan, began = stage
    starts = rig.ends(kafka, EVENTS_TOPIC)
    from_ms = time.time_ns() // 1_000_000
    rig.say(f"writing {rounds} lines of each member")
    rig.fill(spark, kafka, EVENTS_TOPIC, BROKERS, make(from_ms))
    targets = {EVENTS_TOPIC: rig.ends(kafka, EVENTS_TOPIC)}
    rows = sum(targets[EVENTS_TOPIC]) - sum(starts)
    of_events = msgspec.structs.replace(
        began, events_starts=starts, offsets_topic=None, control_end=rig.ends(kafka, plan.control_topic)[0]
    )
    floor_plan = replace(plan, offsets_topic=None)
    spent = _Spent(kafka)
    floor_s = rig.floor(spark, floor_plan, of_events, targets)
    spent.mark()
    handed_s = rig.handed_over(spark, floor_plan, of_events, targets)
    spent.mark()
    # Lines dated in the future would wait for their time.
    time.sleep(max(0.0, (from_ms + rounds * INTERVAL_MS) / 1000 - time.time()))
    spent.mark(counts=False)
    with rig.job(spark, plan) as (_, query):
        ours_s, batches = rig.follow(query, targets)
        spent.mark()
    rig.say(f"batches {batches.durations()[:4]} s")
    return Turn(rows, floor_s, handed_s, ours_s, cpu_s=spent.cpu_s)
