"""Ships the log files of an embedded cluster whose brokers cannot do it themselves (before Kafka 4).

It is a process of its own, ``python -m streaming.devkit.kafka <folder>/cluster.json``, because the
cluster outlives the command that started it.  Like ``deploy/shippers`` it passes the coordinator's lines and
the request log, which log4j has already filtered.
"""

import signal
import sys
import threading
from pathlib import Path

from streaming.devkit.kafka.plan import Plan, log_files, planned
from streaming.devkit.kafka.process import start_tracked, stop_tracked, tracked_by
from streaming.devkit.kafka.tailer import Tailer
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaError

_COORDINATOR_MARKS = ("GroupCoordinator", "(kafka.coordinator.group.")
"""A Scala coordinator's lines have one or the other: a prefix, or their logger's name at the end."""
_REQUEST_MARK = "Completed request:"
_RETRY_SECONDS = 0.5


def is_ours(event: str) -> bool:
    """Whether a line says something about groups."""
    return _REQUEST_MARK in event or any(mark in event for mark in _COORDINATOR_MARKS)


def shipped_files(plan: Plan, data_dir: Path) -> dict[Path, int]:
    """The files of a cluster that are shipped, each with its broker."""
    found = {}
    for broker in range(1, len(plan.ports) + 1):
        server, requests = log_files(data_dir, broker)
        found[requests] = broker
        if plan.coordinator_log:
            found[server] = broker
    return found


def start_shipping(data_dir: Path) -> None:
    """Starts the shipper of the cluster in ``data_dir``, unless it runs."""
    if tracked_by(_pid_file(data_dir)) is not None:
        return
    plan_file = str(data_dir / "cluster.json")
    command = [sys.executable, "-m", "streaming.devkit.kafka", plan_file]
    output = data_dir / "shipper.txt"
    start_tracked(command, mark=plan_file, pid_file=_pid_file(data_dir), output=output, cwd=data_dir)


def stop_shipping(data_dir: Path) -> None:
    """Stops it; what it has not shipped yet it ships when it is started again."""
    stop_tracked(_pid_file(data_dir))


def is_shipping(data_dir: Path) -> bool:
    """Whether it runs."""
    return tracked_by(_pid_file(data_dir)) is not None


def _pid_file(data_dir: Path) -> Path:
    return data_dir / "shipper.pid"


def _tailer(plan: Plan, data_dir: Path, stopping: threading.Event) -> Tailer | None:
    """The tailer, as soon as a broker answers; None if it is to end before."""
    address = KafkaAddress(tuple(f"127.0.0.1:{port}" for port in plan.ports))
    files, positions = shipped_files(plan, data_dir), data_dir / "shipped.json"
    while not stopping.is_set():
        try:
            return Tailer(files, address, plan.events_topic, positions=positions, keep=is_ours)
        except KafkaError:
            stopping.wait(_RETRY_SECONDS)
    return None


def main(arguments: list[str]) -> int:
    """Ships until SIGTERM."""
    data_dir = Path(arguments[0]).parent
    plan = planned(data_dir)
    if plan is None:
        return 1
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _signal, _frame: stopping.set())
    tailer = _tailer(plan, data_dir, stopping)
    if tailer is not None:
        with tailer:
            stopping.wait()
    return 0
