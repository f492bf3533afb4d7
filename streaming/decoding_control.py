"""Records of the control topic -> observations for the shards they concern.

The driver writes these records itself (``clock.py``), so their form is ours; what does not parse is
still only counted, because anybody may write into a topic.  Several monitors may share one control
topic: each marks its records with its ``run`` and skips the others'.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from coordinator_model.hashing import shard_of
from coordinator_model.observations import (
    CLUSTER_SHARD,
    Adopted,
    AnyObservation,
    BrokerDescribed,
    Clock,
    Contradicted,
    DescribedMember,
    EndsTold,
    GroupDescribed,
    GroupUpset,
    LeadersDescribed,
    ReplicaMissed,
    RetentionTold,
    Seen,
    Settings,
    ShardLed,
    Source,
    TopicsDescribed,
    Undecodable,
)
from coordinator_model.ordering import SKEW_MAX_MS
from streaming.clock_records import NOT_SEALED, clock_refusal, fits, is_sealed
from streaming.decoded import Decoded
from streaming.marks import Mark

_SAMPLE_BYTES = 512


class _Record(msgspec.Struct, tag_field="kind", kw_only=True):
    """What every control record says: when, on the driver's clock, and which monitor wrote it."""

    at_ms: int
    run: str = ""


class ClockRecord(_Record, tag="clock", kw_only=True):
    """The driver's time and what was true of the inputs then; ``ask`` True asks every shard, a list some."""

    sequence: int
    ends: list[int] = []
    positions: list[int] = []
    events_partitions: int = 0
    skew_ms: dict[int, int] = {}
    ask: bool | list[int] = False
    lead_ms: int = 0
    """How far the broker that appends this record is known to be ahead of the driver."""
    wrong_ms: dict[int, int] = {}
    """Offsets partition -> how far its leader's clock is ahead, where it is wrong."""


class SettingsRecord(_Record, tag="settings", kw_only=True):
    """The part of the configuration that the executors need."""

    settings: dict[str, Any]


class AdoptRecord(_Record, tag="adopt", kw_only=True):
    """Alerts that were open in the alerts topic when a job started without its checkpoint."""

    alerts: list[msgspec.Raw]


class ContradictedRecord(_Record, tag="contradicted", kw_only=True):
    """A shard saw that a broker's log is losing lines."""

    broker: int
    lost: str
    group: str


class MemberAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One member as a broker described it."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    assigned: dict[str, tuple[int, ...]] | None = None


class GroupAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One group as its coordinator described it; state Dead: it does not know the group."""

    group: str
    group_type: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    epoch: int = -1
    members: tuple[MemberAnswer, ...] | None = None


class GroupsRecord(_Record, tag="groups", kw_only=True):
    """A broker's answers about groups of one shard or several; true at some moment up to ``at_ms``."""

    broker: int
    asked_at_ms: int
    skew_ms: int = 0
    """The broker's clock minus the driver's."""
    groups: list[GroupAnswer]


class LeadersRecord(_Record, tag="leaders", kw_only=True):
    """Offsets partition -> (leader, leader epoch), as far as changed."""

    leaders: dict[int, tuple[int, int]]
    shrunk: list[int] = []
    """Partitions of which a replica is in sync no more, as its broker has gone."""


class BrokersRecord(_Record, tag="brokers", kw_only=True):
    """Broker -> its settings, as far as changed."""

    brokers: dict[int, dict[str, str]]


class TopicsRecord(_Record, tag="topics", kw_only=True):
    """Topic -> partitions, as far as changed; 0: there is no such topic."""

    partitions: dict[str, int]


class UpsetRecord(_Record, tag="upset", kw_only=True):
    """A shard saw a group rebalance because its coordinator had moved."""

    group: str
    rebalanced_ms: int
    partition: int
    moved_ms: int
    came_from: int = -1
    went_to: int = -1
    stood: bool = False


class GroupEnds(msgspec.Struct, kw_only=True):
    """Where partitions that a group commits to ended: topic -> partition -> end offset."""

    group: str
    ends: dict[str, dict[int, int]]
    stable: dict[str, dict[int, int]] = {}
    """The same of last stable offsets, where the group may wait for one to move."""


class EndsRecord(_Record, tag="ends", kw_only=True):
    """End offsets as the brokers told them at ``at_ms``, for the groups that they are news to."""

    groups: list[GroupEnds]
    since_ms: int = -1
    """Since when the brokers have answered without a pause."""
    transaction_ms: int = -1
    """The brokers' largest ``transaction.max.timeout.ms``; -1: not known."""


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
    | EndsRecord
    | MarkRecord
)

