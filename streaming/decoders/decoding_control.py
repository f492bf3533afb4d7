"""Turns records of the control topic into observations for the shards that they concern.

The driver writes these records (``streaming/driver``), so their form is ours.  A record that does not parse
is only counted, because anybody may write to a topic.  Several monitors may share one control topic: each
marks its records with its ``run`` and skips the others'.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec
import pyarrow as pa

from alerts.alert import Alert
from alerts.rules import ThresholdsError, check_settings
from coordinator_model.kafka import shard_of
from coordinator_model.observations import (
    CLUSTER_SHARD,
    Adopted,
    AnyObservation,
    BrokerDescribed,
    Clock,
    Contradicted,
    DescribedMember,
    EndOffsetsReported,
    GroupDescribed,
    GroupQuarantined,
    GroupRebalancedByFailover,
    LeadersDescribed,
    PartitionAnew,
    RecordsLost,
    ReplicaMissed,
    RetentionReported,
    Seen,
    Settings,
    ShardLed,
    ShardRefilled,
    Source,
    TopicsDescribed,
    Undecodable,
    int32_of,
    is_time_ms,
)
from coordinator_model.ordering import SKEW_MAX_MS
from coordinator_model.shard import SettingsError, check_shard_settings
from streaming.control import (
    DECODER,
    LOST_MAX,
    MISSED_MS,
    NOT_SEALED,
    PARTITIONS_MAX,
    TOPIC_NAME_MAX,
    AdoptRecord,
    BrokersRecord,
    ClockRecord,
    ContradictedRecord,
    ControlRecord,
    EndsRecord,
    FailoverRebalanceRecord,
    GroupAnswer,
    GroupsRecord,
    LeadersRecord,
    LostRecord,
    MarkRecord,
    QuarantinedRecord,
    RefilledRecord,
    SettingsRecord,
    TopicsRecord,
    canonical,
    clock_refusal,
    fits,
    is_sealed,
)
from streaming.decoders.decoded import Decoded
from streaming.decoders.packing import plain

_SAMPLE_BYTES = 512
SETTINGS_BYTES_MAX = 2**20
"""Kafka's default for the largest record; every shard gets a copy of the settings."""
_SETTINGS_AT_ONCE = 8
"""A start writes the settings once; if a batch has more, only this many are handed to every shard."""
_SETTINGS = ("control", "settings")


_ALERT = msgspec.json.Decoder(Alert)
_REVISION_MAX = 2**53


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
        shard_count: how many shards there are, beside the cluster-wide one.
        backlog_ends: unused; the control topic is read from its end, so it has no backlog.
        run: whose records to take; "" takes all.
        secret: seals the clocks; "": clocks have no seal.
    """
    decoded = Decoded(cells={}, counts={}, bad=[])
    columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "timestamp_ms", "value"))
    for partition, offset, timestamp_ms, value in zip(*columns, strict=True):
        record = _read(value, decoded)
        if record is None or run not in ("", record.run):
            continue
        refused = _refused(record, value, timestamp_ms, secret)
        if refused is not None:
            decoded.bad.append(refused)
            continue
        parts = _parts(record, shard_count, value, decoded)
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


def _read(value: bytes | None, decoded: Decoded) -> ControlRecord | None:
    """Return the record in a value; count the value as undecodable if there is none."""
    try:
        return DECODER.decode(value or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        decoded.bad.append(_undecodable(value, reason_of(error, "not_a_control_record"), error))
        return None


def _parts(
    record: ControlRecord, shard_count: int, value: bytes | None, decoded: Decoded
) -> list[tuple[int, AnyObservation]]:
    """Return each shard's part of a record of ours, and count parts that make no sense."""
    if isinstance(record, AdoptRecord):
        decoded.bad.extend(_refused_alerts(record))
    if isinstance(record, SettingsRecord) and decoded.counts.get(_SETTINGS, 0) >= _SETTINGS_AT_ONCE:
        decoded.bad.append(_undecodable(value, "too_many_settings", None))
        return []
    try:
        return list(_observations(record, shard_count))
    except (ThresholdsError, SettingsError) as error:
        decoded.bad.append(_undecodable(value, "settings_invalid", error))
    except (ValueError, KeyError, RecursionError) as error:
        decoded.bad.append(_undecodable(value, reason_of(error, "not_a_control_record"), error))
    return []


