"""Draws the state diagram of the model from ``MOVES``: ``python -m coordinator_model.kafka.diagram``."""

from coordinator_model.kafka.states import MOVES, GroupState

_WHY = {
    (GroupState.DEAD, GroupState.EMPTY): "first member or first commit",
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): "a member joins",
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): "join phase ends, generation + 1",
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): "nobody left, generation + 1",
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): "assignment stored",
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): "join, departure or sync timeout",
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): "join or departure",
    (GroupState.EMPTY, GroupState.DEAD): "deleted or expired",
}


def mermaid() -> str:
    """Return the classic state machine as a Mermaid diagram, every edge of ``MOVES`` once."""
    edges = [
        f"    {source} --> {target}" + (f": {_WHY[source, target]}" if (source, target) in _WHY else "")
        for source in GroupState
        for target in GroupState
        if target in MOVES.get(source, frozenset())
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> Dead", *edges, "```"])


if __name__ == "__main__":
    print(mermaid())  # noqa: T201 - a person pastes it into README.md
