"""Members that read several partitions: one after the other, and whether the group keeps up with all."""

import re
import sys
from typing import TYPE_CHECKING

import pytest

from alerts.rules.engine.situation import Whole
from alerts.rules.progress import whole as progress_whole
from alerts.rules.progress.verdicts import PartitionProgress
from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.observations.answers import EndOffsetsReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.state.group import Step
from coordinator_model.state.tracks import Growth, Track

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STOPPED, STALLED, GROWING = "CommitsStopped", "CommitsStalled", "LagGrowing"
PARTS = 4
WRITTEN = 10
"""Records a second, into each partition."""


class Reading:
    """Members that read the partitions of "t" in turns, and commit each second."""

    def __init__(
        self, stage: "Stage", *, members: int = 1, behind: int = 0, every: bool = True, anew: bool = False
    ) -> None:
        self.stage = stage
        self.every = every
        """Commits name every partition, as Java's do; else only those that were read, as librdkafka's."""
        self.unread = set(range(PARTS)) if anew else set()
        """Partitions that nobody has read yet, so that no commit names them."""
        self.seconds = 0
        self.ends = [behind + 1_000] * PARTS
        self.at = [1_000] * PARTS
        self.stuck: set[int] = set()
        self.fetched = (0, 0)
        """A partition, and how many of its records are still to be worked on."""
        for number in range(members):
            stage.join(f"m{number}")
            mine = tuple(range(number * PARTS // members, (number + 1) * PARTS // members))
            stage.members[f"m{number}"] |= {"topics": ("t",), "assigned": {"t": mine}}
        stage.rebalance(join_ms=3_000)

    def go_on(
        self,
        seconds: int,
        *,
        rate: int = 1_000,
        batch: int = 500,
        parts: tuple[int, ...] = (0, 1, 2, 3),
        written: int = WRITTEN,
    ) -> None:
        """Read ``rate`` records a second, up to ``batch`` of one partition, then of the next."""
        for _ in range(seconds):
            self.stage.wait(1_000)
            self.seconds += 1
            self.ends = [end + written for end in self.ends]
            before, left = list(self.at), rate
            while left and self._fetch(parts, batch):
                one, count = self.fetched
                taken = min(left, count)
                self.at[one] += taken
                self.fetched, left = (one, count - taken), left - taken
            for one in parts:
                self._commit(one, self.at[one] - before[one])
            if self.seconds % 10 == 0:
                self._tell()

    def _fetch(self, parts: tuple[int, ...], batch: int) -> bool:
        """Take the next partition's records if those of the last one are done; False if there are none."""
        if self.fetched[1] and self.fetched[0] not in self.stuck:
            return True
        for turn in range(1, PARTS + 1):
            one = (self.fetched[0] + turn) % PARTS
            waiting = self.ends[one] - self.at[one]
            if one in parts and one not in self.stuck and waiting:
                self.fetched = (one, min(batch, waiting))
                return True
        return False

    def _commit(self, one: int, taken: int) -> None:
        if taken:
            self.unread.discard(one)
        if taken or (self.every and one not in self.unread):
            commit = Commit("t", one, self.at[one], T0 + self.stage.now_ms)
            self.stage.see(OffsetsCommitted(group="orders", commits=(commit,)), Source.OFFSETS)

    def _tell(self) -> None:
        ends = {"t": dict(enumerate(self.ends))}
        told = EndOffsetsReported(group="orders", ends=ends, since_ms=T0)
        note_ends(self.stage.group, told, T0 + self.stage.now_ms)
        self.stage.ask(Step(progressed=True))


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("rate", [8, 36])
def test_who_is_too_slow_and_takes_turns_falls_behind(new_stage: "NewStage", rate: int, every: bool) -> None:
    """While one partition is read its lag falls, or the others stand still: the whole grows all the time."""
    stage = new_stage()
    reading = Reading(stage, every=every)
    reading.go_on(60)
    reading.go_on(900, rate=rate, batch=800)

    assert stage.names() == {GROWING}
    fired = stage.told(GROWING)[0]
    assert [one.client_id for one in fired.culprits] == ["app"]
    share = int(re.findall(r"it reads (\d+) %", fired.summary)[0])
    assert abs(share - 100 * rate / (WRITTEN * PARTS)) <= 5


def test_it_is_over_when_the_group_keeps_up(new_stage: "NewStage") -> None:
    """More is read than written."""
    stage = new_stage()
    reading = Reading(stage)
    reading.go_on(60)
    reading.go_on(600, rate=30)
    reading.go_on(300, rate=80)

    assert [str(one.status) for one in stage.told(GROWING)][-1] == "resolved"


@pytest.mark.parametrize("every", [True, False])
def test_a_backlog_read_partition_by_partition_is_no_stall(new_stage: "NewStage", every: bool) -> None:
    """After a day off there is much to read, and it gets less."""
    stage = new_stage()
    reading = Reading(stage, every=every)
    reading.go_on(60)
    reading.ends = [end + 50_000 for end in reading.ends]
    reading.go_on(900, rate=100, batch=10_000)

    assert stage.alerts == []


@pytest.mark.parametrize("every", [True, False])
def test_a_new_group_that_reads_its_first_partitions_one_by_one_is_no_stall(
    new_stage: "NewStage", every: bool
) -> None:
    """What it turns to had been waiting for as long as what it leaves, though nobody had heard of it."""
    stage = new_stage()
    reading = Reading(stage, behind=5_000, every=every, anew=True)
    reading.go_on(800, rate=5, batch=1_000)

    assert not stage.names() & {STOPPED, STALLED}


@pytest.mark.parametrize("every", [True, False])
def test_a_new_group_that_works_off_a_burst_is_no_stall(new_stage: "NewStage", every: bool) -> None:
    """Where nothing is written any more no end is told, so nobody knows that of the partition it turns to."""
    stage = new_stage()
    reading = Reading(stage, behind=350, every=every, anew=True)
    reading.go_on(20, rate=15, batch=1_000)
    told = reading._tell
    reading._tell = lambda: None  # type: ignore[method-assign]
    reading.go_on(140, rate=5, batch=1_000, written=0)
    reading._tell = told  # type: ignore[method-assign]
    reading.go_on(120, rate=15, written=0)

    assert not stage.names() & {STOPPED, STALLED}


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize(("rate", "batch", "within_s"), [(5, 1_000, 300), (20, 1_500, 400)])
def test_a_new_group_that_falls_behind_is_told_while_it_still_meets_partitions(
    new_stage: "NewStage", rate: int, batch: int, within_s: int, every: bool
) -> None:
    """Each turn lasts longer than a minute, and the count goes on: told once, and it stays."""
    stage = new_stage()
    reading = Reading(stage, behind=5_000, every=every, anew=True)
    began_ms = stage.now_ms
    reading.go_on(1_500, rate=rate, batch=batch)

    (fired,) = stage.alerts
    assert (fired.name, str(fired.status)) == (GROWING, "firing")
    assert fired.detected_at_ms - T0 - began_ms <= within_s * 1_000


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize(("rate", "batch"), [(100, 10_000), (60, 2_000), (45, 9_000)])
def test_a_new_group_that_works_off_its_backlog_in_turns_is_not_slow(
    new_stage: "NewStage", rate: int, batch: int, every: bool
) -> None:
    """Each partition that it reads for the first time brings its backlog with it, and that is no growth."""
    stage = new_stage()
    reading = Reading(stage, behind=20_000, every=every, anew=True)
    reading.go_on(1_500, rate=rate, batch=batch)

    assert stage.alerts == []


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("turn_s", [10, 20])
def test_a_new_group_with_many_partitions_is_not_slow(
    new_stage: "NewStage", monkeypatch: pytest.MonkeyPatch, turn_s: int, every: bool
) -> None:
    """For minutes it knows one more every few seconds, with all that waits there."""
    monkeypatch.setattr(sys.modules[__name__], "PARTS", 40)
    stage = new_stage()
    reading = Reading(stage, behind=20_000, every=every, anew=True)
    reading.go_on(900, rate=100, batch=100 * turn_s, parts=tuple(range(40)), written=2)

    assert stage.alerts == []


def test_a_topic_that_loses_a_partition_is_counted_anew(new_stage: "NewStage") -> None:
    """Its offsets are deleted: what was behind there must not seem to have been read."""
    stage = new_stage()
    reading = Reading(stage, behind=5_000)
    reading.go_on(200, rate=20)
    gone = Commit("t", 3, None, T0 + stage.now_ms)
    stage.see(OffsetsCommitted(group="orders", commits=(gone,)), Source.OFFSETS)
    reading.go_on(200, rate=20, parts=(0, 1, 2))
    assert stage.alerts == []
    reading.go_on(100, rate=20, parts=(0, 1, 2))

    assert stage.names() == {GROWING}


def test_what_an_older_version_counted_begins_anew() -> None:
    """It did not say which partitions its sums were made of."""
    whole = Whole(base_ms=0, partitions=4)
    part = PartitionProgress("t", 0, Track(end=9), 5, 0)
    assert not progress_whole._goes_on(whole, [part] * 4)
    assert not progress_whole._has_met(whole, [part])
    assert (whole.partitions, whole.known) == (1, [0])
    assert progress_whole._goes_on(whole, [part])


def test_a_partition_that_is_met_is_no_growth_and_ends_none() -> None:
    """Its backlog is added to all that is compared with what comes."""
    growth = Growth(10, 100, 1_000, 150, 20, 2_000, mark=150, mark_end=2_000)
    whole = Whole(base_ms=0, partitions=2, track=Track(end=2_000, told=20, growth=growth), lag=150)
    progress_whole._take_in(whole, lag=950, end=5_000, told=30)

    assert whole.track.growth == Growth(10, 900, 4_000, 950, 20, 5_000, mark=950, mark_end=5_000)
    assert (whole.track.end, whole.track.told) == (5_000, 30)


def test_who_keeps_up_in_turns_says_nothing(new_stage: "NewStage") -> None:
    """As much is read as is written, now here, now there."""
    stage = new_stage()
    reading = Reading(stage, behind=500)
    reading.go_on(1_800, rate=40, batch=300)

    assert stage.alerts == []


@pytest.mark.parametrize(("every", "name"), [(True, STALLED), (False, STOPPED)])
def test_one_partition_that_is_stuck_is_told_though_the_others_are_read(
    new_stage: "NewStage", every: bool, name: str
) -> None:
    """Its owner has nothing else to do, so it does not wait for its turn."""
    stage = new_stage()
    reading = Reading(stage, every=every)
    reading.go_on(120)
    reading.stuck.add(2)
    reading.go_on(180)

    assert stage.names() == {name}


@pytest.mark.parametrize(("seconds", "is_told"), [(840, False), (960, True)])
def test_who_never_gets_its_turn_is_told_in_the_end(
    new_stage: "NewStage", seconds: int, is_told: bool
) -> None:
    """A member that is always late with the others cannot hide one that is stuck for ever."""
    stage = new_stage()
    reading = Reading(stage, behind=100_000, every=False)
    reading.go_on(60, rate=40, batch=50)
    reading.stuck.add(2)
    reading.go_on(seconds, rate=40, batch=50)

    assert (STOPPED in stage.names()) is is_told


def test_the_other_members_slowness_excuses_nobody(new_stage: "NewStage") -> None:
    """One is slow, one hangs: both are told, the hanging one first."""
    stage = new_stage()
    reading = Reading(stage, members=2)
    reading.go_on(120)
    reading.stuck |= {2, 3}
    reading.go_on(300, rate=10, parts=(0, 1))

    assert [one.member_id for one in stage.told(STOPPED)[0].culprits] == ["m1"]


def test_who_reads_nothing_at_all_any_more_waits_for_no_turn(new_stage: "NewStage") -> None:
    """A slow consumer that ends up hanging is told as such."""
    stage = new_stage()
    reading = Reading(stage)
    reading.go_on(60)
    reading.go_on(120, rate=20)
    reading.stuck |= {0, 1, 2, 3}
    reading.go_on(300, rate=20)

    assert STALLED in stage.names()


def test_where_no_end_is_told_nothing_grows(new_stage: "NewStage") -> None:
    """Incomplete evidence says nothing."""
    stage = new_stage()
    reading = Reading(stage)
    reading._tell = lambda: None  # type: ignore[method-assign]
    reading.go_on(900, rate=8)

    assert stage.alerts == []
