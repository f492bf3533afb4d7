"""RebalanceStorm of consumer groups of KIP-848: a grown epoch is a rebalance, its cause as ever."""

from typing import TYPE_CHECKING

import pytest

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from tests.unit.alerts.rules.modern_coordinator import Coordinator

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage

MINUTE = 60_000
STORM = "RebalanceStorm"


@pytest.fixture
def coordinator(new_stage: "NewStage") -> Coordinator:
    made = Coordinator(new_stage())
    for number in range(4):
        made.join(f"m{number}", "app", f"/10.0.0.{number}")
    made.stage.wait(60 * MINUTE)
    return made


def test_the_play_is_what_kafka_writes(coordinator: Coordinator) -> None:
    """A group of four that is Stable at epoch four, and no alert for its first deployment."""
    group = coordinator.stage.group

    assert (group.group_type, group.state, group.generation) == ("consumer", GroupState.STABLE, 4)
    assert coordinator.stage.alerts == []


def test_a_crash_loop_is_a_storm(coordinator: Coordinator) -> None:
    """With the client that dies and returns, and how long nobody was where it should be."""
    for turn in range(3):
        coordinator.join(f"bad-{turn}", "bad", "/10.0.0.66")
        coordinator.stage.wait(20_000)
        coordinator.go(f"bad-{turn}", CauseKind.SESSION_TIMEOUT)
        coordinator.stage.wait(5_000)
    fired = coordinator.stage.told(STORM)[-1]

    assert fired.cause.startswith("Crash loop: bad on 10.0.0.66 went 2 times by session timeout")
    assert [(one.client_id, one.share) for one in fired.culprits] == [("bad", 1.0)]
    assert "not Stable for 800 ms in total" in fired.cost
    # Every write has its target with it, so nobody waited for one to be computed.
    assert "Computing assignments: 0 ms, handing partitions over: 800 ms." in fired.cost


def test_a_rolling_restart_is_no_storm(coordinator: Coordinator) -> None:
    """Each member leaves and another comes, once."""
    for number in range(4):
        coordinator.go(f"m{number}", CauseKind.MEMBER_LEFT)
        coordinator.stage.wait(4_000)
        coordinator.join(f"n{number}", "app", f"/10.0.9.{number}")
        coordinator.stage.wait(2_000)

    assert coordinator.stage.alerts == []


def test_restarts_of_static_members_are_no_storm(new_stage: "NewStage") -> None:
    """Away and back again costs two epochs each, which are explained once each."""
    coordinator = Coordinator(new_stage())
    for number in range(6):
        coordinator.join(f"s{number}", f"app-{number}", instance=f"i{number}")
    coordinator.stage.wait(60 * MINUTE)
    for number in range(6):
        coordinator.away(f"s{number}")
        coordinator.stage.wait(3_000)
        coordinator.replace(f"s{number}", f"t{number}", f"i{number}")
        coordinator.stage.wait(2_000)

    assert coordinator.stage.told(STORM) == []


def test_a_static_member_that_goes_and_comes_for_ever_is_a_storm(new_stage: "NewStage") -> None:
    """Only its first absence and its first return are explained."""
    coordinator = Coordinator(new_stage({"static_member_fenced": {"enabled": False}}))
    for number in range(3):
        coordinator.join(f"s{number}", f"app-{number}", instance=f"i{number}")
    coordinator.stage.wait(60 * MINUTE)
    old = "s0"
    for turn in range(6):
        coordinator.away(old)
        coordinator.stage.wait(3_000)
        coordinator.replace(old, f"t{turn}", "i0")
        old = f"t{turn}"
        coordinator.stage.wait(2_000)

    assert len({one.id for one in coordinator.stage.told(STORM)}) == 1


def test_one_rebalance_in_three_steps_is_one(coordinator: Coordinator) -> None:
    """Assigning and Reconciling carry on what began."""
    coordinator.stage.judge.configure(b'{"rules":{"rebalance_storm":{"rebalances":2}}}')
    coordinator.go("m3", CauseKind.SESSION_TIMEOUT)
    coordinator.stage.wait(MINUTE)

    assert coordinator.stage.told(STORM) == []
