"""The input of every assignor, and the orders in which Kafka's own assignors iterate over it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from coordinator_model.kafka import java_string_hash, put_in_order

NO_GENERATION = -1


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int


Assignment = dict[str, list[Partition]]
"""Member id -> its partitions."""


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    """One member as its JoinGroup shows it to the leader's assignor."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[Partition, ...] = ()
    """The partitions it owned in ``generation``; range and round robin ignore them."""
    instance_id: str | None = None
    generation: int = NO_GENERATION


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as ``String.compareTo`` does: by UTF-16 units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def member_order(member: Subscriber) -> tuple[bool, bytes]:
    """Return a key that sorts members as Kafka does: static ones first, by instance id, the others by id.

    Source: ``AbstractPartitionAssignor.MemberInfo.compareTo``.
    """
    is_dynamic = member.instance_id is None
    return is_dynamic, java_order(member.member_id if member.instance_id is None else member.instance_id)


def as_hashed(members: Sequence[Subscriber]) -> list[Subscriber]:
    """Return members in the order in which Java's ``HashMap`` iterates over their ids."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in put_in_order(by_id)]


def known_topics(members: Iterable[Subscriber], counts: Mapping[str, int]) -> list[str]:
    """Return the subscribed topics that have partitions, sorted."""
    wanted = {topic for member in members for topic in member.topics}
    return sorted((topic for topic in wanted if counts.get(topic, 0) > 0), key=java_order)


def partition_hash(partition: Partition) -> int:
    """Return ``TopicPartition.hashCode`` as ``HashMap`` spreads it."""
    code = (31 * (31 + partition.number) + java_string_hash(partition.topic)) & 0xFFFFFFFF
    return code ^ (code >> 16)
