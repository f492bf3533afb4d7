"""The cluster-wide shard: totals, samples, who was heard, and its judge."""

import json

import pytest

from coordinator_model import observations as on
from coordinator_model.observations.answers import BrokerDescribed, LeadersDescribed, TopicsDescribed
from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.bounds import NEVER
from coordinator_model.observations.control import (
    Adopted,
    Clock,
    Contradicted,
    Counted,
    LogSeconds,
    Undecodable,
)
from coordinator_model.observations.log import ShardLoading
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.order import Order
from coordinator_model.shard.cluster import SAMPLES_MAX, ClusterState, Contradiction, Move
from coordinator_model.shard.judging import Judgement, LiveSources
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.slots import Slots
from coordinator_model.shard.snapshot import Header
from coordinator_model.state.group import Group, Step
from tests.unit.made_seen import seen


def clock(at_ms: int, *, ask: bool = False) -> Seen:
    return seen(at_ms, Clock(sequence=at_ms, ask=ask), Source.CONTROL, offset=at_ms)


class ClusterJudge:
    """Fires at every judgement, so that each is seen; fails on demand."""

    def __init__(self, *, fails: bool = False, waits: bool = False) -> None:
        self.fails = fails
        self.waits = waits

    def configure(self, settings: bytes) -> None:
        """Need nothing."""

    def judge(
        self,
        *,
        cluster: str,
        group: Group,
        step: Step,
        memory: bytes | None,
        now_ms: int,
        evidence: LiveSources,
        removed: bool,
    ) -> Judgement:
        """Never be asked about a group."""
        raise AssertionError

    def silent_share(self, group: str) -> float:
        """Never be asked: there are no groups here."""
        raise AssertionError

    def is_watching(self, memory: bytes | None) -> bool:
        """Never be asked either."""
        raise AssertionError

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Remember the alert itself."""
        return alert

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Say when and with what memory it was asked."""
        if self.fails:
            raise ValueError("broken rule")
        due_ms = now_ms + 60_000 if self.waits else None
        return Judgement(memory=memory, alerts=[(now_ms, memory)], due_ms=due_ms)


def shard() -> Shard:
    return Shard.load(None, cluster="c", shard=CLUSTER_SHARD, shard_count=50)


def test_counts_add_up_by_source_and_kind() -> None:
    """Totals grow with every batch and are kept for each source and kind."""
    state = ClusterState()
    state.apply(seen(5, Counted(counts=(("offsets", "commit", 3), ("events", "heartbeat", 2)))))
    state.apply(seen(9, Counted(counts=(("offsets", "commit", 4),))))

    assert state.events == {("offsets", "commit"): 7, ("events", "heartbeat"): 2}
    assert state.newest_ms == {"offsets": 9, "events": 5}


def test_the_newest_commit_of_each_partition_is_kept() -> None:
    """Whatever order the batches came in."""
    state = ClusterState()
    state.apply(seen(5, Counted(counts=(), committed=((3, 4), (4, 5)))))
    state.apply(seen(9, Counted(counts=(), committed=((3, 9), (4, 2)))))

    assert state.committed_ms == {3: 9, 4: 5}


def test_a_leader_that_the_metadata_name_anew_is_a_move() -> None:
    """One for each broker that gained partitions; whom they name first, or again, has gained none."""
    state = ClusterState()
    state.apply(seen(5, LeadersDescribed(leaders={0: (1, 4), 1: (2, 4), 2: (2, 4)})))
    state.apply(seen(6, LeadersDescribed(leaders={0: (1, 5)})))
    state.apply(seen(7, LeadersDescribed(leaders={1: (1, 5), 2: (1, 5), 3: (2, 0)})))

    assert state.moves == [Move(at_ms=7, broker=1, kind="led")]
    assert state.leaders == {0: (1, 5), 1: (1, 5), 2: (1, 5), 3: (2, 0)}


def test_samples_of_bad_records_are_bounded() -> None:
    """Every unreadable record is counted; the newest hundred samples are kept, cut to 512 bytes."""
    state = ClusterState()
    for n in range(SAMPLES_MAX + 20):
        bad = Undecodable(origin="events", reason="not_utf8", count=2, sample=bytes([n % 256]) * 900)
        state.apply(seen(n, bad))

    assert state.undecodable == {("events", "not_utf8"): 2 * (SAMPLES_MAX + 20)}
    assert len(state.samples) == SAMPLES_MAX
    assert state.samples[-1].sample == bytes([SAMPLES_MAX + 19]) * 512


def test_the_newest_second_of_each_log_is_kept() -> None:
    """A log was last heard in its newest second, whatever order the batches came in."""
    state = ClusterState()
    for seconds in ((7, 9), (3,)):
        state.apply(seen(1, LogSeconds(broker=2, heard=Source.REQUEST_LOG, seconds=seconds)))

    assert state.heard == {(2, int(Source.REQUEST_LOG)): 9_000}


