"""What a rebalance cost: phases, partitions without an owner, moves, throughput, records read again."""

from collections.abc import Mapping
from typing import Any

import pytest

from coordinator_model import observations as on
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.costs import IDLE_MS, is_eager, most_kept, rate_between, rate_within
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import (
    JoinPhaseEnded,
    MemberFailed,
    MemberLeft,
    Reason,
    RebalanceStarted,
)
from coordinator_model.observations.modern_records import (
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
)
from coordinator_model.observations.records import (
    Commit,
    GroupRecorded,
    MemberRecord,
    ModernRecord,
    ModernWrite,
    OffsetsCommitted,
)
from coordinator_model.shard.report import report_of
from coordinator_model.state.costs import Mark, RebalanceCost
from coordinator_model.state.group import Step
from tests.unit.made_seen import seen

G = "orders"
Assigned = Mapping[str, tuple[int, ...] | None]


class Play:
    """One group with one topic, seen through the INFO log and the topic."""

    def __init__(self, protocol: str = "range", *, backlog: bool = False, info: bool = True) -> None:
        self.group = classic.new_group(G)
        self.protocol = protocol
        self.backlog = backlog
        self.info = info
        self.generation = 0
        self.offset = 0

    def see(self, at_ms: int, what: on.AnyObservation, source: Source = Source.COORDINATOR_LOG) -> Step:
        """Show one observation to the model."""
        self.offset += 1
        context = Context("c", info_live=self.info, offsets_enabled=True, backlog=self.backlog)
        told = seen(at_ms, what, source, offset=self.offset, backlog=self.backlog)
        return classic.apply(self.group, told, context)

    def prepare(self, at_ms: int, kind: CauseKind = CauseKind.MEMBER_JOINED, text: str = "") -> None:
        """The join phase begins."""
        reason = Reason(kind=str(kind), text=text)
        self.see(at_ms, RebalanceStarted(group=G, generation=self.generation, reason=reason))

    def stabilize(self, at_ms: int, members: int) -> None:
        """It ends."""
        self.generation += 1
        self.see(at_ms, JoinPhaseEnded(group=G, generation=self.generation, member_count=members))

    def store(
        self, at_ms: int, assigned: Assigned, *, since_ms: int, topics: Mapping[str, str] | None = None
    ) -> Step:
        """The leader's assignment is stored; topics are single letters."""
        members = tuple(
            MemberRecord(
                member_id=name,
                client_id=name,
                client_host="/h",
                session_timeout_ms=45_000,
                topics=tuple((topics or {}).get(name, "t")),
                assigned=None if numbers is None else {"t": numbers},
            )
            for name, numbers in assigned.items()
        )
        what = GroupRecorded(
            group=G,
            generation=self.generation,
            protocol_type="consumer",
            protocol=self.protocol,
            leader_id=next(iter(assigned)),
            state_since_ms=since_ms,
            members=members,
        )
        return self.see(at_ms, what, Source.OFFSETS)

    def rebalance(
        self, at_ms: int, assigned: Assigned, *, join_ms: int = 2_000, sync_ms: int = 500
    ) -> RebalanceCost:
        """Go once around; returns what it cost."""
        self.prepare(at_ms)
        self.stabilize(at_ms + join_ms, len(assigned))
        return cost_of(self.store(at_ms + join_ms + sync_ms, assigned, since_ms=at_ms + join_ms))

    def commit(self, at_ms: int, offsets: Mapping[int, int]) -> Step:
        """Offsets of topic t are committed."""
        commits = tuple(Commit("t", number, offset, at_ms) for number, offset in offsets.items())
        return self.see(at_ms, OffsetsCommitted(group=G, commits=commits), Source.OFFSETS)


def cost_of(step: Step) -> RebalanceCost:
    assert step.cost is not None
    assert step.cost.finished is not None
    return step.cost.finished


def test_an_eager_rebalance_takes_all_partitions_for_its_whole_length() -> None:
    """Six partitions without an owner for 2.5 s each, in two phases."""
    play = Play()
    play.rebalance(0, {"a": (0, 1, 2), "b": (3, 4, 5)})
    cost = play.rebalance(60_000, {"a": (0, 1), "b": (2, 3), "c": (4, 5)})

    assert (cost.started_ms, cost.ended_ms, cost.join_ms, cost.sync_ms) == (60_000, 62_500, 2_000, 500)
    assert (cost.eager, cost.partitions, cost.partition_ms) == (True, 6, 15_000)


