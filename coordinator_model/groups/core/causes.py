"""Finds the cause of a transition, as exactly as the sources allow."""

import msgspec

from coordinator_model.groups.core.members import client_id_in, client_of, departure_of
from coordinator_model.kafka import MAYBE_LEAVES, RETENTION_MIN_MS, TIMEOUTS, CauseKind, GroupState
from coordinator_model.observations import GroupRecorded, MemberRecord, Reason
from coordinator_model.state import Cause, Departure, Group

DETAIL_MAX = 1_000
TOLD_WITHIN_MS = 5_000
"""Members learn of a rebalance with their next heartbeat, which clients send every 3 s by default."""
_LATELY_MS = 1_000


def cause_by(group: Group, kind: CauseKind, member_id: str, detail: str = "") -> Cause:
    """Return a cause that names the member and client responsible."""
    client_id, client_host = client_of(group, member_id)
    return Cause(
        kind=kind,
        member_id=member_id,
        client_id=client_id,
        client_host=client_host,
        detail=detail[:DETAIL_MAX],
    )


def start_of_rebalance(group: Group, reason: Reason, at_ms: int) -> Cause:
    """Return why a rebalance began: the coordinator's reason, refined by how the member left.

    The coordinator logs that a member failed or left before it logs the rebalance.
    """
    kind = _kind(reason.kind)
    gone = _culprit_gone(group, kind, reason, at_ms)
    if gone is not None and kind in MAYBE_LEAVES and gone.how is not CauseKind.UNKNOWN:
        kind = gone.how
    named = next(filter(None, reason.member_ids), "")
    member_id = named or (gone.member_id if gone else "")
    said = cause_by(group, kind, member_id, _detail(reason, gone))
    if reason.instance_id is not None and said.client_id == client_id_in(member_id) == reason.instance_id:
        # A static member's id begins with its instance id, which is no client id.
        return Cause(kind=kind, member_id=member_id, client_host=said.client_host, detail=said.detail)
    return said


def emptied(group: Group, at_ms: int) -> Cause:
    """Return why the group is empty: the timeout that removed the last member, or that all members left."""
    last = group.departures[-1] if group.departures else None
    running = group.rebalance if group.state is GroupState.PREPARING_REBALANCE else None
    # A generation that has begun is emptied by members that left it since, not by earlier departures.
    since_ms = running.started_at_ms - _LATELY_MS if running is not None else group.state_since_ms + 1
    if last is not None and last.at_ms >= max(since_ms, at_ms - _LATELY_MS if running is None else -1):
        kind = last.how if last.how in TIMEOUTS else CauseKind.ALL_MEMBERS_LEFT
        return cause_by(group, kind, last.member_id)
    if running is not None and running.cause.kind in TIMEOUTS:
        return running.cause
    return Cause(kind=CauseKind.ALL_MEMBERS_LEFT)


def start_before_emptiness(why: Cause) -> Cause:
    """Return the cause of the rebalance that ended with no member, if its own line is lost."""
    if why.kind is not CauseKind.ALL_MEMBERS_LEFT:
        return why
    kind = CauseKind.MEMBER_LEFT if why.member_id else CauseKind.UNKNOWN
    return msgspec.structs.replace(why, kind=kind)


def start_by_emptiness(group: Group, at_ms: int) -> Cause:
    """Infer why a group emptied from the sync phase: its timer removes all members without a sync at once."""
    last = group.rebalance
    timeout_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)
    is_sync = (
        group.state is GroupState.COMPLETING_REBALANCE
        and last is not None
        and 0 < timeout_ms <= at_ms - last.joined_at_ms
    )
    if not is_sync:
        return Cause(kind=CauseKind.UNKNOWN)
    return cause_by(group, CauseKind.SYNC_TIMEOUT, group.leader_id or next(iter(group.members)))


