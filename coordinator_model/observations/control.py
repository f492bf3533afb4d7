"""What the driver and the decoders tell in band: clocks, settings, what was counted, lost or quarantined."""

import msgspec

from coordinator_model.observations.base import GroupObservation, Observation, Source


class Clock(Observation, tag="clock", frozen=True, kw_only=True):
    """The driver's time, with what was true of this shard's offsets partition then.

    ``end_offset`` was the partition's end at that time and ``position`` where the query stood
    (-1: unknown or source disabled; an end of -2: read, but no broker told it).  ``events_partitions``
    is how many partitions the events topic has (0: source disabled), so that a shard knows whom to wait
    for.  ``skew_ms`` maps a broker to (its clock minus the driver's).
    """

    sequence: int
    end_offset: int = -1
    position: int = -1
    events_partitions: int = 0
    skew_ms: dict[int, int] = msgspec.field(default_factory=dict)
    ask: bool = False
    """True asks the shard to report every group it holds."""
    is_answer: bool = False
    """The end is a broker's answer to a question asked at that time, not just what has been read."""
    wrong_ms: int = 0
    """How far the clock of the partition's leader is ahead, where it is wrong; else 0."""
    zones_ms: dict[int, int] = msgspec.field(default_factory=dict)
    """Broker -> how far its lines are ahead by their zone, as some shard has found."""


class EventsClock(Observation, tag="eclock", frozen=True, kw_only=True):
    """A copy of a clock record in one partition of the events topic: what was before it is read."""

    sequence: int
    skew_ms: dict[int, int] = msgspec.field(default_factory=dict)
    """As in ``Clock``: how far each broker's clock is ahead of the driver's."""
    lead_ms: int = 0
    """How far the clock is ahead of the broker that appends to this partition."""


class Settings(Observation, tag="set", frozen=True, kw_only=True):
    """Rules, group filter and retention as canonical JSON; the shard applies them from here on."""

    settings: bytes


class Adopted(GroupObservation, tag="adopt", frozen=True, kw_only=True):
    """An alert (JSON, newest revision) that the alerts topic showed open to a job without checkpoint."""

    alert: bytes


class BrokerHeard(Observation, tag="heard", frozen=True, kw_only=True):
    """In these seconds (epoch seconds, ascending) the broker's log gave at least one line of this source."""

    broker: int
    heard: Source
    seconds: tuple[int, ...]


class Contradicted(Observation, tag="contra", frozen=True, kw_only=True):
    """A shard saw in the topic what the broker's log should have told: that log is losing lines."""

    broker: int
    lost: Source
    group: str


class Counted(Observation, tag="count", frozen=True, kw_only=True):
    """How many records of each kind a decoder met: (source name, kind) -> count."""

    counts: tuple[tuple[str, str, int], ...]
    committed: tuple[tuple[int, int], ...] = ()
    """(offsets partition, newest record time in epoch ms) of commits that clients made among them."""


class Undecodable(Observation, tag="bad", frozen=True, kw_only=True):
    """Records of one source that could not be read for one reason, with one bounded sample."""

    origin: str
    """offsets, events or control."""
    reason: str
    count: int
    sample: bytes
    detail: str = ""


class GroupUpset(Observation, tag="upset", frozen=True, kw_only=True):
    """A shard saw a group rebalance just after its coordinator had moved; for the whole cluster to count."""

    group: str
    rebalanced_ms: int
    partition: int
    """Of the offsets topic."""
    moved_ms: int
    came_from: int = -1
    """Broker that gave it up; -1 not told."""
    went_to: int = -1
    stood: bool = False
    """The coordinator did not move: its writes stalled."""


class GroupQuarantined(Observation, tag="quar", frozen=True, kw_only=True):
    """A shard's own code failed on a group ("": on the shard itself); for the whole cluster to know."""

    group: str
    partition: int
    """Of the offsets topic."""
    since_ms: int
    last_ms: int = -1
    count: int = 0
    error: str = ""
    lost: bool = False
    """Its saved state could not be read, so that it began anew."""
    over: bool = False
    """Nothing has failed on it for a while."""


class ShardRefilled(Observation, tag="refill", frozen=True, kw_only=True):
    """A shard that began anew knows its groups again, or has waited for them for long enough."""

    complete: bool
    """Every group that the brokers list there was told again."""


class RecordsLost(Observation, tag="lost", frozen=True, kw_only=True):
    """Records of an input were gone before they were read; for the whole cluster."""

    topic: str
    feed: str
    """offsets, events or control."""
    partitions: tuple[int, ...]
    records: int
    """At least so many."""
    is_anew: bool = False
    """The topic was made anew: nobody knows how many the old one held."""


class PartitionAnew(Observation, tag="anew", frozen=True, kw_only=True):
    """The shard's offsets partition was made anew: its offsets begin again."""