def test_moves_are_held_against_the_least_possible() -> None:
    """Range moves three partitions for a third member; two would have been enough."""
    play = Play()
    play.rebalance(0, {"a": (0, 1, 2), "b": (3, 4, 5)})
    cost = play.rebalance(60_000, {"a": (0, 1), "b": (2, 3), "c": (4, 5)})

    assert (cost.moved, cost.least) == (3, 2)
    assert cost.before == {"a": {"t": (0, 1, 2)}, "b": {"t": (3, 4, 5)}}


def test_partitions_of_a_member_that_went_must_move() -> None:
    """What nobody has any more is no churn."""
    play = Play()
    play.rebalance(0, {"a": (0, 1), "b": (2, 3), "c": (4, 5)})
    play.see(50_000, MemberLeft(group=G, member_id="c"))
    cost = play.rebalance(50_000, {"a": (0, 1, 4), "b": (2, 3, 5)})

    assert (cost.moved, cost.least) == (2, 2)


def test_a_cooperative_rebalance_is_counted_once_with_only_what_moves() -> None:
    """Two partitions go to a new member: they are given up first, and handed over in a second step."""
    play = Play("cooperative-sticky")
    play.rebalance(0, {"a": (0, 1, 2), "b": (3, 4, 5)})
    first = play.rebalance(60_000, {"a": (0, 1), "b": (3, 4), "c": ()})
    second = play.rebalance(63_000, {"a": (0, 1), "b": (3, 4), "c": (2, 5)}, join_ms=100, sync_ms=50)

    assert (first.second_step, first.partitions, first.partition_ms) == (False, 6, 0)
    assert (first.moved, first.least) == (2, 2)
    # From Stable at 62.5 s, when they were given up, to Stable at 63.15 s.
    assert (second.second_step, second.partitions, second.partition_ms) == (True, 6, 2 * 650)
    assert (second.moved, second.least) == (0, 0)


def test_a_cooperative_group_lacks_what_a_dead_member_had() -> None:
    """Nobody gives anything up, and two partitions have no owner until it is over."""
    play = Play("cooperative-sticky")
    play.rebalance(0, {"a": (0, 1), "b": (2, 3), "c": (4, 5)})
    play.see(50_000, MemberFailed(group=G, member_id="c"))
    cost = play.rebalance(50_000, {"a": (0, 1, 4), "b": (2, 3, 5)})

    assert (cost.second_step, cost.partition_ms, cost.moved) == (False, 2 * 2_500, 2)


def test_what_is_not_told_is_unknown() -> None:
    """An assignor of one's own, opaque assignments, a start that nobody saw: None, and no guess."""
    custom = Play("my-assignor")
    custom.rebalance(0, {"a": (0, 1)})
    cost = custom.rebalance(60_000, {"a": (0,), "b": (1,)})
    opaque = Play()
    dark = opaque.rebalance(0, {"a": None})
    topic_alone = Play(info=False)
    topic_alone.generation = 1
    late = cost_of(topic_alone.store(2_500, {"a": (0,)}, since_ms=2_000))

    assert (cost.eager, cost.partition_ms, cost.moved) == (None, None, 1)
    assert (dark.partitions, dark.partition_ms, dark.moved, dark.least) == (None, None, None, None)
    assert (late.join_ms, late.sync_ms, late.partition_ms) == (None, 500, None)
    assert (late.rate_before, late.rate_during) == (None, None)


def test_the_backlog_costs_nothing() -> None:
    """What was read from before the start is no rebalance of now."""
    play = Play(backlog=True)
    play.generation = 4
    step = play.store(2_500, {"a": (0,)}, since_ms=2_000)

    assert step.cost is None
    assert play.group.costs is None


