"""Control records: what the driver writes is what every shard gets."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from alerts.alert.alert import Alert
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.answers import (
    BrokerDescribed,
    DescribedMember,
    EndOffsetsReported,
    GroupDescribed,
    LeadersDescribed,
    ReplicaMissed,
    RetentionReported,
    ShardLed,
    TopicsDescribed,
)
from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.control import (
    Adopted,
    Clock,
    Contradicted,
    GroupRebalancedByFailover,
    PartitionAnew,
    RecordsLost,
    Settings,
)
from streaming.control.clock_records import sealed
from streaming.control.marks import mark_of
from streaming.control.records import (
    AdoptRecord,
    BrokersRecord,
    ClockRecord,
    ContradictedRecord,
    ControlRecord,
    EndsRecord,
    FailoverRebalanceRecord,
    GroupAnswer,
    GroupEnds,
    GroupsRecord,
    LeadersRecord,
    LostRecord,
    MarkRecord,
    MemberAnswer,
    TopicsRecord,
    encode_record,
)
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_control import decode_control
from tests.unit.made_alerts import an_alert

SHARDS = 4


def _decode(*values: bytes | None, run: str = "", secret: str = "") -> Decoded:
    n = len(values)
    batch = pa.RecordBatch.from_pydict(
        {
            "partition": pa.array([0] * n, pa.int32()),
            "offset": pa.array(range(100, 100 + n), pa.int64()),
            "timestamp_ms": pa.array([7_000] * n, pa.int64()),
            "key": pa.array([None] * n, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    return decode_control(batch, shard_count=SHARDS, backlog_ends={}, run=run, secret=secret)


def _decode_record(record: ControlRecord, run: str = "") -> Decoded:
    return _decode(encode_record(record), run=run)


def _whats(decoded: Decoded, shard: int) -> list[Any]:
    return [seen.what for seen in decoded.cells.get(shard, [])]


def test_a_clock_tells_each_shard_its_own_end_and_position() -> None:
    """Every shard hears the time; of ends and positions only its own partition's."""
    record = ClockRecord(
        at_ms=5, sequence=9, ends=[10, 11, 12, 13], positions=[1, 2, 3], events_partitions=2, skew_ms={1: -20}
    )
    decoded = _decode_record(record)
    assert set(decoded.cells) == {CLUSTER_SHARD, 0, 1, 2, 3}
    clock = Clock(
        sequence=9, end_offset=12, position=3, events_partitions=2, skew_ms={1: -20}, is_answer=True
    )
    assert _whats(decoded, 2) == [clock]
    assert _whats(decoded, 3)[0].position == -1
    assert (_whats(decoded, CLUSTER_SHARD)[0].end_offset, _whats(decoded, CLUSTER_SHARD)[0].position) == (
        -1,
        -1,
    )
    seen = decoded.cells[0][0]
    assert (seen.at_ms, seen.source, seen.partition, seen.offset) == (5, Source.CONTROL, 0, 100)
    assert (seen.recorded_at_ms, seen.broker, seen.backlog) == (7_000, -1, False)


def test_a_clock_asks_all_or_those_it_names() -> None:
    """``ask`` is for everybody when true, and for the named shards when it is a list."""
    everyone = _decode_record(ClockRecord(at_ms=1, sequence=1, ask=True))
    some = _decode_record(ClockRecord(at_ms=1, sequence=1, ask=[CLUSTER_SHARD, 2]))
    assert all(_whats(everyone, shard)[0].ask for shard in everyone.cells)
    assert [shard for shard in sorted(some.cells) if _whats(some, shard)[0].ask] == [CLUSTER_SHARD, 2]


def test_a_clock_for_some_shards_reaches_no_other() -> None:
    """A shard that would get a mere clock, and neither a question nor its deadline, is left alone."""
    some = _decode_record(ClockRecord(at_ms=1, sequence=1, ends=[10, 11, 12], shards=[CLUSTER_SHARD, 2, 99]))
    assert set(some.cells) == {CLUSTER_SHARD, 2}
    assert _whats(some, 2)[0].end_offset == 12


