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
"""Longest string in Kafka's protocol."""

TimeMs = Annotated[int, msgspec.Meta(ge=-1, le=TIME_MS_MAX)]

Offset = Annotated[int, msgspec.Meta(ge=-2, le=INT64_MAX)]
"""A record's offset; -1 and -2 are unknown."""

Name = Annotated[str, msgspec.Meta(max_length=NAME_MAX)]

SkewMs = Annotated[
    dict[Int32, Annotated[int, msgspec.Meta(ge=-TIME_MS_MAX, le=TIME_MS_MAX)]],
    msgspec.Meta(max_length=10_000),
]
"""Broker -> its clock minus the driver's; every shard gets all of them, so their number is bounded."""

PARTITIONS_MAX = 100_000

Partitions = Annotated[int, msgspec.Meta(ge=0, le=PARTITIONS_MAX)]
"""Most partitions of a topic that is read partition by partition."""

LOST_MAX = 100

TOPIC_NAME_MAX = 249


class _Record(msgspec.Struct, tag_field="kind", kw_only=True):
    """The fields of every control record: its time, and the monitor that wrote it.

    The time is the driver's, except in records from a shard about the cluster (contradicted, upset,
    quarantined): those have the time of their subject, or -1.  In older versions they have the driver's time
    as well.
    """

    at_ms: TimeMs
    run: str = ""


class ClockRecord(_Record, tag="clock", kw_only=True):
    """The driver's time, and the facts about the inputs then; ``ask`` True asks every shard, a list some."""

    sequence: Int64
    ends: list[Offset] = []
    positions: list[Offset] = []
    events_partitions: Partitions = 0
    skew_ms: SkewMs = {}
    ask: bool | list[Int32] = False
    lead_ms: Int64 = 0
    """How far the clock of the broker that appends this record is ahead of the driver's."""
    wrong_ms: SkewMs = {}
    """Offsets partition -> how far its leader's clock is ahead, if that clock is wrong."""
    zones_ms: SkewMs = {}
    """Broker -> how far its lines are ahead because of their time zone."""
    job: JobState | None = None
    """The state of the job, for a notifier in another process (``streaming/notify/watching.py``)."""
    shards: list[Int32] | None = None
    """The shards that this clock is for; None: for all."""


class SettingsRecord(_Record, tag="settings", kw_only=True):
    """The executors' part of the configuration."""

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
    """One group as its coordinator described it; state Dead: the coordinator does not know the group."""

    group: Name
    group_type: Name
    state: Name
    protocol_type: Name = ""
    protocol: Name = ""
    epoch: Int32 = -1
    members: tuple[MemberAnswer, ...] | None = None


class GroupsRecord(_Record, tag="groups", kw_only=True):
    """A broker's answers about groups of one or more shards; each was true at a time up to ``at_ms``."""

    broker: Int32
    asked_at_ms: TimeMs
    skew_ms: Int64 = 0
    """The broker's clock minus the driver's."""
    groups: list[GroupAnswer]


class LeadersRecord(_Record, tag="leaders", kw_only=True):
    """Offsets partition -> (leader, leader epoch); changes only."""

    leaders: dict[Int32, tuple[Int32, Int32]]
    shrunk: list[Int32] = []
    """Partitions with a replica that left the in-sync set because its broker is gone."""


class BrokersRecord(_Record, tag="brokers", kw_only=True):
    """Broker -> its settings; changes only."""

    brokers: dict[Int32, dict[Name, Name]]


class TopicsRecord(_Record, tag="topics", kw_only=True):
    """Topic -> number of partitions, changes only; 0: the topic does not exist."""

    partitions: dict[Name, Int32]


class FailoverRebalanceRecord(_Record, tag="upset", kw_only=True):
    """A shard saw a group rebalance because its coordinator had moved."""

    group: Name
    rebalanced_ms: TimeMs
    partition: Int32
    moved_ms: TimeMs
    came_from: Int32 = -1
    went_to: Int32 = -1
    stood: bool = False


class QuarantinedRecord(_Record, tag="quarantined", kw_only=True):
    """Our own code failed on a group ("": on the shard itself), or the group works again."""

    group: Name
    partition: Int32
    since_ms: TimeMs
    last_ms: TimeMs = -1
    count: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)] = 0
    error: Name = ""
    lost: bool = False
    over: bool = False


class RefilledRecord(_Record, tag="refilled", kw_only=True):
    """Shards with lost state know their groups again, or have waited long enough."""

    shards: list[Int32]
    complete: bool


class GroupEnds(msgspec.Struct, kw_only=True):
    """The end offsets of a group's partitions: topic -> partition -> end offset."""

    group: Name
    ends: dict[Name, dict[Int32, Offset]]
    stable: dict[Name, dict[Int32, Offset]] = {}
    """Last stable offsets, in the same form, if the group may be waiting for a transaction."""


class EndsRecord(_Record, tag="ends", kw_only=True):
    """The brokers' end offsets at ``at_ms``, for the groups to which they are news."""

    groups: list[GroupEnds]
    since_ms: TimeMs = -1
    """Since when the brokers have answered without a pause."""
    transaction_ms: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] = -1
    """The brokers' largest ``transaction.max.timeout.ms``; -1: unknown."""


class LostRecord(_Record, tag="lost", kw_only=True):
    """Records of an input were deleted before they were read, or the topic was recreated."""

    topic: Name
    feed: Literal["offsets", "events", "control"]
    partitions: list[Int32]
    records: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
    is_anew: bool = False


class MarkRecord(_Record, tag="mark", kw_only=True):
    """A process watches a cluster with these outputs, or has stopped; only other processes read this."""

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
    | FailoverRebalanceRecord
    | QuarantinedRecord
    | RefilledRecord
    | EndsRecord
    | MarkRecord
    | LostRecord
)

DECODER: msgspec.json.Decoder[ControlRecord] = msgspec.json.Decoder(ControlRecord)

MISSED_MS = 20_000
"""A dead broker is given up after 9 s (``broker.session.timeout.ms``), later by a busy leader; in-sync
replicas are queried every 5 s."""


def encode_record(record: ControlRecord) -> bytes:
    """Return the value of a control record as the driver writes it."""
    return msgspec.json.encode(record)


def canonical(settings: Mapping[str, Any]) -> bytes:
    """Return settings as canonical JSON, so that equal settings are equal bytes."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
