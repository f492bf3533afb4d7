"""The partitions that members owned before, by the sticky assignors' rules: the higher generation wins."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator_model.kafka.assignors.basics import Assignment, Partition, Subscriber


class Owned(NamedTuple):
    """The reported ownership that the assignor accepts."""

    by_member: Assignment
    """In the order of the members given."""
    disputed: frozenset[Partition]
    """Reported by two members of one generation, so that neither owns them."""


def believe(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Owned:
    """Return what each member owns of topics that exist.

    Source: ``AbstractStickyAssignor.allSubscriptionsEqual``.
    """
    by_member: Assignment = {member.member_id: [] for member in members}
    owner: dict[Partition, Subscriber] = {}
    disputed: set[Partition] = set()
    for member in members:
        for partition in member.owned:
            if counts.get(partition.topic, 0) <= 0:
                continue
            other = owner.get(partition)
            if other is not None and member.generation < other.generation:
                continue
            owner[partition] = member
            if other is not None and partition in by_member[other.member_id]:
                by_member[other.member_id].remove(partition)
            if other is not None and member.generation == other.generation:
                disputed.add(partition)
            else:
                by_member[member.member_id].append(partition)
    return Owned(by_member, frozenset(disputed))
