"""Brokers that write another zone, in lines that are late as well, or that nothing proves."""

import msgspec
import pytest

from coordinator_model import observations as on
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations import AnyObservation, Seen, Source
from coordinator_model.shard import Shard
from coordinator_model.shard.snapshot import decode_group
from tests.unit.made_seen import seen

T0 = 1_795_000_000_000
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
G = "g"


class World:
    """One shard on one partition of each topic, with a clock every half second."""

    def __init__(self) -> None:
        self.shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
        self.number = self.records = 0
        self.divergences: dict[str, int] = {}
        self.now_ms = 0
        self.until(0)

    def until(self, at_ms: int) -> None:
        """Let time pass."""
        while self.now_ms <= at_ms:
            clock = on.Clock(sequence=self.now_ms, end_offset=self.records, position=0, events_partitions=1)
            copy = on.EventsClock(sequence=self.now_ms)
            self._step([self._placed(what, self.now_ms, Source.CONTROL) for what in (clock, copy)])
            self.now_ms += 500

    def line(self, comes_ms: int, dated_ms: int, what: AnyObservation) -> None:
        """Let a line be read."""
        self.until(comes_ms)
        source = Source.REQUEST_LOG if isinstance(what, on.SyncAnswered) else Source.COORDINATOR_LOG
        one = msgspec.structs.replace(self._placed(what, dated_ms, source), recorded_at_ms=T0 + comes_ms)
        self._step([one])

    def record(self, at_ms: int, generation: int, leader_id: str) -> None:
        """Let the record of a generation be read."""
        self.until(at_ms)
        member = on.MemberRecord(member_id=leader_id, client_id="c", client_host="/h", session_timeout_ms=1)
        what = on.GroupRecorded(
            group=G,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            leader_id=leader_id,
            state_since_ms=-1,
            members=(member,),
        )
        self._step([msgspec.structs.replace(self._placed(what, at_ms, Source.OFFSETS), offset=self.records)])
        self.records += 1

    def _placed(self, what: AnyObservation, at_ms: int, source: Source) -> Seen:
        self.number += 1
        return seen(T0 + at_ms, what, source, offset=self.number)

    def _step(self, rows: list[Seen]) -> None:
        outputs = self.shard.step(rows, None)
        for one in outputs.divergences:
            self.divergences[one.kind] = self.divergences.get(one.kind, 0) + one.count

    @property
    def zones(self) -> dict[int, int]:
        """Return what is known of brokers' zones."""
        return {broker: zone.ahead_ms for broker, zone in self.shard.header.order.zones.known.items()}

    @property
    def picture(self) -> tuple[GroupState, int, int]:
        """Return state and generation of the group, and since when it has them."""
        group = decode_group(self.shard.slots[G].raw)
        return group.state, group.generation, group.state_since_ms - T0


def assigned(generation: int, leader_id: str) -> on.AssignmentReceived:
    return on.AssignmentReceived(group=G, generation=generation, leader_id=leader_id)


def prepares(generation: int) -> on.RebalanceStarted:
    reason = on.Reason(kind="member_left", text="", member_ids=("a",))
    return on.RebalanceStarted(group=G, generation=generation, reason=reason)


def proved(zone_ms: int) -> World:
    """Return a world in which a zone was proved by a line on time."""
    world = World()
    world.record(1_000, 1, "a")
    world.line(1_003, 1_000 + zone_ms, assigned(1, "a"))
    world.until(40_000)
    assert world.zones == ({1: zone_ms} if zone_ms else {})
    return world


@pytest.mark.parametrize("late_ms", [MINUTE_MS, 20 * MINUTE_MS, 50 * MINUTE_MS, 110 * MINUTE_MS])
def test_a_proved_zone_counts_however_late_a_line_is(late_ms: int) -> None:
    """A line that is late by more than half its zone, or by more than all of it, is told at its own time."""
    world = proved(HOUR_MS)
    world.line(50_000 + late_ms, 50_000 + HOUR_MS, prepares(1))
    world.until(50_000 + late_ms + 40_000)

    assert world.picture == (GroupState.PREPARING_REBALANCE, 1, 50_000)
    assert "line_ahead" not in world.divergences


@pytest.mark.parametrize("late_ms", [7 * MINUTE_MS, HOUR_MS])
def test_late_lines_prove_no_zone(late_ms: int) -> None:
    """They stand beside their record, whatever their distance from their append."""
    world = World()
    world.record(1_000, 1, "a")
    world.line(1_003 + late_ms, 1_000, assigned(1, "a"))
    world.until(late_ms + 40_000)

    assert world.zones == {}


@pytest.mark.parametrize("zone_ms", [5 * HOUR_MS, -5 * HOUR_MS])
def test_a_zone_is_proved_by_a_late_line(zone_ms: int) -> None:
    """A line that is twenty minutes late is as far from its record as the zone is ahead."""
    world = World()
    world.record(1_000, 1, "a")
    world.line(1_003 + 20 * MINUTE_MS, 1_000 + zone_ms, assigned(1, "a"))
    world.until(21 * MINUTE_MS)

    assert world.zones == {1: zone_ms}


def test_a_line_of_another_life_proves_nothing_by_chance() -> None:
    """An old line that happens to be hours before a record of its generation has another leader."""
    world = World()
    world.record(3 * HOUR_MS, 1, "b")
    world.line(3 * HOUR_MS + 7 * MINUTE_MS, HOUR_MS, assigned(1, "a"))
    world.until(3 * HOUR_MS + 8 * MINUTE_MS)

    assert world.zones == {}


def test_a_zone_that_was_set_right_is_known_to_be() -> None:
    """Late lines are corrected no more after one on time has shown that the zone is right by now."""
    world = proved(HOUR_MS)
    world.record(60_000, 2, "a")
    world.line(60_003, 60_000, assigned(2, "a"))
    world.until(80_000)
    world.line(90_000 + 7 * MINUTE_MS, 90_000, prepares(2))
    world.until(90_000 + 8 * MINUTE_MS)

    assert world.zones == {1: 0}
    assert world.picture == (GroupState.PREPARING_REBALANCE, 2, 90_000)


def test_a_line_ahead_that_nothing_explains_moves_no_recorded_group() -> None:
    """It counts at its append, where what is sent again an hour later seems new; so it is counted only."""
    world = proved(0)
    before = world.picture
    world.line(50_000, 50_000 + 47 * MINUTE_MS, prepares(1))
    world.until(100_000)

    assert world.picture == before
    assert world.divergences["line_ahead"] == 1


def test_a_leader_is_answered_beside_the_record_whatever_it_waits_for() -> None:
    """A SyncGroup that waited seconds for a replica proves the zone by when it came."""
    world = World()
    world.record(1_000, 1, "a")
    answer = on.SyncAnswered(
        group=G, member_id="a", error_code=0, generation=1, arrived_at_ms=T0 + HOUR_MS + 998, by_leader=True
    )
    world.line(21_003, HOUR_MS + 21_000, answer)
    world.until(60_000)

    assert world.zones == {1: HOUR_MS}
