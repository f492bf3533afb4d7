"""CPU time and memory of a process and all that it has started; Linux only."""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Places in ``/proc/PID/stat`` behind the name: parent; user and system time, own and of ended children."""
_PROC = Path("/proc")
_UNKNOWN = ("", ())


def cpu_s(but: Collection[int] = (), proc: Path = _PROC) -> float:
    """Return the CPU seconds of this process and its descendants, ended ones included.

    Args:
        but: processes that do not count, with all that they have started.
        proc: the kernel's folder.
    """
    found = _stats(proc)
    return sum(_ticks(found, pid) for pid, _ in _tree(found, os.getpid(), but)) / _TICKS


def cpu_by_kind(root: int, proc: Path = _PROC) -> Mapping[str, float]:
    """Return the CPU seconds of a job, by kind: ``driver_python``, ``jvm``, ``python_workers``."""
    found = _stats(proc)
    ticks: Counter[str] = Counter()
    for pid, kind in _tree(found, root):
        ticks[kind] += _ticks(found, pid)
    return {kind: count / _TICKS for kind, count in ticks.items()}


def memory_by_kind(root: int, proc: Path = _PROC) -> Mapping[str, int]:
    """Return the bytes that a job holds, by the same kinds; what processes share is divided among them."""
    held: Counter[str] = Counter()
    for pid, kind in _tree(_stats(proc), root):
        held[kind] += _proportional_bytes(proc / str(pid))
    return dict(held)


def tree(root: int, proc: Path = _PROC) -> list[int]:
    """Return a process and its descendants."""
    return [pid for pid, _ in _tree(_stats(proc), root)]


_Stats = Mapping[int, tuple[str, tuple[str, ...]]]
"""Process id -> its name, and the fields behind it."""


def _tree(found: _Stats, root: int, but: Collection[int] = ()) -> Iterator[tuple[int, str]]:
    """Yield process ids with their kind: what a JVM has started are workers, or JVMs (executors)."""
    children: dict[int, list[int]] = {}
    for pid, (_, fields) in found.items():
        if fields:
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    waiting = [(root, "driver_python")]
    while waiting:
        pid, kind = waiting.pop()
        if pid in but:
            continue
        if found.get(pid, _UNKNOWN)[0] == "java":
            kind = "jvm"
        yield pid, kind
        below = "driver_python" if kind == "driver_python" else "python_workers"
        waiting += [(child, below) for child in children.get(pid, [])]


def _stats(proc: Path) -> _Stats:
    return {int(one.name): _stat(one) for one in proc.iterdir() if one.name.isdigit()}


def _stat(folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return name and fields; without any if the process has ended."""
    try:
        head, _, tail = (folder / "stat").read_text().rpartition(")")  # a name may hold anything
    except OSError:
        return _UNKNOWN
    return head.partition("(")[2], tuple(tail.split())


def _ticks(found: _Stats, pid: int) -> int:
    return sum(map(int, found.get(pid, _UNKNOWN)[1][_TIMES]))


def _proportional_bytes(folder: Path) -> int:
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
