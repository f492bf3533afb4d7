"""Asks every leader for the ends of a topic's partitions; a leader that is gone silences no other.

kafka-python's ``list_partition_offsets`` asks one leader after the other and fails as a whole if one is gone:
measured for all of the 8 s until a killed broker's partitions had new leaders, while the other two answered
within 10 ms.  A leader that hangs blocks it even longer.
"""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from coordinator_model.ordering import END_UNKNOWN
from streaming.kafka_clients import (
    Admin,
    Future,
    IsolationLevel,
    KafkaError,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetSpec,
    UnknownBrokerIdError,
    for_code,
)

PATIENCE_S = 2.0
"""How long to wait for all answers together; a healthy broker needs some milliseconds."""


class PartitionEnds(NamedTuple):
    """The leaders' answers."""

    offsets: list[int]
    """The end of each partition; ``END_UNKNOWN`` if no leader gave it."""
    silent: dict[int, str]
    """Partition without a known end -> why."""


class LeadersAsked:
    """Asks the leaders of one topic's partitions, all at once; for one thread.

    A broker that owes an answer is not asked again until it answers or its connection fails.  So a broker
    that hangs costs one wait per request timeout, not one per call.
    """

    def __init__(self, admin: Admin, topic: str, partitions: int) -> None:
        """Prepare to ask through ``admin``, which the caller closes."""
        self._connections = admin.connections
        self._topic = topic
        self._partitions = partitions
        self.leaders: dict[int, int] = {}
        """Partition -> its leader, as last reported."""
        self._owed: dict[int, Any] = {}
        """Broker -> its newest answer, which may still be pending."""

    def ends(self) -> PartitionEnds:
        """Return the present ends.

        Raises:
            kafka.errors.KafkaError: no broker knows the leaders, or no end at all was given.
        """
        ends = self._connections.run(self._ask)
        if len(ends.silent) == self._partitions:
            raise KafkaError(f"no end offset of {self._topic} is known: {ends.silent[0]}")
        return ends

    async def _ask(self) -> PartitionEnds:
        self.leaders = leaders = await self._leaders()
        found: dict[int, int] = {}
        silent = {n: "no leader" for n in range(self._partitions) if n not in leaders}
        for broker, answer in (await self._answers(leaders)).items():
            led = [n for n, leader in leaders.items() if leader == broker]
            if isinstance(answer, str):
                silent |= dict.fromkeys(led, f"broker {broker}: {answer}")
                continue
            for one in (one for topic in answer.topics for one in topic.partitions):
                if one.error_code or one.offset < 0:
                    silent[one.partition_index] = f"broker {broker}: {for_code(one.error_code).__name__}"
                else:
                    found[one.partition_index] = one.offset
        return PartitionEnds([found.get(n, END_UNKNOWN) for n in range(self._partitions)], silent)

    async def _leaders(self) -> dict[int, int]:
        """Return partition -> leader from some broker; if that one hangs, from another."""
        try:
            told = await self._wait(self._send(self._layout()), PATIENCE_S / 2)
        except KafkaError:
            told = await self._wait(self._send(self._layout()), PATIENCE_S / 2)
        (topic,) = told.topics
        if topic.error_code:
            raise for_code(topic.error_code)(f"the leaders of {self._topic} are unknown")
        return {
            one.partition_index: one.leader_id
            for one in topic.partitions
            if one.leader_id >= 0 and one.partition_index < self._partitions
        }

    async def _answers(self, leaders: dict[int, int]) -> dict[int, Any]:
        """Return broker -> its answer, or why there is none, in words."""
        answers: dict[int, Any] = {}
        for broker in sorted(set(leaders.values())):
            if broker in self._owed and not self._owed[broker].is_done:
                answers[broker] = "no answer yet"  # and when it comes, it tells of an earlier time
                continue
            led = (n for n, leader in leaders.items() if leader == broker)
            self._owed[broker] = answers[broker] = self._send(self._question(led), broker)
        until_s = time.monotonic() + PATIENCE_S
        for broker, future in answers.items():
            if isinstance(future, Future):
                try:
                    answers[broker] = await self._wait(future, until_s - time.monotonic())
                except (KafkaError, OSError) as error:
                    answers[broker] = type(error).__name__
        return answers

    async def _wait(self, future: Any, seconds: float) -> Any:
        return await self._connections.answer(future, seconds)

    def _send(self, request: Any, broker: int | None = None) -> Any:
        try:
            return self._connections.send(request, broker)
        except UnknownBrokerIdError as error:
            self._connections.look_for_brokers()  # one that has come since the client looked
            return Future().failure(error)
        except KafkaError as error:
            return Future().failure(error)

    def _layout(self) -> MetadataRequest:
        wanted = [MetadataRequest.MetadataRequestTopic(name=self._topic)]
        return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    def _question(self, partitions: Iterable[int]) -> ListOffsetsRequest:
        a_topic = ListOffsetsRequest.ListOffsetsTopic
        wanted = [
            a_topic.ListOffsetsPartition(partition_index=n, timestamp=OffsetSpec.LATEST) for n in partitions
        ]
        topics = [a_topic(name=self._topic, partitions=wanted)]
        return ListOffsetsRequest(isolation_level=IsolationLevel.READ_UNCOMMITTED.value, topics=topics)
