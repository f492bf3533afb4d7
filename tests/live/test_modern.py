"""Consumer, share and streams groups against a real broker: every answer, transition and cause."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streaming.jars.java import java_command
from tests.live.support import modern
from tests.live.support.modern import Recorded
from tests.live.support.modern_play import PLANNED, play
from tests.live.support.stage import need_jars

pytestmark = [pytest.mark.kafka]

Told = dict[str, list[dict[str, Any]]]
MADE_OF_IT = {"assignment_stored", "join_completed"}
"""Causes of moves that complete what something else began."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("modern")


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Recorded:
    need_jars("broker")
    if not Path(java_command()).resolve().with_name("javac").exists():
        pytest.skip("no Java compiler: the members are a Java program")
    return play(folder)


@pytest.fixture(scope="module")
def told(recorded: Recorded, folder: Path) -> dict[str, Told]:
    """Mode -> group -> its transitions."""
    found: dict[str, Told] = {}
    for mode in ("offsets", "quiet", "requests", "full"):
        for one in modern.told(recorded, folder, mode):
            found.setdefault(mode, {}).setdefault(one["group"], []).append(one)
    return found


def causes(transitions: list[dict[str, Any]], recorded: Recorded) -> Counter[tuple[str, str]]:
    names = {one["member_id"]: one["client_id"] for poll in recorded.polls for one in poll["members"]}
    found = [(one["cause"]["kind"], one["cause"]["member_id"]) for one in transitions]
    return Counter((kind, names.get(member, "")) for kind, member in found if kind not in MADE_OF_IT)


def test_every_answer_of_the_broker_is_the_picture_from_the_topic_alone(recorded: Recorded) -> None:
    """State, epochs, members, their epochs, assignments and targets: five times a second, for each group."""
    judged, wrong = modern.wrong_polls(recorded.polls, modern.pictures(recorded.rows))

    assert recorded.failed == []
    assert judged > 300
    assert wrong == []


def test_an_epoch_that_moves_nobody_is_counted(recorded: Recorded) -> None:
    """A topic that grows under a single member is a rebalance, though the group stays Stable throughout."""
    last = modern.pictures(recorded.rows)["rgx"][-1]

    assert last.rebalances == {
        "subscription_changed": 1,
        "partitions_changed": 1,
        "all_members_left": 1,
    }


@pytest.mark.parametrize("mode", ["quiet", "full", "requests"])
def test_every_transition_has_its_cause(mode: str, told: dict[str, Told], recorded: Recorded) -> None:
    """Whatever was done to a group is told, with who did it, and nothing else."""
    found = {group: set(causes(told[mode][group], recorded)) for group in PLANNED}

    assert found == PLANNED


def test_the_topic_alone_tells_every_transition(told: dict[str, Told]) -> None:
    """The logs add causes and no moves; one transition follows from the other."""
    for group in PLANNED:
        moves = {
            mode: [(one["from"], one["to"], one["generation"]) for one in told[mode][group]] for mode in told
        }
        assert moves["offsets"] == moves["quiet"] == moves["full"] == moves["requests"]
        chain = [told["offsets"][group][0]["from"], *(to for _, to, _ in moves["offsets"])]
        assert chain == ["Dead", *(one["from"] for one in told["offsets"][group][1:]), chain[-1]]


def test_a_conversion_there_and_back_is_one_group(told: dict[str, Told]) -> None:
    """A classic group that a consumer of the new protocol joins and leaves changes type and never ends."""
    for mode in told:
        types = [one["group_type"] for one in told[mode]["mig"]]
        assert [kind for n, kind in enumerate(types) if n == 0 or kind != types[n - 1]] == [
            "classic",
            "consumer",
            "classic",
        ]
        assert "Dead" not in {one["to"] for one in told[mode]["mig"]}
        assert sum(one["cause"]["kind"] == "protocol_changed" for one in told[mode]["mig"]) == 2


def test_the_cost_of_a_rebalance_is_what_the_pictures_show(told: dict[str, Told], recorded: Recorded) -> None:
    """Time without an owner and moves, counted the slow way; the logs add nothing to them."""
    histories, compared = modern.pictures(recorded.rows), []
    for group in PLANNED:
        costs = {
            mode: {one["at_ms"]: one["cost"] for one in told[mode][group] if "cost" in one} for mode in told
        }
        assert costs["offsets"] == costs["quiet"] == costs["full"] == costs["requests"]
        for ended_ms, expected in modern.recounted(histories[group]).items():
            cost = costs["offsets"][ended_ms]
            assert modern.Cost(cost["partition_ms"], cost["moved"]) == expected, (group, ended_ms)
            assert cost["least"] <= cost["moved"]
            compared.append(expected)

    assert len(compared) >= 6
    assert sum(one.partition_ms > 0 and one.moved > 0 for one in compared) >= 4


def test_a_restarted_coordinator_changes_nothing(told: dict[str, Told]) -> None:
    """The new coordinator reads the same records."""
    kinds = {one["cause"]["kind"] for group in PLANNED for one in told["quiet"][group]}

    assert "coordinator_moved" not in kinds
