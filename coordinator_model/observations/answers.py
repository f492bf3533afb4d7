"""What the brokers answered when the driver asked them, in band."""

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
    """A coordinator's own answer about a group (DescribeGroups, ConsumerGroupDescribe and their kin).

    It held at some moment from ``asked_at_ms`` to ``Seen.at_ms``, both on the answering broker's clock.
    """

    asked_at_ms: int
    group_type: str
    state: str
    """As brokers spell it; Dead: the coordinator does not know the group."""
    protocol_type: str = ""
    protocol: str = ""
    """Assignment strategy, "" where the broker does not tell (a classic group that is not Stable)."""
    epoch: int = -1
    """Group epoch; classic groups do not tell their generation."""
    members: tuple[DescribedMember, ...] | None = None
    """None: too many to be carried."""


class ShardLed(Observation, tag="led", frozen=True, kw_only=True):
    """The metadata name this broker as leader of the shard's offsets partition."""

    leader: int
    epoch: int = -1
    """Leader epoch, which is the coordinator's; -1 where the broker does not tell."""


class ReplicaMissed(Observation, tag="missed", frozen=True, kw_only=True):
    """A broker with a replica of the shard's offsets partition has gone: until then, writes waited for it."""

    since_ms: int
    """Since when they may have waited."""


class LeadersDescribed(Observation, tag="leaders", frozen=True, kw_only=True):
    """The same for the whole cluster: offsets partition -> (leader, leader epoch), as far as changed."""

    leaders: dict[int, tuple[int, int]]


class BrokerDescribed(Observation, tag="broker", frozen=True, kw_only=True):
    """What a broker is set to, as far as groups depend on it (Kafka's names and spelling)."""

    broker: int
    settings: dict[str, str]


class TopicsDescribed(Observation, tag="topics", frozen=True, kw_only=True):
    """How many partitions topics have that groups read, as far as changed; 0: there is no such topic."""

    partitions: dict[str, int]


class EndsTold(GroupObservation, tag="ends", frozen=True, kw_only=True):
    """Where partitions that a group commits to ended when the brokers were asked, at ``Seen.at_ms``.

    Topic -> partition -> end offset, as far as it changed, or stayed and the group is behind.
    """

    ends: dict[str, dict[int, int]]
    since_ms: int = -1
    """Since when the brokers have been asked without a pause; -1: all the time (a capture)."""
    asked_ms: int = -1
    """When they were asked, if that was before: what stands in a capture before a group is met."""
    stable: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    """Topic -> partition -> last stable offset, where the group seems to wait for it to move,
    or did when it was told last."""
    transaction_ms: int = -1
    """How long brokers let a transaction last (``transaction.max.timeout.ms``); -1: not known."""


class RetentionTold(Observation, tag="retain", frozen=True, kw_only=True):
    """How long brokers keep the offsets of groups that do not use them, as far as changed."""

    retention_ms: dict[int, int]
    """Broker -> ``offsets.retention.minutes``, in milliseconds."""
