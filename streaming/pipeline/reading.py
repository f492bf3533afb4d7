"""How far one cluster's query has read, and which shards have reported, since this process started.

Clock records carry these facts to the shards.  Health shows them and changes none.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence

from coordinator_model.observations import CLUSTER_SHARD


class Reading:
    """One cluster's reading; safe to use from several threads."""

    batches = 0
    """How many batches have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unreported: set[int] = set()
        self._targets: dict[str, list[int]] = {}
        self._positions: dict[str, list[int]] = {}

    # --- written by the job ---------------------------------------------------------------------

    def begin(self, shard_count: int, targets: Mapping[str, list[int]]) -> None:
        """A query starts: these shards must report, and each partition must be read to these offsets.

        A restart within one process keeps what was already reached.
        """
        with self._lock:
            if not self._targets:
                self._unreported = set(range(CLUSTER_SHARD, shard_count))
                self._targets = {topic: list(ends) for topic, ends in targets.items()}
        self.ends_at(targets)

    def ends_at(self, ends: Mapping[str, Sequence[int]]) -> None:
        """Wait for no offset that a partition no longer has: a new leader may have less than the old one."""
        with self._lock:
            for topic, now in ends.items():
                before = self._targets.get(topic, [])
                self._targets[topic] = [
                    min(at, now[n]) if n < len(now) and now[n] >= 0 else at for n, at in enumerate(before)
                ]

    def reported(self, shards: Iterable[int]) -> None:
        """A batch has ended in which these shards reported all their groups, and the reports are written."""
        with self._lock:
            self.batches += 1
            self._unreported.difference_update(shards)

    def reached(self, positions: Mapping[str, list[int]]) -> None:
        """The query has reached ``positions``: topic -> next offset of each partition."""
        self._positions = dict(positions)

    def topic_recreated(self, topic: str, ends: Sequence[int]) -> None:
        """A topic was recreated: none of it has been read, and these are its present ends."""
        self._positions = {name: at for name, at in self._positions.items() if name != topic}
        with self._lock:
            if topic in self._targets:
                self._targets[topic] = list(ends)

    # --- read by the clock and by health ----------------------------------------------------------

    @property
    def unreported(self) -> list[int]:
        """Shards that have not reported since the start."""
        with self._lock:
            return sorted(self._unreported)

    def positions(self, topic: str) -> list[int]:
        """The query's position in ``topic``; [] while unknown."""
        return self._positions.get(topic, [])

    @property
    def behind(self) -> int:
        """How many of the offsets that existed at the start are still unread; -1 while unknown."""
        if not self._positions:
            return -1
        return sum(
            max(0, end - at)
            for topic, ends in self._targets.items()
            for end, at in zip(ends, self._positions.get(topic, [0] * len(ends)), strict=False)
        )

    @property
    def has_caught_up(self) -> bool:
        """Every shard has reported, and every partition was read to the end that it had at start."""
        return bool(self._targets) and not self.unreported and self.behind == 0
