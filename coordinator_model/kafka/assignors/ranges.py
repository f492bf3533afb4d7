"""Kafka's ``RangeAssignor`` without racks: each topic by itself, in ranges, to members in order.

Topics with equally many partitions and the same subscribers are co-partitioned by that alone: a member gets
the same numbers of each.
"""

from collections.abc import Mapping, Sequence

from coordinator_model.kafka.assignors.basics import (
    Assignment,
    Partition,
    Subscriber,
    known_topics,
    member_order,
)


def assign_range(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Return who gets what; ``counts`` are the partitions of each topic."""
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=member_order)
    for topic in known_topics(members, counts):
        subscribers = [member.member_id for member in ordered if topic in member.topics]
        share, extra = divmod(counts[topic], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + share + (index < extra)
            assignment[member_id] += [Partition(topic, number) for number in range(start, end)]
            start = end
    return assignment
