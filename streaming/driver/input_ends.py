"""Where a query's inputs end, and whether anybody but our clock has moved an end since the last look."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from alerts.alert import some
from streaming.config import ClusterPlan
from streaming.driver.partition_ends import LeadersAsked
from streaming.kafka_clients import Admin, KafkaError, admin_client, close_quietly

_LEADERS_EVERY_S = 60.0

_log = logging.getLogger(__name__)


def sentence(topic: str, silent: dict[int, str]) -> str:
    """Return the sentence about partitions without a known end, with what that costs and what to do."""
    named, reasons = some(list(map(str, sorted(silent))), at_most=10), some(sorted(set(silent.values())))
    return (
        f"The end offsets of {len(silent)} partitions of {topic} ({named}) are unknown: {reasons}. "
        "Alerts of this cluster wait for these partitions, since a batch reads every partition. If this "
        "lasts, restart their brokers."
    )


class Looked(NamedTuple):
    """What one look found."""

    offsets: list[int]
    """The end of each offsets partition; [] if that topic is not read."""
    has_moved: bool
    """Others have written into an input, or may have: not every end is known."""


class InputEnds:
    """Asks for the ends of one cluster's inputs; for one thread."""

    def __init__(
        self,
        plan: ClusterPlan,
        shard_count: int,
        events_partitions: int,
        told: Callable[[str], None],
        connect: Callable[..., Admin] = admin_client,
    ) -> None:
        """Prepare.

        Args:
            plan: the cluster.
            shard_count: how many partitions the offsets topic has.
            events_partitions: how many of the events topic are read.
            told: takes the sentence about offsets partitions without a known end; "": there is none.
            connect: connects to the cluster.
        """
        self._plan = plan
        self._shard_count = shard_count
        self._events_partitions = events_partitions
        self._told = told
        self._connect = connect
        self._silent = ""
        self._admin: Admin | None = None
        self._offsets: LeadersAsked | None = None
        self._events: LeadersAsked | None = None
        self._before: tuple[list[int], list[int]] | None = None
        """The ends at the last look, of offsets and events partitions."""
        self._copies: Counter[int] = Counter()
        """Events partition -> our own records in it since then."""
        self.events_leaders: dict[int, int] = {}
        """Events partition -> its leader, as last asked."""
        self._leaders_at = float("-inf")

    @property
    def offsets_leaders(self) -> dict[int, int]:
        """Offsets partition -> its leader, as last reported; {} before the first look."""
        return {} if self._offsets is None else self._offsets.leaders

    def sent(self, partition: int) -> None:
        """A copy of the clock goes into this events partition."""
        self._copies[partition] += 1

    def look(self) -> Looked:
        """Ask for all ends.

        Raises:
            kafka.errors.KafkaError: no end of the offsets topic is known.
        """
        offsets, events = self._offsets_ends(), self._events_ends()
        before, self._before = self._before, (offsets, events)
        copies, self._copies = self._copies, Counter()
        if before is None or min([*offsets, *events, 0]) < 0 or (self._events_partitions and not events):
            return Looked(offsets, has_moved=True)
        expected = [end + copies[n] for n, end in enumerate(before[1])]
        return Looked(offsets, has_moved=offsets != before[0] or events != expected)

    def drop(self) -> None:
        """Close the connections; the next look opens new ones."""
        admin, self._admin, self._offsets, self._events = self._admin, None, None, None
        close_quietly(admin)

    def _connected(self) -> Admin:
        self._admin = self._admin or self._connect(self._plan.kafka)
        return self._admin

    def _offsets_ends(self) -> list[int]:
        topic = self._plan.offsets_topic
        if topic is None:
            return []
        if self._offsets is None:
            self._offsets = LeadersAsked(self._connected(), topic, self._shard_count)
        ends = self._offsets.ends()
        self._tell_of(ends.silent)
        return ends.offsets

    def _events_ends(self) -> list[int]:
        """Return the ends of the events partitions; [] if they are unknown: then every tick is written."""
        topic = self._plan.events_topic
        if topic is None or not self._events_partitions:
            return []
        admin = self._connected()
        self._look_for_leaders(admin)
        if self._events is None:
            self._events = LeadersAsked(admin, topic, self._events_partitions)
        try:
            return self._events.ends().offsets
        except KafkaError as error:
            _log.debug("looking for the ends of %s: %r", topic, error)
            return []

    def _look_for_leaders(self, admin: Admin) -> None:
        if time.monotonic() - self._leaders_at < _LEADERS_EVERY_S:
            return
        self._leaders_at = time.monotonic()
        try:
            (topic,) = admin.describe_topics([self._plan.events_topic])
        except KafkaError as error:
            _log.debug("looking for leaders: %r", error)
        else:
            self.events_leaders = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}

    def _tell_of(self, silent: dict[int, str]) -> None:
        """Record which partitions' ends are unknown; log when that begins and when it is over."""
        before, topic = self._silent, self._plan.offsets_topic or ""
        self._silent = sentence(topic, silent) if silent else ""
        self._told(self._silent)
        if silent and not before:
            _log.warning("%s: %s", self._plan.cluster, self._silent)
        elif before and not silent:
            _log.info("%s: all end offsets of %s are known again", self._plan.cluster, topic)
