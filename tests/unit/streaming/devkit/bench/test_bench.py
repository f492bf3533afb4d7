"""What the bench fills topics with is what brokers write, and its sums are right."""

import json
import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from coordinator_model.decoding import request_log
from coordinator_model.decoding.records import observe
from coordinator_model.decoding.schemas import describe
from coordinator_model.observations.records import GroupRecorded, OffsetsCommitted
from coordinator_model.observations.requests import CommitsAnswered, Heartbeats
from streaming.decoders import quiet_lines
from streaming.devkit.bench import command, material
from streaming.devkit.bench.latency import moments_in, seconds_to
from streaming.devkit.bench.material import Beats, Commits, Generations, Population
from streaming.devkit.bench.mixed_lines import Mixed
from streaming.devkit.bench.processes import cpu_by_kind, cpu_s, memory_by_kind
from streaming.devkit.bench.rig import Batches, BenchError
from streaming.devkit.bench.state import state
from streaming.devkit.bench.targets import Target, percentile
from streaming.devkit.kafka.webhook_probe import ReceivedAlert

AT_MS = 1_750_000_000_123
POPULATION = Population(groups=7, members=3, partitions=4)
Row = tuple[bytes, bytes, int]


def _rows(fill: Commits | Generations | Beats | Mixed, tasks: int) -> list[Row]:
    """Return what the tasks produce, one after the other."""
    numbers = pa.RecordBatch.from_arrays([pa.array(range(tasks), pa.int64())], names=["id"])
    made = pa.Table.from_batches(list(fill([numbers])))
    keys, values, partitions = (column.to_pylist() for column in made.columns)
    return list(zip(keys, values, partitions, strict=True))


def test_commits_are_read_as_kafka_means_them() -> None:
    """Each group commits all its partitions in each round, to the partition of its shard."""
    rows = _rows(Commits(POPULATION, tasks=2, rounds=3, from_ms=AT_MS), tasks=2)

    assert len(rows) == 7 * 4 * 3
    for key, value, partition in rows:
        seen = observe(key, value, recorded_at_ms=AT_MS)
        assert isinstance(seen, OffsetsCommitted)
        assert partition in {POPULATION.shard(n) for n in range(7) if POPULATION.group(n) == seen.group}
    assert describe(*rows[0][:2])["version"] == 4


def test_rounds_follow_one_another() -> None:
    """A later round's commits lie behind, with greater offsets, as repeats do in the topic."""
    rows = _rows(Commits(Population(groups=1, partitions=1), tasks=1, rounds=3, from_ms=AT_MS), tasks=1)
    offsets = [describe(key, value)["value"]["offset"] for key, value, _ in rows]

    assert offsets == sorted(set(offsets))


def test_a_generation_has_every_member_and_its_partitions() -> None:
    """The record of a group divides all partitions among all members."""
    rows = _rows(Generations(POPULATION, tasks=2, at_ms=AT_MS), tasks=2)

    assert len(rows) == 7
    for key, value, _ in rows:
        seen = observe(key, value, recorded_at_ms=AT_MS)
        assert isinstance(seen, GroupRecorded)
        owned = [one for member in seen.members for ones in (member.assigned or {}).values() for one in ones]
        assert (len(seen.members), sorted(owned)) == (3, [0, 1, 2, 3])


def test_heartbeats_come_from_known_members_in_the_order_of_time() -> None:
    """Each line is a heartbeat that the fast path takes, of a member that the group's record names."""
    rows = _rows(Beats(POPULATION, brokers=2, rounds=2, interval_ms=3_000, from_ms=AT_MS), tasks=2)
    members = {member for n in range(7) for member in POPULATION.member_ids(n)}
    times: dict[int, list[str]] = {}

    assert len(rows) == 7 * 3 * 2
    for key, line, partition in rows:
        assert quiet_lines.LINE.fullmatch(line)
        message = line[line.index(b"Completed") : line.rindex(b" (kafka")]
        _, (seen,) = request_log.parse_request_line(message, AT_MS)
        assert isinstance(seen, Heartbeats)
        assert seen.member_id in members
        assert key == b"%d" % (partition + 1)
        times.setdefault(partition, []).append(line[1:24].decode())
    assert all(one == sorted(one) for one in times.values())


def test_a_line_has_the_size_that_the_target_names() -> None:
    """About 700 bytes: neither the floor nor ours may look better than it is."""
    line = material.heartbeat_line(Population(groups=10_000), 9_999, 4, AT_MS, 1)
    assert 630 <= len(line) <= 800


