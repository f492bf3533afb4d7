"""What the coordinator did, in order: answers, moves of groups, records, lines of its log."""

from typing import TypeAlias

import msgspec

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from tests.oracle.values.requests import Request
from tests.oracle.values.responses import Response
from tests.oracle.values.stored import Record


class Ticket:
    """A request on its way: ``response`` and ``answered_at_ms`` are None while it is parked.

    Some are parked for ever, as in Kafka: a join that its member repeats, the sync of a member that leaves.
    """

    def __init__(self, number: int, at_ms: int, request: Request) -> None:
        """Kafka's future; made by ``Coordinator.request``."""
        self.number = number
        self.arrived_at_ms = at_ms
        self.request = request
        self.response: Response | None = None
        self.answered_at_ms: int | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the client has its answer."""
        return self.response is not None

    def __repr__(self) -> str:
        return f"Ticket({self.number}, {self.request!r}, {self.response!r} at {self.answered_at_ms})"


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Base: everything has an instant."""

    at_ms: int


class Answered(_Outcome, frozen=True, tag="Answered"):
    """A response leaves; ``ticket`` numbers the request, from 1."""

    ticket: int
    response: Response


class LastFailover(_Outcome, frozen=True, tag="Moved"):
    """A group changed its state.

    ``Dead`` is what it is before it exists and after it is gone, although Kafka keeps no state then.
    ``generation`` is that of the group after the move; ``reason`` the coordinator's own words, if it has any.
    """

    group_id: str
    from_state: GroupState
    to_state: GroupState
    generation: int
    cause: CauseKind
    member_id: str = ""
    reason: str = ""


class Appended(_Outcome, frozen=True, tag="Appended"):
    """A record was appended to ``__consumer_offsets`` at ``offset``."""

    offset: int
    record: Record


class Committed(_Outcome, frozen=True, tag="Committed"):
    """Records before ``offset`` are replicated; told only where that takes time."""

    offset: int


class Truncated(_Outcome, frozen=True, tag="Truncated"):
    """A new leader does not have the records from ``offset`` on."""

    offset: int


class Logged(_Outcome, frozen=True, tag="Logged"):
    """A line of the coordinator's log; ``message`` is Kafka's, without the prefix."""

    level: str
    kind: str
    message: str
    group_id: str = ""


Outcome: TypeAlias = Answered | LastFailover | Appended | Committed | Truncated | Logged
