"""Groups that read only what is committed, behind an open transaction: no fault of theirs."""

from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.observations.answers import EndOffsetsReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.state.group import Step
from tests.unit.alerts.rules.modern_coordinator import Coordinator

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STOPPED, STALLED, GROWING = "CommitsStopped", "CommitsStalled", "LagGrowing"


class Reader:
    """A group of two that reads ten records a second, and the brokers, which are asked every 10 s."""

    def __init__(
        self, new_stage: "NewStage", *, again: bool, before_s: int = 120, modern: bool = False
    ) -> None:
        self.stage: Stage = new_stage()
        self.again = again
        """It commits what it has committed, as Java's does; librdkafka's commits only what is new."""
        if modern:
            coordinator = Coordinator(self.stage)
            coordinator.join("m0", "app")
            coordinator.join("m1", "app")
        else:
            self.stage.start(2)
        self.end = self.at = 1_000
        self.stable: int | None = None
        """Where the oldest open transaction begins, while there is one."""
        self.is_asked = True
        self.told: int | None = None
        self.waits_since_ms = -1
        self.limit_ms = -1
        self.go_on(before_s)

    def go_on(self, seconds: int, *, reads: int = 10, stuck: bool = False) -> None:
        """Let so many seconds pass."""
        for _ in range(seconds):
            self.stage.wait(1_000)
            self.end += 10
            readable = self.end if self.stable is None else min(self.stable, self.end)
            if not stuck:
                self.at = max(self.at, min(readable, self.at + reads * 100))
            if self.stage.now_ms % 5_000 < 1_000 and (self.again or self.at > self.committed):
                self.commit()
            if self.stage.now_ms % 10_000 < 1_000:
                self.tell()

    @property
    def committed(self) -> int:
        """What the group committed last."""
        return self.stage.group.commits.get("t", {}).get(0, (0, 0))[0]

    def commit(self) -> None:
        """The group commits where it is."""
        one = Commit("t", 0, self.at, T0 + self.stage.now_ms)
        self.stage.see(OffsetsCommitted(group="orders", commits=(one,)), Source.OFFSETS)

    def tell(self) -> None:
        """The driver tells ends, and the last stable offset where it is news."""
        committed = self.committed
        stable = self.end if self.stable is None else self.stable
        news = {}
        if self.is_asked and (self.told is not None or committed == stable < self.end):
            is_due = self.stage.now_ms - self.waits_since_ms >= MINUTE
            if self.told != stable or is_due:
                news, self.waits_since_ms = {"t": {0: stable}}, self.stage.now_ms
            self.told = stable if committed == stable < self.end else None
        told = EndOffsetsReported(
            group="orders",
            ends={"t": {0: self.end}},
            since_ms=T0,
            stable=news,
            transaction_ms=self.limit_ms,
        )
        note_ends(self.stage.group, told, T0 + self.stage.now_ms)
        self.stage.ask(Step(progressed=True))


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("before_s", [20, 120])
def test_who_waits_for_a_transaction_is_neither_stalled_nor_stopped(
    new_stage: "NewStage", again: bool, before_s: int
) -> None:
    """Ten minutes, and then it reads on; what it waited is no habit, so a hang is told as soon as ever."""
    reader = Reader(new_stage, again=again, before_s=before_s)
    reader.stable = reader.end
    reader.go_on(600)
    reader.stable = None
    reader.go_on(30)
    assert reader.stage.alerts == []

    reader.go_on(120, stuck=True)
    assert reader.stage.names() == {STALLED if again else STOPPED}


@pytest.mark.parametrize("again", [True, False])
def test_where_nobody_asks_for_it_the_group_is_judged_as_ever(new_stage: "NewStage", again: bool) -> None:
    """Brokers that do not tell: what stands still while records wait is told."""
    reader = Reader(new_stage, again=again)
    reader.is_asked = False
    reader.stable = reader.end
    reader.go_on(150)

    assert reader.stage.names() == {STALLED if again else STOPPED}


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("behind", [6, 300, -40])
def test_who_stands_elsewhere_is_stuck_though_a_transaction_is_open(
    new_stage: "NewStage", again: bool, behind: int
) -> None:
    """Before it, on a record that may be read; or beyond, as only who reads all there is can be."""
    reader = Reader(new_stage, again=again)
    reader.stable = reader.at + behind
    told = EndOffsetsReported(group="orders", ends={}, since_ms=T0, stable={"t": {0: reader.stable}})
    note_ends(reader.stage.group, told, T0 + reader.stage.now_ms)
    reader.is_asked = False
    reader.go_on(150, stuck=True)

    assert reader.stage.names() == {STALLED if again else STOPPED}


