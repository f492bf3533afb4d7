"""What two Spark workers cost against one for the same input: ``python -m tests.live.support.spark_cost``.

Both runs have two cores and two tasks: one worker with an executor of two, or two workers with one each.  It
counts the CPU seconds of every process of the job, driver and executors with their Pythons, from a warm job
to the end of the input; brokers, master, workers and this feeder are left out.  Turns alternate; the medians
are compared.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pyarrow as pa
from confluent_kafka import Producer

from streaming.devkit.bench.material import Beats, Population
from streaming.devkit.kafka import EVENTS_TOPIC, EmbeddedKafka
from tests.live.support.conformance import say
from tests.live.support.spark_cluster import SparkCluster, below, tasks_by_host
from tests.live.support.stage import Pager, await_that
from tests.live.support.submitted import Submitted

HOSTS = ("127.0.0.3", "127.0.0.4")
CORES = 2
_BROKERS = 4
_INTERVAL_MS = 3_000


class Turn(NamedTuple):
    """One measurement."""

    workers: int
    cpu_s: float
    share_max: float
    """Of the tasks' time: the larger worker's."""


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU seconds of these processes and of their ended children so far."""
    total = 0.0
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            total += sum(one.cpu_times()[:4])  # user and system, its own and its ended children's
    return total


class Feeder:
    """Writes heartbeats of a population into the events topic, as fast as it can."""

    def __init__(self, kafka: EmbeddedKafka, groups: int) -> None:
        """Connect."""
        self._population = Population(groups=groups)
        self._out = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 20})

    def feed(self, rounds: int) -> int:
        """Write so many heartbeats of each member, the last of them now; return how many lines."""
        beats = Beats(
            self._population,
            _BROKERS,
            rounds,
            _INTERVAL_MS,
            time.time_ns() // 1_000_000 - rounds * _INTERVAL_MS,
        )
        count = 0
        for batch in beats(iter([pa.record_batch([pa.array(range(_BROKERS))], ["id"])])):
            for row in batch.to_pylist():
                while True:
                    try:
                        self._out.produce(EVENTS_TOPIC, row["value"], row["key"], row["partition"])
                        break
                    except BufferError:
                        self._out.poll(0.1)
                count += 1
        self._out.flush()
        return count


def _processed(job: Submitted) -> int:
    """Return how many lines of the request log the job has counted."""
    return sum(job.counted("groupwatch_events_total", "request_log", by="kind").values())


def measure(kafka: EmbeddedKafka, folder: Path, workers: int, groups: int, rounds: int) -> Turn:
    """Run the job on so many workers, warm it, feed it, and return what the feed cost."""
    feeder = Feeder(kafka, groups)
    with SparkCluster() as spark, Pager() as pager:
        for host in HOSTS[:workers]:
            spark.start_worker(host, CORES // workers)
        job = Submitted(kafka, folder, pager, spark, executor_cores=CORES // workers)
        job.start()
        try:
            job.await_ready()
            done = _processed(job)
            for _ in range(2):
                done += feeder.feed(2)
                _await(job, done)
            before, tasks = cpu_s(_processes(job, spark)), tasks_by_host(job.ui)
            done += feeder.feed(rounds)
            _await(job, done)
            spent, after = cpu_s(_processes(job, spark)) - before, tasks_by_host(job.ui)
        finally:
            job.stop()
    spent_ms = [after[host]["ms"] - tasks[host]["ms"] for host in after]
    return Turn(workers, spent, max(spent_ms) / sum(spent_ms))


def _await(job: Submitted, lines: int) -> None:
    await_that(lambda: _processed(job) >= lines, f"{lines} lines are read")


def _processes(job: Submitted, spark: SparkCluster) -> set[psutil.Process]:
    """Return the driver, the executors, and all below them."""
    roots = [job.pid, *(pid for host in HOSTS for pid in spark.executors(host))]
    return {psutil.Process(root) for root in roots} | {one for root in roots for one in below(root)}


@contextmanager
def _kafka(folder: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(
        folder / "kafka", request_log=False, coordinator_log=False, events_partitions=_BROKERS
    ) as kafka:
        yield kafka


def main() -> int:
    """Print each turn and the comparison as JSON; return 0 if both are within their bounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--groups", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20, help="heartbeats of each of five members a group")
    given = parser.parse_args()
    turns: list[Turn] = []
    for number in range(given.turns):
        for workers in (1, 2) if number % 2 == 0 else (2, 1):
            with tempfile.TemporaryDirectory(prefix="groupwatch-cost-") as work, _kafka(Path(work)) as kafka:
                turns.append(measure(kafka, Path(work, "job"), workers, given.groups, given.rounds))
            say(f"{turns[-1]}")
    one, two = (statistics.median(turn.cpu_s for turn in turns if turn.workers == n) for n in (1, 2))
    share = max(turn.share_max for turn in turns if turn.workers == 2)
    told = {"one_cpu_s": one, "two_cpu_s": two, "ratio": round(two / one, 3), "share_max": round(share, 3)}
    print(json.dumps(told))  # noqa: T201 - the result
    return 0 if two <= 1.25 * one and share <= 0.6 else 1


if __name__ == "__main__":
    sys.exit(main())
