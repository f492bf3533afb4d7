"""The brokers' answers to the driver's questions, in band."""

import msgspec

from coordinator_model.observations.base import GroupObservation, Observation


class DescribedMember(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One member as a broker describes it; subscription and assignment are known in Stable groups only."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    assigned: dict[str, tuple[int, ...]] | None = None


class GroupDescribed(GroupObservation, tag="desc", frozen=True, kw_only=True):
    """A coordinator's own answer about a group (DescribeGroups, ConsumerGroupDescribe and the like).

    It was true at some moment from ``asked_at_ms`` to ``Seen.at_ms``, both on the answering broker's clock.
    """

    asked_at_ms: int
    group_type: str
    state: str
    """As brokers spell it; Dead: the coordinator does not know the group."""
    protocol_type: str = ""
    protocol: str = ""
    """Assignment strategy, "" where the broker does not report it (a classic group that is not Stable)."""
    epoch: int = -1
    """Group epoch; -1 for classic groups, whose generation brokers do not report."""
    members: tuple[DescribedMember, ...] | None = None
    """None: too many to be sent."""


class ShardLed(Observation, tag="led", frozen=True, kw_only=True):
    """The metadata name this broker as leader of the shard's offsets partition."""

    leader: int
    epoch: int = -1
    """Leader epoch, which is the coordinator's; -1 where the broker does not report it."""


class ReplicaMissed(Observation, tag="missed", frozen=True, kw_only=True):
    """A broker with a replica of the shard's offsets partition has gone: until now, writes waited for it."""

    since_ms: int
    """Since when they may have waited."""


class LeadersDescribed(Observation, tag="leaders", frozen=True, kw_only=True):
    """The leaders of the whole cluster: offsets partition -> (leader, leader epoch), those that changed."""

    leaders: dict[int, tuple[int, int]]


class BrokerDescribed(Observation, tag="broker", frozen=True, kw_only=True):
    """The settings of a broker that matter to groups (Kafka's names and spelling)."""

    broker: int
    settings: dict[str, str]


class TopicsDescribed(Observation, tag="topics", frozen=True, kw_only=True):
    """The number of partitions of topics that groups read, those that changed; 0: there is no such topic."""

    partitions: dict[str, int]


class EndOffsetsReported(GroupObservation, tag="ends", frozen=True, kw_only=True):
    """The end offsets of partitions that a group commits to, asked for at ``Seen.at_ms``.

    Topic -> partition -> end offset: those that changed, and those that did not while the group is behind.
    """

    ends: dict[str, dict[int, int]]
    since_ms: int = -1
    """Since when the brokers have been asked without a pause; -1: all the time (a capture)."""
    asked_ms: int = -1
    """When they were asked for, if that was earlier: end offsets in a capture before the group is seen."""
    stable: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    """Topic -> partition -> last stable offset, where the group seems to wait for it to grow,

    or did when it was last reported.
    """
    transaction_ms: int = -1
    """Longest transaction that brokers allow (``transaction.max.timeout.ms``); -1: unknown."""


class RetentionReported(Observation, tag="retain", frozen=True, kw_only=True):
    """How long brokers keep unused offsets; only what changed."""

    retention_ms: dict[int, int]
    """Broker -> ``offsets.retention.minutes``, in milliseconds."""
