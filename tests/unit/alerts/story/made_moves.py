"""Transitions of one group, as its story is told from them."""

from typing import Any

import msgspec

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Basis, Cause, Transition

T0 = 1_700_000_000_000
"""2023-11-14 22:13:20 UTC."""
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
STABLE, EMPTY, DEAD = GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD


def move(
    at_ms: int,
    source: GroupState,
    target: GroupState,
    generation: int,
    *who: Any,
    **changes: Any,
) -> Transition:
    """One transition, ``at_ms`` after T0; ``who``: the cause's kind, and the client behind it."""
    kind, client = (*who, CauseKind.UNKNOWN, "")[:2] if len(who) != 1 else (who[0], "")
    cause = Cause(
        kind=kind,
        member_id=f"{client}-id" if client else "",
        client_id=client,
        client_host="/10.0.0.7" if client else "",
        detail=changes.pop("detail", ""),
    )
    one = Transition(
        id=f"{at_ms}{target}{generation}",
        cluster="eu",
        group="orders",
        group_type="classic",
        from_state=source,
        to_state=target,
        generation=generation,
        at_ms=T0 + at_ms,
        recorded_at_ms=T0 + at_ms,
        cause=cause,
        basis=Basis.OBSERVED,
        source="coordinator_log",
    )
    return msgspec.structs.replace(one, **changes)


def rebalance(at_ms: int, generation: int, kind: CauseKind, client: str = "app") -> list[Transition]:
    """One rebalance that works: 3 s to join, 500 ms to assign."""
    return [
        move(at_ms, STABLE, PREPARING, generation - 1, kind, client),
        move(at_ms + 3_000, PREPARING, COMPLETING, generation, CauseKind.JOIN_COMPLETED),
        move(at_ms + 3_500, COMPLETING, STABLE, generation, CauseKind.ASSIGNMENT_STORED),
    ]
