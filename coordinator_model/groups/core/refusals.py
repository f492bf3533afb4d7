"""Notes requests that the coordinator refused, for the rules; they make no transition.

A client without a retry pause may try a thousand times a second, so the same refusal of one sender is noted
once in ``AGAIN_MS``.
"""

from coordinator_model import observations as on
from coordinator_model.groups.core.members import departure_of, member_of_instance
from coordinator_model.groups.core.session_timer import USUAL_SLACK, is_rhythm_known, note_gap, usual_gap_ms
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import Error
from coordinator_model.state import COMMIT, JOIN, Group, IdUnused, Member, Paused, Refused

AGAIN_MS = 1_000
PARKED_MS = 100
"""An answer that took longer had waited in the coordinator."""
PAUSE_SHARE = 0.4
"""A pause of this share of the session timeout counts; shorter ones never get here (``WAKE_GAP``)."""
NARROW_SHARE = 0.8
REGULAR = 10
"""So many pauses in a row are the client's configuration, not an accident."""

_COMMITS = frozenset(
    {
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_MEMBER_EPOCH,
        Error.STALE_MEMBER_EPOCH,
    }
)
_JOINS = frozenset(
    {Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL, Error.INVALID_SESSION_TIMEOUT}
)
_EPOCHS = frozenset({Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID})


def commit_refused(turn: Turn, what: on.CommitsAnswered | on.TransactionalCommit) -> None:
    """Note a commit that its sender may not make."""
    if what.error_code not in _COMMITS:
        return
    refused = Refused(
        at_ms=turn.at_ms,
        operation=COMMIT,
        error_code=what.error_code,
        member_id=what.member_id,
        generation=what.generation,
        instance_id=what.instance_id,
        client_id=what.client.client_id,
        client_host=what.client.host,
        connection=what.client.connection,
        claims=what.claims if isinstance(what, on.CommitsAnswered) else what.offsets,
    )
    _note(turn, refused)


def join_refused(turn: Turn, what: on.JoinAnswered) -> None:
    """Note a client that the coordinator does not let join."""
    if what.error_code not in _JOINS:
        return
    refused = Refused(
        at_ms=turn.at_ms,
        operation=JOIN,
        error_code=what.error_code,
        member_id=what.requested_member_id,
        instance_id=what.instance_id,
        client_id=what.client.client_id,
        client_host=what.client.host,
        connection=what.client.connection,
        parked=turn.at_ms - what.arrived_at_ms > PARKED_MS,
        protocols=(what.protocol_type, *what.protocols),
        session_timeout_ms=what.session_timeout_ms,
    )
    _note(turn, refused)


def sync_refused(turn: Turn, what: on.SyncAnswered) -> None:
    """Note a member that another process replaced, or whose protocol differs from the group's."""
    if what.error_code in {Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL}:
        parked = turn.at_ms - what.arrived_at_ms > PARKED_MS
        _note_member(turn, what, "sync", generation=what.generation, parked=parked)


def heartbeat_fenced(turn: Turn, what: on.Heartbeats) -> None:
    """Note a live member that another process replaced under its instance id."""
    _note_member(turn, what, "heartbeat", generation=what.generation)


def leave_fenced(turn: Turn, what: on.LeaveAnswered) -> None:
    """Note a leaving member that another process replaced under its instance id."""
    _note_member(turn, what, "leave")


def epoch_refused(turn: Turn, what: on.EpochAnswered) -> None:
    """Note a member of a modern protocol that asks for an instance id that another member has.

    Kafka: a joining member creates the group, so "no such group" means that the group has another type.
    """
    joins = what.asked == 0
    if what.error_code in _EPOCHS or (joins and what.error_code == Error.GROUP_ID_NOT_FOUND):
        _note_member(turn, what, JOIN if joins else "heartbeat", generation=what.asked)


def line_fenced(turn: Turn, what: on.InstanceFenced | on.InstanceRefused) -> None:
    """Note an instance id that two processes use, as the coordinator's own line reports it."""
    operation, error_code = _fenced_in(what)
    member = turn.group.members.get(what.member_id) or departure_of(turn.group, what.member_id)
    refused = Refused(
        at_ms=turn.at_ms,
        operation=operation,
        error_code=error_code,
        member_id=what.member_id,
        instance_id=what.instance_id,
        client_id=member.client_id if member else "",
        client_host=member.client_host if member else "",
        holder_id=what.by_member_id,
    )
    _note(turn, refused)


