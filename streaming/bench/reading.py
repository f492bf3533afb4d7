"""The rows about reading: a backlog of commits, and heartbeats from the request log."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from streaming import topics
from streaming.beginning import Beginning, capture
from streaming.bench import rig
from streaming.bench.material import Beats, Commits, Generations, Population
from streaming.bench.targets import percentile
from streaming.embedded.kafka import EVENTS_TOPIC, EmbeddedKafka
from streaming.plan import ClusterPlan

COMMITS = 1_600_000
COMMIT_ROUNDS = 20
COMMIT_PARTITIONS = 8
HEARTBEATS = 500_000
BROKERS = 4
"""As many partitions has the events topic, one for the lines of each."""
INTERVAL_MS = 3_000
_WARMING_ROUNDS = 2
_RUNS = 2
"""Of each, in turns; the last one counts, when the JVM is warm and the workers have loaded our code."""


def backlog(spark: SparkSession, folder: Path, *, scale: float) -> dict[str, Any]:
    """Measure a first start over a full offsets topic; returns the row."""
    population = Population(
        groups=max(10, int(COMMITS * scale) // (COMMIT_ROUNDS * COMMIT_PARTITIONS)),
        partitions=COMMIT_PARTITIONS,
    )
    tasks = spark.sparkContext.defaultParallelism
    from_ms = time.time_ns() // 1_000_000 - COMMIT_ROUNDS * 5_000
    with EmbeddedKafka(folder / "kafka-backlog", request_log=False, coordinator_log=False) as kafka:
        rig.say(f"writing the commits of {population.groups} groups")
        commits = Commits(population, tasks, COMMIT_ROUNDS, from_ms)
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, Generations(population, tasks, from_ms))
        rig.fill(spark, kafka, rig.OFFSETS_TOPIC, tasks, commits)
        targets = {rig.OFFSETS_TOPIC: rig.ends(kafka, rig.OFFSETS_TOPIC)}
        rows = sum(targets[rig.OFFSETS_TOPIC])
        floors: list[float] = []
        ours: list[float] = []
        ready: list[float] = []
        for turn in range(_RUNS):
            plan = rig.plan_for(kafka, folder, f"backlog-{turn}")
            topics.ensure(plan)
            floors.append(rig.floor(spark, plan, capture(plan), targets))
            rig.say(f"backlog floor {rows / floors[-1]:,.0f} rows/s")
            with rig.job(spark, plan) as (one, query):
                seconds, batches = rig.follow(query, targets, 1)
                ours.append(seconds)
                rig.await_ready(one)
                batches.note(query)
                ready.append(batches.seconds(max(batches.told)))
            rig.say(f"backlog ours {rows / ours[-1]:,.0f} rows/s; batches {batches.durations()[:4]} s")
    return _row(rows, floors[-1], ours[-1]) | {
        "groups": population.groups,
        "cold_s": round(ours[0], 3),
        "ready_s": round(ready[-1], 3),
    }


def _row(rows: int, floor_s: float, ours_s: float) -> dict[str, Any]:
    return {
        "rows": rows,
        "floor_s": round(floor_s, 3),
        "floor_rows_per_s": round(rows / floor_s),
        "ours_s": round(ours_s, 3),
        "ours_rows_per_s": round(rows / ours_s),
        "ratio": round(floor_s / ours_s, 3),
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
        topics.ensure(plan)
        began = capture(plan)
        with rig.job(spark, plan) as (one, _):
            rig.await_ready(one)
        floor_s, ours_s = 0.0, 0.0
        for turns in (_WARMING_ROUNDS, rounds):
            rows, floor_s, ours_s = _caught_up(spark, kafka, plan, began, population, rounds=turns)
    return _row(rows, floor_s, ours_s) | {
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
) -> tuple[int, float, float]:
    """Let heartbeats come while the job is down; returns rows, and the seconds of the floor and of ours."""
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
    for _ in range(2):
        floor_s = rig.floor(spark, floor_plan, of_events, targets)
    rig.say(f"heartbeats floor {rows / floor_s:,.0f} rows/s")
    # What is dated in the future would wait for its time.
    time.sleep(max(0.0, (beats.from_ms + rounds * INTERVAL_MS) / 1000 - time.time()))
    with rig.job(spark, plan) as (_, query):
        ours_s, batches = rig.follow(query, targets, 1)
    rig.say(f"heartbeats ours {rows / ours_s:,.0f} rows/s; batches {batches.durations()[:4]} s")
    return rows, floor_s, ours_s


def batch_times(told: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """Return percentiles of the batches' seconds."""
    seconds = [one["durationMs"]["triggerExecution"] / 1000 for one in told.values()]
    return {
        "batch_s_p50": round(percentile(seconds, 0.5), 3),
        "batch_s_p95": round(percentile(seconds, 0.95), 3),
    }
