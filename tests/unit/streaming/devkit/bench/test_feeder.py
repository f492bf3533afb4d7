"""The feeder sends what members cause, when they cause it."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.decoding import request_log
from coordinator_model.decoding.records import observe
from coordinator_model.observations.records import GroupRecorded, OffsetsCommitted
from coordinator_model.observations.requests import CommitsAnswered, Heartbeats
from streaming.config import load_config
from streaming.devkit.bench.feeder import FIRST_OFFSET, OFFSETS_TOPIC, Pace, Record, Stream, standing, streams
from streaming.devkit.bench.material import Population
from streaming.devkit.bench.real_job import Look, RealJob, Stage, figures, grows, topic_bytes
from streaming.devkit.kafka import EmbeddedKafka

AT_MS = 1_750_000_000_123
STAMP = b"[2025-06-15 15:06:40,123]"


def _pace(**more: int | bool) -> Pace:
    shape = {"groups": 20, "members": 3, "partitions": 4, "topics": 2}
    return Pace(bootstrap="", events_topic="events", events_partitions=4, seconds=1, **shape, **more)  # type: ignore[arg-type]


def _sent(stream: Stream, turns: int) -> list[Record]:
    return [
        record
        for number in range(turns * stream.size)
        for record in stream.records(number % stream.size, number // stream.size, AT_MS)
    ]


def _said(record: Record) -> Heartbeats | CommitsAnswered:
    line = record.value or b""
    assert line.startswith(STAMP)
    _, (seen,) = request_log.parse_request_line(
        line[line.index(b"Completed") : line.rindex(b" (kafka")], AT_MS
    )
    assert isinstance(seen, Heartbeats | CommitsAnswered)
    return seen


def test_one_group_in_so_many_heartbeats_with_all_its_members() -> None:
    """Each line bears the time of its sending and lies where its broker's lines lie."""
    pace = _pace(every_group=10, beat_ms=3_000)
    (stream,) = streams(pace)
    seen = Counter(_said(record).group for record in _sent(stream, 2))
    assert seen == {pace.population.group(0): 6, pace.population.group(10): 6}


def test_things_are_spread_evenly_over_their_interval() -> None:
    (stream,) = streams(_pace(beat_ms=3_000))
    assert [stream.due(number) for number in (0, 1, 59, 60)] == [0, 50, 2_950, 3_000]
    assert [stream.next_after(ms) for ms in (0, 49, 50, 2_949, 2_950, 3_000)] == [1, 1, 2, 59, 60, 61]


@pytest.mark.parametrize(("interval_ms", "size"), [(3_000, 7), (7, 3_000), (1, 1), (5_000, 50_000)])
def test_what_is_due_is_what_comes_before_the_next(interval_ms: int, size: int) -> None:
    stream = Stream(interval_ms, size, lambda *_: ())
    for elapsed_ms in (0, 1, 2, 6, 7, 49, 50, 2_999, 3_000, 12_345):
        due = [stream.due(stream.next_after(elapsed_ms) + step) <= elapsed_ms for step in (-1, 0)]
        assert due == [True, False]


def test_members_commit_their_partitions_in_turn_as_line_and_record() -> None:
    """Offsets grow with each round, and the partitions' ends with them."""
    pace = _pace(every_group=20, commit_ms=5_000, has_commit_lines=True)
    commits, data = streams(pace)
    sent = _sent(commits, 3)
    records = [one for one in sent if one.topic == OFFSETS_TOPIC]
    seen = [observe(one.key or b"", one.value, recorded_at_ms=AT_MS) for one in records]
    committed = [
        (commit.partition, commit.offset)
        for what in seen
        if isinstance(what, OffsetsCommitted)
        for commit in what.commits
    ]
    # Of three members the first owns two of four partitions.
    assert committed == [
        (p, FIRST_OFFSET + turn) for turn, first in enumerate((0, 3, 0)) for p in (first, 1, 2)
    ]
    assert all(isinstance(_said(one), CommitsAnswered) for one in sent if one.topic == "events")
    assert len(sent) == 2 * len(records)
    assert len({(one.topic, one.partition) for one in _sent(data, 1)}) == 2 * 4