def test_equal_settings_are_equal_bytes() -> None:
    """Settings are made canonical, so that the order of keys in the record changes nothing."""
    one = _decode(b'{"kind":"settings","at_ms":1,"settings":{"b":1,"a":{"y":2,"x":3}}}')
    two = _decode(b'{"settings":{"a":{"x":3,"y":2},"b":1},"at_ms":1,"kind":"settings"}')
    assert _whats(one, 0) == _whats(two, 0) == [Settings(settings=b'{"a":{"x":3,"y":2},"b":1}')]
    assert set(one.cells) == {CLUSTER_SHARD, 0, 1, 2, 3}


def test_an_open_alert_goes_to_the_shard_of_its_group() -> None:
    """Each adopted alert arrives once: at its group's shard, or at the cluster's without a group."""
    alerts = [an_alert(id="a", group="g"), an_alert(id="b", group="")]
    decoded = _decode_record(
        AdoptRecord(at_ms=1, alerts=[msgspec.Raw(msgspec.json.encode(one)) for one in alerts])
    )
    (mine,) = _whats(decoded, shard_of("g", SHARDS))
    assert isinstance(mine, Adopted)
    assert mine.group == "g"
    assert msgspec.json.decode(mine.alert, type=Alert) == alerts[0]
    assert [one.group for one in _whats(decoded, CLUSTER_SHARD)] == [""]
    assert sum(len(cell) for cell in decoded.cells.values()) == 2


def test_a_contradiction_concerns_the_whole_cluster() -> None:
    """What one shard found out about a broker's log goes to the cluster's shard alone."""
    decoded = _decode_record(ContradictedRecord(at_ms=1, broker=3, lost="coordinator_log", group="g"))
    assert _whats(decoded, CLUSTER_SHARD) == [Contradicted(broker=3, lost=Source.COORDINATOR_LOG, group="g")]
    assert set(decoded.cells) == {CLUSTER_SHARD}


def test_a_group_upset_by_a_move_concerns_the_whole_cluster() -> None:
    """Who counts them is the cluster's shard."""
    record = FailoverRebalanceRecord(
        at_ms=10, group="g", rebalanced_ms=9, partition=2, moved_ms=7, came_from=1, went_to=3
    )
    decoded = _decode_record(record)
    upset = GroupRebalancedByFailover(
        group="g", rebalanced_ms=9, partition=2, moved_ms=7, came_from=1, went_to=3
    )
    assert _whats(decoded, CLUSTER_SHARD) == [upset]
    assert set(decoded.cells) == {CLUSTER_SHARD}


def test_every_shard_learns_how_long_offsets_are_kept() -> None:
    """In milliseconds, of the brokers that tell; the rest of their settings stays with the cluster."""
    brokers = {1: {"offsets.retention.minutes": "60", "x": "y"}, 2: {"x": "y"}}
    decoded = _decode_record(BrokersRecord(at_ms=10, brokers=brokers))
    for shard in range(SHARDS):
        assert _whats(decoded, shard) == [RetentionReported(retention_ms={1: 3_600_000})]


def test_other_monitors_records_are_none_of_ours() -> None:
    """Several monitors may share a control topic; records of another run are neither used nor counted."""
    theirs, ours = (ClockRecord(at_ms=1, sequence=1, run=run) for run in ("theirs", "ours"))
    assert _decode_record(theirs, run="ours") == Decoded()
    assert _decode_record(ours, run="ours").counts == {("control", "clock"): 1}


def test_what_is_no_control_record_is_counted_and_the_rest_is_read() -> None:
    """Foreign, broken and empty records each count once, with a bounded sample, and stop nothing."""
    bad = [None, b"", b"\xff", b"[]", b'{"kind":"clock"}', b'{"kind":"other","at_ms":1}', b"x" * 2000]
    bad.append(b'{"kind":"contradicted","at_ms":1,"broker":1,"lost":"nothing","group":"g"}')
    decoded = _decode(*bad, encode_record(ClockRecord(at_ms=1, sequence=1)))
    assert len(decoded.bad) == len(bad)
    assert {one.reason for one in decoded.bad} == {"not_a_control_record"}
    assert max(len(one.sample) for one in decoded.bad) == 512
    assert decoded.counts == {("control", "clock"): 1}


