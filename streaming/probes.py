"""What the Admin API tells, now and then: is the cluster there, and where do its topics end?"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import TopicPartition

from streaming.kafka_io import KafkaAddress, admin_client
from streaming.progress import WAITING, Progress

REACH_EVERY_S = 3.0
AWAITED_EVERY_S = 0.5
ENDS_EVERY_S = 10.0
STABLE_PATIENCE_MS = 2_000

Ends = Mapping[str, Mapping[int, tuple[int, int]]]
"""Topic -> partition -> (end offset, when, in epoch milliseconds)."""

_log = logging.getLogger(__name__)


class Probe:
    """Asks one cluster whether it is there, and for the ends of the topics that groups have committed."""

    def __init__(
        self,
        address: KafkaAddress,
        progress: Progress,
        *,
        topics: Callable[[], Iterable[str]],
        found: Callable[[Ends], None],
    ) -> None:
        self._address = address
        self._progress = progress
        self._topics = topics
        self._found = found
        self._admin: KafkaAdminClient | None = None
        self._ends_at = float("-inf")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name=f"probe-{progress.cluster}", daemon=True)

    def start(self) -> None:
        """Begin to ask, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop asking."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=15)
        self._drop_admin()

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    def _ask_on(self) -> None:
        while not self._stopped.is_set():
            try:
                self.ask()
            except Exception as error:
                self._progress.kafka_failed(error)
                self._drop_admin()
            # Whoever asks whether we are ready waits for the ends of what the groups commit to.
            is_awaited = self._progress.has_caught_up and self._progress.end_offsets == WAITING
            self._stopped.wait(AWAITED_EVERY_S if is_awaited else REACH_EVERY_S)

    def ask(self) -> None:
        """Ask once.

        Raises:
            kafka.errors.KafkaError: nobody answers.
        """
        if self._admin is None:
            self._admin = admin_client(self._address)
        self._admin.describe_cluster()
        self._progress.kafka_answered()
        # Asked before the topics are: only when all groups are known, those of all groups are.
        is_whole = self._progress.has_caught_up
        is_awaited = is_whole and self._progress.end_offsets == WAITING
        if is_awaited or time.monotonic() - self._ends_at >= ENDS_EVERY_S:
            self._ends_at = time.monotonic()
            try:
                self._found(end_offsets(self._admin, self._topics()))
            except Exception as error:
                self._progress.ends_refused(error, whole=is_whole)
            else:
                self._progress.ends_told(whole=is_whole)

    def last_stable(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where these may be read by who reads only what is committed; for ``found`` to ask.

        Raises:
            kafka.errors.KafkaError: a leader does not answer, or a partition is gone.
        """
        wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
        if self._admin is None or not wanted:
            return {}
        told = self._admin.list_partition_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, timeout_ms=STABLE_PATIENCE_MS
        )
        return {partition: one.offset for partition, one in told.items()}

    def _drop_admin(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            try:
                admin.close()
            except Exception as error:
                _log.debug("closing the admin client: %r", error)


def end_offsets(admin: KafkaAdminClient, topics: Iterable[str]) -> dict[str, dict[int, tuple[int, int]]]:
    """Return the end offset of every partition of ``topics`` that exists, with the time of asking.

    Raises:
        kafka.errors.KafkaError: a leader does not answer.
    """
    wanted = sorted(set(topics))
    if not wanted:
        return {}
    partitions = [
        TopicPartition(str(topic["name"]), int(partition["partition_index"]))
        for topic in admin.describe_topics(wanted)
        for partition in topic["partitions"]
    ]
    asked_ms = time.time_ns() // 1_000_000
    found = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)) if partitions else {}
    ends: dict[str, dict[int, tuple[int, int]]] = {}
    for partition, end in found.items():
        ends.setdefault(partition.topic, {})[partition.partition] = (end.offset, asked_ms)
    return ends