_DECODER: msgspec.json.Decoder[ControlRecord] = msgspec.json.Decoder(ControlRecord)


class _AlertGroup(msgspec.Struct):
    group: str


MISSED_MS = 20_000
"""A broker that died is waited for 9 s (``broker.session.timeout.ms``), by a busy leader for longer, and
which replicas are in sync is asked each 5 s."""
_ALERT_GROUP = msgspec.json.Decoder(_AlertGroup)


def encode_record(record: ControlRecord) -> bytes:
    """Return the value of a control record as the driver writes it."""
    return msgspec.json.encode(record)


def canonical(settings: Mapping[str, Any]) -> bytes:
    """Return settings as canonical JSON, so that equal settings are equal bytes."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def decode_control(
    batch: pa.RecordBatch,
    *,
    shard_count: int,
    backlog_ends: Mapping[int, int],
    run: str = "",
    secret: str = "",
) -> Decoded:
    """Return the observations in control records.

    Args:
        batch: columns ``partition``, ``offset``, ``timestamp_ms``, ``key`` and ``value``.
        shard_count: shards to fan out to, beside the cluster-wide one.
        backlog_ends: unused; control starts at its end, so nothing in it is backlog.
        run: whose records to take; "" takes all.
        secret: what clocks are sealed with; "": nothing.
    """
    decoded = Decoded(cells={}, counts={}, bad=[])
    columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "timestamp_ms", "value"))
    for partition, offset, timestamp_ms, value in zip(*columns, strict=True):
        try:
            record = _DECODER.decode(value or b"")
            if run not in ("", record.run):
                continue
            refused = _refused(record, value, timestamp_ms, secret)
            parts = [] if refused else list(_observations(record, shard_count))
        except (msgspec.MsgspecError, ValueError, KeyError) as error:
            decoded.bad.append(_undecodable(value, error))
            continue
        if refused:
            decoded.bad.append(refused)
            continue
        for index, (shard, what) in enumerate(parts):
            seen = Seen(
                at_ms=record.at_ms + _skew_ms(record),
                source=Source.CONTROL,
                partition=partition,
                offset=offset,
                index=index,
                broker=record.broker if isinstance(record, GroupsRecord) else -1,
                recorded_at_ms=timestamp_ms,
                backlog=False,
                what=what,
            )
            decoded.cells.setdefault(shard, []).append(seen)
        if parts:
            _count(decoded, record)
    return decoded


def _count(decoded: Decoded, record: ControlRecord) -> None:
    key = ("control", str(record.__struct_config__.tag))
    decoded.counts[key] = decoded.counts.get(key, 0) + 1


def _observations(record: ControlRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    """Yield (shard, observation) for each shard that must hear of ``record``."""
    if isinstance(record, ClockRecord):
        yield from _clocks(record, shard_count)
    elif isinstance(record, SettingsRecord):
        settings = Settings(settings=canonical(record.settings))
        yield from ((shard, settings) for shard in _everyone(shard_count))
    elif isinstance(record, AdoptRecord):
        yield from _adopted(record, shard_count)
    elif isinstance(record, ContradictedRecord | UpsetRecord):
        yield CLUSTER_SHARD, _of_shard(record)
    elif isinstance(record, GroupsRecord | EndsRecord):
        yield from _of_groups(record, shard_count)
    elif not isinstance(record, MarkRecord):
        yield from _of_cluster(record, shard_count)


def _adopted(record: AdoptRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    for alert in record.alerts:
        group = _ALERT_GROUP.decode(alert).group
        shard = shard_of(group, shard_count) if group else CLUSTER_SHARD
        yield shard, Adopted(group=group, alert=bytes(alert))


def _of_groups(record: GroupsRecord | EndsRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    if isinstance(record, GroupsRecord):
        for answer in record.groups:
            yield shard_of(answer.group, shard_count), _described(record, answer)
        return
    for one in record.groups:
        ends = EndsTold(
            group=one.group,
            ends=one.ends,
            since_ms=record.since_ms,
            stable=one.stable,
            transaction_ms=record.transaction_ms,
        )
        yield shard_of(one.group, shard_count), ends


def _of_shard(record: ContradictedRecord | UpsetRecord) -> AnyObservation:
    """Return what a shard tells the cluster."""
    if isinstance(record, ContradictedRecord):
        return Contradicted(broker=record.broker, lost=Source[record.lost.upper()], group=record.group)
    told = msgspec.structs.asdict(record)
    return GroupUpset(**{name: told[name] for name in GroupUpset.__struct_fields__})


def _skew_ms(record: ControlRecord) -> int:
    """Return what makes the record's time one of the broker that answered: its groups live on its clock."""
    if not isinstance(record, GroupsRecord) or abs(record.skew_ms) > SKEW_MAX_MS:
        return 0  # what a broker with a wrong clock says is dated by the driver's
    return record.skew_ms


