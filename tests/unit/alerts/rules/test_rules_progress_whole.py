"""Members that read several partitions: one after the other, and whether the group keeps up with all."""

import re
from typing import TYPE_CHECKING

import pytest

from coordinator_model import observations as on
from coordinator_model.group import Step
from coordinator_model.observations import Source
from coordinator_model.progress import note_ends

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
            commit = on.Commit("t", one, self.at[one], T0 + self.stage.now_ms)
            self.stage.see(on.OffsetsCommitted(group="orders", commits=(commit,)), Source.OFFSETS)

    def _tell(self) -> None:
        ends = {"t": dict(enumerate(self.ends))}
        told = on.EndsTold(group="orders", ends=ends, since_ms=T0)
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
