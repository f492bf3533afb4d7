"""What anybody can make a shard remember is bounded and counted; what the driver told of stays."""

import pytest

from coordinator_model.groups.offsets import commits
from coordinator_model.groups.offsets.commits import has_room
from coordinator_model.groups.table import new_group
from coordinator_model.observations import bounds
from coordinator_model.observations.answers import RetentionReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.bounds import BROKERS_MAX, drop_oldest
from coordinator_model.observations.control import Clock, Counted, LogSeconds, Undecodable
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.observations.seen import Seen
from coordinator_model.shard import cluster, strangers
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.judging import Divergence, Outputs
from coordinator_model.shard.shard import Shard
from tests.unit.made_seen import seen

T0 = 1_700_000_000_000


class World:
    """A shard whose time is given with each batch."""

    def __init__(self) -> None:
        self.shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
        self.divergences: list[Divergence] = []
        self.offset = 0
        self.step(0)

    def step(self, at_ms: int, *said: Seen) -> Outputs:
        """Take observations in, and let it be ``at_ms``."""
        clock = Clock(sequence=1, end_offset=self.offset, position=self.offset)
        outputs = self.shard.step([*said, seen(T0 + at_ms, clock, Source.CONTROL, offset=at_ms)], None)
        self.divergences += outputs.divergences
        return outputs

    def commit(self, at_ms: int, group: str, topic: str = "t", partition: int = 0) -> Seen:
        """Return a commit."""
        self.offset += 1
        what = OffsetsCommitted(group=group, commits=(Commit(topic, partition, 5, T0 + at_ms),))
        return seen(T0 + at_ms, what, Source.OFFSETS, offset=self.offset - 1)

    def kinds(self) -> set[str]:
        """Return the kinds of what was counted."""
        return {one.kind for one in self.divergences}


def heard(broker: int, at_ms: int) -> Seen:
    what = LogSeconds(broker=broker, heard=Source.REQUEST_LOG, seconds=((T0 + at_ms) // 1000,))
    return seen(T0 + at_ms, what, Source.CONTROL, broker=broker, offset=broker)


def test_brokers_that_only_lines_name_are_bounded() -> None:
    """Of a hundred thousand the oldest are forgotten and counted; the one that the driver told of stays."""
    world = World()
    retention = seen(T0 + 1, RetentionReported(retention_ms={7: 60_000}), Source.CONTROL)
    world.step(1_000, retention, heard(7, 10))
    world.step(2_000)
    for first in range(0, 100_000, 20_000):
        world.step(3_000 + first, *(heard(100 + first + one, 2_000 + one) for one in range(20_000)))

    assert len(world.shard.header.heard) <= BROKERS_MAX
    assert 7 in world.shard.header.heard
    assert world.kinds() == {strangers.TOO_MANY_BROKERS}


def test_a_thousand_brokers_are_no_strangers() -> None:
    """The largest clusters there are lose nothing."""
    world = World()
    world.step(1_000, *(heard(broker, 10) for broker in range(1_000)))

    assert len(world.shard.header.heard) == 1_000
    assert world.kinds() == set()


def test_groups_beyond_the_bound_are_not_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can make groups by the million with one commit each; those that are known go on."""
    monkeypatch.setattr(strangers, "GROUPS_MIN", 10)
    monkeypatch.setattr(strangers, "GROUPS_MAX", 10)
    world = World()
    world.step(1_000, *(world.commit(10, f"g{number:03}") for number in range(50)))
    world.step(2_000, world.commit(1_500, "g003", "u"))
    world.step(3_000)

    assert len(world.shard.slots) == 10
    assert world.kinds() == {strangers.TOO_MANY_GROUPS}
    assert sum(one.count for one in world.divergences) == 40
    (report,) = [one for one in world.step(9_000).reports if one.group == "g003"]
    assert set(report.commits) == {"t", "u"}


def test_long_names_take_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka allows names of 32,767 bytes: a few thousand of them are no ordinary groups."""
    monkeypatch.setattr(strangers, "GROUPS_MIN", 300)
    monkeypatch.setattr(strangers, "GROUPS_MAX", 300)
    world = World()
    world.step(1_000, *(world.commit(10, f"{number}" + "x" * 32_000) for number in range(9)))
    world.step(2_000)

    assert len(world.shard.slots) == 2
    assert world.kinds() == {strangers.TOO_MANY_GROUPS}
    world.step(3_000, world.commit(2_500, "short"))
    world.step(4_000)
    assert "short" in world.shard.slots


@pytest.mark.parametrize("shard_count", [1, 50, 500])
def test_a_hundred_thousand_groups_have_room(shard_count: int) -> None:
    """Spread unevenly as well: every shard has room for four times its part."""
    assert strangers.groups_max(shard_count) >= 4 * 100_000 // shard_count


def test_partitions_of_a_group_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of topics and of partitions; those that are known are kept up to date."""
    monkeypatch.setattr(commits, "TOPICS_MAX", 3)
    monkeypatch.setattr(commits, "PARTITIONS_MAX", 4)
    group = new_group("g")
    group.commits = {"a": dict.fromkeys(range(4), (1, 2)), "b": {0: (1, 2)}}

    assert [has_room(group, "a", one) for one in (3, 4)] == [True, False]
    assert has_room(group, "c", 0)
    group.commits["c"] = {}
    assert not has_room(group, "d", 0)


def test_the_clusters_own_shard_forgets_the_oldest_brokers_as_well() -> None:
    """But for those that lead partitions or were described."""
    state = ClusterState()
    state.leaders = {0: (3, 1)}
    state.apply(heard(3, -1_000_000))
    for broker in range(10, 10 + 2 * cluster.HEARD_MAX):
        state.apply(heard(broker, broker))

    assert len(state.heard) <= cluster.HEARD_MAX
    assert (3, int(Source.REQUEST_LOG)) in state.heard
    assert state.divergences["too_many_brokers"] > 0


def test_kinds_and_reasons_are_bounded() -> None:
    """A decoder that made names of what it read would not fill the metrics."""
    state = ClusterState()
    for number in range(3_000):
        bad = Undecodable(origin="events", reason=f"r{number}", count=1, sample=b"")
        state.apply(seen(T0, bad, Source.CONTROL))
        state.apply(seen(T0, Counted(counts=(("events", f"k{number}", 1),)), Source.CONTROL))

    assert sum(state.undecodable.values()) == sum(state.events.values()) == 3_000
    assert max(len(state.undecodable), len(state.events)) <= cluster.KINDS_MAX + 1


def test_the_oldest_go_first_and_some_room_is_made() -> None:
    """So that not each further one costs a look at all of them."""
    known = {number: number for number in range(101)}
    assert drop_oldest(known, 100, int, kept={0}) == 11
    assert 0 in known
    assert min(known.keys() - {0}) == 12
    assert drop_oldest(known, 100, int) == 0
    assert bounds.BROKERS_MAX == BROKERS_MAX
