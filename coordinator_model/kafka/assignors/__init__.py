"""Kafka's assignors by their own algorithms: which member they would give which partition.

Each member gets just what Kafka 4.3.1's classes give it (``tests/golden/assignors``), with these limits:
racks are ignored, since no source shows them; the order within a member's list is not Kafka's; and where
members of older generations report owned partitions *and* subscriptions differ, Kafka may prefer their old
owners.
"""

from collections.abc import Callable, Mapping, Sequence

from coordinator_model.kafka.assignors.basics import Assignment, Partition, Subscriber
from coordinator_model.kafka.assignors.ranges import assign_range
from coordinator_model.kafka.assignors.round_robin import assign_round_robin
from coordinator_model.kafka.assignors.sticky import assign_cooperative, assign_sticky, subscribe_alike

__all__ = ["ASSIGNORS", "Assignment", "Partition", "Subscriber", "kept", "subscribe_alike"]

ASSIGNORS: Mapping[str, Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
}
"""Name of the protocol, as group records have it -> the assignor."""


def kept(members: Sequence[Subscriber], assignment: Assignment) -> int:
    """Return how many partitions stay with the member that owned them."""
    return sum(len(set(one.owned).intersection(assignment[one.member_id])) for one in members)
