"""Keeps track of processes that outlive the command that started them, and stops only those."""

import os
import signal
import subprocess
import time
from pathlib import Path

import msgspec

from streaming.devkit.kafka.interruption import uninterrupted

_CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}
"""What this very process started: the kernel tells of its end exactly, and wants it collected."""


class Tracked(msgspec.Struct, frozen=True):
    """A process we started: its id, and a text of its command line that no other process has."""

    pid: int
    mark: str


def start_tracked(command: list[str], *, mark: str, pid_file: Path, output: Path, cwd: Path) -> Tracked:
    """Starts ``command`` apart from our terminal, so that Ctrl-C here does not reach it."""
    with uninterrupted():
        with output.open("ab") as sink:
            process = subprocess.Popen(
                command,
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=cwd,
                start_new_session=True,
            )
        _CHILDREN[process.pid] = process
        tracked = Tracked(process.pid, mark)
        pid_file.write_bytes(msgspec.json.encode(tracked))
    return tracked


def tracked_by(pid_file: Path) -> Tracked | None:
    """The process that ``pid_file`` names, if it is alive and still ours; a stale file is removed.

    A process id is used again after a while, so the command line must bear our mark as well.
    """
    try:
        tracked = msgspec.json.decode(pid_file.read_bytes(), type=Tracked)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    if is_alive(tracked):
        return tracked
    pid_file.unlink(missing_ok=True)
    return None


def is_alive(tracked: Tracked) -> bool:
    """Whether the process runs; one that ended and was not waited for yet does not count."""
    child = _CHILDREN.get(tracked.pid)
    if child is not None:
        return child.poll() is None
    return tracked.mark in command_line(tracked.pid)


def command_line(pid: int) -> str:
    """The command line of a process, or "" if there is none."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    answer = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout


def stop_tracked(pid_file: Path, *, grace_seconds: float = 15.0, hard: bool = False) -> bool:
    """Ends the process of ``pid_file``; False if none was running.

    Args:
        pid_file: written by ``start_tracked``; removed when the process is gone.
        grace_seconds: after this the process is killed.
        hard: kill at once, as a power cut would.
    """
    tracked = tracked_by(pid_file)
    if tracked is None:
        return False
    os.kill(tracked.pid, signal.SIGKILL if hard else signal.SIGTERM)
    if not _gone(tracked, grace_seconds):
        os.kill(tracked.pid, signal.SIGKILL)
        _gone(tracked, 10.0)
    pid_file.unlink(missing_ok=True)
    return True


def _gone(tracked: Tracked, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not is_alive(tracked):
            return True
        time.sleep(0.05)
    return not is_alive(tracked)
