"""A shard whose time ran ahead comes back to what newer clocks prove, and judges in real time again."""

import pytest

from alerts.alert.alert import Alert
from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.control import Clock, Counted, EventsClock, LogSeconds
from coordinator_model.observations.log import JoinPhaseEnded, Reason, RebalanceStarted
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.shard import Shard
from tests.unit.made_seen import seen

T0 = 1_795_000_000_000
HOUR_MS = 3_600_000


class World:
    """One shard on one partition of each topic."""

    def __init__(self, shard: int = 0) -> None:
        self.number, self.offset = shard, 0
        self.blob: bytes | None = None
        self.alerts: list[Alert] = []
        self.divergences: dict[str, int] = {}

    def step(self, rows: list[Seen]) -> None:
        """Take a batch, saved before and after it."""
        shard = Shard.load(self.blob, cluster="c", shard=self.number, shard_count=1, strict=True)
        outputs = shard.step(rows, RuleJudge())
        self.alerts += outputs.alerts
        for one in outputs.divergences:
            self.divergences[one.kind] = self.divergences.get(one.kind, 0) + one.count
        self.blob = shard.save()
        self.now_ms = shard.header.order.now_ms

    def clock(self, at_ms: int) -> None:
        """Let a clock be read, with its copy."""
        self.offset += 1
        end = -1 if self.number == CLUSTER_SHARD else 0
        clock = Clock(sequence=at_ms, end_offset=end, position=end, events_partitions=1)
        self.step(
            [
                seen(T0 + at_ms, clock, Source.CONTROL, offset=self.offset),
                seen(T0 + at_ms, EventsClock(sequence=at_ms), Source.CONTROL, offset=self.offset),
            ]
        )

    def line(self, at_ms: int, what: on.AnyObservation, source: Source = Source.COORDINATOR_LOG) -> None:
        """Let a line be read, or what a batch says of its records."""
        self.offset += 1
        self.step([seen(T0 + at_ms, what, source, offset=self.offset)])


def _start(generation: int) -> RebalanceStarted:
    reason = Reason(kind="member_joined", text="", member_ids=("m",))
    return RebalanceStarted(group="g", generation=generation, reason=reason)


def test_a_rebalance_is_told_in_time_after_a_clock_of_the_future() -> None:
    """An hour too much was told and saved; a minute and a half into a stuck rebalance there is the alert."""
    world = World()
    world.clock(0)
    world.line(1_000, _start(0))
    world.line(4_000, JoinPhaseEnded(group="g", generation=1, member_count=1))
    world.clock(10_000)
    world.clock(HOUR_MS)
    world.clock(11_000)
    assert world.divergences["time_regressed"] == 1
    assert world.now_ms < T0 + 12_000
    world.line(12_000, _start(1))
    for at_ms in range(13_000, 110_000, 1_000):
        world.clock(at_ms)
    (alert,) = [one for one in world.alerts if one.name == "StuckPreparingRebalance"]
    assert alert.starts_at_ms == T0 + 12_000
    assert alert.detected_at_ms < T0 + 80_000


def test_the_cluster_comes_back_as_well() -> None:
    """Its rules are asked second by second again, at the proved time."""
    world = World(CLUSTER_SHARD)
    world.clock(0)
    world.clock(HOUR_MS)
    world.clock(5_000)
    world.clock(6_000)
    assert world.divergences == {"time_regressed": 1}
    assert T0 + 5_000 < world.now_ms <= T0 + 6_000


@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS])
def test_a_silent_log_is_told_after_a_commit_of_the_future(ahead_ms: int) -> None:
    """A broker whose clock was wrong for a moment dated one commit an hour ahead."""
    world = World(CLUSTER_SHARD)
    for second in range(300):
        at_ms = 1_000 * second
        world.clock(at_ms)
        committed_ms = at_ms - 500 + ahead_ms * (second == 50)
        counted = Counted(counts=(("offsets", "commit", 1),), committed=((0, T0 + committed_ms),))
        world.line(committed_ms, counted, Source.OFFSETS)
        if second < 200:
            seconds = ((T0 + at_ms) // 1_000 - 1,)
            world.line(at_ms, LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=seconds), Source.CONTROL)
    assert [one.name for one in world.alerts] == ["SourceSilent"]
    header = Shard.load(world.blob, cluster="c", shard=CLUSTER_SHARD, shard_count=1, strict=True).header
    assert header.cluster is not None
    assert max(header.cluster.committed_ms.values()) < T0 + 300_000
    assert len(header.order.held) <= 1
