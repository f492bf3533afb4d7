"""Brokers that write another zone, or have a wrong clock: what is told is what right ones would have told."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, EventsClock
from coordinator_model.observations.log import AssignmentReceived, GroupEmptied
from coordinator_model.observations.requests import SyncAnswered
from coordinator_model.observations.seen import Seen
from coordinator_model.observations.shifting import shifted
from coordinator_model.ordering.zones import PATIENCE_MS
from coordinator_model.shard.shard import Shard
from tests.properties.examples import examples
from tests.properties.simulated_clients import live

BASE_MS = 1_795_000_000_000
"""Added to the times of the simulation, which begin at nought."""
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
SHIPPED_MS = 3
SEEDS = st.integers(0, 2**32)
EVENTS = st.integers(1, 30)


class Topics:
    """What one shard reads of a life, with clocks twice a second; lines and records may be dated wrongly."""

    def __init__(self, seen: list[Seen], *, sources: frozenset[Source] = frozenset(Source)) -> None:
        """Take a life as it was."""
        self.seen = [shifted(one, BASE_MS) for one in seen if one.source in sources]
        self.zone_ms = self.clock_ms = 0
        self.is_told = False
        self.late_ms = 0

    def rows(self) -> list[Seen]:
        """Return everything in the order in which it was appended."""
        rows: list[Seen] = []
        records = number = 0
        waiting = sorted(self.seen, key=lambda one: one.at_ms)
        first_ms, last_ms = (waiting[0].at_ms, waiting[-1].at_ms) if waiting else (BASE_MS, BASE_MS)
        for now_ms in range(first_ms - 1_000, last_ms + self.late_ms + MINUTE_MS, 500):
            while waiting and self._appended_ms(waiting[0]) <= now_ms:
                number += 1
                one = waiting.pop(0)
                offset = records if one.source is Source.OFFSETS else number
                records += one.source is Source.OFFSETS
                rows.append(msgspec.structs.replace(self._dated(one), offset=offset))
            number += 1
            rows += self._clocks(now_ms, number, records)
        return rows

    def _appended_ms(self, one: Seen) -> int:
        """Return when, by the right time."""
        return one.at_ms + (0 if one.source is Source.OFFSETS else SHIPPED_MS + self.late_ms)

    def _dated(self, one: Seen) -> Seen:
        """Return what its broker makes of it."""
        if one.source is Source.OFFSETS:
            wrong = shifted(one, self.clock_ms)
            return msgspec.structs.replace(wrong, recorded_at_ms=wrong.at_ms)
        wrong = shifted(one, self.clock_ms + self.zone_ms)
        return msgspec.structs.replace(wrong, recorded_at_ms=self._appended_ms(one))

    def _clocks(self, now_ms: int, number: int, records: int) -> list[Seen]:
        skews = {1: self.clock_ms} if self.is_told else {}
        clock = Clock(
            sequence=now_ms,
            end_offset=records,
            position=0,
            events_partitions=1,
            skew_ms=skews,
            wrong_ms=skews.get(1, 0),
        )
        return [
            Seen(
                at_ms=now_ms,
                source=Source.CONTROL,
                partition=0,
                offset=number,
                index=0,
                broker=-1,
                recorded_at_ms=now_ms,
                backlog=False,
                what=what,
            )
            for what in (clock, EventsClock(sequence=now_ms, skew_ms=skews))
        ]


def told(
    rows: list[Seen], seed: int | None = None, *, unproved_as_well: bool = False
) -> list[tuple[Any, ...]]:
    """Return what a shard says of it: read as it comes, or cut at random.

    Lives in which no rebalance is stored within half a minute of its first line are left out: until one is,
    nothing tells the zone, and lines count as late.
    """
    assume(unproved_as_well or _is_proved_soon(rows))
    chance = random.Random(seed)
    shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
    said = []
    while rows:
        size = 40 if seed is None else chance.choice((1, 40, 400, 4_000))
        batch, rows = rows[:size], rows[size:]
        said += shard.step(batch, None).transitions
        shard = Shard.load(shard.save(), cluster="c", shard=0, shard_count=1, strict=True)
        assume(unproved_as_well or not shard.header.order.zones.late)
    return [
        (
            one.at_ms,
            str(one.from_state),
            str(one.to_state),
            one.generation,
            str(one.cause.kind),
            one.basis,
            one.id,
        )
        for one in said
    ]


def _is_proved_soon(rows: list[Seen], *, by_leader: bool = False) -> bool:
    """Say whether what is written beside a record comes within the patience with the first line.

    ``by_leader``: where it names the leader that the record has.
    """
    lines = [one for one in rows if one.source in {Source.COORDINATOR_LOG, Source.REQUEST_LOG}]
    beside = [one for one in lines if _is_beside_a_record(one.what)]
    if by_leader:
        beside = [one for one in beside if not isinstance(one.what, GroupEmptied)]
    if not lines or not beside:
        return not lines
    return beside[0].recorded_at_ms - lines[0].recorded_at_ms <= PATIENCE_MS - 5_000


def _is_beside_a_record(what: on.AnyObservation) -> bool:
    is_stored = isinstance(what, SyncAnswered) and what.by_leader and what.error_code == 0
    return is_stored or isinstance(what, AssignmentReceived | GroupEmptied)


FULL = frozenset({Source.COORDINATOR_LOG, Source.OFFSETS})
REQUESTS = frozenset({Source.REQUEST_LOG, Source.OFFSETS})


def _topics(
    seed: int, events: int, sources: frozenset[Source] = FULL, *, failovers: bool = False, **wrong: Any
) -> Topics:
    life = live(seed, events, failovers=failovers)
    life.settle()
    topics = Topics(life.world.seen, sources=sources)
    for name, value in wrong.items():
        setattr(topics, name, value)
    return topics


@pytest.mark.parametrize("zone_ms", [-5 * HOUR_MS, -HOUR_MS, -9 * HOUR_MS - 30 * MINUTE_MS])
@examples(40)
@given(seed=SEEDS, events=EVENTS, cut=SEEDS)
def test_a_zone_behind_is_corrected_from_the_first_line_on(
    zone_ms: int, seed: int, events: int, cut: int
) -> None:
    """A host west of what was configured: transitions, times, causes and ids are those of the right zone."""
    right = told(_topics(seed, events).rows())

    wrong = _topics(seed, events, zone_ms=zone_ms).rows()
    assert told(wrong) == right
    assert told(wrong, cut) == right


@pytest.mark.parametrize("zone_ms", [5 * HOUR_MS + 30 * MINUTE_MS, 2 * HOUR_MS])
@examples(40)
@given(seed=SEEDS, events=EVENTS)
def test_a_zone_ahead_is_corrected(zone_ms: int, seed: int, events: int) -> None:
    """East of it as well; where no record tells in half a minute, lines count at their append."""
    right = told(_topics(seed, events).rows())
    wrong = told(_topics(seed, events, zone_ms=zone_ms).rows())

    assert [one[1:5] for one in wrong] == [one[1:5] for one in right]
    assert max((abs(one[0] - two[0]) for one, two in zip(wrong, right, strict=True)), default=0) <= SHIPPED_MS


@pytest.mark.parametrize("zone_ms", [5 * HOUR_MS + 30 * MINUTE_MS, 2 * HOUR_MS, -5 * HOUR_MS])
@pytest.mark.parametrize("sources", [FULL, REQUESTS, FULL | REQUESTS], ids=["quiet", "requests", "full"])
@examples(40)
@given(seed=SEEDS, events=EVENTS, one=SEEDS, other=SEEDS)
def test_a_wrong_zone_is_told_the_same_in_every_cut(
    sources: frozenset[Source], *, zone_ms: int, seed: int, events: int, one: int, other: int
) -> None:
    """Proved, given up or gone to another broker: whatever is read at once, the same is told."""
    rows = _topics(seed, events, sources, failovers=True, zone_ms=zone_ms).rows()

    assert told(rows, one, unproved_as_well=True) == told(rows, other, unproved_as_well=True)


@pytest.mark.parametrize("zone_ms", [5 * HOUR_MS + 30 * MINUTE_MS, 2 * HOUR_MS, -HOUR_MS])
@examples(40)
@given(seed=SEEDS, events=EVENTS)
def test_the_request_log_alone_proves_a_zone(zone_ms: int, seed: int, events: int) -> None:
    """The leader's answered SyncGroup stands beside the record of its generation."""
    right = told(_topics(seed, events, REQUESTS).rows())
    wrong = told(_topics(seed, events, REQUESTS, zone_ms=zone_ms).rows())

    assert [one[1:5] for one in wrong] == [one[1:5] for one in right]


