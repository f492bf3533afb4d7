"""Marks: one process at a time watches a cluster with a checkpoint and a set of outputs.

Two jobs on one checkpoint destroy it, and two on one set of outputs report everything twice under different
ids. So each process leaves its mark where the other must look (``streaming/driver/mark_places.py``) and
renews it (``streaming/driver/mark_keeper.py``).  Nobody compares the clocks of two machines to judge whether
a mark is alive.
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
    """Random; new for each process and cluster."""
    host: str
    process: int
    place: str
    """Where the process id is valid: boot and namespace; "" if unknown."""
    started: str
    """When the process started, by its kernel; distinguishes it from a later process with the same id."""
    since_ms: int
    outputs: tuple[str, ...]
    """The output topics: transitions, alerts."""
    run: str = ""
    beat: int = 0
    """Counts renewals; 0 is the claim."""
    displaces: tuple[str, ...] = ()
    """Tokens of marks that were found abandoned."""
    released: bool = False

    def concerns(self, other: "Mark") -> bool:
        """Say whether the two processes exclude each other, given that they share a control topic."""
        return self.cluster == other.cluster and bool(set(self.outputs) & set(other.outputs))

    def sentence(self, where: str) -> str:
        """Return the sentence for the other process, which cannot run."""
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
    """Return what identifies this machine, boot and container; "" if nothing does."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def started(process: int) -> str:
    """Return when a process started, by the kernel; "" if it does not exist or nothing says."""
    try:
        # The process's name before it, in brackets, may contain anything.
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_dead(mark: Mark) -> bool:
    """Say whether the mark's process is known to be gone; known only on its own machine, in its container.

    A mark of our own process comes from an earlier attempt.
    """
    if not mark.place or mark.place != place():
        return False
    return mark.process == os.getpid() or started(mark.process) != mark.started


def decode_mark(value: bytes) -> Mark | None:
    """Return a mark; None if the value is no mark, or has impossible numbers."""
    try:
        mark = msgspec.json.decode(value, type=Mark)
        mark.sentence("")
    except (ValueError, OverflowError, OSError, RecursionError):
        return None
    return mark