def test_contradictions_and_moves_are_news_for_the_rules() -> None:
    """A log that lost lines, and a partition that moved, are judged at once and remembered."""
    state = ClusterState()
    lost = Contradicted(broker=2, lost=Source.COORDINATOR_LOG, group="g")

    assert state.apply(seen(5, lost))
    assert state.apply(seen(6, ShardLoading(epoch=3)))
    assert state.contradictions == [Contradiction(at_ms=5, broker=2, lost=Source.COORDINATOR_LOG, group="g")]
    assert state.moves == [Move(at_ms=6, broker=1, kind="loading", epoch=3)]
    assert state.divergences == {"log_line_missing": 1}


class Ear(ClusterJudge):
    """Notes when the request log of broker 1 was heard last, as it is asked."""

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Say so."""
        told = state.heard.get((1, int(Source.REQUEST_LOG)), -1)
        return Judgement(memory=memory, alerts=[(now_ms, told)], due_ms=now_ms + 60_000)


def test_a_log_that_is_read_late_is_heard_second_by_second() -> None:
    """A minute that is read at once is no minute of silence and then one second."""
    cluster = shard()
    cluster.step([clock(10_400)], Ear(waits=True))
    spoke = LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=(11, 12, 14))
    outputs = cluster.step([seen(14_500, spoke, Source.REQUEST_LOG), clock(16_500)], Ear(waits=True))

    assert outputs.alerts == [
        (10_400, -1),
        (11_000, -1),
        (12_000, 11_000),
        (13_000, 12_000),
        (14_000, 12_000),
        (15_000, 14_000),
        (16_000, 14_000),
    ]


class Listener(ClusterJudge):
    """Waits for nothing; it has something to say of one second of the log."""

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Say it."""
        told = state.heard.get((1, int(Source.REQUEST_LOG)), -1)
        alerts = ["news"] if told == 13_000 else []
        return Judgement(memory=memory, alerts=alerts, due_ms=None)


def _spoke(second: int) -> Seen:
    spoke = LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=(second,))
    return seen(second * 1000, spoke, Source.REQUEST_LOG)


def test_a_second_in_which_a_log_spoke_wakes_the_shard_if_the_rules_have_something_to_say() -> None:
    """What they say is told when the second after it is over; otherwise nobody waits for that."""
    cluster, judge = shard(), Listener()
    cluster.step([clock(10_400)], judge)
    for second, wake_ms in ((11, None), (13, 15_301)):
        cluster.step([_spoke(second), clock(second * 1000 + 900)], judge)
        assert cluster.wake_ms is None  # this second is not over
        cluster.step([clock(second * 1000 + 1_600)], judge)
        assert cluster.wake_ms == wake_ms
    assert cluster.step([clock(15_301)], judge).alerts == ["news"]


