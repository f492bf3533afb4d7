"""Combines the records that the coordinator wrote in one write.

All records of one write of the coordinator are side by side in one batch, have one time, and become visible
at once: a member that joins writes up to six records, and the states between them never existed.  Two writes
of the same group within one millisecond count as one, since no time passed between them.

The shard releases observations by their order time, which all records of a batch share (``ordering/``), so
reading the topic in parts never splits a write.
"""

from collections.abc import Iterator

import msgspec

from coordinator_model.observations import (
    GroupRecorded,
    GroupTombstone,
    ModernRecord,
    ModernWrite,
    types_that,
)
from coordinator_model.ordering import Buffered

_PARTS = types_that(lambda one: one.joins_write)


def gather(singles: list[Buffered]) -> list[Buffered]:
    """Return one group's observations, in order, with the records of each write combined."""
    if not any(type(held.seen.what) is ModernRecord for held in singles):
        return singles
    return list(_gathered(singles))


def _gathered(singles: list[Buffered]) -> Iterator[Buffered]:
    run: list[Buffered] = []
    for held in singles:
        if run and not _goes_on(run[-1], held):
            yield from _folded(run)
            run = []
        if type(held.seen.what) in _PARTS:
            run.append(held)
        else:
            yield held
    yield from _folded(run)


def _goes_on(last: Buffered, held: Buffered) -> bool:
    return type(held.seen.what) in _PARTS and _write(held) == _write(last)


def _write(held: Buffered) -> tuple[int, int, bool, int]:
    """Return what the records of one write have in common; a reported end between two separates them."""
    seen = held.seen
    return held.order_ms, seen.at_ms, seen.backlog, seen.partition


def _folded(run: list[Buffered]) -> Iterator[Buffered]:
    """Yield records of one time as one write, if any of them belongs to a modern group.

    A classic record before its own tombstone, or before records of a modern group, was written earlier.
    """
    last_classic = max((n for n, held in enumerate(run) if type(held.seen.what) is GroupRecorded), default=-1)
    rest = run[last_classic + 1 :]
    if last_classic >= 0 and any(_ends_classic(held) for held in rest):
        yield from _folded(run[: last_classic + 1])
        yield from _folded(rest)
        return
    if not any(type(held.seen.what) is ModernRecord for held in run):
        yield from run
        return
    last = run[-1]
    records = tuple(held.seen.what for held in run)
    what = ModernWrite(group=records[0].group, records=records)  # type: ignore[union-attr, arg-type]
    yield Buffered(last.order_ms, msgspec.structs.replace(last.seen, what=what))


def _ends_classic(held: Buffered) -> bool:
    what = held.seen.what
    return type(what) is GroupTombstone or (type(what) is ModernRecord and not what.tombstone)


def tells_end(record: ModernRecord | GroupTombstone | GroupRecorded) -> bool:
    """Return whether a record only deletes something: it does not create an unknown group."""
    return isinstance(record, GroupTombstone) or (isinstance(record, ModernRecord) and record.tombstone)