def start_by_record(group: Group, record: GroupRecorded) -> Cause:
    """Infer why an unseen rebalance began, from the members that are new in the record that ended it."""
    if group.members.keys() - {member.member_id for member in record.members}:
        return Cause(kind=CauseKind.UNKNOWN)
    new = [member for member in record.members if member.member_id not in group.members]
    if len(new) == 1:
        return start_by_arrival(new[0])
    if new:
        return Cause(kind=CauseKind.MEMBER_JOINED)
    changed = [
        m
        for m in record.members
        if None not in {group.members[m.member_id].topics, m.topics}
        and group.members[m.member_id].topics != m.topics
    ]
    if changed:
        return cause_by(group, CauseKind.SUBSCRIPTION_CHANGED, changed[0].member_id)
    return Cause(kind=CauseKind.UNKNOWN)


def start_by_arrival(member: MemberRecord) -> Cause:
    """Return the cause of a rebalance that this member's arrival began."""
    return Cause(
        kind=CauseKind.MEMBER_JOINED,
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
    )


def start_by_newcomer(group: Group, told_ms: int) -> tuple[Cause, int] | None:
    """Infer that a client began the rebalance shortly after it got a member id; None if no client did.

    A client joins with its id at once; the other members learn of the rebalance with their next heartbeat.
    """
    since_ms = max(group.state_since_ms, told_ms - TOLD_WITHIN_MS)
    came = [(at_ms, member_id) for member_id, at_ms in group.pending.items() if since_ms <= at_ms < told_ms]
    if not came:
        return None
    at_ms, member_id = min(came)
    return cause_by(group, CauseKind.MEMBER_JOINED, member_id), at_ms


def gone_for_good(group: Group, at_ms: int, *, would_be_told: bool = False, late_ms: int = 0) -> Cause:
    """Return why a group's record was deleted, as far as a bare tombstone shows.

    Args:
        group: before the deletion is applied.
        at_ms: when its record was deleted.
        would_be_told: whether a source is read that reports DeleteGroups, at most a moment later.
        late_ms: by how much ``at_ms`` may be later than the write (a record's time is that of the write).

    Only a conversion to another protocol deletes the record of a group with members.  Expiry and DeleteGroups
    delete a group's last offsets in the same write as its record.  OffsetDelete and the deletion of a topic
    leave an empty group, which the next cleanup deletes.
    """
    if group.members:
        return Cause(kind=CauseKind.PROTOCOL_CHANGED, detail="converted to another group protocol")
    if 0 <= group.offsets_gone_ms < at_ms - late_ms:
        return Cause(kind=CauseKind.GROUP_DELETED, detail="its last offsets had been deleted")
    if group.last_commit_ms < 0:
        return Cause(kind=CauseKind.OFFSETS_EXPIRED, detail="it had no offsets")
    last_use_ms = max(group.last_commit_ms, group.state_since_ms)
    if not would_be_told and at_ms - last_use_ms < RETENTION_MIN_MS:
        return Cause(kind=CauseKind.GROUP_DELETED)
    return Cause(kind=CauseKind.OFFSETS_EXPIRED)


def _kind(text: str) -> CauseKind:
    try:
        return CauseKind(text)
    except ValueError:
        return CauseKind.UNKNOWN


def _culprit_gone(group: Group, kind: CauseKind, reason: Reason, at_ms: int) -> Departure | None:
    """Return the departure that caused a rebalance; the latest one if the reason names no member."""
    for member_id in reason.member_ids:
        gone = departure_of(group, member_id)
        if gone is not None:
            return gone
    if kind is CauseKind.MEMBER_LEFT and not any(reason.member_ids) and group.departures:
        latest = group.departures[-1]
        return latest if abs(at_ms - latest.at_ms) <= _LATELY_MS else None
    return None


def _detail(reason: Reason, gone: Departure | None) -> str:
    if gone is not None and gone.reason and gone.reason not in reason.text:
        return f"{reason.text[: DETAIL_MAX - len(gone.reason) - 17]}; client reason: {gone.reason}"
    return reason.text
