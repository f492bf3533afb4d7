"""The records of the control topic: the driver writes them, the executors read them."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from coordinator_model.observations import INT32_MAX, INT64_MAX, TIME_MS_MAX
from streaming.control.job_state import JobState
from streaming.control.marks import Mark

Int32 = Annotated[int, msgspec.Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]
NAME_MAX = 32_767
"""Kafka's longest string."""

TimeMs = Annotated[int, msgspec.Meta(ge=-1, le=TIME_MS_MAX)]

Offset = Annotated[int, msgspec.Meta(ge=-2, le=INT64_MAX)]
"""Of a record; -1 and -2 are not known."""

Name = Annotated[str, msgspec.Meta(max_length=NAME_MAX)]

SkewMs = Annotated[
    dict[Int32, Annotated[int, msgspec.Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]],
    msgspec.Meta(max_length=10_000),
]
"""Broker -> its clock minus the driver's; every shard gets them all, so their number is bounded."""

PARTITIONS_MAX = 100_000

Partitions = Annotated[int, msgspec.Meta(ge=0, le=PARTITIONS_MAX)]
"""How many a topic has that is read partition by partition."""

LOST_MAX = 100

TOPIC_NAME_MAX = 249


class _Record(msgspec.Struct, tag_field="kind", kw_only=True):
    """What every control record says: when, and which monitor wrote it.

    The time is the driver's, but for what a shard tells the cluster (contradicted, upset, quarantined): that
    has the time of what it tells of, or -1.  Records of older versions have the driver's time there as well.
    """

    at_ms: TimeMs
    run: str = ""


class ClockRecord(_Record, tag="clock", kw_only=True):
    """The driver's time and what was true of the inputs then; ``ask`` True asks every shard, a list some."""

    sequence: Int64
    ends: list[Offset] = []
    positions: list[Offset] = []
    events_partitions: Partitions = 0
    skew_ms: SkewMs = {}
    ask: bool | list[Int32] = False
    lead_ms: Int64 = 0
    """How far the broker that appends this record is known to be ahead of the driver."""
    wrong_ms: SkewMs = {}
    """Offsets partition -> how far its leader's clock is ahead, where it is wrong."""
    zones_ms: SkewMs = {}
    """Broker -> how far its lines are ahead by their zone."""
    job: JobState | None = None
    """How the job is doing, for a notifier in another process (``watching.py``)."""


class SettingsRecord(_Record, tag="settings", kw_only=True):
    """The part of the configuration that the executors need."""

    settings: dict[str, Any]


class AdoptRecord(_Record, tag="adopt", kw_only=True):
    """Alerts that were open in the alerts topic when a job started without its checkpoint."""

    alerts: list[msgspec.Raw]


class ContradictedRecord(_Record, tag="contradicted", kw_only=True):
    """A shard saw that a broker's log is losing lines."""

    broker: Int32
    lost: str
    group: Name


class MemberAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One member as a broker described it."""

    member_id: Name
    client_id: Name = ""
    client_host: Name = ""
    instance_id: Name | None = None
    topics: tuple[Name, ...] | None = None
    assigned: dict[Name, tuple[Int32, ...]] | None = None


class GroupAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One group as its coordinator described it; state Dead: it does not know the group."""

    group: Name
    group_type: Name
    state: Name
    protocol_type: Name = ""
    protocol: Name = ""
    epoch: Int32 = -1
    members: tuple[MemberAnswer, ...] | None = None


class GroupsRecord(_Record, tag="groups", kw_only=True):
    """A broker's answers about groups of one shard or several; true at some moment up to ``at_ms``."""

    broker: Int32
    asked_at_ms: TimeMs
    skew_ms: Int64 = 0
    """The broker's clock minus the driver's."""
    groups: list[GroupAnswer]


class LeadersRecord(_Record, tag="leaders", kw_only=True):
    """Offsets partition -> (leader, leader epoch), as far as changed."""

    leaders: dict[Int32, tuple[Int32, Int32]]
    shrunk: list[Int32] = []
    """Partitions of which a replica is in sync no more, as its broker has gone."""


class BrokersRecord(_Record, tag="brokers", kw_only=True):
    """Broker -> its settings, as far as changed."""

    brokers: dict[Int32, dict[Name, Name]]


class TopicsRecord(_Record, tag="topics", kw_only=True):
    """Topic -> partitions, as far as changed; 0: there is no such topic."""

    partitions: dict[Name, Int32]


class UpsetRecord(_Record, tag="upset", kw_only=True):
    """A shard saw a group rebalance because its coordinator had moved."""

    group: Name
    rebalanced_ms: TimeMs
    partition: Int32
    moved_ms: TimeMs
    came_from: Int32 = -1
    went_to: Int32 = -1
    stood: bool = False


class QuarantinedRecord(_Record, tag="quarantined", kw_only=True):
    """A shard's own code failed on a group ("": on the shard itself), or the group works again."""

    group: Name
    partition: Int32
    since_ms: TimeMs
    last_ms: TimeMs = -1
    count: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)] = 0
    error: Name = ""
    lost: bool = False
    over: bool = False


class RefilledRecord(_Record, tag="refilled", kw_only=True):
    """Shards whose saved bytes were lost know their groups again, or have waited for long enough."""

    shards: list[Int32]
    complete: bool


class GroupEnds(msgspec.Struct, kw_only=True):
    """Where partitions that a group commits to ended: topic -> partition -> end offset."""

    group: Name
    ends: dict[Name, dict[Int32, Offset]]
    stable: dict[Name, dict[Int32, Offset]] = {}
    """The same of last stable offsets, where the group may wait for one to move."""


class EndsRecord(_Record, tag="ends", kw_only=True):
    """End offsets as the brokers told them at ``at_ms``, for the groups that they are news to."""

    groups: list[GroupEnds]
    since_ms: TimeMs = -1
    """Since when the brokers have answered without a pause."""
    transaction_ms: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] = -1
    """The brokers' largest ``transaction.max.timeout.ms``; -1: not known."""


class LostRecord(_Record, tag="lost", kw_only=True):
    """Records of an input were gone before they were read, or the topic is another of that name."""

    topic: Name
    feed: Literal["offsets", "events", "control"]
    partitions: list[Int32]
    records: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
    is_anew: bool = False


class MarkRecord(_Record, tag="mark", kw_only=True):
    """A process watches a cluster with these outputs, or has ceased to; for other processes only."""

    mark: Mark


ControlRecord = (
    ClockRecord
    | SettingsRecord
    | AdoptRecord
    | ContradictedRecord
    | GroupsRecord
    | LeadersRecord
    | BrokersRecord
    | TopicsRecord
    | UpsetRecord
    | QuarantinedRecord
    | RefilledRecord
    | EndsRecord
    | MarkRecord
    | LostRecord
)

DECODER: msgspec.json.Decoder[ControlRecord] = msgspec.json.Decoder(ControlRecord)

MISSED_MS = 20_000
"""A broker that died is waited for 9 s (``broker.session.timeout.ms``), by a busy leader for longer, and
which replicas are in sync is asked each 5 s."""


def encode_record(record: ControlRecord) -> bytes:
    """Return the value of a control record as the driver writes it."""
    return msgspec.json.encode(record)


def canonical(settings: Mapping[str, Any]) -> bytes:
    """Return settings as canonical JSON, so that equal settings are equal bytes."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