@pytest.mark.parametrize(
    ("zone_ms", "late_ms"),
    [
        (3 * HOUR_MS, 20 * MINUTE_MS),
        (30 * MINUTE_MS, 20 * MINUTE_MS),
        (30 * MINUTE_MS, 45 * MINUTE_MS),
        (-2 * HOUR_MS, 30 * MINUTE_MS),
    ],
)
@examples(20)
@given(seed=SEEDS, events=EVENTS)
def test_a_zone_is_proved_by_lines_that_are_late_from_the_start(
    zone_ms: int, late_ms: int, seed: int, events: int
) -> None:
    """A line is as far from its record as its zone is ahead, whenever its shipper comes to send it."""
    topics = _topics(seed, events, late_ms=late_ms)
    rows = topics.rows()
    assume(_is_proved_soon(rows, by_leader=True))
    right = told(rows, unproved_as_well=True)
    topics.zone_ms = zone_ms
    wrong = told(topics.rows(), unproved_as_well=True)

    assert wrong == right


@pytest.mark.parametrize("clock_ms", [-5 * MINUTE_MS, MINUTE_MS, HOUR_MS])
@examples(40)
@given(seed=SEEDS, events=EVENTS, cut=SEEDS)
def test_a_clock_that_the_driver_has_measured_is_corrected(
    clock_ms: int, seed: int, events: int, cut: int
) -> None:
    """Lines and records agree with each other and not with the driver: both are dated by the driver."""
    right = told(_topics(seed, events).rows())

    wrong = _topics(seed, events, clock_ms=clock_ms, is_told=True).rows()
    assert told(wrong) == right
    assert told(wrong, cut) == right


