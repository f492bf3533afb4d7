"""CoordinatorMoved: one alert for the cluster, from what its shards see of their groups."""

import json

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.capture import Mirror
from coordinator_model.groups.core.failovers import is_upset, move_behind
from coordinator_model.groups.table import new_group
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.control import GroupRebalancedByFailover
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupEmptied,
    JoinPhaseEnded,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    Reason,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
    ShardUnloaded,
)
from coordinator_model.observations.requests import Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.cluster import ClusterState, FailoverRebalance
from coordinator_model.state.group import Basis, Cause, Transition
from coordinator_model.state.last_failover import LastFailover
from tests.unit.made_seen import seen

T0 = 1_700_000_000_000
MINUTE = 60_000
NAME = "CoordinatorMoved"
SHARDS = 4
GROUPS = [f"g{number}" for number in range(12)]


class Cluster:
    """Two brokers whose coordinator logs are read; groups of one member each, Stable on broker 1."""

    def __init__(self, rules: str = "{}") -> None:
        self.mirror = Mirror(
            cluster="eu",
            shard_count=SHARDS,
            settings=f'{{"offsets_enabled":false,"rules":{rules}}}'.encode(),
            judge=RuleJudge(f'{{"rules":{rules}}}'.encode()),
            feeds=1,
            offsets=False,
            strict=True,
        )
        self.offset = 0
        self.alerts: list[Alert] = []
        self.wait(0, 1_000)
        for shard in range(SHARDS):
            self.line(1_500, shard, ShardLoaded(epoch=3))
        for group in GROUPS:
            self.rebalance(2_000, group, CauseKind.MEMBER_JOINED, 0)
        self.now_ms = 0
        self.wait(0, MINUTE)

    def line(
        self,
        at_ms: int,
        shard: int,
        what: on.AnyObservation,
        broker: int = 1,
        source: Source = Source.COORDINATOR_LOG,
    ) -> None:
        """A broker's line is read."""
        self.offset += 1
        self.mirror.feed({shard: [seen(T0 + at_ms, what, source, broker=broker, offset=self.offset)]})

    def wait(self, from_ms: int, until_ms: int) -> None:
        """Let time pass."""
        for at_ms in range(from_ms + 1_000, until_ms + 1, 1_000):
            self.alerts += [one for one in self.mirror.advance(T0 + at_ms) if isinstance(one, Alert)]

    def rebalance(
        self,
        at_ms: int,
        group: str,
        kind: CauseKind,
        generation: int,
        *,
        broker: int = 1,
        empties: bool = False,
        who: str = "m",
    ) -> None:
        """A group goes once around, or begins to."""
        shard = shard_of(group, SHARDS)
        member = f"{group}-{who}"
        if kind is CauseKind.MEMBER_JOINED:
            self.line(at_ms, shard, MemberJoined(group=group, member_id=member), broker)
        if kind is CauseKind.SESSION_TIMEOUT:
            self.line(at_ms, shard, MemberFailed(group=group, member_id=member), broker)
        reason = Reason(kind=str(kind), text="", member_ids=(member,))
        self.line(at_ms, shard, RebalanceStarted(group=group, generation=generation, reason=reason), broker)
        after = generation + 1
        if empties:
            self.line(at_ms + 100, shard, GroupEmptied(group=group, generation=after), broker)
            return
        self.line(at_ms + 100, shard, JoinPhaseEnded(group=group, generation=after, member_count=1), broker)
        told = AssignmentReceived(group=group, generation=after, leader_id=member, member_count=1)
        self.line(at_ms + 200, shard, told, broker)

    def move(self, at_ms: int, *, shards: range = range(SHARDS), epoch: int = 4) -> None:
        """Broker 1 gives its partitions up, broker 2 takes them."""
        for shard in shards:
            self.line(at_ms, shard, ShardUnloaded())
            self.line(at_ms + 500, shard, ShardLoading(epoch=epoch), 2)
            self.line(at_ms + 900, shard, ShardLoaded(epoch=epoch), 2)

    def told(self) -> list[Alert]:
        """Return what was told about coordinators."""
        return [alert for alert in self.alerts if alert.name == NAME]


