"""Dates the transition of a log line by the buffered records that wait for this line.

The time of a line may come from whoever shipped it (an envelope's time), and then seem later than the record
that the transition wrote.  The record has the coordinator's own time, and that of the end of its join phase.
"""

from coordinator_model.groups.core.places import place
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import GroupState
from coordinator_model.observations import GroupRecorded, unpack
from coordinator_model.state import Group


def line_ms(turn: Turn, to: GroupState, generation: int) -> int:
    """Return when (epoch ms) a line's transition happened: not after the records of that place or later."""
    if turn.group.held_record is None:
        return turn.at_ms
    return min([turn.at_ms, *_bounds(turn.group, place(to, generation))])


def _bounds(group: Group, here: tuple[int, int]) -> list[int]:
    bounds: list[int] = []
    for seen in unpack(group.held_record or b""):
        what = seen.what
        if not isinstance(what, GroupRecorded):
            continue
        if place(GroupState.STABLE if what.members else GroupState.EMPTY, what.generation) >= here:
            bounds.append(seen.at_ms)
        # A record with members has the time at which its generation's join phase ended.
        ended = place(GroupState.COMPLETING_REBALANCE, what.generation)
        if what.members and what.state_since_ms >= 0 and ended >= here:
            bounds.append(what.state_since_ms)
    return bounds
