"""The requests, one method each, with the answers in our own terms.  No request changes anything.

Every answer is one broker's: group requests go to the leader of the group's offsets partition, which the
metadata name.  So no request asks for coordinators (that one creates the offsets topic).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_model.decoding import assigned_partitions, subscribed_topics
from coordinator_model.kafka import NOT_AUTHORIZED, Error, GroupState
from coordinator_model.shard import REQUEST_LOGGER
from streaming.control import GroupAnswer, MemberAnswer
from streaming.kafka_clients import (
    Admin,
    ConfigResourceType,
    ConsumerGroupDescribeRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    MetadataRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)

"""The error codes of failed topic, group and cluster authorization."""
SETTINGS = (
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "group.consumer.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.max.size",
    "group.consumer.migration.policy",
    "group.share.session.timeout.ms",
    "group.streams.session.timeout.ms",
    "offsets.retention.minutes",
    "offsets.retention.check.interval.ms",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "auto.create.topics.enable",
    "transaction.max.timeout.ms",
)
"""The settings that groups depend on; a broker leaves out those it does not know."""

_MODERN = {
    "consumer": ConsumerGroupDescribeRequest,
    "share": ShareGroupDescribeRequest,
    "streams": StreamsGroupDescribeRequest,
}


class Listed(NamedTuple):
    """One line of ListGroups."""

    broker: int
    state: str
    """"" if the broker is too old to say (before 2.6)."""
    group_type: str


class Layout(NamedTuple):
    """The answer to one Metadata request."""

    brokers: tuple[int, ...]
    shards: int
    """Number of partitions of the offsets topic, 0 while it does not exist."""
    leaders: dict[int, tuple[int, int]]
    """Offsets partition -> (leader, leader epoch), without partitions that have no leader."""
    partitions: dict[str, int]
    """Topic -> number of partitions, 0 if it does not exist; topics we may not see are left out."""
    in_sync: Mapping[int, frozenset[int]]
    """Offsets partition -> brokers with an in-sync replica."""


class Described(NamedTuple):
    """One broker's answers about some groups."""

    answers: list[GroupAnswer]
    errors: dict[str, int]
    """Group -> Kafka's error code, for groups without an answer."""


class NotAllowedError(Exception):
    """A broker refuses to answer because an ACL is missing."""


