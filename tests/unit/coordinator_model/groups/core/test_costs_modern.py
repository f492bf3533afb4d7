"""What rebalances of the modern protocols cost, beside the stories: streams, wishes that differ."""

from typing import Any

import pytest

from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.observations.base import Source
from coordinator_model.observations.modern_records import (
    Assignment,
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
    TopicNames,
    Topology,
)
from coordinator_model.observations.records import GroupRecorded, MemberRecord, ModernRecord, ModernWrite
from coordinator_model.shard.report import report_of
from coordinator_model.state.costs import RebalanceCost
from coordinator_model.state.group import Group, Step
from tests.unit.made_seen import seen

G = "orders"
ALONE = Context("c", info_live=False, offsets_enabled=True, backlog=False)
STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED
TYPES = {
    "consumer": {"epoch": 3, "names": 4, "member": 5, "reached": 6, "target": 7, "current": 8},
    "streams": {
        "epoch": 17,
        "names": 4,
        "member": 19,
        "reached": 20,
        "target": 21,
        "current": 22,
        "topology": 23,
    },
    "share": {"epoch": 11, "member": 10, "reached": 12, "target": 13, "current": 14},
}


class Play:
    """One group whose records are written as the coordinator does, some at a time."""

    def __init__(self, group_type: str = "consumer") -> None:
        self.group: Group = classic.new_group(G)
        self.group_type = group_type
        self.offset = 0

    def record(self, kind: str, part: Any, member_id: str = "") -> ModernRecord:
        """Return one record; without ``part`` its tombstone."""
        return ModernRecord(
            group=G,
            group_type=self.group_type,
            record_type=TYPES[self.group_type][kind],
            name="",
            tombstone=part is None,
            member_id=member_id,
            part=part,
        )

    def join(self, name: str, *topics: str) -> ModernRecord:
        """A member comes, or wants something else."""
        return self.record("member", MemberMetadata(client_id=name, client_host="/h", topics=topics), name)

    def bump(self, epoch: int, **targets: Assignment) -> list[ModernRecord]:
        """The epoch grows and a target assignment is computed."""
        given = [self.record("target", Target(assigned=one), name) for name, one in targets.items()]
        return [
            self.record("epoch", GroupEpoch(epoch=epoch)),
            *given,
            self.record("reached", TargetEpoch(epoch=epoch)),
        ]

    def has(
        self, name: str, epoch: int, assigned: Assignment, revoking: Assignment | None = None
    ) -> ModernRecord:
        """A member gets, or is told to give up."""
        part = Current(
            epoch=epoch,
            previous_epoch=epoch - 1,
            state=UNREVOKED if revoking else STABLE,
            assigned=assigned,
            revoking=revoking or {},
        )
        return self.record("current", part, name)

    def waits(self, name: str, epoch: int) -> ModernRecord:
        """A member has nothing yet, as others still own what it shall have."""
        state = MemberState.UNRELEASED
        part = Current(epoch=epoch, previous_epoch=0, state=state, assigned={})
        return self.record("current", part, name)

    def write(self, at_ms: int, *records: ModernRecord) -> Step:
        """Show one write to the model, from the topic alone."""
        self.offset += 1
        what = ModernWrite(group=G, records=records)
        return classic.apply(self.group, seen(at_ms, what, Source.OFFSETS, offset=self.offset), ALONE)


def cost_of(step: Step) -> RebalanceCost:
    """Return what the rebalance cost that ended in a step."""
    assert step.cost is not None
    assert step.cost.finished is not None
    return step.cost.finished


def test_a_streams_group_counts_active_tasks() -> None:
    """A standby that moves stops nothing; the active task lacks an owner from when a gave it up, for 2 s."""
    play = Play("streams")
    topology = play.record("epoch", GroupEpoch(epoch=2, topology_epoch=0))
    play.write(
        0,
        play.join("a"),
        ModernRecord(
            group=G,
            group_type="streams",
            record_type=23,
            name="",
            tombstone=False,
            part=Topology(epoch=0, topics=("t",)),
        ),
        topology,
        *play.bump(2, a={"0": (0, 1)})[1:],
        play.has("a", 2, {"0": (0, 1)}),
    )
    play.write(
        10_000,
        play.join("b"),
        play.record("epoch", GroupEpoch(epoch=3, topology_epoch=0)),
        *play.bump(3, a={"0": (0,), "0 standby": (1,)}, b={"0": (1,), "0 standby": (0,)})[1:],
        play.has("a", 2, {"0": (0,)}, {"0": (1,)}),
        play.has("b", 3, {"0 standby": (0,)}, {"0 warmup": (9,)}),
    )
    play.write(12_000, play.has("a", 3, {"0": (0,), "0 standby": (1,)}))
    cost = cost_of(play.write(14_000, play.has("b", 3, {"0": (1,), "0 standby": (0,)})))

    assert (cost.partitions, cost.partition_ms, cost.moved, cost.least) == (2, 2_000, 1, 1)
    assert (cost.assigning_ms, cost.reconciling_ms) == (0, 4_000)


