"""The coordinator's memory of one offsets partition, and its ways to the world.

``Shard`` is what the modules of the requests work on.  It is made anew by every load; time, timers
and outcomes come from the ``Host`` it lives in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from typing import Protocol as Interface

from coordinator_model.decoding.coordinator_reasons import reason_of
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState, can_move
from tests.oracle import log_lines
from tests.oracle.due import Due, SessionDue
from tests.oracle.group import Group, Member
from tests.oracle.log_lines import Line
from tests.oracle.offset_store import OffsetStore
from tests.oracle.timeline import Change, Journal, TimelineMap
from tests.oracle.values.config import Config
from tests.oracle.values.errors import Errors, IllegalStateError, RefusedError
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.responses import Response
from tests.oracle.values.stored import Record

AfterAppend = Callable[[Errors | None], None]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What an operation gives: records to append, then an answer.

    ``replay`` is false where the operation has changed memory itself; ``after_append`` is told when
    the records are committed (None) or could not be stored.  Kafka: ``CoordinatorResult``.
    """

    records: Sequence[Record] = ()
    response: Response | None = None
    after_append: AfterAppend | None = None
    replay: bool = True
    endings: Mapping[str, "Ending"] = field(default_factory=dict)
    """Why groups go whose tombstones are among the records."""


class Ending(NamedTuple):
    """Why a group is gone."""

    cause: CauseKind
    reason: str


NOTHING = Result()


class Host(Interface):
    """Where a shard lives."""

    config: Config
    now_ms: int

    def log(self, line: Line) -> None:
        """Write a line of the coordinator's log."""

    def moved(
        self,
        group: Group,
        from_state: GroupState,
        to_state: GroupState,
        cause: CauseKind,
        *,
        member_id: str = "",
        reason: str = "",
    ) -> None:
        """Tell that a group changed its state."""

    def answer(self, ticket: Ticket, response: Response) -> None:
        """Answer a request, unless it has its answer."""

    def set_timer(self, due: Due, delay_ms: int) -> None:
        """Run an operation later; what has the same key is replaced."""

    def cancel_timer(self, key: str) -> None:
        """Forget a timer."""

    def new_member_id(self, prefix: str) -> str:
        """Make a member id."""


class Shard:
    """The groups and offsets of one partition."""

    def __init__(self, host: Host) -> None:
        """Know nothing yet."""
        self.host = host
        self.journal = Journal()
        self.groups: TimelineMap[str, Group] = TimelineMap(self.journal)
        self.offsets = OffsetStore(self.journal)

    @property
    def config(self) -> Config:
        """The broker's configuration, which may change while it lives."""
        return self.host.config

    @property
    def now_ms(self) -> int:
        """The coordinator's clock."""
        return self.host.now_ms

    # --- groups ---

    def group(self, group_id: str) -> Group:
        """Return a group.

        Raises:
            RefusedError: GROUP_ID_NOT_FOUND.
        """
        found = self.groups.live.get(group_id)
        if found is None:
            raise RefusedError(Errors.GROUP_ID_NOT_FOUND)
        return found

    def find(self, group_id: str) -> Group | None:
        """Return a group, or None."""
        return self.groups.live.get(group_id)

    def create(self, group_id: str) -> Group:
        """Make a group that is Empty at generation 0."""
        group = Group(group_id=group_id, state_since_ms=self.now_ms)
        self.groups.put(group_id, group)
        self.host.moved(group, GroupState.DEAD, GroupState.EMPTY, CauseKind.GROUP_CREATED)
        return group

    def remove(self, group_id: str, ending: Ending) -> None:
        """Forget a group (Kafka does not touch its state then)."""
        group = self.groups.pop(group_id)
        if group is not None:
            self.host.moved(group, group.state, GroupState.DEAD, ending.cause, reason=ending.reason)

    def revert(self) -> None:
        """Forget what was changed since the last append (groups and offsets, never a group's inside)."""
        for change in self.journal.revert():
            self._tell_reverted(change)

    def _tell_reverted(self, change: Change) -> None:
        if change.where is self.groups and change.before is None:
            group: Group = change.after
            reason = "its creation could not be stored"
            self.host.moved(group, group.state, GroupState.DEAD, CauseKind.UNKNOWN, reason=reason)

    def move(self, group: Group, to_state: GroupState, cause: CauseKind, *, reason: str = "") -> None:
        """Change a group's state; the one place where that happens (Kafka: ``transitionTo``).

        Raises:
            IllegalStateError: the machine has no such move.
        """
        if not can_move(group.state, to_state):
            raise IllegalStateError(f"{group.group_id}: {group.state} -> {to_state}")
        member_id = ""
        if reason:
            told = reason_of(reason)
            cause = CauseKind(told.kind)
            member_id = next(iter(told.member_ids), "")
        if cause is CauseKind.MEMBER_LEFT and group.last_gone is CauseKind.POLL_TIMEOUT:
            cause = CauseKind.POLL_TIMEOUT
        group.previous_state, group.state = group.state, to_state
        group.state_since_ms = self.now_ms
        self.host.moved(group, group.previous_state, to_state, cause, member_id=member_id, reason=reason)

    def validate_member(
        self, group: Group, member_id: str, group_instance_id: str | None, operation: str
    ) -> None:
        """Check who speaks, and log who is fenced.

        Raises:
            RefusedError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
        """
        try:
            group.validate_member(member_id, group_instance_id)
        except RefusedError as refused:
            if refused.error is Errors.FENCED_INSTANCE_ID:
                self.host.log(log_lines.fenced(group, member_id, group_instance_id, operation))
            raise

    # --- timers ---

    def expect_heartbeat(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """Restart a member's session timer."""
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.set_timer(SessionDue(group.group_id, member.member_id), delay_ms)

    def set_timer(self, due: Due, delay_ms: int) -> None:
        """Let something happen later; what has the same key is replaced."""
        self.host.set_timer(due, delay_ms)

    def cancel_timer(self, due: Due) -> None:
        """Forget what would happen later."""
        self.host.cancel_timer(due.key)