class Brokers:
    """One cluster's brokers, reached through an admin client; counts the requests."""

    def __init__(self, admin: Admin, requests: Counter[str]) -> None:
        self._admin = admin
        self._requests = requests

    def _send(self, request: Any, broker: int | None = None) -> Any:
        self._requests[type(request).__name__.removesuffix("Request")] += 1
        return self._admin.ask(request, broker)

    def layout(self, offsets_topic: str, topics: Iterable[str]) -> Layout:
        """Return brokers, leaders of the offsets partitions and partition counts of ``topics``.

        Raises:
            kafka.errors.KafkaError: no broker answers.
        """
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in {offsets_topic, *topics}]
        told = self._send(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        leaders: dict[int, tuple[int, int]] = {}
        in_sync: dict[int, frozenset[int]] = {}
        counts: dict[str, int] = {}
        shards = 0
        for topic in told.topics:
            if topic.name == offsets_topic:
                shards = len(topic.partitions)
                leaders = {
                    p.partition_index: (p.leader_id, p.leader_epoch)
                    for p in topic.partitions
                    if p.leader_id >= 0
                }
                in_sync = {p.partition_index: frozenset(p.isr_nodes) for p in topic.partitions}
            elif topic.error_code not in NOT_AUTHORIZED:
                counts[topic.name] = len(topic.partitions)
        there = tuple(sorted(broker.node_id for broker in told.brokers))
        return Layout(there, shards, leaders, counts, in_sync)

    def list_groups(self, broker: int) -> dict[str, Listed]:
        """Return the groups that ``broker`` coordinates, as far as we may see them.

        Raises:
            NotAllowedError: the broker says that we may not ask.
            kafka.errors.KafkaError: it does not answer, or is loading.
        """
        told = self._send(ListGroupsRequest(min_version=0), broker)
        _fail_on(told.error_code, "ListGroups")
        return {
            one.group_id: Listed(
                broker,
                getattr(one, "group_state", "") or "",
                (getattr(one, "group_type", "") or "classic").lower(),
            )
            for one in told.groups
        }

    def describe(self, broker: int, group_type: str, groups: Sequence[str]) -> Described:
        """Return the answer of ``broker`` about ``groups``, all of one type.

        Raises:
            kafka.errors.KafkaError: it does not answer, or is too old for this type of group.
        """
        modern = _MODERN.get(group_type)
        if modern is None:
            told = self._send(DescribeGroupsRequest(groups=list(groups)), broker)
        else:
            told = self._send(modern(group_ids=list(groups), include_authorized_operations=False), broker)
        described = Described([], {})
        for one in told.groups:
            if one.error_code not in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
                described.errors[one.group_id] = one.error_code
            elif modern is None:
                described.answers.append(_classic(one))
            else:
                described.answers.append(_modern(group_type, one))
        return described

    def settings(self, broker: int) -> dict[str, str]:
        """Return a broker's settings that groups depend on, and its request log's level if it gives that.

        Raises:
            NotAllowedError: we lack DESCRIBE_CONFIGS on the cluster.
            kafka.errors.KafkaError: it does not answer.
        """
        resources = [
            (ConfigResourceType.BROKER.value, str(broker), list(SETTINGS)),
            (ConfigResourceType.BROKER_LOGGER.value, str(broker), [REQUEST_LOGGER]),
        ]
        told, *of_loggers = self._send(DescribeConfigsRequest(resources=resources), broker).results
        _fail_on(told.error_code, "DescribeConfigs")
        configs = [*told.configs, *(one for logger in of_loggers for one in logger.configs)]
        wanted = {*SETTINGS, REQUEST_LOGGER}
        return {one.name: one.value for one in configs if one.value is not None and one.name in wanted}


def _fail_on(error_code: int, request: str) -> None:
    if error_code in NOT_AUTHORIZED:
        raise NotAllowedError(request)
    if error_code != Error.NONE:
        raise OSError(f"{request} was answered with error {error_code}")


def _classic(one: Any) -> GroupAnswer:
    state = GroupState.DEAD if one.error_code == Error.GROUP_ID_NOT_FOUND else one.group_state
    is_stable = state == GroupState.STABLE
    return GroupAnswer(
        group=one.group_id,
        group_type="classic",
        state=str(state),
        protocol_type=one.protocol_type or "",
        protocol=(one.protocol_data or "") if is_stable else "",
        members=tuple(
            _member(member, opaque=not is_stable or one.protocol_type != "consumer") for member in one.members
        ),
    )


def _member(member: Any, *, opaque: bool) -> MemberAnswer:
    return MemberAnswer(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=getattr(member, "group_instance_id", None),
        topics=None if opaque else subscribed_topics(bytes(member.member_metadata)),
        assigned=None if opaque else assigned_partitions(bytes(member.member_assignment)),
    )


def _modern(group_type: str, one: Any) -> GroupAnswer:
    if one.error_code == Error.GROUP_ID_NOT_FOUND:
        return GroupAnswer(group=one.group_id, group_type=group_type, state=str(GroupState.DEAD), members=())
    return GroupAnswer(
        group=one.group_id,
        group_type=group_type,
        state=one.group_state,
        protocol=getattr(one, "assignor_name", "") or "",
        epoch=one.group_epoch,
        members=tuple(_modern_member(group_type, member) for member in one.members),
    )


def _modern_member(group_type: str, member: Any) -> MemberAnswer:
    assigned: dict[str, tuple[int, ...]] | None = None
    if group_type != "streams":  # whose assignment is made of tasks
        assigned = {part.topic_name: tuple(part.partitions) for part in member.assignment.topic_partitions}
    names = getattr(member, "subscribed_topic_names", None)
    return MemberAnswer(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=getattr(member, "instance_id", None),
        topics=tuple(names) if names else None,
        assigned=assigned,
    )