class HalfBroken(ClusterJudge):
    """One of its rules fails."""

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Say so."""
        return Judgement(memory=memory, alerts=[], due_ms=None, failures=[("rule", ValueError())])


@pytest.mark.parametrize("judge", [ClusterJudge(fails=True), HalfBroken()])
def test_rules_that_fail_wake_the_shard(judge: ClusterJudge) -> None:
    """The judgement that counts tells of it."""
    cluster = shard()
    cluster.step([clock(10_400)], Listener())
    cluster.step([_spoke(11), clock(12_600)], judge)
    assert cluster.wake_ms == 13_301


def test_nobody_waits_for_the_second_of_a_log_to_be_over() -> None:
    """That it spoke once more is no news; the clock that comes anyway tells when it was."""
    cluster, judge = shard(), ClusterJudge(waits=True)
    cluster.step([clock(10_400)], judge)
    cluster.step([_spoke(11), clock(11_900)], judge)
    assert cluster.due_ms == 12_301
    assert cluster.wake_ms == 71_301


def test_the_rules_are_asked_every_second_of_now() -> None:
    """While a rule waits for something, it is asked at each full second, at its exact time."""
    cluster = shard()
    cluster.step([clock(10_400)], ClusterJudge(waits=True))
    outputs = cluster.step([clock(12_500)], ClusterJudge(waits=True))

    assert [at_ms for at_ms, _ in outputs.alerts] == [10_400, 11_000, 12_000]


def test_rules_that_wait_for_nothing_are_asked_on_news_only() -> None:
    """Where no rule waits, time alone costs nothing."""
    cluster = shard()
    cluster.step([clock(10_400)], ClusterJudge())
    outputs = cluster.step([clock(12_500)], ClusterJudge())

    assert [at_ms for at_ms, _ in outputs.alerts] == [10_400]


def test_an_adopted_alert_reaches_the_memory() -> None:
    """An alert about the whole cluster that an earlier job left open is given to the rules."""
    cluster = shard()
    adopted = seen(10_600, Adopted(group="", alert=b"{}"), Source.CONTROL, offset=10_500)
    outputs = cluster.step([clock(10_400), adopted, clock(10_700)], ClusterJudge())

    assert outputs.alerts == [(10_400, None), (10_600, b"{}")]


def test_a_broken_rule_stops_nothing() -> None:
    """A rule that raises is counted as a divergence, and the shard goes on."""
    outputs = shard().step([clock(10_400), clock(10_401)], ClusterJudge(fails=True))

    assert [(one.kind, one.detail) for one in outputs.divergences] == [
        ("internal_error", "ValueError: broken rule")
    ]


def test_the_report_is_json_and_answers_an_ask() -> None:
    """The picture is sent when something changed or a clock asks, and survives saving."""
    cluster = shard()
    counted = seen(10_000, Counted(counts=(("offsets", "commit", 3),)))
    bad = seen(10_000, Undecodable(origin="events", reason="r", count=1, sample=b"\xff"))
    cluster.step([counted, bad, clock(10_400)], None)
    loaded = Shard.load(cluster.save(), cluster="c", shard=CLUSTER_SHARD, shard_count=50)
    outputs = loaded.step([clock(10_500, ask=True)], None)

    assert outputs.reported
    assert outputs.cluster_report is not None
    report = json.loads(outputs.cluster_report)
    assert report["events"] == [["offsets", "commit", 3]]
    assert report["samples"][0]["sample"] == "/w=="


def test_what_brokers_say_of_themselves_is_kept_and_reported() -> None:
    """Leaders, settings and partition counts: told as changes, shown whole."""
    cluster = shard()
    told: list[on.AnyObservation] = [
        LeadersDescribed(leaders={0: (1, 4), 1: (2, 4)}),
        LeadersDescribed(leaders={1: (1, 5)}),
        BrokerDescribed(broker=1, settings={"group.max.size": "9"}),
        TopicsDescribed(partitions={"orders": 3, "gone": 2}),
        TopicsDescribed(partitions={"orders": 4, "gone": 0}),
    ]
    seen_ones = [seen(10_000 + n, what, Source.CONTROL, offset=10_000 + n) for n, what in enumerate(told)]
    outputs = cluster.step([*seen_ones, clock(10_400)], None)

    assert outputs.cluster_report is not None
    report = json.loads(outputs.cluster_report)
    assert report["leaders"] == {"0": [1, 4], "1": [1, 5]}
    assert report["brokers"] == {"1": {"group.max.size": "9"}}
    assert report["partitions"] == {"orders": 4}


def test_a_saved_time_beyond_all_times_hangs_nothing() -> None:
    """In a damaged shard *now* may lie behind what is never due: an hour of it is judged, no more."""
    header = Header(
        shard=CLUSTER_SHARD, shard_count=1, order=Order(now_ms=NEVER + 5), live_since_ms=0, cluster_due_ms=0
    )

    outputs = Shard(header, Slots(), cluster="c", strict=True).step([], ClusterJudge())

    assert len(outputs.alerts) <= 3_602
    assert header.cluster_due_ms == NEVER


@pytest.mark.parametrize("dated_ms", [-1, 900, 1_900], ids=["unknown", "of the event", "by an older driver"])
def test_what_shards_say_is_heard_when_the_stream_comes_there(dated_ms: int) -> None:
    """No clock of whoever wrote the record decides how long a rule waits for more."""
    upset = on.GroupRebalancedByFailover(group="g", rebalanced_ms=900, partition=2, moved_ms=800)
    failed = on.GroupQuarantined(group="g", partition=2, since_ms=700, last_ms=900)
    relayed = [
        seen(dated_ms, upset, Source.CONTROL, offset=2_001),
        seen(dated_ms, failed, Source.CONTROL, offset=2_002),
    ]
    cluster = shard()
    cluster.step([clock(1_000)], ClusterJudge())
    cluster.step([clock(2_000), *relayed], ClusterJudge())
    cluster.step([clock(4_000)], ClusterJudge())

    assert cluster.header.cluster is not None
    (heard,) = cluster.header.cluster.upsets
    (kept,) = cluster.header.cluster.quarantined.values()
    assert (heard.told_ms, kept.told_ms) == (2_000, 2_000)


def test_what_was_said_long_ago_is_no_news() -> None:
    """A record of another year names no group that is quarantined now."""
    failed = on.GroupQuarantined(group="g", partition=2, since_ms=700, last_ms=900)
    now_ms = 900 + 8 * 86_400_000
    cluster = shard()
    cluster.step([clock(now_ms)], ClusterJudge())
    cluster.step([clock(now_ms + 1_000), seen(900, failed, Source.CONTROL, offset=2_001)], ClusterJudge())
    cluster.step([clock(now_ms + 3_000)], ClusterJudge())

    assert cluster.header.cluster is not None
    (kept,) = cluster.header.cluster.quarantined.values()
    assert kept.told_ms == 900
