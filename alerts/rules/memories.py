"""The saved form of the rules' memories: ``header + msgpack``.

The header (version, flags, due time) answers the most frequent call without reading the rest.  A group
without news has no memory.
"""

from struct import Struct as Layout
from typing import Final

import msgspec

from alerts.rules.engine import NEVER, ClusterMemory, GroupMemory

MEMORY_VERSION: Final = 1

HEADER = Layout("<BBqq")
"""Version, flags, due time of the memory itself, and a bound for large groups (0: none)."""
WATCH: Final = 1
"""Flag: any observation may change the end or the culprits of an open alert."""

Failure = tuple[str, Exception]
"""What failed, mostly a rule, and the error."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError)

_GROUP_DECODER = msgspec.msgpack.Decoder(GroupMemory)
_CLUSTER_DECODER = msgspec.msgpack.Decoder(ClusterMemory)
_ENCODER = msgspec.msgpack.Encoder()

NO_GROUP_MEMORY = _ENCODER.encode(GroupMemory())


def is_watching(memory: bytes) -> bool:
    """Return whether a group's rules must answer every call, or its header cannot be read."""
    return len(memory) < HEADER.size or memory[0] != MEMORY_VERSION or bool(memory[1] & WATCH)


def load_group(memory: bytes | None) -> GroupMemory:
    """Return a group's memory; empty if another version saved it.

    Raises:
        msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError: it cannot be read.
    """
    if memory is None or memory[0] != MEMORY_VERSION:
        return GroupMemory()
    return _GROUP_DECODER.decode(memoryview(memory)[HEADER.size :])


def group_memory(memory: bytes | None, failures: list[Failure]) -> GroupMemory:
    """Return a group's memory; if it cannot be read, report that and return an empty one."""
    try:
        return load_group(memory)
    except _UNREADABLE as error:
        failures.append(("memory", error))
        return GroupMemory()


def cluster_memory(memory: bytes | None, failures: list[Failure]) -> ClusterMemory:
    """Return a cluster's memory; if it cannot be read, report that and return an empty one."""
    try:
        return load_cluster(memory)
    except _UNREADABLE as error:
        failures.append(("memory", error))
        return ClusterMemory()


def save_group(memory: GroupMemory, due_ms: int, watched: frozenset[str]) -> bytes | None:
    """Return a group's memory as bytes; None if it is empty.

    ``due_ms`` is its due time; while an alert in ``watched`` is open, every call is a judgement.
    """
    if memory.hygiene is not None and memory.hygiene.is_empty():
        memory.hygiene = None
    has_any = memory.open or memory.used or memory.surplus or memory.storm or memory.events or memory.rewound
    has_costs = memory.costs is not None or memory.ending is not None
    if not (has_any or has_costs or memory.wholes or memory.hygiene or due_ms != NEVER):
        return None
    flags = WATCH if memory.surplus or not watched.isdisjoint(memory.open) else 0
    return HEADER.pack(MEMORY_VERSION, flags, due_ms, 0) + _ENCODER.encode(memory)


def load_cluster(memory: bytes | None) -> ClusterMemory:
    """Return a cluster's memory, as ``load_group`` does for a group."""
    if memory is None or memory[0] != MEMORY_VERSION:
        return ClusterMemory()
    return _CLUSTER_DECODER.decode(memoryview(memory)[HEADER.size :])


def save_cluster(memory: ClusterMemory) -> bytes | None:
    """Return a cluster's memory as bytes; None if it is empty."""
    if not (memory.open or memory.used or memory.surplus or memory.watches):
        return None
    return HEADER.pack(MEMORY_VERSION, 0, NEVER, 0) + _ENCODER.encode(memory)