def test_a_share_group_hands_nothing_over() -> None:
    """Its members read the same partitions, so nobody waits for another, and nothing is counted."""
    play = Play("share")
    play.write(0, play.join("a", "t"), *play.bump(2, a={"T": (0,)}), play.has("a", 2, {"T": (0,)}))
    step = play.write(9_000, play.join("b", "t"), *play.bump(3, b={"T": (0,)}), play.has("b", 3, {"T": (0,)}))

    assert step.cost is None
    assert play.group.costs is None


@pytest.mark.parametrize(("named", "least"), [(True, 1), (False, None)])
def test_wishes_that_differ_are_left_to_the_sticky_assignor(*, named: bool, least: int | None) -> None:
    """It needs the topics' names; where records leave them open, the least is not known; the moves are."""
    play = Play()
    names = [play.record("names", TopicNames(names={"T": "t", "U": "u"}))] if named else []
    play.write(
        0,
        play.join("a", "t", "u", "w"),
        *names,
        *play.bump(2, a={"T": (0, 1), "U": (0,)}),
        play.has("a", 2, {"T": (0, 1), "U": (0,)}),
    )
    play.write(
        5_000,
        play.join("b", "u", "w"),
        *play.bump(3, a={"T": (0, 1)}, b={"U": (0,)}),
        play.has("a", 2, {"T": (0, 1)}, {"U": (0,)}),
        play.waits("b", 3),
    )
    play.write(6_000, play.has("a", 3, {"T": (0, 1)}))
    cost = cost_of(play.write(6_250, play.has("b", 3, {"U": (0,)})))

    assert (cost.partition_ms, cost.moved, cost.least) == (250, 1, least)


def test_a_group_that_is_met_in_the_middle_of_its_life_hides_what_its_members_had() -> None:
    """Its first record tells of epoch 9: who had what before is not known, so no move is counted."""
    play = Play()
    play.write(0, play.join("a", "t"), *play.bump(9, a={"T": (0, 1)}), play.has("a", 8, {"T": (0,)}))
    cost = cost_of(play.write(700, play.has("a", 9, {"T": (0, 1)})))

    assert (cost.partitions, cost.partition_ms, cost.moved, cost.least) == (2, None, None, None)


def test_a_classic_group_that_becomes_a_consumer_group_tells_what_its_members_had() -> None:
    """The conversion writes it down: two partitions went to the newcomer, and lacked an owner for 300 ms."""
    play = Play()
    stored = GroupRecorded(
        group=G,
        generation=4,
        protocol_type="consumer",
        protocol="range",
        leader_id="a",
        state_since_ms=0,
        members=(
            MemberRecord(
                member_id="a",
                client_id="a",
                client_host="/h",
                session_timeout_ms=6_000,
                topics=("t",),
                assigned={"t": (0, 1, 2, 3)},
            ),
        ),
    )
    play.group = classic.new_group(G)
    classic.apply(play.group, seen(100, stored, Source.OFFSETS), ALONE)
    play.write(
        5_000,
        play.join("a", "t"),
        *play.bump(4, a={"T": (0, 1, 2, 3)}),
        play.has("a", 4, {"T": (0, 1, 2, 3)}),
        play.join("b", "t"),
        *play.bump(5, a={"T": (0, 1)}, b={"T": (2, 3)}),
        play.waits("b", 5),
    )
    play.write(6_000, play.has("a", 5, {"T": (0, 1)}))
    cost = cost_of(play.write(6_300, play.has("b", 5, {"T": (2, 3)})))

    assert (cost.started_ms, cost.partition_ms, cost.moved, cost.least) == (5_000, 2 * 300, 2, 2)


def test_an_epoch_that_moves_nobody_costs_nothing_and_is_told() -> None:
    """The target of a single member is there in the same write; the report has it, and no transition."""
    play = Play()
    play.write(0, play.join("a", "t"), *play.bump(2, a={"T": (0,)}), play.has("a", 2, {"T": (0,)}))
    step = play.write(9_000, *play.bump(3, a={"T": (0, 1)}), play.has("a", 3, {"T": (0, 1)}))
    told = report_of(play.group, at_ms=9_000).last_rebalance or {}

    cost = cost_of(step)
    assert (cost.partitions, cost.partition_ms, cost.moved) == (2, 0, 1)
    assert step.transitions == []
    assert {name: told[name] for name in ("partition_ms", "assigning_ms", "reconciling_ms", "reread")} == {
        "partition_ms": 0,
        "assigning_ms": 0,
        "reconciling_ms": 0,
        "reread": 0,
    }
