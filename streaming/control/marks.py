"""Who watches a cluster with a checkpoint and a set of outputs: one process at a time.

Two jobs on one checkpoint destroy it, and two on one set of outputs tell everything twice under ids that
differ.  So each leaves its mark where the other must look (``mark_places.py``) and renews it
(``mark_keeper.py``).  Whether a mark is alive is never judged by comparing the clocks of two machines.
"""

import os
import socket
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class MarkHeldError(RuntimeError):
    """Another process has the checkpoint or the outputs; the message names it."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One process that watches one cluster."""

    cluster: str
    token: str
    """Random, for each process and cluster anew."""
    host: str
    process: int
    place: str
    """In which world the number of the process means something: boot and namespace; "" if unknown."""
    started: str
    """When the process began, as its kernel counts; tells it from a later one of that number."""
    since_ms: int
    outputs: tuple[str, ...]
    """Topics for people: transitions, alerts."""
    run: str = ""
    beat: int = 0
    """Counts renewals; 0 claims."""
    displaces: tuple[str, ...] = ()
    """Tokens whose marks were found abandoned."""
    released: bool = False

    def concerns(self, other: "Mark") -> bool:
        """Say whether both cannot run at once, where they share a control topic."""
        return self.cluster == other.cluster and bool(set(self.outputs) & set(other.outputs))

    def sentence(self, where: str) -> str:
        """Say to the other one that it cannot run."""
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        run = self.run or "not known yet"
        return (
            f"another groupwatch watches cluster {self.cluster!r} with the same {where}: process "
            f"{self.process} on host {self.host!r}, run {run}, since {since}. Stop it first, or give this "
            "one a checkpoint and output topics of its own"
        )


def mark_of(cluster: str, outputs: Iterable[str], run: str = "") -> Mark:
    """Return a mark of this process."""
    return Mark(
        cluster=cluster,
        token=uuid.uuid4().hex,
        host=socket.gethostname(),
        process=os.getpid(),
        place=place(),
        started=started(os.getpid()),
        since_ms=time.time_ns() // 1_000_000,
        outputs=tuple(outputs),
        run=run,
    )


def place() -> str:
    """Return what tells this machine, this boot and this container from any other; "" if nothing does."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def started(process: int) -> str:
    """Return when a process began, as the kernel counts; "" if there is none, or nobody tells."""
    try:
        # The name before it, in brackets, may hold anything.
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_dead(mark: Mark) -> bool:
    """Say whether we can see that nobody has the mark any more: only on its own machine, in its container.

    One of our own process is of an earlier attempt.
    """
    if not mark.place or mark.place != place():
        return False
    return mark.process == os.getpid() or started(mark.process) != mark.started


def decode_mark(value: bytes) -> Mark | None:
    """Return a mark; None for what is none, or has numbers that no time has."""
    try:
        mark = msgspec.json.decode(value, type=Mark)
        mark.sentence("")
    except (ValueError, OverflowError, OSError, RecursionError):
        return None
    return mark
