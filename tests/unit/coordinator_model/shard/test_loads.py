"""Lines about a whole shard, held against what the metadata say of its leader."""

from typing import Any

import pytest

from coordinator_model.observations.answers import ShardLed
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, PartitionAnew
from coordinator_model.observations.log import (
    MemberIdHandedOut,
    Reason,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
    ShardUnloaded,
)
from coordinator_model.observations.records import GroupRecorded, MemberRecord
from coordinator_model.observations.seen import Seen
from coordinator_model.shard import loads
from coordinator_model.shard.judging import Outputs
from coordinator_model.shard.shard import Shard
from tests.unit.made_seen import seen

START_MS = 1_000_000
G = "orders"


class World:
    """A shard that one broker leads, as lines and metadata say."""

    def __init__(self, *, probed: bool = True) -> None:
        self.shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
        self.offset = 0
        self.told: list[tuple[str, int]] = []
        self.kinds: list[str] = []
        self.waiting: list[Seen] = []
        self.until(START_MS - 20_000)
        self.line(START_MS - 19_999, ShardLoading(epoch=5))
        if probed:
            self.led(START_MS - 19_990, 1, 5)
        self.record(START_MS - 19_980, 1)
        self.until(START_MS)
        self.kinds.clear()

    def say(self, at_ms: int, what: Any, source: Source, broker: int = -1) -> None:
        """Let something stand in a partition."""
        self.offset += 1
        self.waiting.append(seen(at_ms, what, source, broker=broker, offset=self.offset))

    def line(self, at_ms: int, what: Any, broker: int = 1) -> None:
        """Let a broker's INFO log say something."""
        self.say(at_ms, what, Source.COORDINATOR_LOG, broker)

    def led(self, at_ms: int, leader: int, epoch: int) -> None:
        """Let the metadata name a leader."""
        self.say(at_ms, ShardLed(leader=leader, epoch=epoch), Source.CONTROL)

    def record(self, at_ms: int, generation: int) -> None:
        """Let a generation be stored."""
        member = MemberRecord(member_id="a", client_id="a", client_host="/h", session_timeout_ms=6_000)
        what = GroupRecorded(
            group=G,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            leader_id="a",
            state_since_ms=-1,
            members=(member,),
        )
        self.say(at_ms, what, Source.OFFSETS)

    def rebalance(self, at_ms: int, generation: int, broker: int = 1) -> None:
        """Let a broker say that the group rebalances."""
        reason = Reason(kind="leader_rejoined", text="", member_ids=("a",))
        self.line(at_ms, RebalanceStarted(group=G, generation=generation, reason=reason), broker)

    def until(self, at_ms: int) -> None:
        """Let it be ``at_ms``, save the shard and load it again."""
        self.take(self.shard.step(self.waiting, None))
        self.waiting = []
        self.say(at_ms, Clock(sequence=at_ms, end_offset=2**40, position=2**40), Source.CONTROL)
        self.take(self.shard.step(self.waiting, None))
        self.waiting = []
        blob = self.shard.save()
        self.shard = Shard.load(blob, cluster="c", shard=0, shard_count=1, strict=True)

    def take(self, outputs: Outputs) -> None:
        """Note what came of a step."""
        self.told += [(str(one.to_state), one.at_ms - START_MS) for one in outputs.transitions]
        self.kinds += [one.kind for one in outputs.divergences]

    @property
    def leads(self) -> tuple[int, int]:
        """Who leads the shard, with which epoch."""
        return self.shard.header.coordinator, self.shard.header.epoch


FORGED = [
    pytest.param(ShardUnloaded(), id="unloaded"),
    pytest.param(ShardLoading(epoch=6), id="next-epoch"),
    pytest.param(ShardLoaded(epoch=999), id="wild-epoch"),
]


