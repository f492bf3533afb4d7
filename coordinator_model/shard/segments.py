"""Cuts the time of a shard into segments, within which its groups do not affect one another.

No group runs past a cut before every other group has reached it.  Cuts are:

- the end of the backlog, at which the rules begin to judge;
- observations that concern several groups (``cuts_time`` in ``observations/traits.py``): settings, failovers,
lines that name no group;
- the INFO log that goes live (its first line) or loses lines.  A contradiction is found within one
group, so it takes effect for all groups at the next multiple of ``SLICE_MS``.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

from coordinator_model import observations as on
from coordinator_model.observations import NEVER
from coordinator_model.ordering import Buffered, Run
from coordinator_model.shard import live_sources, loads, routing
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.snapshot import Header

SLICE_MS = 5_000
SEGMENTS_MAX = 200_000
"""Eleven days of slices in one step.  A wrong time could give endless slices: the rest is one segment."""
CUTS = on.types_that(lambda one: one.cuts_time)


class Segment(NamedTuple):
    """A span of time in which each group can be run by itself."""

    until_ms: int
    """Its end, which is not part of it."""
    singles: dict[str, list[Buffered]]
    """The observations of each group in it, in order, without coalesced ones and deadlines."""
    boundary: Buffered | None
    """The observation that ends it, at ``until_ms``; None: it ends by time alone."""


class Segments:
    """Cuts the due observations of one step into segments."""

    def __init__(self, *, header: Header, failures: Failures, held: list[Buffered], live_ms: int) -> None:
        self.header = header
        self.failures = failures
        self.live_ms = live_ms
        """When the backlog ends."""
        self._held = held
        self._index = 0
        self._reached_ms = header.done_ms

    def until(
        self, now_ms: int, next_ms: Callable[[int], int], cross: Callable[[int], bool]
    ) -> Iterator[Segment]:
        """Yield segments up to ``now_ms``; apply each, and its boundary, before the next is taken.

        Args:
            now_ms: where the last one ends.
            next_ms: returns when the next deadline, or coalesced observation, of any group comes.
            cross: applies what takes effect for all groups by a time; True if there was anything.
        """
        for number in count(1):
            first_ms = self._first_ms(now_ms, next_ms)
            # More observations of the time of the watermark itself may come.
            if cross(min(first_ms, now_ms - 1)):
                first_ms = self._first_ms(now_ms, next_ms)
            until_ms = self._cut_ms(first_ms, now_ms) if number < SEGMENTS_MAX else now_ms
            singles, boundary = self._collect(until_ms)
            self._reached_ms = until_ms if boundary is None else boundary.order_ms
            yield Segment(self._reached_ms, singles, boundary)
            if boundary is None and until_ms >= now_ms:
                return

    def _first_ms(self, now_ms: int, next_ms: Callable[[int], int]) -> int:
        """Return when the next observation or deadline comes, ``now_ms`` at most."""
        first_ms = next_ms(now_ms)
        if self._index < len(self._held):
            first_ms = min(first_ms, self._held[self._index].order_ms)
        return max(self._reached_ms, min(now_ms, first_ms))

    def _cut_ms(self, first_ms: int, now_ms: int) -> int:
        """Return until when the next segment, which begins with ``first_ms``, may run at most."""
        header = self.header
        until_ms = min(now_ms, header.info_lost_ms)
        if header.live_since_ms < 0:
            return min(until_ms, self.live_ms)
        if header.info_live:
            return min(until_ms, (first_ms // SLICE_MS + 1) * SLICE_MS)
        return until_ms

    def _collect(self, until_ms: int) -> tuple[dict[str, list[Buffered]], Buffered | None]:
        """Return the next observations by group, and the one that ends the segment."""
        singles: dict[str, list[Buffered]] = {}
        held, header = self._held, self.header
        while self._index < len(held) and held[self._index].order_ms < until_ms:
            one = held[self._index]
            self._index += 1
            if type(one.seen.what) in CUTS:
                return singles, one
            try:
                if is_outdated(header, self.failures, one):
                    continue
                if live_sources.is_first_word(header, one.seen):
                    return singles, one
                for name in routing.groups_named(one.seen.what, header):
                    singles.setdefault(name, []).append(one)
            except Exception as error:
                self.failures.set_aside(one.seen, error)
        return singles, None


def is_outdated(header: Header, failures: Failures, held: Buffered) -> bool:
    """Return whether a broker that has lost the shard sent it; that is counted, and kept if in doubt."""
    if not live_sources.is_outdated(header, held.seen, held.order_ms):
        return False
    loads.keep(header, held)
    failures.diverge_at("outdated_coordinator", held)
    return True


def first_live_ms(header: Header, held: list[Buffered], runs: list[Run]) -> int:
    """Return when the backlog ends: at the first clock, or at an earlier live observation."""
    if header.live_since_ms >= 0:
        return NEVER
    times = [one.order_ms for one in held if not one.seen.backlog]
    times += [run.first_ms() for run in runs if not run.seen.backlog]
    if header.order.first_clock_ms >= 0:
        times.append(header.order.first_clock_ms)
    return min(times, default=NEVER)