def _count(decoded: Decoded, record: ControlRecord) -> None:
    key = ("control", str(record.__struct_config__.tag))
    decoded.counts[key] = decoded.counts.get(key, 0) + 1


def _observations(record: ControlRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    """Yield (shard, observation) for each shard that ``record`` concerns."""
    if isinstance(record, ClockRecord):
        yield from _clocks(record, shard_count)
    elif isinstance(record, SettingsRecord):
        settings = Settings(settings=_checked(canonical(record.settings)))
        yield from ((shard, settings) for shard in _everyone(shard_count))
    elif isinstance(record, AdoptRecord):
        yield from ((_shard_of(one.group, shard_count), one) for one in _adopted(record))
    elif isinstance(record, RefilledRecord):
        known = {shard for shard in record.shards if CLUSTER_SHARD <= shard < shard_count}
        yield from ((shard, ShardRefilled(complete=record.complete)) for shard in sorted(known))
    elif isinstance(record, ContradictedRecord | FailoverRebalanceRecord | QuarantinedRecord):
        yield CLUSTER_SHARD, _of_shard(record)
    elif isinstance(record, GroupsRecord | EndsRecord):
        yield from _of_groups(record, shard_count)
    elif not isinstance(record, MarkRecord):
        yield from _of_cluster(record, shard_count)


def _adopted(record: AdoptRecord) -> Iterator[Adopted]:
    """Yield the alerts that the rules can adopt; ``_refused_alerts`` yields the others."""
    for alert in record.alerts:
        found = _adoptable(alert)
        if isinstance(found, Alert):
            yield Adopted(group=found.group, alert=bytes(alert))


def _refused_alerts(record: AdoptRecord) -> Iterator[Undecodable]:
    for alert in record.alerts:
        error = _adoptable(alert)
        if isinstance(error, Exception):
            yield _undecodable(bytes(alert), reason_of(error, "alert_invalid"), error)


def _adoptable(alert: msgspec.Raw) -> Alert | Exception:
    """Return an alert for the rules to adopt, or why no job can ever have written it."""
    try:
        found = _ALERT.decode(alert)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return error
    times = (found.starts_at_ms, found.detected_at_ms, -1 if found.ends_at_ms is None else found.ends_at_ms)
    if not (all(is_time_ms(at_ms) for at_ms in times) and 0 <= found.revision <= _REVISION_MAX):
        return ValueError("a number is out of range")
    return found


def _shard_of(group: str, shard_count: int) -> int:
    return shard_of(group, shard_count) if group else CLUSTER_SHARD


@lru_cache(maxsize=8)
def _checked(settings: bytes) -> bytes:
    """Return canonical settings that shards and rules can use.

    Raises:
        ThresholdsError, SettingsError: they cannot be used; the previous settings stay in force.
    """
    if len(settings) > SETTINGS_BYTES_MAX:
        raise SettingsError(f"the settings have {len(settings)} bytes, more than {SETTINGS_BYTES_MAX}")
    check_shard_settings(settings)
    check_settings(settings)
    return settings


def _of_groups(record: GroupsRecord | EndsRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    if isinstance(record, GroupsRecord):
        for answer in record.groups:
            yield shard_of(answer.group, shard_count), _described(record, answer)
        return
    for one in record.groups:
        ends = EndOffsetsReported(
            group=one.group,
            ends=one.ends,
            since_ms=record.since_ms,
            stable=one.stable,
            transaction_ms=record.transaction_ms,
        )
        yield shard_of(one.group, shard_count), ends


def _lost(record: LostRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    yield (
        CLUSTER_SHARD,
        RecordsLost(
            topic=record.topic[:TOPIC_NAME_MAX],
            feed=record.feed,
            partitions=tuple(record.partitions[:LOST_MAX]),
            records=record.records,
            is_anew=record.is_anew,
        ),
    )
    if record.is_anew and record.feed == "offsets":
        yield from ((shard, PartitionAnew()) for shard in range(shard_count))


def _of_shard(record: ContradictedRecord | FailoverRebalanceRecord | QuarantinedRecord) -> AnyObservation:
    """Return a shard's report about the cluster."""
    if isinstance(record, ContradictedRecord):
        return Contradicted(broker=record.broker, lost=Source[record.lost.upper()], group=record.group)
    told = msgspec.structs.asdict(record)
    if isinstance(record, QuarantinedRecord):
        return GroupQuarantined(**{name: told[name] for name in GroupQuarantined.__struct_fields__})
    return GroupRebalancedByFailover(
        **{name: told[name] for name in GroupRebalancedByFailover.__struct_fields__}
    )


def _skew_ms(record: ControlRecord) -> int:
    """Return the correction to the clock of the broker that answered: its groups live by that clock."""
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
    record: LeadersRecord | BrokersRecord | TopicsRecord | LostRecord, shard_count: int
) -> Iterator[tuple[int, AnyObservation]]:
    if isinstance(record, LostRecord):
        yield from _lost(record, shard_count)
    elif isinstance(record, LeadersRecord):
        yield from _led(record, shard_count)
    elif isinstance(record, BrokersRecord):
        for broker, settings in record.brokers.items():
            yield CLUSTER_SHARD, BrokerDescribed(broker=broker, settings=settings)
        kept = retention_ms(record.brokers)
        if kept:
            yield from ((shard, RetentionReported(retention_ms=kept)) for shard in range(shard_count))
    else:
        yield CLUSTER_SHARD, TopicsDescribed(partitions=record.partitions)


def _led(record: LeadersRecord, shard_count: int) -> Iterator[tuple[int, AnyObservation]]:
    leaders = {shard: told for shard, told in record.leaders.items() if 0 <= shard < PARTITIONS_MAX}
    if leaders:
        yield CLUSTER_SHARD, LeadersDescribed(leaders=leaders)
    for shard, (leader, epoch) in record.leaders.items():
        if 0 <= shard < shard_count:
            yield shard, ShardLed(leader=leader, epoch=epoch)
    for shard in record.shrunk:
        if 0 <= shard < shard_count:
            yield shard, ReplicaMissed(since_ms=record.at_ms - MISSED_MS)


def retention_ms(brokers: Mapping[int, Mapping[str, str]]) -> dict[int, int]:
    """Return how long each broker keeps the offsets of unused groups, if its settings say so."""
    told = {
        broker: int32_of(settings.get("offsets.retention.minutes", ""))
        for broker, settings in brokers.items()
    }
    return {
        broker: 60_000 * minutes for broker, minutes in told.items() if minutes is not None and minutes >= 0
    }


def _everyone(shard_count: int) -> Iterable[int]:
    return range(CLUSTER_SHARD, shard_count)


def _clocks(record: ClockRecord, shard_count: int) -> Iterator[tuple[int, Clock]]:
    asked = frozenset(record.ask) if isinstance(record.ask, list) else None
    everyone = _everyone(shard_count)
    for shard in everyone if record.shards is None else frozenset(record.shards).intersection(everyone):
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
                zones_ms=record.zones_ms,
            ),
        )


def _at(values: list[int], shard: int) -> int:
    return values[shard] if 0 <= shard < len(values) else -1


def _refused(
    record: ControlRecord, value: bytes | None, timestamp_ms: int, secret: str
) -> Undecodable | None:
    """Return how a refused clock is counted; None if the clock is believed."""
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


def reason_of(error: Exception, otherwise: str) -> str:
    """Return why a record was refused; numbers and lengths out of bounds have a reason of their own."""
    told = str(error)
    is_out = "out of range" in told or "of length" in told or "`int` <" in told or "`int` >" in told
    return "out_of_range" if is_out else otherwise


def _undecodable(value: bytes | None, reason: str, error: Exception | None) -> Undecodable:
    return Undecodable(
        origin="control",
        reason=reason,
        count=1,
        sample=(value or b"")[:_SAMPLE_BYTES],
        detail="" if error is None else plain(str(error)[:200]),
    )
