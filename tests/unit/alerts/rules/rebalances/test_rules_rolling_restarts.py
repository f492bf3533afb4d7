"""Restarts of all sizes and styles, at random paces and overlapping: none of them is a storm."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_model.kafka.cause_kinds import CauseKind

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

HOUR = 3_600_000

Plan = list[tuple[int, str, str]]
"""(when, "leave" or "join", member), in milliseconds from the beginning."""


def one_by_one(names: list[str], pace: random.Random) -> Plan:
    """The next one is stopped when the last is back."""
    plan, now_ms = [], 0
    for name in names:
        away_ms = pace.choice([1_000, 5_000, 20_000, 90_000])
        plan += [(now_ms, "leave", name), (now_ms + away_ms, "join", f"new-{name}")]
        now_ms += away_ms + pace.randint(100, 30_000)
    return plan


def overlapping(names: list[str], pace: random.Random) -> Plan:
    """Several are away at once."""
    plan, now_ms = [], 0
    for name in names:
        away_ms = pace.choice([1_000, 5_000, 20_000, 90_000])
        plan += [(now_ms, "leave", name), (now_ms + away_ms, "join", f"new-{name}")]
        now_ms += pace.randint(100, 15_000)
    return plan


def all_at_once(names: list[str], pace: random.Random) -> Plan:
    """Everything is stopped, and comes back in its own time."""
    stop_ms, start_ms = pace.randint(10, 3_000), pace.randint(100, 40_000)
    stops = [(index * stop_ms, "leave", name) for index, name in enumerate(names)]
    return stops + [(60_000 + index * start_ms, "join", f"new-{name}") for index, name in enumerate(names)]


def new_one_first(names: list[str], pace: random.Random) -> Plan:
    """The replacement comes up before the old one is stopped."""
    plan, now_ms = [], 0
    for name in names:
        both_ms = pace.choice([1_000, 5_000, 20_000])
        plan += [(now_ms, "join", f"new-{name}"), (now_ms + both_ms, "leave", name)]
        now_ms += both_ms + pace.randint(100, 5_000)
    return plan


class Coordination:
    """Carries a plan out, finishing rebalances in between at a random pace as a coordinator would."""

    def __init__(self, stage: "Stage", pace: random.Random) -> None:
        self.stage = stage
        self.pace = pace
        self.ends_ms: int | None = None
        self.is_joining = False
        self.owes_second_step = False

    def carry_out(self, plan: Plan) -> None:
        """Do everything, and let the group settle."""
        began_ms = self.stage.now_ms
        for at_ms, what, member in sorted(plan):
            self._pass(began_ms + at_ms)
            self._act(what, member)
        self._pass(self.stage.now_ms + 60_000)
        self.stage.wait(HOUR)

    def _act(self, what: str, member: str) -> None:
        begins = not self.stage.preparing
        if what == "leave":
            self.stage.leave(member)
        else:
            self.stage.join(member, host=f"/10.7.0.{len(self.stage.members)}")
        if begins:
            self.owes_second_step = what == "join" and self.stage.protocol == "cooperative-sticky"
            self._join_phase(3_200)

    def _join_phase(self, at_most_ms: int) -> None:
        self.is_joining, self.ends_ms = True, self.stage.now_ms + self.pace.randint(100, at_most_ms)

    def _pass(self, until_ms: int) -> None:
        while self.ends_ms is not None and self.ends_ms <= until_ms:
            self.stage.wait(max(0, self.ends_ms - self.stage.now_ms))
            self.ends_ms = None
            self._finish_phase()
        self.stage.wait(max(0, until_ms - self.stage.now_ms))

    def _finish_phase(self) -> None:
        if self.is_joining:
            self.stage.end_join_phase()
            self.is_joining = False
            if self.stage.members:
                self.ends_ms = self.stage.now_ms + self.pace.randint(20, 400)
            return
        self.stage.assign()
        if self.owes_second_step and len(self.stage.members) > 1:
            self.owes_second_step = False
            member = next(iter(self.stage.members))
            reason = "client reason: need to revoke partitions and re-join"
            text = f"Updating metadata for member {member} during Stable; {reason}"
            self.stage.rejoin(member, CauseKind.SUBSCRIPTION_CHANGED, text)
            self._join_phase(3_000)


@pytest.mark.parametrize("style", [one_by_one, overlapping, all_at_once, new_one_first])
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("info", [True, False], ids=["quiet", "offsets"])
@pytest.mark.parametrize("size", [3, 7, 20])
def test_a_restart_is_no_storm(
    new_stage: "NewStage",
    style: Callable[[list[str], random.Random], Plan],
    protocol: str,
    info: bool,
    size: int,
) -> None:
    """Neither with the coordinator's log nor with the topic alone, whatever the pace."""
    for seed in range(3):
        pace = random.Random(seed)
        stage = new_stage(protocol=protocol, info=info)
        names = stage.start(size)
        stage.wait(HOUR)
        Coordination(stage, pace).carry_out(style(names, pace))

        assert stage.alerts == []
        assert len(stage.group.members) == size