def test_a_loop_of_rebalances_lasts_from_its_first_start() -> None:
    """The group was not Stable in between, so nobody read anything."""
    play = Play()
    play.rebalance(0, {"a": (0, 1)})
    play.prepare(60_000)
    play.stabilize(61_000, 2)
    cost = play.rebalance(65_000, {"a": (0,), "b": (1,)}, join_ms=1_000, sync_ms=0)

    assert (cost.started_ms, cost.ended_ms, cost.join_ms, cost.partition_ms) == (
        60_000,
        66_000,
        1_000,
        12_000,
    )


def test_throughput_before_and_during() -> None:
    """Committed offsets tell it: 100/s before, and 50 offsets in the 2.5 s of the rebalance."""
    play = Play()
    play.commit(0, {0: 1_000, 1: 1_000})
    play.rebalance(1_000, {"a": (0,), "b": (1,)})
    play.commit(5_000, {0: 1_250, 1: 1_250})
    play.prepare(6_000)
    play.commit(6_500, {0: 1_300})
    play.stabilize(8_000, 2)
    cost = cost_of(play.store(8_500, {"a": (0,), "b": (1,)}, since_ms=8_000))

    assert (cost.rate_before, cost.rate_during) == (100.0, 20.0)


@pytest.mark.parametrize(
    ("later", "between", "within"),
    [
        pytest.param(
            Mark(at_ms=9_000, committed=50, partitions=2, last_commit_ms=8_000), 10.0, 6.25, id="known"
        ),
        pytest.param(
            Mark(at_ms=9_000, committed=50, partitions=3, last_commit_ms=8_000), None, None, id="others"
        ),
        pytest.param(
            Mark(at_ms=9_000, committed=-5, partitions=2, last_commit_ms=8_000), None, None, id="back"
        ),
        pytest.param(
            Mark(at_ms=9_000, committed=0, partitions=2, last_commit_ms=3_000), None, 0.0, id="pause"
        ),
        pytest.param(
            Mark(at_ms=IDLE_MS + 1_000, committed=0, partitions=2, last_commit_ms=3_000), 0.0, 0.0, id="idle"
        ),
    ],
)
def test_rates(later: Mark, between: float | None, within: float | None) -> None:
    """Sums of different partitions, and sums that fall, are no throughput; silence is one after a minute."""
    earlier = Mark(at_ms=1_000, committed=0, partitions=2, last_commit_ms=3_000)

    assert (rate_between(earlier, later), rate_within(earlier, later)) == (between, within)


def test_records_read_again_are_counted_at_the_first_commit_after() -> None:
    """Partition 0 goes back by 300, partition 1 goes on; what comes later is no consequence of it."""
    play = Play()
    play.commit(500, {0: 1_000, 1: 1_000})
    play.rebalance(1_000, {"a": (0, 1)})
    first = play.commit(4_000, {0: 700, 1: 1_010})
    later = play.commit(5_000, {0: 600})

    assert first.cost is not None
    assert first.cost.reread == 300
    assert later.cost is None


def test_a_static_member_that_comes_back_is_no_rebalance() -> None:
    """Its record repeats the generation."""
    play = Play()
    play.rebalance(0, {"a": (0, 1)})

    assert play.store(9_000, {"a": (0, 1)}, since_ms=2_000).cost is None


@pytest.mark.parametrize(
    ("owned", "shares", "stay"),
    [
        pytest.param([3, 3], (2, 0), 4, id="third-member-comes"),
        pytest.param([4, 2, 1], (2, 1), 6, id="uneven"),
        pytest.param([], (2, 0), 0, id="nobody"),
        pytest.param([1, 1, 1, 1], (0, 3), 3, id="fewer-partitions-than-members"),
    ],
)
def test_most_kept(owned: list[int], shares: tuple[int, int], stay: int) -> None:
    """An even assignment keeps what fits into everybody's share."""
    assert most_kept(owned, shares) == stay


def test_subscriptions_that_differ_are_left_to_the_sticky_assignor() -> None:
    """B alone reads u, so c takes more of t: still the least that has to move."""
    play = Play()
    play.rebalance(0, {"a": (0, 1, 2), "b": (3, 4, 5)})
    play.prepare(60_000)
    play.stabilize(61_000, 3)
    topics = {"a": "t", "b": "tu", "c": "t"}
    cost = cost_of(
        play.store(62_000, {"a": (0, 1), "b": (2, 3), "c": (4, 5)}, since_ms=61_000, topics=topics)
    )

    assert (cost.moved, cost.least) == (3, 2)


