"""The demo's processes: starts them, breaks them, and ends every one."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from streaming import kafka_clients
from streaming.devkit.demo.plan import TOPICS, Member
from streaming.kafka_address import KafkaAddress

_PAUSE_SECONDS = 0.1


class Cast:
    """All consumer processes by client id, and the traffic they consume."""

    def __init__(self, address: KafkaAddress, logs: Path) -> None:
        """``logs`` takes what each process prints."""
        self._address = address
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ending = threading.Event()
        self._traffic = threading.Thread(target=self._produce, name="demo-traffic", daemon=True)

    def start(self, member: Member) -> None:
        """Starts a member's process (a crashed one again)."""
        servers = ",".join(self._address.bootstrap_servers)
        command = [
            sys.executable, "-m", "streaming.devkit.consumers", member.play,
            "--bootstrap", servers, "--group", member.group, "--topic", member.group,
            "--client-id", member.client_id, "--session-ms", str(member.session_ms),
            "--poll-interval-ms", str(member.poll_interval_ms), "--record-ms", str(member.record_ms),
        ]  # fmt: skip
        with (self._logs / f"{member.client_id}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._running[member.client_id] = process

    def crash(self, member: Member) -> None:
        """Kills it, as the OOM killer would."""
        self._running[member.client_id].kill()
        self._running.pop(member.client_id).wait()

    def freeze(self, member: Member) -> None:
        """Stops its clock: no heartbeat, and no farewell either."""
        os.kill(self._running[member.client_id].pid, signal.SIGSTOP)

    def slow_down(self, member: Member) -> None:
        """Makes its next record take for ever."""
        os.kill(self._running[member.client_id].pid, signal.SIGUSR1)

    def shut_down(self, member: Member) -> None:
        """Ends it as a deployment would: it leaves its group first."""
        process = self._running.pop(member.client_id)
        process.terminate()
        _end(process)

    def leave(self) -> None:
        """Ends every process as a deployment would, a frozen one too."""
        for process in self._running.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._running.values():
            _end(process)
        self._running.clear()

    def dead(self) -> list[str]:
        """Client ids of processes that ended though nobody asked them to."""
        return [client_id for client_id, process in self._running.items() if process.poll() is not None]

    def _produce(self) -> None:
        producer = kafka_clients.producer(self._address)
        sequence = 0
        while not self._ending.wait(_PAUSE_SECONDS):
            for topic in TOPICS:
                producer.send(topic, key=str(sequence).encode(), value=b"demo")
            sequence += 1
        producer.close()

    def __enter__(self) -> Self:
        """Starts the traffic."""
        self._traffic.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends every process; killing reaches a frozen one as well."""
        self._ending.set()
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()
        self._traffic.join(timeout=10)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Waits for the end of a process that was asked to; kills one that does not end."""
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class JobProcess:
    """The job as a user runs it: ``groupwatch run --config FILE``."""

    def __init__(self, config: Path, log: Path) -> None:
        """``log`` takes what it prints."""
        self.log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streaming", "run", "--config", str(config)],
                stdout=sink,
                stderr=sink,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # so that its JVM and its workers can be ended with it
            )

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def last_words(self, lines: int = 20) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Asks it to stop, and ends all that is left of it after half a minute."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        """Runs already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()
