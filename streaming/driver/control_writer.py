"""Writes into the control topic, for all parts of a job but its clock: what is urgent, and what can wait."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from streaming.driver.quiet import Quiet
from streaming.kafka_clients import KafkaProducer

_KEPT_MAX = 2_000
"""When so many records wait, the next ones are urgent."""


class _Waiting(NamedTuple):
    since_s: float
    topic: str
    value: bytes
    shards: Collection[int]


class ControlWriter:
    """A producer for the control topic.

    Each record makes a batch.  So what only confirms what the shards know waits until the clock is written
    in any case, and is written just before it: a record that comes before the first clock after its time
    takes effect at that time, however late that clock is; another takes effect at that clock's time.
    """

    def __init__(
        self, producer: KafkaProducer, quiet: Quiet, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Start with nothing that waits; ``quiet`` is told of what does not."""
        self._producer = producer
        self._quiet = quiet
        self._now = now
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()

    def send(self, topic: str, **what: Any) -> Any:
        """Write a record now, after what was told before it; return its future."""
        self.write_waiting()
        future = self._producer.send(topic, **what)
        self._quiet.moved()
        return future

    def later(self, topic: str, value: bytes, shards: Collection[int]) -> None:
        """Let a record for these shards be written before the next clock."""
        with self._lock:
            self._waiting.append(_Waiting(self._now(), topic, value, shards))
            is_full = len(self._waiting) >= _KEPT_MAX
        if is_full:
            self._quiet.moved()

    def write_waiting(self, older_s: float = 0.0) -> set[int]:
        """Write what has waited for so long; return for which shards.

        Nobody waits for an acknowledgement: one that fails costs a confirmation.
        """
        with self._lock:
            now, found = self._now(), list[_Waiting]()
            while self._waiting and now - self._waiting[0].since_s >= older_s:
                found.append(self._waiting.popleft())
            for one in found:  # whoever writes next comes behind them
                self._producer.send(one.topic, value=one.value, partition=0)
        return {shard for one in found for shard in one.shards}
