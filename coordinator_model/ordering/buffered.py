"""The buffer's entries: single observations, and coalesced runs that the watermark cuts."""

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from coordinator_model.observations import Seen


class Buffered(msgspec.Struct, array_like=True):
    """A single observation in the buffer, or just released."""

    order_ms: int
    seen: Seen


class Run(msgspec.Struct, array_like=True):
    """A coalesced run in the buffer; each of its times counts as at least ``floor_ms``."""

    floor_ms: int
    seen: Seen

    @property
    def times(self) -> tuple[int, ...]:
        """Return the times (epoch ms) that are not applied yet."""
        return self.seen.what.times  # type: ignore[union-attr]  # only runs are wrapped

    def first_ms(self) -> int:
        """Return when (epoch ms) its first time takes effect."""
        first_ms: int = self.seen.what.times[0]  # type: ignore[union-attr]  # only runs are wrapped
        return first_ms if first_ms > self.floor_ms else self.floor_ms

    def count_before(self, limit_ms: int) -> int:
        """Return how many of its times take effect before ``limit_ms``."""
        return 0 if self.floor_ms >= limit_ms else bisect_left(self.times, limit_ms)


def order_key(held: Buffered) -> tuple[int, int, int, int, int]:
    """Return the key by which a shard orders what it releases."""
    seen = held.seen
    return held.order_ms, seen.source, seen.partition, seen.offset, seen.index


def cut(run: Run, limit_ms: int) -> tuple[Run | None, Run | None]:
    """Return the part of a run that takes effect before ``limit_ms``, and the rest."""
    times = run.seen.what.times  # type: ignore[union-attr]  # only runs are wrapped
    if times[-1] < limit_ms and run.floor_ms < limit_ms:
        return run, None
    count = run.count_before(limit_ms)
    if count == 0:
        return None, run
    return part(run, times[:count]), part(run, times[count:])


def rest_of(runs: Iterable[Run], from_ms: int) -> list[Run]:
    """Return the parts of ``runs`` that take effect at ``from_ms`` or later."""
    return [tail for run in runs if (tail := cut(run, from_ms)[1]) is not None]


def part(run: Run, times: tuple[int, ...]) -> Run:
    """Return a run of only these ``times``, without any trace of its other times."""
    seen = run.seen
    what = msgspec.structs.replace(seen.what, times=times)
    return Run(run.floor_ms, msgspec.structs.replace(seen, at_ms=times[-1], what=what))