def _fenced_in(what: on.InstanceFenced | on.InstanceRefused) -> tuple[str, int]:
    if isinstance(what, on.InstanceFenced):
        return what.operation, Error.FENCED_INSTANCE_ID
    return ("heartbeat", Error.FENCED_INSTANCE_ID) if what.fenced else (JOIN, Error.UNRELEASED_INSTANCE_ID)


def id_unused(turn: Turn, what: on.PendingMemberExpired) -> None:
    """Note an id that was handed out and never used."""
    turn.step.notes.append(IdUnused(at_ms=turn.at_ms, member_id=what.member_id))


def pause_before(group: Group, what: on.Heartbeats) -> Paused | None:
    """Return the note about the pause before a heartbeat; call it before that heartbeat is applied.

    Regular pauses are noted once, after ``REGULAR`` of them in a row.  Each narrow escape is noted, unless
    the member always pauses that long.
    """
    member = group.members.get(what.member_id)
    if member is None or what.error_code:
        return None
    # Commits, joins and syncs restart the session timer as well.
    since_ms, timeout_ms = max(member.last_heartbeat_ms, member.session_base_ms), member.session_timeout_ms
    pause_ms = what.times[0] - since_ms
    is_first, is_known = member.last_heartbeat_ms < 0, is_rhythm_known(member)
    usual_ms = usual_gap_ms(member, since_ms)
    _note_rhythm(group, member, since_ms, what.times[0])
    if is_first or not PAUSE_SHARE * timeout_ms <= pause_ms < timeout_ms:
        return None
    member.pauses = member.pauses + 1 if usual_ms else 1
    member.paused_until_ms = what.times[-1]
    is_longer = is_known and pause_ms > usual_ms + USUAL_SLACK * timeout_ms
    is_narrow = pause_ms >= NARROW_SHARE * timeout_ms and member.pauses == 1 and is_longer
    if not is_narrow and member.pauses != REGULAR:
        return None
    return Paused(at_ms=what.times[0], member_id=what.member_id, pause_ms=pause_ms, in_a_row=member.pauses)


def _note_rhythm(group: Group, member: Member, since_ms: int, at_ms: int) -> None:
    """Learn from a heartbeat how rarely its member sends them; commits in between do not show that."""
    is_steady = member.last_heartbeat_ms >= max(0, group.state_since_ms)
    gap_ms = at_ms - (member.last_heartbeat_ms if is_steady else since_ms)
    if since_ms >= 0 and PAUSE_SHARE * member.session_timeout_ms <= gap_ms < member.session_timeout_ms:
        note_gap(member, since_ms, gap_ms, at_ms)


_OfMember = on.SyncAnswered | on.Heartbeats | on.LeaveAnswered | on.EpochAnswered


def _note_member(
    turn: Turn, what: _OfMember, operation: str, *, generation: int = -1, parked: bool = False
) -> None:
    holder = member_of_instance(turn.group, what.instance_id)
    is_other = holder is not None and holder.member_id != what.member_id
    refused = Refused(
        at_ms=turn.at_ms,
        operation=operation,
        error_code=what.error_code,
        member_id=what.member_id,
        generation=generation,
        instance_id=what.instance_id,
        client_id=what.client.client_id,
        client_host=what.client.host,
        connection=what.client.connection,
        holder_id=holder.member_id if holder is not None and is_other else "",
        parked=parked,
        protocols=(what.protocol,) if isinstance(what, on.EpochAnswered) else (),
    )
    _note(turn, refused)


def _note(turn: Turn, refused: Refused) -> None:
    group = turn.group
    last = group.refused
    is_same = last is not None and last[:2] == (refused.member_id, refused.error_code)
    if last is not None and is_same and 0 <= refused.at_ms - last[2] < AGAIN_MS:
        return
    group.refused = (refused.member_id, refused.error_code, refused.at_ms)
    turn.step.notes.append(refused)
