"""Real consumers, each a process of its own, and the random things that happen to them."""

import contextlib
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSUMER = Path(__file__).with_name("consumer.py")
SESSION_MS = 6_000
"""The least that a broker allows by default: crashes are found quickly."""
CALM_SESSION_MS = 30_000
"""Of members that stay: with the least, a stall of the machine would, rightly, be told as their silence."""


class Member:
    """One consumer process."""

    def __init__(
        self, bootstrap: str, group: str, client_id: str, client: str = "kafka-python", **options: Any
    ) -> None:
        """Describe it; ``options`` are those of ``consumer.py``."""
        self.client_id = client_id
        self.group = group
        self.frozen = False
        self._options = {
            "client": client,
            "bootstrap": bootstrap,
            "group": group,
            "client_id": client_id,
            "topic": "orders",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 1_000,
            "max_poll_interval_ms": 20_000,
            **options,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def change(self, **options: Any) -> None:
        """Let it have other options when it is started next."""
        self._options |= options

    def start(self) -> None:
        """Start the process (again)."""
        self._process = subprocess.Popen(
            [sys.executable, str(CONSUMER), json.dumps(self._options)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def running(self) -> bool:
        """Whether the process lives; a frozen one does."""
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """Stop its clock: no heartbeat, and no farewell either."""
        self.frozen = True
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.frozen = False
        self._send(signal.SIGCONT)

    def stall(self) -> None:
        """Make it busy for its ``stall_s`` seconds: its heartbeats go on, its poll loop does not."""
        self._send(signal.SIGUSR1)

    def go_on(self) -> None:
        """End its stall."""
        self._send(signal.SIGUSR2)

    def read_otherwise(self) -> None:
        """Let it read its ``other_topic`` as well, or no more."""
        self._send(signal.SIGHUP)

    def close(self) -> None:
        """Let it leave its group and end."""
        self._end(signal.SIGTERM)

    def crash(self) -> None:
        """Kill it, as the OOM killer would."""
        self._end(signal.SIGKILL)

    def _send(self, what: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(what)

    def _end(self, what: signal.Signals) -> None:
        self._send(signal.SIGCONT)
        self.frozen = False
        self._send(what)
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(90)
        if self.running:
            self._process.kill()
            self._process.wait()


def happen(rng: random.Random, member: Member) -> str:
    """Do one random thing to a member and say what."""
    if member.frozen:
        member.thaw()
        return "thaw"
    if not member.running:
        member.start()
        return "start"
    what = rng.choices(["close", "crash", "freeze", "restart"], [4, 3, 1, 3])[0]
    if what == "restart":
        member.close()
        member.start()
    else:
        {"close": member.close, "crash": member.crash, "freeze": member.freeze}[what]()
    return what