@pytest.mark.parametrize("again", [True, False])
def test_who_gets_stuck_behind_a_transaction_is_told_from_its_end_on(
    new_stage: "NewStage", again: bool
) -> None:
    """It could not read before; 60 s of the same commit, or 90 s without one, and not at once."""
    reader = Reader(new_stage, again=again)
    reader.stable = reader.end
    reader.go_on(300)
    reader.stable = None
    reader.go_on(60, stuck=True)
    assert reader.stage.alerts == []
    reader.go_on(60, stuck=True)

    assert reader.stage.names() == {STALLED if again else STOPPED}


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize(("limit_ms", "after_s"), [(-1, 900), (120_000, 120), (3_600_000, 3_600)])
def test_a_transaction_that_hangs_is_told_as_what_it_is(
    new_stage: "NewStage", again: bool, limit_ms: int, after_s: int
) -> None:
    """After what brokers let one last, or 15 min; once; no member is to blame; over when it is aborted."""
    reader = Reader(new_stage, again=again)
    reader.limit_ms = limit_ms
    reader.stable = reader.end
    reader.go_on(after_s)
    assert reader.stage.alerts == []
    reader.go_on(60)
    (fired,) = reader.stage.alerts
    assert (fired.name, fired.severity, fired.culprits) == (STALLED, Severity.WARNING, ())
    assert "has waited for an open transaction in t-0 since" in fired.summary
    assert "transaction.max.timeout.ms" in fired.cause
    assert f"last stable offset has been {reader.stable}" in fired.evidence[0]

    reader.go_on(1_200)
    assert len(reader.stage.alerts) == 1
    reader.stable = None
    reader.go_on(120)
    assert [one.status for one in reader.stage.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_a_transaction_that_nobody_has_told_of_for_a_minute_is_not_said_to_hang(
    new_stage: "NewStage",
) -> None:
    """The brokers tell ends, and no last stable offsets any more."""
    reader = Reader(new_stage, again=True)
    reader.stable = reader.end
    reader.go_on(600)
    reader.is_asked = False
    reader.go_on(900)

    assert reader.stage.alerts == []


def test_where_nobody_is_left_nobody_waits(new_stage: "NewStage") -> None:
    """The group was stopped in good order; its partition has a transaction that hangs."""
    reader = Reader(new_stage, again=False)
    reader.stable = reader.end
    reader.go_on(60)
    for member in ("m0", "m1"):
        reader.stage.leave(member)
    reader.stage.end_join_phase()
    reader.go_on(1_800)

    assert reader.stage.alerts == []


def test_one_transaction_after_the_other_is_no_trouble(new_stage: "NewStage") -> None:
    """Each lasts four minutes, and in between all that was written is read."""
    reader = Reader(new_stage, again=True)
    for _ in range(10):
        reader.stable = reader.end
        reader.go_on(240)
        reader.stable = None
        reader.go_on(11)

    assert reader.stage.alerts == []


def test_a_marker_or_two_may_lie_before_the_transaction(new_stage: "NewStage") -> None:
    """Some clients commit the offset after the last record, and not after the end marker behind it."""
    reader = Reader(new_stage, again=True)
    reader.stable = reader.end + 2
    reader.go_on(30, stuck=True)
    told = EndOffsetsReported(group="orders", ends={}, since_ms=T0, stable={"t": {0: reader.stable}})
    note_ends(reader.stage.group, told, T0 + reader.stage.now_ms)
    reader.is_asked = False
    reader.go_on(200, stuck=True)

    assert reader.stage.alerts == []


def test_nobody_falls_behind_on_what_may_not_be_read(new_stage: "NewStage") -> None:
    """One of two partitions waits for a transaction; the other one is read as it is written."""
    stage = new_stage()
    stage.start(1)
    for turn in range(1, 121):
        stage.wait(5_000)
        ends = {0: turn * 50, 1: turn * 50}
        held = min(ends[0], 500)
        commits = tuple(Commit("t", n, at, T0 + stage.now_ms) for n, at in ((0, held), (1, ends[1] - 5)))
        stage.see(OffsetsCommitted(group="orders", commits=commits), Source.OFFSETS)
        stable = {"t": {0: 500}} if turn in (12, 24, 36) else {}
        told = EndOffsetsReported(group="orders", ends={"t": ends}, since_ms=T0, stable=stable)
        note_ends(stage.group, told, T0 + stage.now_ms)
        stage.ask(Step(progressed=True))

    assert stage.alerts == []


@pytest.mark.parametrize("again", [True, False])
def test_a_consumer_group_of_the_newer_protocol_waits_as_any_other(
    new_stage: "NewStage", again: bool
) -> None:
    """Quiet while it waits, told when the transaction hangs, and when it is stuck itself."""
    reader = Reader(new_stage, again=again, modern=True)
    assert reader.stage.group.group_type == "consumer"
    reader.stable = reader.end
    reader.go_on(600)
    assert reader.stage.alerts == []
    reader.go_on(400)
    (hangs,) = reader.stage.alerts
    assert "has waited for an open transaction in t-0" in hangs.summary
    reader.stable = None
    reader.go_on(60)
    assert [one.status for one in reader.stage.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    reader.go_on(120, stuck=True)

    assert reader.stage.alerts[-1].name == (STALLED if again else STOPPED)