@pytest.mark.parametrize(
    ("protocol", "eager"),
    [
        ("range", True),
        ("roundrobin", True),
        ("sticky", True),
        ("cooperative-sticky", False),
        ("stream", False),
    ],
)
def test_which_assignors_stop_everybody(protocol: str, eager: bool) -> None:
    """By the names that clients of all languages share; others are not known."""
    assert is_eager(protocol) is eager
    assert is_eager("mine") is None


def test_a_consumer_group_lacks_what_is_on_its_way() -> None:
    """KIP-848: two partitions belong to nobody from the joining of b until it has them, 3 s later."""
    play = Play(info=False)

    def write(at_ms: int, *records: ModernRecord) -> Step:
        return play.see(at_ms, ModernWrite(group=G, records=records), Source.OFFSETS)

    def record(kind: int, part: Any, member_id: str = "") -> ModernRecord:
        return ModernRecord(
            group=G,
            group_type="consumer",
            record_type=kind,
            name="",
            tombstone=False,
            member_id=member_id,
            part=part,
        )

    def current(
        member_id: str, epoch: int, state: MemberState, *assigned: int, revoking: tuple[int, ...] = ()
    ) -> ModernRecord:
        part = Current(
            epoch=epoch,
            previous_epoch=epoch - 1,
            state=state,
            assigned={"T": assigned} if assigned else {},
            revoking={"T": revoking} if revoking else {},
        )
        return record(8, part, member_id)

    def target(member_id: str, *assigned: int) -> ModernRecord:
        return record(7, Target(assigned={"T": assigned}), member_id)

    stable, unrevoked, unreleased = MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED
    meta = MemberMetadata(client_id="c", client_host="/h", topics=("t",))
    write(
        0,
        record(5, meta, "a"),
        record(3, GroupEpoch(epoch=2)),
        target("a", 0, 1, 2, 3),
        record(6, TargetEpoch(epoch=2)),
        current("a", 2, stable, 0, 1, 2, 3),
    )
    write(
        60_000,
        record(5, meta, "b"),
        record(3, GroupEpoch(epoch=3)),
        target("a", 0, 1),
        target("b", 2, 3),
        record(6, TargetEpoch(epoch=3)),
        current("b", 3, unreleased),
    )
    write(61_000, current("a", 2, unrevoked, 0, 1, revoking=(2, 3)))
    write(62_000, current("a", 3, stable, 0, 1))
    cost = cost_of(write(65_000, current("b", 3, stable, 2, 3)))

    assert (cost.started_ms, cost.ended_ms, cost.eager) == (60_000, 65_000, False)
    assert (cost.partitions, cost.partition_ms) == (4, 2 * 3_000)


def test_the_throughput_before_is_that_of_the_last_minutes() -> None:
    """A group that was Stable for hours: what it did this morning does not count."""
    play = Play()
    play.commit(0, {0: 0})
    play.rebalance(1_000, {"a": (0,)})
    for minute in range(1, 61):
        play.commit(minute * 60_000, {0: minute if minute <= 30 else (minute - 30) * 6_000})
    cost = play.rebalance(3_601_000, {"a": (0,)})

    assert cost.rate_before == 100.0


def test_the_report_tells_what_the_last_rebalance_cost() -> None:
    """For the API: from the stored assignment until the next generation; -1 where no source tells."""
    play = Play()
    play.commit(500, {0: 1_000})
    play.rebalance(1_000, {"a": (0, 1, 2), "b": (3, 4, 5)})
    play.rebalance(60_000, {"a": (0, 1), "b": (2, 3), "c": (4, 5)})
    play.commit(64_000, {0: 900})
    told = report_of(play.group, at_ms=65_000).last_rebalance or {}
    play.prepare(70_000)
    running = report_of(play.group, at_ms=72_000).last_rebalance or {}

    numbers = {name: told[name] for name in ("partitions", "partition_ms", "moved", "least", "reread")}
    assert numbers == {"partitions": 6, "partition_ms": 15_000, "moved": 3, "least": 2, "reread": 100}
    assert "partitions" not in running