def test_groups_that_rebalance_after_a_move_are_one_alert() -> None:
    """Twelve groups on four partitions: one alert for the cluster, which names brokers and groups."""
    cluster = Cluster()
    cluster.move(MINUTE + 100)
    for number, group in enumerate(GROUPS):
        cluster.rebalance(MINUTE + 2_000 + 10 * number, group, CauseKind.LEADER_REJOINED, 1, broker=2)
    cluster.wait(MINUTE, 2 * MINUTE)

    alert = cluster.told()[-1]
    assert {one.id for one in cluster.told()} == {alert.id}
    assert (alert.group, alert.severity, alert.status) == ("", Severity.INFO, AlertStatus.FIRING)
    assert alert.summary == (
        "Coordinators moved from broker 1 at 2023-11-14 22:14:20.600 UTC, "
        "and 12 groups rebalanced because of it."
    )
    assert "4 partitions of the offsets topic went from broker 1 to broker 2" in alert.cause
    assert {one.name for one in cluster.alerts} == {NAME}


@pytest.mark.parametrize("known", [0, 70_000, None], ids=["as-it-moves", "of-before", "nothing"])
def test_a_group_that_says_so_itself_was_upset(known: int | None) -> None:
    """Its transition tells that its coordinator moved, before the shard learns of it, or anybody does."""
    told = Transition(
        id="t",
        cluster="eu",
        group="g",
        group_type="classic",
        from_state=GroupState.PREPARING_REBALANCE,
        to_state=GroupState.STABLE,
        generation=1,
        at_ms=T0,
        recorded_at_ms=T0,
        cause=Cause(kind=CauseKind.COORDINATOR_MOVED),
        basis=Basis.INFERRED,
        source="request_log",
    )
    last = None if known is None else LastFailover(at_ms=T0 + 3_000 - known, came_from=1, went_to=2)
    moved = move_behind(told, last, 1)

    assert moved is not None
    assert is_upset(new_group("g"), told, moved)
    assert (moved.at_ms, moved.came_from) == (T0, 1)


def test_a_clean_move_is_not_told() -> None:
    """Everybody goes on: nothing happened to the groups."""
    cluster = Cluster()
    cluster.move(MINUTE + 100)
    cluster.wait(MINUTE, 3 * MINUTE)

    assert cluster.alerts == []


def test_two_groups_are_not_many() -> None:
    """One below the threshold."""
    cluster = Cluster()
    cluster.move(MINUTE + 100)
    for group in GROUPS[:2]:
        cluster.rebalance(MINUTE + 2_000, group, CauseKind.LEADER_REJOINED, 1, broker=2)
    cluster.wait(MINUTE, 2 * MINUTE)

    assert cluster.alerts == []


@pytest.mark.parametrize(
    ("kind", "at_ms"),
    [
        pytest.param(CauseKind.MEMBER_LEFT, 2 * MINUTE, id="a-deployment-at-the-same-time"),
        pytest.param(CauseKind.MEMBER_JOINED, 2 * MINUTE, id="services-that-grow"),
        pytest.param(CauseKind.UNKNOWN, 2 * MINUTE, id="nobody-told-why"),
        pytest.param(CauseKind.LEADER_REJOINED, 3 * MINUTE, id="long-after"),
        pytest.param(CauseKind.LEADER_REJOINED, MINUTE - 5_000, id="before"),
    ],
)
def test_rebalances_for_other_reasons_are_not_the_moves(kind: CauseKind, at_ms: int) -> None:
    """Members that close their consumers, new ones, and what begins before the move or long after it."""
    cluster = Cluster()
    if at_ms > MINUTE:
        cluster.move(MINUTE + 30_000)
    for group in GROUPS:
        cluster.rebalance(at_ms, group, kind, 1, broker=2 if at_ms > MINUTE else 1)
    if at_ms < MINUTE:
        cluster.move(MINUTE + 30_000)
    cluster.wait(MINUTE, 4 * MINUTE)

    assert cluster.told() == []


@pytest.mark.parametrize(
    ("who", "is_heard", "is_upset"),
    [("m", False, True), ("m", True, False), ("late", False, False)],
    ids=["looked-for-it-in-vain", "had-found-it", "came-later"],
)
def test_who_found_the_new_coordinator_dies_by_itself(who: str, is_heard: bool, is_upset: bool) -> None:
    """A member from before may have looked for it for longer than its session; others have not."""
    cluster = Cluster()
    cluster.move(MINUTE + 100)
    for group in GROUPS:
        shard = shard_of(group, SHARDS)
        cluster.rebalance(MINUTE + 10_000, group, CauseKind.MEMBER_JOINED, 1, broker=2, who="late")
        if is_heard:
            times = (T0 + MINUTE + 20_000,)
            beat = Heartbeats(
                group=group, member_id=f"{group}-{who}", generation=2, error_code=0, times=times
            )
            cluster.line(MINUTE + 20_000, shard, beat, 2, Source.REQUEST_LOG)
        cluster.rebalance(MINUTE + 40_000, group, CauseKind.SESSION_TIMEOUT, 2, broker=2, who=who)
    cluster.wait(MINUTE, 2 * MINUTE)

    assert bool(cluster.told()) is is_upset


