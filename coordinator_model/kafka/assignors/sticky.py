"""Kafka's sticky assignor where all members subscribe alike, and the cooperative one made of it.

Every member keeps its partitions up to its quota, the rest is distributed: balanced, with as few
reassignments as possible.  Source: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder`` (the same since
3.5), without racks; other subscriptions go to ``sticky_general.py``.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from coordinator_model.kafka.assignors.basics import (
    Assignment,
    Partition,
    Subscriber,
    as_hashed,
    java_order,
    known_topics,
)
from coordinator_model.kafka.assignors.owning import Owned, believe
from coordinator_model.kafka.assignors.sticky_general import assign_general


def assign_sticky(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Return each member's partitions."""
    return _assign(members, counts)[0]


def assign_cooperative(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Return each member's partitions in this step; one that a member gives up is free until the next.

    Source: ``CooperativeStickyAssignor.adjustAssignment``.
    """
    assignment, moving = _assign(members, counts)
    if moving is None:
        moving = _moving(members, assignment)
    for partition, member_id in moving.items():
        assignment[member_id].remove(partition)
    return assignment


def subscribe_alike(members: Sequence[Subscriber]) -> bool:
    """Return whether all members want the same topics."""
    return len({frozenset(member.topics) for member in members}) <= 1


def _assign(
    members: Sequence[Subscriber], counts: Mapping[str, int]
) -> tuple[Assignment, dict[Partition, str] | None]:
    """Return the assignment, and its reassigned partitions; None: the caller has to compare."""
    hashed = as_hashed(members)
    known = {topic: counts[topic] for topic in known_topics(members, counts)}
    owned = believe(hashed, known)
    if not subscribe_alike(members):
        return assign_general(hashed, known, owned.by_member), None
    dealer = _Dealer(known, owned)
    return dealer.deal(), dealer.moving


def _moving(members: Sequence[Subscriber], assignment: Assignment) -> dict[Partition, str]:
    """Return the partitions that one member loses to another."""
    owned = {member.member_id: set(member.owned) for member in members}
    taken = {p for member_id, had in owned.items() for p in had.difference(assignment[member_id])}
    return {
        partition: member_id
        for member_id, got in assignment.items()
        for partition in got
        if partition in taken and partition not in owned[member_id]
    }


class _Dealer:
    """One assignment under construction."""

    def __init__(self, counts: Mapping[str, int], owned: Owned) -> None:
        self.moving: dict[Partition, str] = {}
        """Partition -> its new owner; the former owner is still a member."""
        self._owned = owned
        self._all = [Partition(topic, number) for topic in counts for number in range(counts[topic])]
        self._least, self._more = divmod(len(self._all), max(len(owned.by_member), 1))
        self._most = self._least + (self._more > 0)
        self._assignment: Assignment = {member_id: [] for member_id in owned.by_member}
        self._given_up: dict[Partition, str] = {}
        self._with_more = 0
        self._below: list[str] = []
        self._at_least: list[str] = []

    def deal(self) -> Assignment:
        """Return each member's partitions."""
        for member_id, had in self._owned.by_member.items():
            self._keep(member_id, sorted(had, key=_by_number))
        kept = {partition for got in self._assignment.values() for partition in got}
        self._deal_out([partition for partition in self._all if partition not in kept])
        return self._assignment

    def _keep(self, member_id: str, had: list[Partition]) -> None:
        if len(had) < self._least:
            self._assignment[member_id] += had
            self._below.append(member_id)
            return
        quota = self._least
        if len(had) >= self._most and self._with_more < self._more:
            quota = self._most
            self._with_more += 1
            if self._with_more == self._more:
                self._at_least.clear()
        elif self._with_more < self._more:
            self._at_least.append(member_id)
        self._assignment[member_id] += had[:quota]
        self._given_up.update(dict.fromkeys(had[quota:], member_id))

    def _deal_out(self, rest: list[Partition]) -> None:
        """Give partitions to members below their quota in turns, then one more to some just at it."""
        below = deque(sorted(self._below, key=java_order))
        at_least = deque(sorted(self._at_least, key=java_order))
        for partition in rest:
            member_id = below.popleft() if below else at_least.popleft()
            got = self._assignment[member_id]
            is_below = len(got) < self._least
            got.append(partition)
            if self._given_up.get(partition, member_id) != member_id or partition in self._owned.disputed:
                self.moving[partition] = member_id
            if is_below and len(got) < self._least:
                below.append(member_id)
            elif is_below:
                at_least.append(member_id)


def _by_number(partition: Partition) -> tuple[int, bytes]:
    return partition.number, java_order(partition.topic)
