"""Asks the Admin API at intervals whether the cluster answers, and where its topics end."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from alerts.alert import some
from streaming.driver.probing import ENDS_EVERY_S, TopicEnds
from streaming.health import WAITING, Progress
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import (
    IsolationLevel,
    KafkaAdminClient,
    KafkaError,
    LeaderNotAvailableError,
    OffsetSpec,
    TopicPartition,
    UnknownTopicOrPartitionError,
    admin_client,
    close_quietly,
    for_code,
)

REACH_EVERY_S = 3.0
AWAITED_EVERY_S = 0.25
STABLE_PATIENCE_MS = 2_000

ENDS_PATIENCE_MS = 5_000


class TopicAnswers(NamedTuple):
    """The leaders' answers about where topics end."""

    ends: dict[str, dict[int, tuple[int, int]]]
    unknown: dict[str, str]
    """Topic with unknown ends -> why."""


class ClusterProbe:
    """Asks whether one cluster answers, and for the ends of the topics to which groups commit."""

    def __init__(
        self,
        address: KafkaAddress,
        progress: Progress,
        *,
        topics: Callable[[bool], Iterable[str]] = lambda _whole: (),
        found: Callable[[TopicEnds], float] = lambda _ends: ENDS_EVERY_S,
    ) -> None:
        """Prepare.

        Args:
            address: of the cluster.
            progress: is told whether it answers, and whether ends are known.
            topics: begins a round: returns the topics to ask for; all that groups read, if it is given True.
            found: takes their ends; returns after how many seconds the next round begins.
        """
        self._address = address
        self._progress = progress
        self._topics = topics
        self._found = found
        self._admin: KafkaAdminClient | None = None
        self._ends_at = float("-inf")
        self._every_s = ENDS_EVERY_S
        self._unknown: dict[str, str] = {}
        """Of the last round: topic -> why its ends are unknown."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name=f"probe-{progress.cluster}", daemon=True)

    def start(self) -> None:
        """Start to ask, in a thread of its own."""
        self._thread.start()

    def stop(self, timeout_s: float = 15.0) -> None:
        """Stop asking."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
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
            self._rest()

    def _rest(self) -> None:
        """Wait for the next turn; not for long where readiness waits for the ends of topics."""
        for _ in range(round(REACH_EVERY_S / AWAITED_EVERY_S)):
            if self._stopped.wait(AWAITED_EVERY_S) or self._is_awaited():
                return

    def _is_awaited(self) -> bool:
        """All groups are known, and nobody has asked since for the ends of the topics that they read."""
        return self._progress.end_offsets == WAITING and self._progress.has_caught_up

    def ask(self) -> None:
        """Ask once.

        Raises:
            kafka.errors.KafkaError: no broker answers.
        """
        if self._admin is None:
            self._admin = admin_client(self._address)
        self._admin.describe_cluster()
        self._progress.kafka_answered()
        # Asked before the topics: their ends are complete only if all groups are known.
        is_whole = self._progress.has_caught_up
        is_awaited = is_whole and self._progress.end_offsets == WAITING
        if is_awaited or time.monotonic() - self._ends_at >= self._every_s:
            if not is_awaited:
                self._progress.await_lull()
            self._ends_at = time.monotonic()
            try:
                unknown = self._ask_for_ends(self._admin, whole=is_awaited)
            except Exception as error:
                self._progress.ends_refused(f"{type(error).__name__}: {error}", whole=is_whole)
            else:
                self._note_unknown(unknown, whole=is_whole)

    def _ask_for_ends(self, admin: KafkaAdminClient, *, whole: bool) -> dict[str, str]:
        """Make a round; return topic -> why its ends are unknown, of this round and the one before."""
        asked = set(self._topics(whole))
        told = end_offsets(admin, asked)
        self._every_s = self._found(told.ends)
        before = {topic: why for topic, why in self._unknown.items() if topic not in asked}
        self._unknown = told.unknown
        return before | told.unknown

    def _note_unknown(self, unknown: Mapping[str, str], *, whole: bool) -> None:
        if not unknown:
            self._progress.ends_told(whole=whole)
            return
        topics, reasons = some(sorted(unknown), at_most=5), some(sorted(set(unknown.values())), at_most=3)
        self._progress.ends_refused(f"of {topics}: {reasons}", whole=whole)

    def last_stable(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where a ``read_committed`` consumer may read these partitions; for ``found`` to ask.

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
        close_quietly(admin)


def end_offsets(admin: KafkaAdminClient, topics: Iterable[str]) -> TopicAnswers:
    """Return the end offset of every existing partition of ``topics``, with the time of asking.

    Each leader is asked separately, so that a leader that is gone hides only its own partitions.

    Raises:
        kafka.errors.KafkaError: no broker answers.
    """
    wanted = sorted(set(topics))
    told = TopicAnswers({}, {})
    if not wanted:
        return told
    led: dict[int, list[TopicPartition]] = {}
    for topic in admin.describe_topics(wanted):
        name, code = str(topic["name"]), int(topic.get("error_code", 0))
        if code not in (0, UnknownTopicOrPartitionError.errno):  # one that does not exist has no end
            told.unknown[name] = for_code(code).__name__
        for partition in topic["partitions"]:
            place = TopicPartition(name, int(partition["partition_index"]))
            led.setdefault(int(partition["leader_id"]), []).append(place)
    asked_ms = time.time_ns() // 1_000_000
    for leader, places in sorted(led.items()):
        try:
            _ask_leader(admin, leader, places, told.ends, asked_ms)
        except (KafkaError, OSError) as error:
            why = str(error) if leader < 0 else f"broker {leader}: {type(error).__name__}"
            told.unknown.update(dict.fromkeys((place.topic for place in places), why))
    return told


def _ask_leader(
    admin: KafkaAdminClient,
    leader: int,
    places: list[TopicPartition],
    ends: dict[str, dict[int, tuple[int, int]]],
    asked_ms: int,
) -> None:
    if leader < 0:
        raise LeaderNotAvailableError("a partition has no leader")
    found = admin.list_partition_offsets(
        dict.fromkeys(places, OffsetSpec.LATEST), timeout_ms=ENDS_PATIENCE_MS
    )
    for place, end in found.items():
        ends.setdefault(place.topic, {})[place.partition] = (end.offset, asked_ms)
