"""Asks the brokers for the state of groups of every protocol, wherever their coordinator is by now."""

import time
from collections import Counter
from collections.abc import Callable, Iterable

from kafka.errors import KafkaError, UnsupportedVersionError

from coordinator_model.kafka.hashing import shard_of
from streaming.driver.probing.brokers import Brokers, Layout
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client
from tests.live.support.comparing import Poll
from tests.live.support.stage import now_ms

_ASKED_EACH_S = 0.2
_DEAD = "Dead"


class Asker:
    """One client that finds coordinators by the leaders of the offsets partitions, which move."""

    def __init__(self, address: KafkaAddress, offsets_topic: str = "__consumer_offsets") -> None:
        """Connect."""
        self._address = address
        self._offsets_topic = offsets_topic
        self._admin = admin_client(address)
        self._types: dict[str, str] = {}
        """Group -> the protocol under which it was found last."""

    def close(self) -> None:
        """Hang up."""
        self._admin.close()

    def poll(self, groups: Iterable[str]) -> list[Poll]:
        """Return the answers of this moment; groups whose coordinator gives none are left out."""
        try:
            layout = self._brokers().layout(self._offsets_topic, ())
        except (KafkaError, OSError):
            self._connect_anew()
            return []
        return [poll for group in groups if (poll := self._ask(layout, group)) is not None]

    def states(self, groups: Iterable[str]) -> dict[str, str]:
        """Return the same as states alone."""
        return {poll.group: poll.state for poll in self.poll(groups)}

    def keep_asking(self, groups: Iterable[str], is_over: Callable[[float], bool], into: list[Poll]) -> None:
        """Ask about five times a second until ``is_over``, which waits for as long as it is told."""
        names = list(groups)
        while not is_over(_ASKED_EACH_S):
            into += self.poll(names)

    def _brokers(self) -> Brokers:
        return Brokers(self._admin, Counter())

    def _connect_anew(self) -> None:
        try:
            fresh = admin_client(self._address)
        except KafkaError:
            time.sleep(_ASKED_EACH_S)
            return
        self._admin.close()
        self._admin = fresh

    def _ask(self, layout: Layout, group: str) -> Poll | None:
        leader = layout.leaders.get(shard_of(group, layout.shards)) if layout.shards else None
        if leader is None:
            return None
        asked_at_ms = now_ms()
        try:
            state = self._state(leader[0], group)
        except (KafkaError, OSError):
            return None
        return None if state is None else Poll(group, state, asked_at_ms, now_ms())

    def _state(self, broker: int, group: str) -> str | None:
        """Return what the broker tells under the protocol that it knows the group by.

        To questions about another protocol's groups a broker says that there is no such group.
        """
        first = self._types.get(group, "classic")
        told: str | None = None
        for group_type in (first, "consumer" if first == "classic" else "classic"):
            told = self._told(broker, group_type, group)
            if told is None:
                return None
            if told != _DEAD:
                self._types[group] = group_type
                break
        return told

    def _told(self, broker: int, group_type: str, group: str) -> str | None:
        """Brokers before Kafka 4 know no groups of the newer kind, nor do later ones on older metadata."""
        try:
            told = self._brokers().describe(broker, group_type, [group])
        except UnsupportedVersionError:
            return _DEAD
        if told.errors.get(group) == UnsupportedVersionError.errno:
            return _DEAD
        return told.answers[0].state if told.answers else None