@pytest.mark.parametrize("forged", FORGED)
def test_a_move_that_the_metadata_contradict_hides_nothing(forged: Any) -> None:
    """What a broker says that seems to have lost a shard is applied when the metadata still name it."""
    world = World()
    world.line(START_MS + 2_000, forged, 1 if isinstance(forged, ShardUnloaded) else 2)
    world.rebalance(START_MS + 3_000, 1)
    world.until(START_MS + 5_000)
    assert world.told[-1][0] == "Stable"
    world.led(START_MS + 7_000, 1, 5)
    world.until(START_MS + 8_000)

    assert world.told[-1] == ("PreparingRebalance", 3_000)
    assert world.leads == (1, 5)
    assert loads.CONTRADICTED in world.kinds


def test_a_contradiction_long_after_restores_the_leader_only() -> None:
    """What was dropped is kept for half a minute; who leads the shard is set right whenever it is told."""
    world = World()
    world.line(START_MS + 2_000, ShardLoading(epoch=999), 2)
    world.rebalance(START_MS + 3_000, 1)
    world.led(START_MS + 60_000, 1, 5)
    world.until(START_MS + 61_000)

    assert (world.leads, world.told[-1][0]) == ((1, 5), "Stable")


def test_a_line_of_the_known_epoch_and_another_broker_is_not_believed() -> None:
    """An epoch has one leader."""
    world = World()
    world.line(START_MS + 2_000, ShardLoading(epoch=5), 2)
    world.rebalance(START_MS + 3_000, 1)
    world.until(START_MS + 4_000)

    assert (world.leads, world.told[-1]) == ((1, 5), ("PreparingRebalance", 3_000))
    assert world.kinds == [loads.CONTRADICTED]


def test_a_real_move_is_confirmed_and_drops_what_the_old_one_said() -> None:
    """The metadata lag behind: an answer of the time before contradicts nothing."""
    world = World()
    world.line(START_MS + 2_000, ShardUnloaded(), 1)
    world.line(START_MS + 2_100, ShardLoading(epoch=6), 2)
    world.led(START_MS + 2_500, 1, 5)
    world.rebalance(START_MS + 3_000, 1)
    world.led(START_MS + 7_000, 2, 6)
    world.until(START_MS + 40_000)

    assert (world.leads, world.told[-1][0]) == ((2, 6), "Stable")
    assert loads.CONTRADICTED not in world.kinds
    assert world.shard.header.unproved is None


def test_without_a_probe_a_load_counts_at_once() -> None:
    """In a replay nobody asks the metadata."""
    world = World(probed=False)
    world.line(START_MS + 2_000, ShardLoading(epoch=999), 2)
    world.until(START_MS + 4_000)

    assert world.leads == (2, 999)
    assert world.shard.header.unproved is None


def test_an_unload_from_before_the_load_is_old() -> None:
    """A line sent again that tells of an earlier time in charge takes the shard from nobody."""
    world = World()
    world.line(START_MS - 20_500, ShardUnloaded(), 1)
    world.until(START_MS + 2_000)

    assert world.leads == (1, 5)
    assert "old_line" in world.kinds


def test_what_is_kept_is_bounded() -> None:
    """A flood of lines while a move is in doubt fills no state."""
    world = World()
    world.line(START_MS + 2_000, ShardUnloaded(), 1)
    for number in range(loads.KEPT_MAX + 50):
        world.line(START_MS + 2_001 + number, MemberIdHandedOut(group=G, member_id=f"m{number}"))
    world.until(START_MS + 10_000)

    assert world.shard.header.unproved is not None
    assert len(world.shard.header.unproved.kept) == loads.KEPT_MAX


def test_a_topic_made_anew_has_the_leaders_of_the_new_topic() -> None:
    """Its epochs begin again with 0, which would be older than all that was known."""
    world = World()
    world.led(START_MS, 2, 41)
    world.until(START_MS + 1_000)
    assert world.shard.header.lost
    world.say(START_MS + 2_000, PartitionAnew(), Source.CONTROL)
    world.led(START_MS + 3_000, 1, 0)
    world.until(START_MS + 10_000)
    header = world.shard.header
    assert (header.coordinator, header.epoch, header.lost) == (1, 0, {})
