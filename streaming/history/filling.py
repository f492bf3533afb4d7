"""Fills a file with rebalances and alerts that it lacks, as the topics still have them.

A file lacks a week when it begins anew, and the time in which another process watched.  A thread of its own
reads, one portion ahead of the keeper, which writes a portion each second: that bounds memory and rate.
Nobody waits for it.  Lag, members and owners stand in no topic, so their gaps stay gaps.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

_log = logging.getLogger("groupwatch.history")

_RETRY_S = 60.0
_LOOK_S = 0.2

Row = tuple[str, str, bytes]
ReadPast = Callable[[str, int], Generator[Sequence[Row]]]
"""(cluster, since in epoch ms) → rows as batches have them, in portions of bounded size."""


class Portion(NamedTuple):
    """Rows of one cluster's past."""

    cluster: str
    rows: Sequence[Row]
    is_last: bool
    turn: int


class Filling:
    """The thread that reads, and the portion that waits for the keeper."""

    def __init__(self, read: ReadPast | None) -> None:
        """Prepare; ``read`` None: nobody can read the past."""
        self._read = read
        self.since_ms: dict[str, int] = {}
        """Cluster -> since when the file lacks something; not named: as far back as is kept."""
        self._waiting: queue.Queue[Portion] = queue.Queue(maxsize=1)
        self._turn = 0
        """Rises when portions may be lost; those of earlier turns are left out."""
        self._rests_until = 0.0
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # --- from the keeper's thread ----------------------------------------------------------------------

    @property
    def has_portion(self) -> bool:
        """Whether a portion waits."""
        return not self._waiting.empty()

    def want(self, clusters: Sequence[str], oldest_ms: int) -> None:
        """Begin to read what is lacked of clusters, unless that goes on already or has just failed."""
        is_busy = self._thread is not None and self._thread.is_alive()
        if self._read is None or not clusters or is_busy or self.has_portion:
            return
        if time.monotonic() < self._rests_until or self._stopping.is_set():
            return
        since_ms = {one: max(oldest_ms, self.since_ms.get(one, oldest_ms)) for one in clusters}
        self._thread = threading.Thread(
            target=self._run, args=(self._read, since_ms, self._turn), name="history-past", daemon=True
        )
        self._thread.start()

    def next(self) -> Portion | None:
        """Return the portion that waits, if one does."""
        try:
            found = self._waiting.get_nowait()
        except queue.Empty:
            return None
        return found if found.turn == self._turn else None

    def again(self) -> None:
        """Begin anew: the file may have lost what it was given."""
        self._turn += 1
        self.since_ms.clear()
        self.next()

    def stop(self) -> None:
        """Read no more."""
        self._stopping.set()

    # --- the thread ------------------------------------------------------------------------------------

    def _run(self, read: ReadPast, since_ms: Mapping[str, int], turn: int) -> None:
        try:
            for cluster, since in since_ms.items():
                self._fill(read, cluster, since, turn)
            self._trouble = ""
        except Exception as error:  # whatever a Kafka client raises; the next look tries again
            self._rests_until = time.monotonic() + _RETRY_S
            self._tell(f"{type(error).__name__}: {error}")

    def _fill(self, read: ReadPast, cluster: str, since_ms: int, turn: int) -> None:
        count = 0
        with closing(read(cluster, since_ms)) as portions:
            for rows in portions:
                count += len(rows)
                if not self._put(Portion(cluster, rows, is_last=False, turn=turn)):
                    return
        if self._put(Portion(cluster, (), is_last=True, turn=turn)) and count:
            _log.info("history: %d transitions and alerts of %s were read from the topics", count, cluster)

    def _put(self, portion: Portion) -> bool:
        """Wait until the keeper takes it; return False if nobody wants it any more."""
        while not self._stopping.is_set() and portion.turn == self._turn:
            try:
                self._waiting.put(portion, timeout=_LOOK_S)
            except queue.Full:
                continue
            return True
        return False

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.warning("the topics cannot be read to fill the history, tried again: %s", trouble)
        self._trouble = trouble