@examples(25)
@given(seed=SEEDS, events=EVENTS)
def test_a_wrong_zone_on_a_wrong_clock_is_both(seed: int, events: int) -> None:
    """The zone is what lines differ from records by, the clock what the driver measured."""
    right = told(_topics(seed, events).rows())
    wrong = _topics(seed, events, clock_ms=-5 * MINUTE_MS, is_told=True, zone_ms=-5 * HOUR_MS)

    assert told(wrong.rows()) == right


@pytest.mark.parametrize("late_ms", [15 * MINUTE_MS, HOUR_MS])
@examples(25)
@given(seed=SEEDS, events=EVENTS)
def test_lateness_like_a_zone_is_not_taken_for_one(late_ms: int, seed: int, events: int) -> None:
    """A shipper that is late by just an hour: its lines stand beside their records, so it is no zone."""
    rows = _topics(seed, events, late_ms=late_ms).rows()
    shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
    shard.step(rows, None)

    assert shard.header.order.zones.known == {}


@pytest.mark.parametrize("zones", [(HOUR_MS, 0), (-HOUR_MS, -2 * HOUR_MS), (-5 * HOUR_MS, -4 * HOUR_MS)])
@examples(25)
@given(one=SEEDS, other=SEEDS)
def test_a_zone_that_changes_is_found_again(zones: tuple[int, int], one: int, other: int) -> None:
    """Summer time begins or ends on a host that writes local time: the difference is another from then on."""
    first, second = (_topics(seed, 15).seen for seed in (one, other))
    assume(first and second)
    gap_ms = first[-1].at_ms - second[0].at_ms + 10 * MINUTE_MS
    topics = Topics([])
    topics.seen = [*first, *(shifted(one, gap_ms) for one in second)]
    edge_ms = first[-1].at_ms + MINUTE_MS
    assume(_is_proved_soon([shifted(one, gap_ms) for one in second]))
    wrong = [
        msgspec.structs.replace(one, at_ms=one.at_ms + zones[one.at_ms > edge_ms])
        if one.source is Source.COORDINATOR_LOG
        else one
        for one in topics.rows()
    ]

    assert [one[1:5] for one in told(wrong)] == [one[1:5] for one in told(topics.rows())]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"clock_ms": -5 * MINUTE_MS}, id="a-slow-clock-that-nobody-measured"),
        pytest.param({"late_ms": 7 * MINUTE_MS}, id="a-shipper-seven-minutes-behind"),
        pytest.param({"zone_ms": -5 * HOUR_MS - 5 * MINUTE_MS}, id="neither-zone-nor-delay"),
    ],
)
@examples(10)
@given(seed=SEEDS)
def test_lines_that_are_late_for_whatever_reason_page_nobody_for_it(wrong: dict[str, Any], seed: int) -> None:
    """A rebalance that is read minutes after it began, and ended as soon, is not stuck for minutes."""
    right, late = (_paged(_topics(seed, 12, **one).rows()) for one in ({}, wrong))

    assert {name for name in late if name.startswith("Stuck")} <= right


def _paged(rows: list[Seen]) -> set[str]:
    shard, judge = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True), RuleJudge()
    alerts: list[Any] = []
    for start in range(0, len(rows), 40):
        alerts += shard.step(rows[start : start + 40], judge).alerts
    return {one.name for one in alerts}
