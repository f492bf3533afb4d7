"""The table of moves against Kafka's own, and the diagram against the table."""

from pathlib import Path

import pytest

import coordinator_model
from coordinator_model.kafka.diagram import mermaid
from coordinator_model.kafka.states import MOVES, GroupState, can_move

CLASSIC = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
)
# Written by hand in Kafka's own direction (target <- sources), so that a slip in MOVES is not repeated here.
KAFKA_VALID_PREVIOUS = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: set(CLASSIC),
}
BIRTH = (GroupState.DEAD, GroupState.EMPTY)
"""Kafka makes a new object in state Empty; for the mirror that is the way out of Dead."""


@pytest.mark.parametrize("source", CLASSIC)
@pytest.mark.parametrize("target", CLASSIC)
def test_moves_are_kafkas(source: GroupState, target: GroupState) -> None:
    """A move is possible where Kafka allows it, and for a group that is born."""
    allowed = source in KAFKA_VALID_PREVIOUS[target] or (source, target) == BIRTH

    assert can_move(source, target) is allowed


@pytest.mark.parametrize("state", [GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.NOT_READY])
def test_modern_states_are_not_in_the_table(state: GroupState) -> None:
    """The states of KIP-848 groups are derived, so nothing moves in or out of them."""
    moves = {(source, target) for source, targets in MOVES.items() for target in targets}

    assert not {move for move in moves if state in move}


def test_states_are_spelled_as_brokers_spell_them() -> None:
    """The names are part of the contract with dashboards."""
    assert [str(state) for state in GroupState] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
        "Assigning",
        "Reconciling",
        "NotReady",
    ]


def test_diagram_has_every_move_once() -> None:
    """The diagram and the table have the same arrows."""
    arrows = [line.strip().split(":")[0] for line in mermaid().split("\n") if " --> " in line]

    assert sorted(arrows) == sorted(
        ["[*] --> Dead", *(f"{source} --> {target}" for source in MOVES for target in MOVES[source])]
    )


def test_readme_shows_the_current_diagram() -> None:
    """README.md shows what ``python -m coordinator_model.kafka.diagram`` prints."""
    readme = Path(coordinator_model.__file__).with_name("README.md").read_text()

    assert mermaid() in readme
