"""The job without receivers whose own answers a test reads, and consumers that are threads of the test."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
from confluent_kafka import Consumer

from streaming.devkit.kafka import free_ports
from streaming.kafka_address import KafkaAddress
from tests.live.support.stage import await_that

PATIENCE_S = 300.0
"""Spark needs seconds to start on an idle machine, and much longer on a busy one."""


class ThreadedConsumer:
    """A consumer of topic ``orders`` that polls in a thread until closed."""

    def __init__(self, address: KafkaAddress, group: str, client_id: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(address.bootstrap_servers),
                "group.id": group,
                "client.id": client_id,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "auto.commit.interval.ms": 500,
                "auto.offset.reset": "earliest",
            }
        )
        self._assigned = threading.Event()
        self._closing = threading.Event()
        self._consumer.subscribe(["orders"], on_assign=lambda *_: self._assigned.set())
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._consumer.poll(0.1)
        self._consumer.close()

    def await_assignment(self) -> None:
        """Return when the member has its partitions."""
        assert self._assigned.wait(PATIENCE_S), "the member got no assignment"

    def close(self) -> None:
        """Leave the group."""
        self._closing.set()
        self._thread.join(PATIENCE_S)


class JobProcess:
    """``groupwatch run`` in a process of its own."""

    def __init__(
        self, address: KafkaAddress, folder: Path, options: str = "", *, name: str = "groupwatch"
    ) -> None:
        self.address = address
        self.folder = folder
        self._options = options
        (self.port,) = free_ports(1)
        self._config = folder / f"{name}.yaml"
        self._config.write_text(
            f"clusters: [{{name: test, bootstrap_servers: {list(address.bootstrap_servers)}}}]\n"
            f"checkpoint: {folder}/checkpoint\n"
            f"http: {{host: 127.0.0.1, port: {self.port}}}\n"
            f'spark: {{spark.master: "local[2]"}}\n{options}\n'
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "job.log"

    def start(self) -> None:
        """Start it, and return when it says that it is ready."""
        self.launch()
        await_that(self.is_ready, f"the job is ready (see {self.log})", PATIENCE_S)

    def twin(self) -> "JobProcess":
        """Return another process of the same configuration, but for its port."""
        return JobProcess(self.address, self.folder, self._options, name="twin")

    def launch(self) -> None:
        """Start it."""
        program = (
            "import sys, logging; logging.basicConfig(level='INFO');"
            "from streaming.config import load_config; from streaming.job import run;"
            "sys.exit(run(load_config(sys.argv[1])))"
        )
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, str(self._config)],
                stdout=out,
                stderr=out,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )

    def await_end(self) -> int:
        """Return its exit code when it has ended by itself."""
        assert self._process is not None
        code = self._process.wait(PATIENCE_S)
        self._process = None
        return code

    def freeze(self) -> None:
        """Stop the driver's time, as a suspended machine does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def is_ready(self) -> bool:
        """Ask ``/ready``; fails if the process has ended."""
        assert self._process is not None
        assert self._process.poll() is None, f"the job ended: {self.log.read_text()[-2000:]}"
        answer = self.get("/ready")
        return answer is not None and answer.status_code == 200

    def get(self, path: str) -> httpx.Response | None:
        """Ask the job's server; None while it does not answer."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=60)
        except httpx.TransportError:
            return None

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric's value, 0 if there is none with these labels."""
        answer = self.get("/metrics")
        for line in answer.text.splitlines() if answer is not None else ():
            if line.startswith(f"{name}{{") and all(
                f'{key}="{value}"' in line for key, value in labels.items()
            ):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def kill_spark(self) -> tuple[float, int]:
        """Kill the JVM as the kernel does where memory is short; returns seconds to the end, and the code."""
        assert self._process is not None
        began, process = time.monotonic(), self._process
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (jvm,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
        os.kill(int(jvm), signal.SIGKILL)
        code = process.wait(PATIENCE_S)
        self._process = None
        return time.monotonic() - began, code

    def kill(self) -> None:
        """As a power cut would."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """As an orchestrator would; returns the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE_S)
        self._process = None
        return code

    def close(self) -> None:
        """End it in any case."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