def test_an_answer_goes_to_the_shard_of_its_group_on_the_brokers_clock() -> None:
    """Both its times are the driver's plus the skew, for the group's other observations are the broker's."""
    member = MemberAnswer(member_id="m", client_id="c", topics=("t",), assigned={"t": (0, 1)})
    groups = [
        GroupAnswer(group="g", group_type="classic", state="Stable", protocol="range", members=(member,)),
        GroupAnswer(group="h", group_type="consumer", state="Dead", epoch=4),
    ]
    decoded = _decode_record(
        GroupsRecord(at_ms=1_000, broker=3, asked_at_ms=990, skew_ms=-50, groups=groups), run=""
    )
    (seen,) = decoded.cells[shard_of("g", SHARDS)]
    assert (seen.at_ms, seen.broker, seen.source, seen.backlog) == (950, 3, Source.CONTROL, False)
    assert seen.what == GroupDescribed(
        group="g",
        asked_at_ms=940,
        group_type="classic",
        state="Stable",
        protocol="range",
        members=(DescribedMember(member_id="m", client_id="c", topics=("t",), assigned={"t": (0, 1)}),),
    )
    (other,) = _whats(decoded, shard_of("h", SHARDS))
    assert (other.state, other.members, other.epoch) == ("Dead", None, 4)
    assert decoded.counts == {("control", "groups"): 1}


def test_a_brokers_clock_that_is_far_off_delays_nothing() -> None:
    """An answer from the future would hold up the shard until then; its groups live on the driver's time."""
    answer = GroupAnswer(group="g", group_type="classic", state="Stable")
    record = GroupsRecord(at_ms=1_000, broker=3, asked_at_ms=990, skew_ms=3_600_000, groups=[answer])
    (seen,) = _decode_record(record).cells[shard_of("g", SHARDS)]
    assert (seen.at_ms, seen.what.asked_at_ms) == (1_000, 990)  # type: ignore[union-attr]


def test_leaders_reach_their_shards_and_the_rest_the_cluster() -> None:
    """A shard hears of its own partition only."""
    leaders = _decode_record(LeadersRecord(at_ms=1, leaders={1: (4, 7), 9: (5, 8)}))
    assert _whats(leaders, 1) == [ShardLed(leader=4, epoch=7)]
    assert _whats(leaders, CLUSTER_SHARD) == [LeadersDescribed(leaders={1: (4, 7), 9: (5, 8)})]
    assert set(leaders.cells) == {CLUSTER_SHARD, 1}
    missed = _decode_record(LeadersRecord(at_ms=90_000, leaders={}, shrunk=[2, 9]))
    assert {shard: _whats(missed, shard) for shard in missed.cells} == {2: [ReplicaMissed(since_ms=70_000)]}
    brokers = _decode_record(BrokersRecord(at_ms=1, brokers={4: {"group.max.size": "5"}}))
    assert _whats(brokers, CLUSTER_SHARD) == [BrokerDescribed(broker=4, settings={"group.max.size": "5"})]
    topics = _decode_record(TopicsRecord(at_ms=1, partitions={"t": 3}))
    assert _whats(topics, CLUSTER_SHARD) == [TopicsDescribed(partitions={"t": 3})]


def test_end_offsets_go_to_the_shards_of_their_groups() -> None:
    """Each group hears of its own partitions, at the time of asking, and how far they are stable."""
    stable = {"a": {"t": {0: 6}}, "b": {}}
    ends = [GroupEnds(group=name, ends={"t": {0: 7, 11: 9}}, stable=stable[name]) for name in ("a", "b")]
    decoded = _decode_record(EndsRecord(at_ms=5_000, run="r", groups=ends, since_ms=3_000, transaction_ms=9))

    for name in ("a", "b"):
        seen = [one for one in decoded.cells[shard_of(name, SHARDS)] if one.what.group == name]  # type: ignore[union-attr]
        told = EndOffsetsReported(
            group=name,
            ends={"t": {0: 7, 11: 9}},
            since_ms=3_000,
            stable=stable[name],
            transaction_ms=9,
        )
        assert [(one.at_ms, one.what) for one in seen] == [(5_000, told)]
    assert decoded.counts == {("control", "ends"): 1}