def test_services_that_start_after_a_move_are_not_upset() -> None:
    """Their groups were empty: whoever coordinates, they begin."""
    cluster = Cluster()
    for group in GROUPS:
        left = MemberLeft(group=group, member_id=f"{group}-m")
        cluster.line(MINUTE + 100, shard_of(group, SHARDS), left)
        cluster.rebalance(MINUTE + 100, group, CauseKind.MEMBER_LEFT, 1, empties=True)
    cluster.move(MINUTE + 10_000)
    for group in GROUPS:
        cluster.rebalance(MINUTE + 20_000, group, CauseKind.MEMBER_JOINED, 2, broker=2)
    cluster.wait(MINUTE, 3 * MINUTE)

    assert cluster.told() == []


def test_the_first_load_is_no_move() -> None:
    """A cluster that starts loads everything, and its groups begin."""
    cluster = Cluster()

    assert cluster.alerts == []


def test_it_resolves_ten_minutes_after_the_last_group() -> None:
    """As events do."""
    cluster = Cluster()
    cluster.move(MINUTE + 100)
    for group in GROUPS[:3]:
        cluster.rebalance(MINUTE + 2_000, group, CauseKind.LEADER_REJOINED, 1, broker=2)
    cluster.wait(MINUTE, 13 * MINUTE)

    assert [one.status for one in cluster.told()] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert cluster.told()[-1].ends_at_ms == T0 + 11 * MINUTE + 2_000


def upset(number: int, moved_ms: int = 0) -> FailoverRebalance:
    return FailoverRebalance(
        group=f"g{number}",
        rebalanced_ms=T0 + moved_ms + 1_000,
        partition=number % 50,
        moved_ms=T0 + moved_ms,
        came_from=1,
        went_to=2,
    )


def judged(state: ClusterState, now_ms: int, memory: bytes | None = None, rules: str = "{}") -> list[Alert]:
    judge = RuleJudge(f'{{"rules":{rules}}}'.encode())
    return list(judge.judge_cluster(cluster="eu", state=state, memory=memory, now_ms=T0 + now_ms).alerts)


def test_who_is_told_late_is_waited_for() -> None:
    """Shards tell of their groups in different batches: one number is told, not one after the other."""
    told_ms = [2_000, 2_100, 3_000, 6_500]
    state = ClusterState(
        upsets=[msgspec.structs.replace(upset(n), told_ms=T0 + at_ms) for n, at_ms in enumerate(told_ms)]
    )

    assert judged(state, 11_400) == []
    (alert,) = judged(state, 11_500)
    assert "4 groups rebalanced" in alert.summary


def test_moves_far_apart_are_not_added_up() -> None:
    """Two groups now and two groups five minutes later are no wave."""
    state = ClusterState(upsets=[upset(1), upset(2), upset(3, 5 * MINUTE), upset(4, 5 * MINUTE)])

    assert judged(state, 5 * MINUTE + 7_000) == []


def test_the_threshold_is_configured_and_the_rule_can_be_switched_off() -> None:
    """``affected``, and ``enabled``."""
    state = ClusterState(upsets=[upset(1), upset(2)])

    assert len(judged(state, 7_000, rules=json.dumps({"coordinator_moved": {"affected": 2}}))) == 1
    off = json.dumps({"coordinator_moved": {"affected": 2, "enabled": False}})
    assert judged(state, 7_000, rules=off) == []


def test_a_repeated_batch_counts_nothing_twice() -> None:
    """After a crash the same is told again."""
    state, seen = ClusterState(), []
    for number in range(2):
        fields = {name: getattr(upset(1), name) for name in GroupRebalancedByFailover.__struct_fields__}
        seen.append(
            Seen(
                at_ms=T0 + number,
                source=Source.CONTROL,
                partition=0,
                offset=0,
                index=0,
                broker=-1,
                recorded_at_ms=T0,
                backlog=False,
                what=GroupRebalancedByFailover(**fields),
            )
        )
    assert all(state.apply(one) for one in seen)

    assert state.upsets == [msgspec.structs.replace(upset(1), told_ms=T0)]
    assert CLUSTER_SHARD == -1
