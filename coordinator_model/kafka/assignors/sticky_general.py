"""Kafka's sticky assignor where members subscribe differently: as balanced as that allows.

Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder`` without racks.  Members of older generations are
treated like the others here (Kafka may give a partition back to one of them), which changes the owners, not
how many partitions change owners.
"""

from collections.abc import Mapping, Sequence

from coordinator_model.kafka.assignors.basics import (
    Assignment,
    Partition,
    Subscriber,
    java_order,
    partition_hash,
)

_Pair = tuple[str, str]


def assign_general(
    members: Sequence[Subscriber], counts: Mapping[str, int], owned: Mapping[str, Sequence[Partition]]
) -> Assignment:
    """Return who gets what.

    Args:
        members: in the order in which Java's map shows them.
        counts: partitions of each topic that exists.
        owned: what each member owned of these.
    """
    return _Balancer(members, counts, owned).balance()


class _Movements:
    """Reassignments so far: a partition goes back rather than another of its topic the same way."""

    def __init__(self) -> None:
        self._pair_of: dict[Partition, _Pair] = {}
        self._moved: dict[tuple[str, _Pair], dict[Partition, None]] = {}

    def note(self, partition: Partition, old: str, new: str) -> None:
        known = self._pair_of.pop(partition, None)
        source = old
        if known is not None:
            del self._moved[partition.topic, known][partition]
            source = known[0]
            if source == new:
                return
        self._pair_of[partition] = (source, new)
        self._moved.setdefault((partition.topic, (source, new)), {})[partition] = None

    def better(self, partition: Partition, old: str, new: str) -> Partition:
        known = self._pair_of.get(partition)
        back = self._moved.get((partition.topic, (new, known[0] if known else old)))
        if not back:
            return partition
        mask = 15
        while len(back) > (mask + 1) * 3 // 4:
            mask = 2 * mask + 1
        return min(back, key=lambda one: partition_hash(one) & mask)


class _Balancer:
    def __init__(
        self,
        members: Sequence[Subscriber],
        counts: Mapping[str, int],
        owned: Mapping[str, Sequence[Partition]],
    ) -> None:
        self._counts = counts
        self._topics = {one.member_id: frozenset(one.topics).intersection(counts) for one in members}
        self._takers = {
            topic: [m for m, wanted in self._topics.items() if topic in wanted] for topic in counts
        }
        self._lost_topic = any(p.topic not in self._topics[m] for m, had in owned.items() for p in had)
        self._now: Assignment = {
            m: [p for p in had if p.topic in self._topics[m]] for m, had in owned.items()
        }
        self._owner = {p: m for m, had in self._now.items() for p in had}
        ordered = sorted(counts, key=lambda topic: (len(self._takers[topic]), java_order(topic)))
        self._all = [Partition(topic, number) for topic in ordered for number in range(counts[topic])]
        self._active: set[str] = set(self._now)
        self._movements = _Movements()

    def balance(self) -> Assignment:
        """Distribute free partitions, then reassign as long as that makes the assignment more even."""
        was_empty = not any(self._now.values())
        new = [partition for partition in self._all if partition not in self._owner]
        for partition in new:
            takers = self._takers[partition.topic]
            if takers:
                self._give(partition, self._poorest(takers))
        contested = [partition for partition in self._all if len(self._takers[partition.topic]) > 1]
        fixed = {m: self._now.pop(m) for m in self._topics if not self._can_change(m)}
        self._active -= fixed.keys()
        before = {member_id: list(got) for member_id, got in self._now.items()}
        if self._active:
            if not self._lost_topic:
                # Kafka tries the new ones first; whether that reassigned any is not checked below.
                self._even_out([p for p in new if len(self._takers[p.topic]) > 1])
            moved = self._even_out(contested)
            if moved and not was_empty and _unevenness(self._now) >= _unevenness(before):
                self._now = before
        return {**self._now, **fixed}

    def _give(self, partition: Partition, member_id: str) -> None:
        self._now[member_id].append(partition)
        self._owner[partition] = member_id

    def _rank(self, member_id: str) -> tuple[int, bytes]:
        return len(self._now[member_id]), java_order(member_id)

    def _poorest(self, takers: Sequence[str]) -> str:
        return min((member_id for member_id in takers if member_id in self._active), key=self._rank)

    def _can_change(self, member_id: str) -> bool:
        got = self._now[member_id]
        if len(got) < sum(self._counts[topic] for topic in self._topics[member_id]):
            return True
        return any(len(self._takers[partition.topic]) > 1 for partition in got)

    def _even_out(self, partitions: Sequence[Partition]) -> bool:
        moved, modified = False, True
        while modified:
            modified = False
            for partition in partitions:
                if self._is_even():
                    break
                modified |= self._move(partition)
            moved |= modified
        return moved

    def _move(self, partition: Partition) -> bool:
        old = self._owner[partition]
        takers = self._takers[partition.topic]
        if not any(len(self._now[old]) > len(self._now[other]) + 1 for other in takers):
            return False
        new = self._poorest(takers)
        chosen = self._movements.better(partition, old, new)
        source = self._owner[chosen]
        self._movements.note(chosen, source, new)
        self._now[source].remove(chosen)
        self._give(chosen, new)
        return True

    def _is_even(self) -> bool:
        """Return whether no partition can go from a richer member to a poorer one that subscribes to it."""
        sizes = {member_id: len(self._now[member_id]) for member_id in self._active}
        if min(sizes.values()) >= max(sizes.values()) - 1:
            return True
        for member_id, size in sizes.items():
            wanted = self._topics[member_id]
            if size == sum(self._counts[topic] for topic in wanted):
                continue
            if any(
                other_size > size + 1 and self._has_any(other, wanted) for other, other_size in sizes.items()
            ):
                return False
        return True

    def _has_any(self, member_id: str, wanted: frozenset[str]) -> bool:
        return any(partition.topic in wanted for partition in self._now[member_id])


def _unevenness(assignment: Assignment) -> int:
    """Return the sum of the differences of all pairs."""
    sizes = sorted(len(got) for got in assignment.values())
    return sum((2 * index - len(sizes) + 1) * size for index, size in enumerate(sizes))
