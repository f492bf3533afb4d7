"""The rows about reading: a backlog of commits, and heartbeats from the request log."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.devkit.bench import rig
from streaming.devkit.bench.material import Beats, Commits, Generations, Population
from streaming.devkit.kafka import EVENTS_TOPIC, EmbeddedKafka
from streaming.pipeline import Beginning, capture

COMMITS = 1_600_000
COMMITTING_GROUPS = 1_000
COMMIT_PARTITIONS = 32
"""Of each group, as in the row ``state``."""
HEARTBEATS = 1_000_000
BROKERS = 4
"""As many partitions has the events topic, one for the lines of each."""
INTERVAL_MS = 3_000
_WARMING_TURNS = 3
"""Turns of each before any counts: in those, Java's compiler takes a third of the machine."""
_TURNS = 3
"""Turns of each; the median of their ratios counts."""
_WARMING_ROUNDS = 2


def backlog(
    spark: SparkSession, folder: Path, *, scale: float, groups: int = COMMITTING_GROUPS
) -> dict[str, Any]:
    """Measure a first start over a full offsets topic; returns the row."""
    groups = max(10, int(groups * min(1.0, scale)))
    population = Population(groups=groups, partitions=COMMIT_PARTITIONS)
    rounds = max(1, int(COMMITS * scale) // (groups * COMMIT_PARTITIONS))
    tasks = spark.sparkContext.defaultParallelism
    from_ms = time.time_ns() // 1_000_000 - rounds * 5_000
    with EmbeddedKafka(folder / "kafka-backlog", request_log=False, coordinator_log=False) as kafka:
        rig.say(f"writing the commits of {population.groups} groups")
        commits = Commits(population, tasks, rounds, from_ms)
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, Generations(population, tasks, from_ms))
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, commits)
        targets = {rig.OFFSETS_TOPIC: rig.ends(kafka, rig.OFFSETS_TOPIC)}
        rows = sum(targets[rig.OFFSETS_TOPIC])
        turns: list[Turn] = []
        for number in range(_WARMING_TURNS + _TURNS):
            plan = rig.plan_for(kafka, folder, f"backlog-{number}")
            pipeline.ensure_topics(plan)
            floor_s = rig.floor(spark, plan, capture(plan), targets)
            handed_s = rig.handed_over(spark, plan, capture(plan), targets)
            with rig.job(spark, plan) as (one, query):
                ours_s, batches = rig.follow(query, targets)
                rig.await_ready(one)
                batches.note(query)
            turns.append(Turn(rows, floor_s, handed_s, ours_s, batches.seconds(max(batches.told))))
            turns[-1].tell("backlog", batches)
    return _row(turns) | {
        "groups": population.groups,
        "cold_s": round(turns[0].ours_s, 3),
        "ready_s": round(turns[-1].ready_s, 3),
    }


class Turn(NamedTuple):
    """One measurement of each: seconds from the start to the end of the batch that read the last row."""

    rows: int
    floor_s: float
    handed_s: float
    """Of the floor with its rows handed to Python."""
    ours_s: float
    ready_s: float = 0.0
    """Until every shard had reported all its groups as well."""

    @property
    def ratio(self) -> float:
        """Return our rate as a part of the floor's."""
        return self.floor_s / self.ours_s

    def tell(self, name: str, batches: rig.Batches) -> None:
        """Report the figures on stderr."""
        rig.say(
            f"{name}: floor {self.rows / self.floor_s:,.0f} rows/s, handed over "
            f"{self.rows / self.handed_s:,.0f}, ours {self.rows / self.ours_s:,.0f}; "
            f"batches {batches.durations()[:4]} s"
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
    }


def heartbeats(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure a restart over heartbeats of known groups; returns the row."""
    population = Population(groups=max(10, int(10_000 * min(1.0, scale))))
    rounds = max(2, int(HEARTBEATS * scale) // (population.groups * population.members))
    with EmbeddedKafka(
        folder / "kafka-heartbeats", request_log=False, coordinator_log=False, events_partitions=BROKERS
    ) as kafka:
        rig.say(f"writing {population.groups} groups of {population.members}")
        _found_groups(spark, kafka, population)
        plan = rig.plan_for(kafka, folder, "heartbeats")
        pipeline.ensure_topics(plan)
        began = capture(plan)
        with rig.job(spark, plan) as (one, _):
            rig.await_ready(one)
        turns = [
            _caught_up(spark, kafka, plan, began, population, rounds=count)
            for count in (*[_WARMING_ROUNDS] * _WARMING_TURNS, *[rounds] * _TURNS)
        ]
    return _row(turns) | {
        "groups": population.groups,
        "members": population.groups * population.members,
    }


def _found_groups(spark: SparkSession, kafka: EmbeddedKafka, population: Population) -> None:
    tasks = spark.sparkContext.defaultParallelism
    generations = Generations(population, tasks, time.time_ns() // 1_000_000)
    rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, generations)


def _caught_up(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    plan: ClusterPlan,
    began: Beginning,
    population: Population,
    *,
    rounds: int,
) -> Turn:
    """Let heartbeats come while the job is down, and read them."""
    starts = rig.ends(kafka, EVENTS_TOPIC)
    beats = Beats(population, BROKERS, rounds, INTERVAL_MS, time.time_ns() // 1_000_000)
    rig.say(f"writing {rounds} heartbeats of each member")
    rig.fill(spark, kafka, EVENTS_TOPIC, BROKERS, beats)
    targets = {EVENTS_TOPIC: rig.ends(kafka, EVENTS_TOPIC)}
    rows = sum(targets[EVENTS_TOPIC]) - sum(starts)
    of_events = msgspec.structs.replace(
        began, events_starts=starts, offsets_topic=None, control_end=rig.ends(kafka, plan.control_topic)[0]
    )
    floor_plan = replace(plan, offsets_topic=None)
    floor_s = rig.floor(spark, floor_plan, of_events, targets)
    handed_s = rig.handed_over(spark, floor_plan, of_events, targets)
    # Heartbeats dated in the future would wait for their time.
    time.sleep(max(0.0, (beats.from_ms + rounds * INTERVAL_MS) / 1000 - time.time()))
    with rig.job(spark, plan) as (_, query):
        ours_s, batches = rig.follow(query, targets)
    turn = Turn(rows, floor_s, handed_s, ours_s)
    turn.tell("heartbeats", batches)
    return turn
