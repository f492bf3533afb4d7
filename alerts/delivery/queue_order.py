"""The order in which one receiver's waiting alerts are tried: by time, then by severity.

Two heaps; an outdated element is dropped when it reaches the top, so with thousands of waiting alerts each
delivery costs a few comparisons.
"""

import heapq
from collections.abc import Iterator, Mapping
from itertools import count

from alerts.delivery.waiting import RANK, Entry, Place

_SLACK = 64
"""A heap is swept when its outdated elements outnumber the valid ones by this many."""


_Turn = tuple[tuple[int, ...], int, Entry]
"""Key, ticket, entry: an element is valid while its entry holds this ticket; tickets are unique."""


class Line:
    """Entries that are ready to be tried, and entries with a time at which they are looked at again."""

    def __init__(self) -> None:
        self._tickets = count()
        self._ready: list[_Turn] = []
        self._later: list[_Turn] = []
        self._valid = 0

    def look_at(self, entry: Entry, when_ms: int) -> None:
        """Let ``woken`` return ``entry`` at that time, and keep it from ``first`` until then."""
        self._take_ticket(entry)
        heapq.heappush(self._later, ((when_ms,), entry.ticket, entry))
        self._later = self._swept(self._later)

    def add(self, entry: Entry) -> None:
        """Let ``first`` return ``entry`` when it is its turn."""
        self._take_ticket(entry)
        key = (RANK[entry.alert.severity], entry.due_ms, entry.sequence)
        heapq.heappush(self._ready, (key, entry.ticket, entry))
        self._ready = self._swept(self._ready)

    def leave(self, entry: Entry) -> None:
        """Remove ``entry``."""
        if entry.ticket >= 0:
            self._valid -= 1
        entry.ticket = -1

    def first(self) -> Entry | None:
        """Return the entry whose turn it is, and keep it."""
        while self._ready:
            _, ticket, entry = self._ready[0]
            if entry.ticket == ticket:
                return entry
            heapq.heappop(self._ready)
        return None

    def woken(self, now_ms: int) -> Iterator[Entry]:
        """Yield and remove the entries that are due by ``now_ms``."""
        while self._later and self._later[0][0][0] <= now_ms:
            _, ticket, entry = heapq.heappop(self._later)
            if entry.ticket == ticket:
                self.leave(entry)
                yield entry

    def _take_ticket(self, entry: Entry) -> None:
        self.leave(entry)
        entry.ticket = next(self._tickets)
        self._valid += 1

    def _swept(self, turns: list[_Turn]) -> list[_Turn]:
        if len(turns) <= 2 * self._valid + _SLACK:
            return turns
        kept = [turn for turn in turns if turn[2].ticket == turn[1]]
        heapq.heapify(kept)
        return kept


class Repeats:
    """When each open alert is sent again."""

    def __init__(self) -> None:
        self._at_ms: dict[str, int] = {}
        self._turns: list[tuple[int, str]] = []

    def plan(self, alert_id: str, at_ms: int) -> None:
        """Send the alert again at ``at_ms``, in place of an earlier plan."""
        self._at_ms[alert_id] = at_ms
        heapq.heappush(self._turns, (at_ms, alert_id))
        if len(self._turns) > 2 * len(self._at_ms) + _SLACK:
            self._sort()

    def _sort(self) -> None:
        self._turns = [(at_ms, alert_id) for alert_id, at_ms in self._at_ms.items()]
        heapq.heapify(self._turns)

    def forget(self, alert_id: str) -> None:
        """Cancel the plan of an alert."""
        self._at_ms.pop(alert_id, None)

    def shift(self, by_ms: int) -> None:
        """Move all times: the clock was set by so much."""
        self._at_ms = {alert_id: at_ms + by_ms for alert_id, at_ms in self._at_ms.items()}
        self._sort()

    def due(self, now_ms: int) -> Iterator[str]:
        """Yield and remove the alerts whose repeat is due."""
        while self._turns and self._turns[0][0] <= now_ms:
            at_ms, alert_id = heapq.heappop(self._turns)
            if self._at_ms.get(alert_id) == at_ms:
                del self._at_ms[alert_id]
                yield alert_id


class HeldPlaces:
    """The records that hold the cursors back because they are still to be delivered."""

    def __init__(self) -> None:
        self._heaps: dict[tuple[str, int], list[tuple[int, int, Entry]]] = {}
        self._count = count()

    def hold(self, place: Place, entry: Entry) -> None:
        """Record that ``entry`` stands at ``place``."""
        heap = self._heaps.setdefault((place.log, place.partition), [])
        heapq.heappush(heap, (place.offset, next(self._count), entry))

    def first(self, log: str, partition: int, pending: Mapping[str, Entry]) -> int | None:
        """Return the offset of the first record still among ``pending``; forget those before it."""
        heap = self._heaps.get((log, partition), [])
        while heap:
            offset, _, entry = heap[0]
            if pending.get(entry.alert.id) is entry and entry.place is not None:
                return offset
            heapq.heappop(heap)
        return None
