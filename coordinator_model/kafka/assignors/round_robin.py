"""Kafka's ``RoundRobinAssignor``: all partitions of all topics, dealt out like cards."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from coordinator_model.kafka.assignors.basics import (
    Assignment,
    Partition,
    Subscriber,
    known_topics,
    member_order,
)


def assign_round_robin(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Return who gets what; a member that does not want a partition is passed over."""
    assignment: Assignment = {member.member_id: [] for member in members}
    dealt = cycle(sorted(members, key=member_order))
    for topic in known_topics(members, counts):
        for number in range(counts[topic]):
            taker = next(member for member in dealt if topic in member.topics)
            assignment[taker.member_id].append(Partition(topic, number))
    return assignment
