"""CPU time of this process and all that it has started."""

import os
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Places in ``/proc/PID/stat`` behind the name: parent; user and system time, own and of ended children."""


def cpu_s(but: Collection[int] = (), proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds of this process and its descendants, ended ones included; Linux only.

    Args:
        but: processes that do not count, with all that they have started.
        proc: the kernel's folder.
    """
    found = {int(one.name): _stat(one) for one in proc.iterdir() if one.name.isdigit()}
    children: dict[int, list[int]] = {}
    for pid, fields in found.items():
        if fields:
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    ticks, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        if pid not in but:
            ticks += sum(map(int, found.get(pid, [])[_TIMES]))
            waiting += children.get(pid, [])
    return ticks / _TICKS


def _stat(folder: Path) -> list[str]:
    """Return the fields behind the name, which may hold anything; [] if the process has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
