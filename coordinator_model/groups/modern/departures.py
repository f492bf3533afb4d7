"""Finds out how a member of a modern group left.

Its records show only that it is gone, whether it left or was fenced.  The INFO log says how, just before.
Where that log is not read, the member's last requests decide.
"""

from typing import NamedTuple

from coordinator_model.groups.core import Turn
from coordinator_model.kafka import MODERN_INTERVAL_MS, CauseKind
from coordinator_model.observations import MemberState
from coordinator_model.state import AWAY, Basis, Group, Hint, Modern, ModernMember

HINT_MS = 60_000
"""A line about a departure comes right before its record; an older one belongs to a failed write."""
HINTS_MAX = 256
SILENT_BEATS = 2.5
"""A member that missed so many heartbeats did not leave by request."""
_SLACK_MS = 1_000


class Going(NamedTuple):
    """How a member left."""

    how: CauseKind
    basis: Basis
    text: str = ""
    client_reason: str = ""


def remember(modern: Modern, member_id: str, hint: Hint) -> None:
    """Keep what a log line says of a departure until its record comes."""
    modern.hints = {
        name: known for name, known in modern.hints.items() if hint.at_ms - known.at_ms <= HINT_MS
    }
    modern.hints[member_id] = hint
    if len(modern.hints) > HINTS_MAX:
        del modern.hints[next(iter(modern.hints))]


def how_it_went(turn: Turn, modern: Modern, before: ModernMember) -> Going:
    """Return how a member left whose records are deleted; ``before`` is its state before that."""
    hint = modern.hints.pop(before.member_id, None)
    if hint is not None and turn.at_ms - hint.at_ms <= HINT_MS:
        return Going(CauseKind(hint.kind), Basis.OBSERVED, hint.text, hint.client_reason)
    if before.epoch == AWAY:
        return Going(CauseKind.SESSION_TIMEOUT, Basis.OBSERVED, "a static member that did not come back")
    if _overslept(before, turn.at_ms):
        return Going(CauseKind.REBALANCE_TIMEOUT, Basis.INFERRED)
    if _was_silent(turn, before):
        return Going(CauseKind.SESSION_TIMEOUT, Basis.INFERRED)
    return Going(CauseKind.MEMBER_LEFT, Basis.INFERRED)


def _overslept(member: ModernMember, at_ms: int) -> bool:
    """Return whether the member did not give up partitions in time.  Kafka: its rebalance timer runs then."""
    timeout_ms = -1 if member.metadata is None else member.metadata.rebalance_timeout_ms
    waited_ms = at_ms - member.since_ms + _SLACK_MS
    return member.state is MemberState.UNREVOKED and member.since_ms >= 0 and 0 < timeout_ms <= waited_ms


def _was_silent(turn: Turn, before: ModernMember) -> bool:
    member = turn.group.members.get(before.member_id)
    if member is None or member.last_heartbeat_ms < 0 or not turn.context.requests_live:
        return False
    interval_ms = before.interval_ms if before.interval_ms > 0 else MODERN_INTERVAL_MS
    return turn.at_ms - member.last_heartbeat_ms > interval_ms * SILENT_BEATS


def replaced(group: Group, modern: Modern, gone: ModernMember, joined: list[str]) -> str:
    """Return the member that joined under the former member's instance id, "" if there is none."""
    known = group.members.get(gone.member_id)
    instance_id = gone.metadata.instance_id if gone.metadata else known.instance_id if known else None
    if instance_id is None:
        return ""
    for member_id in joined:
        metadata = modern.members[member_id].metadata
        if metadata is not None and metadata.instance_id == instance_id:
            return member_id
    return ""