def test_a_clock_far_from_its_append_is_refused() -> None:
    """A clock of the future would freeze every shard until then: it is counted, with a sample."""
    forged = ClockRecord(at_ms=7_000 + 3_600_000, sequence=1, run="r")
    decoded = _decode_record(forged)
    assert decoded.cells == {}
    (bad,) = decoded.bad
    assert (bad.reason, bad.count) == ("clock_refused", 1)
    assert "3600000 ms after" in bad.detail


def test_a_clock_may_be_far_from_the_stamp_of_a_broker_that_is_known_to_be_slow() -> None:
    """Its leader is five minutes behind, the clock says so, and the shards are not left without time."""
    told = ClockRecord(at_ms=7_000 + 300_000, sequence=1, run="r", lead_ms=-300_000)
    assert _decode_record(told).bad == []


@pytest.mark.parametrize(
    "changes",
    [
        {"at_ms": 10**30},
        {"sequence": 2**70},
        {"ends": [2**64]},
        {"positions": [-(2**80)]},
        {"events_partitions": 10**9},
        {"events_partitions": -1},
        {"skew_ms": {2**40: 1}},
        {"skew_ms": {1: 2**70}},
        {"wrong_ms": {1: 2**70}},
    ],
)
def test_a_clock_of_wild_numbers_is_set_aside(changes: dict[str, Any]) -> None:
    """What no clock can tell neither ends the query nor lets it run for ever."""
    record = msgspec.structs.replace(ClockRecord(at_ms=7_000, sequence=1, run="r"), **changes)
    decoded = _decode_record(record)
    assert (decoded.cells, [bad.reason for bad in decoded.bad]) == ({}, ["out_of_range"])


def test_a_clock_that_only_names_our_run_is_refused() -> None:
    """Whoever may read the topic knows the run's name; whoever may not read the checkpoint cannot seal."""
    value = encode_record(ClockRecord(at_ms=7_000, sequence=1, run="r"))
    for forged in (value, sealed(value, "guess"), sealed(value, "hush").replace(b"7000", b"7001")):
        decoded = _decode(forged, run="r", secret="hush")  # noqa: S106 - of a test
        assert [bad.reason for bad in decoded.bad] == ["clock_refused"]
    ours = _decode(sealed(value, "hush"), run="r", secret="hush")  # noqa: S106 - of a test
    assert (ours.bad, len(ours.cells)) == ([], SHARDS + 1)


def test_marks_are_no_news_to_the_shards() -> None:
    """The query reads the control topic too: a mark there is neither an observation nor undecodable."""
    mark = mark_of("prod", ("groupwatch-transitions", "groupwatch-alerts"), "r")
    decoded = _decode_record(MarkRecord(at_ms=1, run="r", mark=mark), run="r")
    assert (decoded.cells, decoded.counts, decoded.bad) == ({}, {}, [])


def test_lost_records_concern_the_cluster_and_a_new_offsets_topic_each_shard() -> None:
    """The cluster's shard tells of it; the others must forget where the old partitions ended."""
    lost = LostRecord(at_ms=1, topic="events", feed="events", partitions=[0, 2], records=7)
    decoded = _decode_record(lost)
    told = RecordsLost(topic="events", feed="events", partitions=(0, 2), records=7)
    assert (_whats(decoded, CLUSTER_SHARD), set(decoded.cells)) == ([told], {CLUSTER_SHARD})

    anew = LostRecord(at_ms=1, topic="o", feed="offsets", partitions=[0], records=1, is_anew=True)
    decoded = _decode_record(anew)
    assert [_whats(decoded, shard) for shard in range(SHARDS)] == [[PartitionAnew()]] * SHARDS


@pytest.mark.parametrize("changes", [{"records": 2**70}, {"partitions": [2**40]}, {"feed": "elsewhere"}])
def test_a_loss_of_wild_numbers_is_set_aside(changes: dict[str, Any]) -> None:
    """Anybody may write into a topic."""
    lost = LostRecord(at_ms=1, topic="events", feed="events", partitions=[0], records=7)
    decoded = _decode_record(msgspec.structs.replace(lost, **changes))
    assert (decoded.cells, len(decoded.bad)) == ({}, 1)