@pytest.mark.parametrize("is_enveloped", [False, True])
def test_mixed_lines_are_what_a_cluster_logs(is_enveloped: bool) -> None:
    """Five heartbeats to three commits, a tenth of the groups of KIP-848, each line as the model reads it."""
    population = Population(groups=40)
    lines = Mixed(population, 2, 8, 3_000, AT_MS, is_enveloped=is_enveloped)
    kinds: Counter[str] = Counter()
    for key, value, partition in _rows(lines, tasks=2):
        line = json.loads(value)["message"].encode() if is_enveloped else value
        message = line[line.index(b"Completed") : line.rindex(b" (kafka")]
        kind, (seen,) = request_log.parse_request_line(message, AT_MS)
        assert isinstance(seen, Heartbeats | CommitsAnswered)
        assert (seen.error_code, key) == (0, b"%d" % (partition + 1))
        kinds[kind] += 1
    assert kinds == {
        "heartbeat": 36 * 5 * 5,
        "consumer_group_heartbeat": 4 * 5 * 5,
        "offset_commit": 40 * 5 * 3,
    }


def _write_process(proc: Path, pid: int, parent: int, name: str, times: Sequence[int]) -> None:
    (proc / str(pid)).mkdir()
    fields = ["S", str(parent), *["0"] * 9, *map(str, times), "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}")
    (proc / str(pid) / "smaps_rollup").write_text(f"Rss: 99 kB\nPss: {pid} kB\nPss_Anon: 9 kB\n")


def test_cpu_time_and_memory_of_a_job_are_told_by_process(tmp_path: Path) -> None:
    """The Python that was started, the JVM under it, executors, and the workers under those."""
    _write_process(tmp_path, 10, 1, "python3", (1, 0, 0, 0))
    _write_process(tmp_path, 11, 10, "java", (2, 3, 0, 0))
    _write_process(tmp_path, 12, 11, "python3", (7, 0, 4, 0))
    _write_process(tmp_path, 13, 12, "python3", (8, 0, 0, 0))
    _write_process(tmp_path, 14, 1, "java", (99, 0, 0, 0))
    _write_process(tmp_path, 15, 11, "java", (20, 0, 0, 0))
    _write_process(tmp_path, 16, 15, "python3", (40, 0, 0, 0))
    ticks = os.sysconf("SC_CLK_TCK")
    cpu = {kind: seconds * ticks for kind, seconds in cpu_by_kind(10, tmp_path).items()}
    assert cpu == {"driver_python": 1, "jvm": 25, "python_workers": 59}
    assert memory_by_kind(10, tmp_path) == {
        "driver_python": 10 * 1024,
        "jvm": (11 + 15) * 1024,
        "python_workers": (12 + 13 + 16) * 1024,
    }


def test_cpu_time_is_that_of_all_descendants(tmp_path: Path) -> None:
    """Ended ones too; but for a tree that is left out."""
    ticks = os.sysconf("SC_CLK_TCK")

    def process(pid: int, parent: int, *times: int) -> None:
        _write_process(tmp_path, pid, parent, "a ) name", times)

    process(os.getpid(), 1, 1, 2, 3, 4)
    process(900_001, os.getpid(), 10, 0, 0, 0)
    process(900_002, 900_001, 0, 20, 0, 0)
    process(900_003, os.getpid(), 1_000, 0, 0, 0)
    process(900_004, 900_003, 1_000, 0, 0, 0)
    process(900_005, 1, 1_000, 0, 0, 0)
    (tmp_path / "meminfo").write_text("")
    assert cpu_s([900_003], tmp_path) * ticks == 40


def test_the_state_row_measures_groups_that_are_known() -> None:
    """A hundred bytes at least: a shard that only held what it was shown, or lost it, would not do."""
    row = state()
    assert 100 < row["bytes_per_group"] < 4096


def test_percentiles() -> None:
    """The smallest value that so many do not exceed; nothing measured is no figure."""
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, part) for part in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert percentile([3.0], 0.99) == 3.0
    with pytest.raises(ValueError, match="nothing was measured"):
        percentile([], 0.5)


@pytest.mark.parametrize(
    ("smaller", "value", "must", "aim"), [(False, 0.7, True, False), (True, 3.0, True, False)]
)
def test_verdicts_know_which_way_is_better(smaller: bool, value: float, must: bool, aim: bool) -> None:
    """A ratio must be large, a latency small."""
    target = Target("x", must=4.0 if smaller else 0.6, aim=2.0 if smaller else 0.8, smaller=smaller)
    verdict = target.verdict({"x": value})
    assert (verdict["must_holds"], verdict["aim_holds"]) == (must, aim)


