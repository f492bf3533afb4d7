"""Chooses the shards that must report all their groups: first those that owe a report, then in turns."""

import time
from collections.abc import Callable, Sequence

from streaming.pipeline import Reading

_ASK_AT_ONCE = 17
"""A third of the usual shards: the reports of 100,000 groups should not come in one batch."""
_GROUPS_AT_ONCE = 10_000
"""About 30 MB of reports: once some shards have reported, as many are asked as have so many groups."""
_BATCHES_WAITED = 2
"""A shard that owes a report is asked again after so many batches: the first had perhaps begun before."""
_REFRESH_EVERY_S = 2.0


class Asking:
    """Chooses the shards that each clock record asks: those that owe a report, later one after another.

    On a large cluster a report of all groups at once would be hundreds of megabytes, so after the start the
    shards take turns.  While no clock is written, turns are missed; the next record makes up for them.
    """

    def __init__(
        self,
        shard_count: int,
        reading: Reading,
        now: Callable[[], float] = time.monotonic,
        *,
        groups: Callable[[], int] = lambda: 0,
    ) -> None:
        """Start; nobody was asked.

        Args:
            shard_count: how many partitions the offsets topic has.
            reading: which shards have reported.
            now: seconds, monotonic.
            groups: returns how many groups are known by reports; 0 if nobody counts them.
        """
        self._shards = list(range(-1, shard_count))
        self._reading = reading
        self._now = now
        self._groups = groups
        self._turn = 0
        self._asked_at = float("-inf")
        self._asked: frozenset[int] = frozenset()
        self._asked_in = 0
        """How many batches had ended when shards that owe a report were last asked."""

    def __call__(self) -> bool | list[int]:
        """Return the shards to ask in the record that is written now."""
        owing = self._reading.unreported
        if owing:
            return self._ask(owing)
        missed_s = min(self._now() - self._asked_at, _REFRESH_EVERY_S * _ASK_AT_ONCE)
        if missed_s < _REFRESH_EVERY_S:
            return False
        self._asked_at = self._now()
        return [self._next() for _ in range(min(len(self._shards), int(missed_s / _REFRESH_EVERY_S)))]

    def _ask(self, owing: Sequence[int]) -> bool | list[int]:
        """Return the next portion of those that owe a report, once the last one has answered or been lost."""
        ended = self._reading.batches
        if self._asked.intersection(owing) and ended - self._asked_in < _BATCHES_WAITED:
            return False
        self._asked_at, self._asked_in = self._now(), ended
        self._asked = frozenset(owing[: self._portion(len(owing))])
        return sorted(self._asked)

    def _portion(self, owing: int) -> int:
        groups, reported = self._groups(), len(self._shards) - owing
        return max(_ASK_AT_ONCE, _GROUPS_AT_ONCE * reported // groups if groups else 0)

    def _next(self) -> int:
        self._turn = (self._turn + 1) % len(self._shards)
        return self._shards[self._turn]
