"""``groupwatch run`` as its own process tree, beside a Kafka that knows the groups and a feeder.

What is measured here is what users run.  A batch's time is that from the file that Spark writes when it has
planned the batch to the one that it writes when all is committed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import yaml

from streaming.devkit.bench import feeder
from streaming.devkit.bench.feeder import Pace
from streaming.devkit.bench.material import Population
from streaming.devkit.bench.processes import cpu_by_kind, memory_by_kind, tree
from streaming.devkit.bench.rig import BenchError, say
from streaming.devkit.bench.targets import percentile
from streaming.devkit.kafka import EVENTS_TOPIC, EmbeddedKafka, free_ports

EVENTS_PARTITIONS = 4
_PATIENCE_S = 900.0
_LOOK_EVERY_S = 1.0
_ASK_EVERY = 5
"""Memory and watermark are looked at in every so many looks: both cost the job something."""
_NO_ARCHIVE = {
    "spark.pyspark.python": sys.executable,
    "spark.python.daemon.module": "streaming.workers.daemon",
}
"""What deploy/spark/submit.sh sets by its archive: here workers of a cluster have our packages anyhow."""
_HEAPS = ((20_000, "512m"), (200_000, "3g"), (10**9, "8g"))
"""The broker's, by the number of groups that its coordinator knows."""
_GROWING = 1.5
"""A backlog grows if the watermark is this much later in the last third than in the first."""


@dataclass(frozen=True)
class Stage:
    """A Kafka with groups in it, and where the jobs that watch it keep their files."""

    kafka: EmbeddedKafka
    folder: Path
    cores: int
    population: Population

    def pace(self, seconds: float, **more: Any) -> Pace:
        """Return what a feeder is to send."""
        shape = self.population
        usual: dict[str, Any] = {
            "bootstrap": self.kafka.bootstrap_servers,
            "events_topic": EVENTS_TOPIC,
            "events_partitions": EVENTS_PARTITIONS,
            "groups": shape.groups,
            "members": shape.members,
            "partitions": shape.partitions,
            "topics": shape.topics,
        }
        return Pace(seconds=seconds, **usual | more)


@contextmanager
def stage(folder: Path, name: str, cores: int, population: Population, *, rounds: int = 1) -> Iterator[Stage]:
    """Start a Kafka whose coordinator has these groups, with their data and commits; it logs nothing.

    It is for one feeder that commits: a second one sets every offset back, and each group raises an alert.
    """
    heap = next(size for most, size in _HEAPS if population.groups <= most)
    with EmbeddedKafka(
        folder / f"kafka-{name}",
        request_log=False,
        coordinator_log=False,
        events_partitions=EVENTS_PARTITIONS,
        heap=heap,
    ) as kafka:
        fill(kafka, population, name, rounds)
        yield Stage(kafka, folder, cores, population)


def fill(kafka: EmbeddedKafka, population: Population, name: str, rounds: int = 1) -> None:
    """Write the groups into the offsets topic, and let the coordinator read them: members live 30 minutes."""
    say(f"{name}: writing {population.groups} groups of {population.members} and {population.partitions}")
    for topic in population.topic_names():
        kafka.create_topic(topic, partitions=population.partitions)
    at_ms = time.time_ns() // 1_000_000
    feeder.send_all(kafka.bootstrap_servers, feeder.standing(population, at_ms, rounds))
    kafka.stop_broker(1)
    kafka.start_broker(1)
    await_that(lambda: _is_known(kafka, population), "the coordinator did not read its groups")


def _is_known(kafka: EmbeddedKafka, population: Population) -> bool:
    last = population.group(population.groups - 1)
    return kafka.group_states([last])[last][1] == population.members


def await_that(holds: Callable[[], Any], complaint: str, patience_s: float = _PATIENCE_S) -> None:
    """Return when it holds.

    Raises:
        BenchError: it took too long.
    """
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            raise BenchError(f"{complaint} within {patience_s:.0f} s")
        time.sleep(0.1)