def test_what_stands_at_the_start_is_a_record_of_each_group_and_its_commits() -> None:
    """No commit is beyond the end of its partition."""
    population = _pace().population
    made = list(standing(population, AT_MS, rounds=2))
    seen = [
        observe(one.key or b"", one.value, recorded_at_ms=AT_MS) for one in made if one.topic == OFFSETS_TOPIC
    ]
    assert sum(isinstance(one, GroupRecorded) for one in seen) == 20
    commits = [commit for one in seen if isinstance(one, OffsetsCommitted) for commit in one.commits]
    assert Counter(commit.offset for commit in commits) == {FIRST_OFFSET - 1: 80, FIRST_OFFSET: 80}
    assert Counter(one.topic for one in made if one.topic != OFFSETS_TOPIC) == dict.fromkeys(
        population.topic_names(), 4 * FIRST_OFFSET
    )


@pytest.mark.parametrize(
    ("late_s", "expected"),
    [
        pytest.param([2.0, 9.0, 2.0, 3.0, 2.5, 2.0], False, id="noise"),
        pytest.param([2.0, 2.0, 5.0, 8.0, 11.0, 14.0], True, id="later-and-later"),
        pytest.param([0.0], False, id="one-look"),
    ],
)
def test_a_backlog_grows_if_the_job_is_later_at_the_end(late_s: list[float], expected: bool) -> None:
    assert grows(late_s) is expected


def test_figures_leave_broker_and_feeder_out_of_the_job() -> None:
    """They are shown beside it."""
    cpu = {"driver_python": 3.0, "jvm": 6.0, "python_workers": 3.0, "broker": 50.0, "feeder": 5.0}
    looks = [Look({"jvm": 2**30}, 1.0), Look({"jvm": 2**30, "python_workers": 2**29}, 2.0)]
    row = figures(30.0, cpu, [0.5, 0.4, 0.6], looks)
    assert row["cpu_s"] == cpu
    assert (row["cpu_s_a_minute"], row["cores"], row["cpu_s_a_batch"]) == (24.0, 0.4, 4.0)
    assert (row["batches"], row["batch_s_p50"], row["batch_s_p95"]) == (3, 0.5, 0.6)
    assert (row["memory_gib"], row["watermark_behind_s_max"]) == (1.5, 2.0)


@pytest.mark.parametrize(
    "more", [{}, {"webhook": "http://127.0.0.1:1/"}, {"master": "local-cluster[2,1,1024]"}]
)
def test_a_measured_job_has_a_valid_configuration(tmp_path: Path, more: dict[str, Any]) -> None:
    """What is written for it is what ``groupwatch run`` reads."""
    kafka = EmbeddedKafka(tmp_path / "kafka")
    job = RealJob(Stage(kafka, tmp_path, 2, Population(10)), "name", trigger="2s", **more)
    config = load_config(tmp_path / "job-name.yaml")
    assert config.clusters[0].bootstrap_servers == kafka.bootstrap_servers.split(",")
    assert job.page == f"http://127.0.0.1:{config.http.port}"
    assert (len(config.receivers), config.checkpoint_is_shared) == (int("webhook" in more), "master" in more)


def test_batches_are_timed_by_the_files_of_their_checkpoint(tmp_path: Path) -> None:
    """From the plan to the commit; one that is not committed yet does not count."""
    job = RealJob(Stage(EmbeddedKafka(tmp_path / "kafka"), tmp_path, 2, Population(10)), "name")
    for part, names in {"offsets": ("7", "8", ".7.crc"), "commits": ("7",)}.items():
        folder = tmp_path / "checkpoint-name" / "bench" / "query" / part
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).touch()
            os.utime(folder / name, (100.0, 100.0 if part == "offsets" else 100.5))
    assert job.batch_files() == {7: (100.0, 100.5)}


def test_topics_are_measured_as_the_broker_holds_them(tmp_path: Path) -> None:
    """All partitions, without indexes, and without topics that are nobody's business."""
    kafka = EmbeddedKafka(tmp_path / "kafka")
    for name, size in {
        "groupwatch-events-0/00.log": 5,
        "groupwatch-events-1/00.log": 7,
        "groupwatch-events-1/00.index": 100,
        "__consumer_offsets-49/00.log": 3,
        "shop.events-000.v1-0/00.log": 100,
    }.items():
        file = kafka.folder(1) / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    assert topic_bytes(kafka) == {"groupwatch-events": 12, "__consumer_offsets": 3}