def test_a_verdict_finds_figures_of_a_part_and_leaves_out_what_has_no_bound() -> None:
    verdict = Target("trigger_5s.batch_s_p95", must=4.0, aim=None).verdict(
        {"trigger_5s": {"batch_s_p95": 5.0}}
    )
    assert (verdict["value"], verdict["must_holds"], verdict["aim_holds"]) == (5.0, False, None)


@pytest.mark.parametrize("name", command.ROWS)
def test_every_row_can_be_measured(name: str) -> None:
    """Each name on the command line leads to a function."""
    assert callable(command.measure_of(name))


def test_a_row_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says why, and has no verdict."""

    def fails(*_: object, **__: object) -> dict[str, float]:
        raise BenchError("the job was not ready")

    rows = {"held": fails, "scrape": lambda *_, **__: {"cpu_s": 0.3}}
    monkeypatch.setattr(command, "measure_of", rows.__getitem__)
    measured = command.run_bench(["held", "scrape"])["rows"]
    assert measured["held"]["failed"] == "BenchError: the job was not ready"
    assert [one["must_holds"] for one in measured["scrape"]["targets"]] == [True]


def test_without_rows_all_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by the argparse of Python 3.11."""
    monkeypatch.setattr(command, "run_bench", lambda rows, **_: rows)
    assert command.main([]) == 0
    assert json.loads(capsys.readouterr().out) == list(command.ROWS)


def test_sigterm_unwinds_a_row_also_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell's background jobs ignore SIGINT, and a broker that a row started must end with it."""
    monkeypatch.setattr(command, "run_bench", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            command.main(["state"])
    finally:
        signal.signal(signal.SIGINT, before)


def _progress(batch: int, second: float, took_ms: int, position: int, rows: int = 1) -> dict[str, object]:
    return {
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:{second:06.3f}Z",
        "numInputRows": rows,
        "durationMs": {"triggerExecution": took_ms},
        "sources": [{"endOffset": {"topic": {"0": position}}}],
    }


def test_time_runs_from_the_first_batch_to_the_end_of_the_one_that_reached_the_end() -> None:
    """Pauses between batches count; what comes after does not."""
    told = [_progress(0, 1.0, 500, 5), _progress(1, 3.0, 1500, 10), _progress(2, 6.0, 1000, 12)]
    batches = Batches(dict(enumerate(told)))

    assert batches.reaching({"topic": [10]}) == 1
    assert batches.seconds(1) == pytest.approx(3.5)
    assert batches.reaching({"topic": [13]}) is None


SERVER_LOG = """\
[2026-01-01 00:00:01,250] INFO [GroupCoordinator id=1] Member m-1 in group g1 has failed, removing it from \
the group. (org.apache.kafka)
[2026-01-01 00:00:02,500] INFO [GroupCoordinator id=1] [Group g2] Member m-2 has left group through explicit \
`LeaveGroup` request; client reason: consumer poll timeout has expired. (org.apache.kafka)
[2026-01-01 00:00:03,000] INFO [GroupCoordinator id=1] Member m-9 in group g1 has failed, removing it from \
the group. (org.apache.kafka)
"""


def test_incidents_are_timed_by_the_broker_s_lines() -> None:
    """Only the lines about the members that something was done to count, each with its own time."""
    happened = {"SessionTimeout": {"m-1": "g1"}, "PollIntervalExceeded": {"m-2": "g2"}}
    start_ms = 1_767_225_600_000

    assert moments_in(iter(SERVER_LOG.splitlines()), happened) == {
        ("SessionTimeout", "g1"): start_ms + 1_250,
        ("PollIntervalExceeded", "g2"): start_ms + 2_500,
    }


def test_latency_ends_at_the_first_receipt() -> None:
    """A later revision of the same alert does not make it slower; other alerts do not count."""

    def told(alert: str, received_at_ms: int) -> ReceivedAlert:
        labels = {"alertname": alert, "group": "g1"}
        return ReceivedAlert(received_at_ms, "id/0", "firing", labels, {}, "id")

    received = [told("Other", 900), told("SessionTimeout", 1_500), told("SessionTimeout", 9_000)]
    assert seconds_to({("SessionTimeout", "g1"): 1_000}, received) == {("SessionTimeout", "g1"): 0.5}