class RealJob:
    """One ``groupwatch run``; it can be killed and started again with the same checkpoint."""

    def __init__(
        self,
        on: Stage,
        name: str,
        *,
        trigger: str = "1s",
        cluster: Mapping[str, Any] | None = None,
        webhook: str = "",
        master: str = "",
    ) -> None:
        """Write the configuration.

        Args:
            on: which Kafka it watches.
            name: of its files.
            trigger: as in the configuration.
            cluster: more settings of the cluster.
            webhook: who is told of alerts; "" for nobody.
            master: of Spark, whose workers are on this machine; "" for the stage's cores in one process.
        """
        (port,) = free_ports(1)
        self.page = f"http://127.0.0.1:{port}"
        self.log = on.folder / f"job-{name}.log"
        self.started_at = 0.0
        self._checkpoint = on.folder / f"checkpoint-{name}"
        self._config = on.folder / f"job-{name}.yaml"
        receivers = [{"name": "bench", "webhook": {"url": webhook}}] if webhook else []
        told = {
            "clusters": [
                {
                    "name": "bench",
                    "bootstrap_servers": on.kafka.bootstrap_servers.split(","),
                    **(cluster or {}),
                }
            ],
            "checkpoint": str(self._checkpoint),
            "trigger_interval": trigger,
            "http": {"host": "127.0.0.1", "port": port},
            "checkpoint_is_shared": bool(master),
            "spark": {"spark.master": master or f"local[{on.cores}]"} | (_NO_ARCHIVE if master else {}),
            "receivers": receivers,
            "routes": [{"receivers": ["bench"]}] if webhook else [],
        }
        self._config.write_text(yaml.safe_dump(told), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that was started."""
        if self._process is None:
            raise BenchError("the job was not started")
        return self._process.pid

    def start(self) -> None:
        """Start the process, and return at once."""
        command = [sys.executable, "-m", "streaming", "run", "--config", str(self._config)]
        with self.log.open("ab") as log:
            self.started_at = time.monotonic()
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"}
            )

    def await_ready(self) -> float:
        """Return the seconds from the start until ``/ready`` says so.

        Raises:
            BenchError: it ended, or took too long.
        """
        await_that(self._is_ready, "the job was not ready")
        return time.monotonic() - self.started_at

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise BenchError(f"the job ended; see {self.log}")
        try:
            return httpx.get(f"{self.page}/ready", timeout=60).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """End all its processes at once, as when a container is killed."""
        for pid in tree(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process:
            self._process.wait()

    def stop(self) -> None:
        """End it gently; harmless if it has ended."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()

    def watermark_behind_s(self) -> float:
        """Return how late the job says it is."""
        told = httpx.get(f"{self.page}/ready", timeout=60).json()
        return float(told["clusters"][0]["watermark_behind_s"] or 0.0)

    def batches(self) -> int:
        """Return how many batches it says to have made."""
        told = httpx.get(f"{self.page}/ready", timeout=60).json()
        return int(told["clusters"][0]["batches"])

    def batch_files(self) -> Mapping[int, tuple[float, float]]:
        """Return each batch that is kept: when it was planned and when it was committed."""
        planned, committed = (self._times(part) for part in ("offsets", "commits"))
        return {n: (planned[n], committed[n]) for n in planned.keys() & committed.keys()}

    def _times(self, part: str) -> dict[int, float]:
        found: dict[int, float] = {}
        for path in self._checkpoint.glob(f"*/**/{part}/*"):
            if path.name.isdigit():
                with suppress(FileNotFoundError):  # Spark deletes the oldest meanwhile
                    found[int(path.name)] = path.stat().st_mtime
        return found


@contextmanager
def running(job: RealJob) -> Iterator[float]:
    """Run a job; yields the seconds that it took to be ready."""
    job.start()
    try:
        yield job.await_ready()
    finally:
        job.stop()


@contextmanager
def fed(pace: Pace) -> Iterator["subprocess.Popen[str]"]:
    """Run a feeder beside what is done; it ends by itself, or with us."""
    command = [sys.executable, "-m", "streaming.devkit.bench.feeder", msgspec.json.encode(pace).decode()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told_by(feeding: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return what a feeder says at its end.

    Raises:
        BenchError: it failed.
    """
    out, _ = feeding.communicate(timeout=_PATIENCE_S)
    if feeding.returncode:
        raise BenchError("the feeder failed")
    told: dict[str, Any] = json.loads(out)
    return told


# --- watching -----------------------------------------------------------------------------------------


class Look(NamedTuple):
    """What was seen of a job at one moment."""

    memory: Mapping[str, int]
    behind_s: float


@dataclass
class Watch:
    """A job over some time: what it spent, its batches, its memory, and how late it was."""

    job: RealJob
    others: Mapping[str, int] = field(default_factory=dict)
    """Name -> process whose CPU stands apart: broker, feeder."""
    kafka: EmbeddedKafka | None = None
    """Where its topics grow."""
    looks: list[Look] = field(default_factory=list)

    def over(self, seconds: float, name: str) -> dict[str, Any]:
        """Watch for so long; return the figures."""
        batches: dict[int, tuple[float, float]] = {}
        old = self.job.batch_files().keys()
        spent, held = self._spent(), topic_bytes(self.kafka)
        began = time.monotonic()
        turn = 0
        while (elapsed := time.monotonic() - began) < seconds:
            batches |= self.job.batch_files()
            if turn % _ASK_EVERY == 0:
                self.looks.append(Look(memory_by_kind(self.job.pid), self.job.watermark_behind_s()))
            if turn % 30 == 29:
                say(f"{name}: {elapsed:.0f} of {seconds:.0f} s, {len(batches.keys() - old)} batches")
            turn += 1
            time.sleep(min(_LOOK_EVERY_S, max(0.0, began + seconds - time.monotonic())))
        took_s = time.monotonic() - began
        now = self._spent()
        took = [end - start for n, (start, end) in batches.items() if n not in old]
        row = figures(took_s, {kind: now[kind] - spent.get(kind, 0.0) for kind in now}, took, self.looks)
        grown = {
            topic: round(86_400 / took_s * (size - held[topic]) / 1e6)
            for topic, size in topic_bytes(self.kafka).items()
        }
        return row | {"topic_mb_a_day": grown}

    def _spent(self) -> dict[str, float]:
        others = {name: sum(cpu_by_kind(pid).values()) for name, pid in self.others.items()}
        return {**cpu_by_kind(self.job.pid), **others}


def topic_bytes(kafka: EmbeddedKafka | None) -> Counter[str]:
    """Return how much the only broker holds of the topics that a job reads and writes."""
    held: Counter[str] = Counter()
    for segment in kafka.folder(1).glob("data/*/*.log") if kafka else ():
        topic = segment.parent.name.rpartition("-")[0]
        if topic.startswith(("groupwatch-", feeder.OFFSETS_TOPIC)):
            held[topic] += segment.stat().st_size
    return held


_OURS = ("driver_python", "jvm", "python_workers")


def figures(
    took_s: float, cpu: Mapping[str, float], batches: Sequence[float], looks: Sequence[Look]
) -> dict[str, Any]:
    """Return what a row says of a job.

    Args:
        took_s: how long it was watched.
        cpu: seconds by kind of process, those of broker and feeder too.
        batches: seconds of each.
        looks: at its memory and lateness.
    """
    ours = sum(cpu.get(kind, 0.0) for kind in _OURS)
    memory = max((sum(one.memory.values()), n) for n, one in enumerate(looks))[1]
    late = [one.behind_s for one in looks]
    return {
        "took_s": round(took_s, 1),
        "cpu_s_a_minute": round(60 * ours / took_s, 1),
        "cores": round(ours / took_s, 2),
        "cpu_s": {kind: round(value, 1) for kind, value in cpu.items()},
        "batches": len(batches),
        "batches_a_minute": round(60 * len(batches) / took_s, 1),
        "batch_s_p50": round(percentile(list(batches), 0.5), 3) if batches else 0.0,
        "batch_s_p95": round(percentile(list(batches), 0.95), 3) if batches else 0.0,
        "cpu_s_a_batch": round(ours / len(batches), 3) if batches else 0.0,
        "memory_gib": round(sum(looks[memory].memory.values()) / 2**30, 3),
        "memory_gib_by_process": {
            kind: round(held / 2**30, 3) for kind, held in looks[memory].memory.items()
        },
        "watermark_behind_s_max": round(max(late), 1),
        "backlog_grows": grows(late),
    }


def grows(late_s: Sequence[float]) -> bool:
    """Return whether the last third of the lateness is clearly more than the first third's."""
    third = max(1, len(late_s) // 3)
    first, last = percentile(list(late_s[:third]), 0.5), percentile(list(late_s[-third:]), 0.5)
    return last > _GROWING * first + 1.0
