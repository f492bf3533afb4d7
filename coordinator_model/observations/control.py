"""In-band observations from the driver and the decoders: clocks, settings, counts, losses, failures."""

import msgspec

from coordinator_model.observations.base import GroupObservation, Observation, Source


class Clock(Observation, tag="clock", frozen=True, kw_only=True):
    """The driver's time, with the state of this shard's offsets partition at that time.

    ``end_offset`` was the partition's end at that time and ``position`` the query's next offset (-1: unknown
    or source disabled; an end of -2: read, but no broker reported it).  ``events_partitions`` is how many
    partitions the events topic has (0: source disabled), so that a shard knows which to wait for.
    ``skew_ms`` maps a broker to (its clock minus the driver's).
    """

    sequence: int
    end_offset: int = -1
    position: int = -1
    events_partitions: int = 0
    skew_ms: dict[int, int] = msgspec.field(default_factory=dict)
    ask: bool = False
    """True asks the shard to report every group it holds."""
    is_answer: bool = False
    """Whether the end is a broker's answer to a question asked at that time, not just what has been read."""
    wrong_ms: int = 0
    """How far the clock of the partition's leader is ahead, where it is wrong; else 0."""
    zones_ms: dict[int, int] = msgspec.field(default_factory=dict)
    """Broker -> how far (ms) its lines are ahead by their zone, as some shard has found."""


class EventsClock(Observation, tag="eclock", frozen=True, kw_only=True):
    """A copy of a clock record in one partition of the events topic: everything before it has been read."""

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


class LogSeconds(Observation, tag="heard", frozen=True, kw_only=True):
    """In these seconds (epoch seconds, ascending) the broker's log had at least one line of this source."""

    broker: int
    heard: Source
    seconds: tuple[int, ...]


class Contradicted(Observation, tag="contra", frozen=True, kw_only=True):
    """A shard read in the topic what the broker's log should have reported: that log is losing lines."""

    broker: int
    lost: Source
    group: str


class Counted(Observation, tag="count", frozen=True, kw_only=True):
    """How many records of each kind a decoder read: (source name, kind) -> count."""

    counts: tuple[tuple[str, str, int], ...]
    committed: tuple[tuple[int, int], ...] = ()
    """(offsets partition, newest record time in epoch ms) of clients' commits among them."""


class Undecodable(Observation, tag="bad", frozen=True, kw_only=True):
    """Records of one source that could not be read for one reason, with one bounded sample."""

    origin: str
    """offsets, events or control."""
    reason: str
    count: int
    sample: bytes
    detail: str = ""


class GroupRebalancedByFailover(Observation, tag="upset", frozen=True, kw_only=True):
    """A shard saw a group rebalance just after a failover of its coordinator; for the whole cluster."""

    group: str
    rebalanced_ms: int
    partition: int
    """Of the offsets topic."""
    moved_ms: int
    came_from: int = -1
    """Broker that unloaded it; -1 unknown."""
    went_to: int = -1
    stood: bool = False
    """Whether the coordinator stayed the same: only its writes stalled."""


class GroupQuarantined(Observation, tag="quar", frozen=True, kw_only=True):
    """A shard's own code failed on a group ("": on the shard itself); for the whole cluster."""

    group: str
    partition: int
    """Of the offsets topic."""
    since_ms: int
    last_ms: int = -1
    count: int = 0
    error: str = ""
    lost: bool = False
    """Whether its saved state could not be read, so that it began again."""
    over: bool = False
    """Whether nothing has failed on it for a while."""


class ShardRefilled(Observation, tag="refill", frozen=True, kw_only=True):
    """A shard that began again has its groups back, or has waited for them for long enough."""

    complete: bool
    """Whether every group that the brokers list there was sent again."""


class RecordsLost(Observation, tag="lost", frozen=True, kw_only=True):
    """Records of an input were deleted before they were read; for the whole cluster."""

    topic: str
    feed: str
    """offsets, events or control."""
    partitions: tuple[int, ...]
    records: int
    """At least so many."""
    is_anew: bool = False
    """Whether the topic was created again: how many records the old one had is unknown."""


class PartitionAnew(Observation, tag="anew", frozen=True, kw_only=True):
    """The shard's offsets partition was created again: its offsets begin at 0 again."""