def _described(record: GroupsRecord, answer: GroupAnswer) -> GroupDescribed:
    members = None
    if answer.members is not None:
        members = tuple(DescribedMember(**msgspec.structs.asdict(member)) for member in answer.members)
    return GroupDescribed(
        group=answer.group,
        asked_at_ms=record.asked_at_ms + _skew_ms(record),
        group_type=answer.group_type,
        state=answer.state,
        protocol_type=answer.protocol_type,
        protocol=answer.protocol,
        epoch=answer.epoch,
        members=members,
    )


def _of_cluster(
    record: LeadersRecord | BrokersRecord | TopicsRecord, shard_count: int
) -> Iterator[tuple[int, AnyObservation]]:
    if isinstance(record, LeadersRecord):
        yield from _led(record, shard_count)
    elif isinstance(record, BrokersRecord):
        for broker, settings in record.brokers.items():
            yield CLUSTER_SHARD, BrokerDescribed(broker=broker, settings=settings)
        kept = retention_ms(record.brokers)
        if kept:
            yield from ((shard, RetentionTold(retention_ms=kept)) for shard in range(shard_count))
    else:
        yield CLUSTER_SHARD, TopicsDescribed(partitions=record.partitions)


def _led(record: LeadersRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    if record.leaders:
        yield CLUSTER_SHARD, LeadersDescribed(leaders=record.leaders)
    for shard, (leader, epoch) in record.leaders.items():
        if 0 <= shard < shard_count:
            yield shard, ShardLed(leader=leader, epoch=epoch)
    for shard in record.shrunk:
        if 0 <= shard < shard_count:
            yield shard, ReplicaMissed(since_ms=record.at_ms - MISSED_MS)


def retention_ms(brokers: Mapping[int, Mapping[str, str]]) -> dict[int, int]:
    """Return how long each broker keeps the offsets of unused groups, where its settings tell."""
    told = {broker: settings.get("offsets.retention.minutes", "") for broker, settings in brokers.items()}
    return {broker: 60_000 * int(minutes) for broker, minutes in told.items() if minutes.isdecimal()}


def _everyone(shard_count: int) -> Iterable[int]:
    return range(CLUSTER_SHARD, shard_count)


def _clocks(record: ClockRecord, shard_count: int) -> Iterator[tuple[int, Clock]]:
    asked = frozenset(record.ask) if isinstance(record.ask, list) else None
    for shard in _everyone(shard_count):
        yield (
            shard,
            Clock(
                sequence=record.sequence,
                end_offset=_at(record.ends, shard),
                position=_at(record.positions, shard),
                events_partitions=record.events_partitions,
                skew_ms=record.skew_ms,
                ask=bool(record.ask) if asked is None else shard in asked,
                is_answer=True,
                wrong_ms=record.wrong_ms.get(shard, 0),
            ),
        )


def _at(values: list[int], shard: int) -> int:
    return values[shard] if 0 <= shard < len(values) else -1


def _refused(
    record: ControlRecord, value: bytes | None, timestamp_ms: int, secret: str
) -> Undecodable | None:
    """Return how a clock that cannot be believed is counted; None: it can."""
    if not isinstance(record, ClockRecord):
        return None
    numbers = (record.sequence, record.lead_ms, *record.ends, *record.positions)
    if not is_sealed(value or b"", secret):
        reason, why = "clock_refused", NOT_SEALED
    elif fits(record.at_ms, numbers, record.skew_ms | record.wrong_ms, record.events_partitions):
        reason, why = "clock_refused", clock_refusal(record.at_ms, record.lead_ms, timestamp_ms)
    else:
        reason, why = "out_of_range", "a number of a clock record"
    if not why:
        return None
    sample = (value or b"")[:_SAMPLE_BYTES]
    return Undecodable(origin="control", reason=reason, count=1, sample=sample, detail=why)


def _undecodable(value: bytes | None, error: Exception) -> Undecodable:
    return Undecodable(
        origin="control",
        reason="not_a_control_record",
        count=1,
        sample=(value or b"")[:_SAMPLE_BYTES],
        detail=str(error)[:200],
    )
