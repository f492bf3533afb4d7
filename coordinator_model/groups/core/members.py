"""The members of a group, clients that are about to join, and how former members left."""

import re
from collections.abc import Iterable

import msgspec

from coordinator_model.groups.core.session_timer import restart_session
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import WRITE_TIMEOUT_MS, CauseKind
from coordinator_model.observations import Client, MemberRecord
from coordinator_model.state import Basis, Departure, Group, Member, Replaced

MEMBERS_MAX = 5_000
"""Limit of members, beyond any group that Kafka's protocol can still rebalance; the oldest are dropped."""
PENDING_MAX = 5_000
"""Limit of pending ids: a client that never returns (KAFKA-7610) leaks one per attempt; the oldest go."""
DEPARTURES_MAX = 32
REASON_MAX = 255
"""KIP-800 cuts a client's reason to this many characters; a broker need not."""
POLL_TIMEOUT_SLACK_MS = 1_000
"""How much earlier than its rebalance timeout a silent leave may come and still be a poll timeout:

the last answer to a client is logged a little after its last poll.
"""

_GENERATED_ID = re.compile(r"(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.DOTALL)


def client_of(group: Group, member_id: str) -> tuple[str, str]:
    """Return client id and host of a member, present or former, as far as any source shows them.

    The coordinator builds a dynamic member's id from its client id, so the first line shows the client id.
    """
    member = group.members.get(member_id)
    gone = departure_of(group, member_id)
    client_id = (member.client_id if member else "") or (gone.client_id if gone else "")
    host = (member.client_host if member else "") or (gone.client_host if gone else "")
    if not client_id:
        is_static = member is not None and member.instance_id is not None
        is_static = is_static or (gone is not None and gone.instance_id is not None)
        client_id = "" if is_static else client_id_in(member_id)
    return client_id, host


def client_id_in(member_id: str) -> str:
    """Return the client id (for a static member: the instance id) that a generated member id begins with."""
    made = _GENERATED_ID.fullmatch(member_id)
    return made[1] if made else ""


def client_name(who: Member | Departure) -> str:
    """Return a member's client id, or the prefix of its member id where no source shows the client id."""
    return who.client_id or client_id_in(who.member_id)


def departure_of(group: Group, member_id: str) -> Departure | None:
    """Return how a member left; None if it did not leave lately."""
    return next((gone for gone in reversed(group.departures) if gone.member_id == member_id), None)


def member_of_instance(group: Group, instance_id: str | None) -> Member | None:
    """Return the static member that holds this instance id."""
    if instance_id is None:
        return None
    return next((m for m in group.members.values() if m.instance_id == instance_id), None)


def wait_for(group: Group, member_id: str, at_ms: int) -> None:
    """Note an id that was handed out; an id of a present or former member is never handed out again."""
    if member_id in group.members or departure_of(group, member_id) is not None:
        return
    group.pending.setdefault(member_id, at_ms)
    if len(group.pending) > PENDING_MAX:
        del group.pending[next(iter(group.pending))]


def add(
    turn: Turn, member_id: str, *, instance_id: str | None = None, at_ms: int | None = None
) -> Member | None:
    """Return the member, added to the group if it is new; None if it has left already (a late line)."""
    group = turn.group
    known = group.members.get(member_id)
    if known is not None:
        known.instance_id = known.instance_id or instance_id
        return known
    if not member_id or departure_of(group, member_id) is not None:
        return None
    now = turn.at_ms if at_ms is None else at_ms
    client_id = "" if instance_id is not None else client_id_in(member_id)
    member = Member(
        member_id=member_id,
        client_id=client_id,
        instance_id=instance_id,
        joined_at_ms=now,
        rejoined=True,
    )
    restart_session(member, now, may_set_back=True)
    _insert(group, member)
    if len(group.members) == 1:  # Kafka: ClassicGroup.add, the first one leads
        group.leader_id, group.leader_basis = member_id, Basis.INFERRED
    turn.step.arrivals.append(member_id)
    return member


def learn_client(member: Member, client: Client) -> None:
    """Store what a request shows of the client behind a member."""
    member.client_id = client.client_id or member.client_id
    member.client_host = client.host or member.client_host
    member.connection = client.connection or member.connection
    member.software = client.software or member.software


def learn_client_at_second_hand(member: Member, client_id: str, host: str) -> None:
    """Store what records or the broker's answers show of a member's client, until its own requests do.

    Kafka: replaceStaticMember keeps the client that had the instance id before, so the member's own requests
    win.
    """
    if not member.connection:
        member.client_id, member.client_host = client_id, host


def depart(
    turn: Turn,
    member_id: str,
    how: CauseKind,
    *,
    basis: Basis = Basis.OBSERVED,
    reason: str = "",
    client: Client | None = None,
    at_ms: int | None = None,
) -> None:
    """Remove a member and keep how it left; a second report only adds what the first lacked."""
    group = turn.group
    group.pending.pop(member_id, None)
    told = departure_of(group, member_id)
    if not member_id or (told is not None and member_id not in group.members):
        if told is not None:
            told_ms = turn.at_ms if at_ms is None else at_ms
            better = _complete(group, told, how=how, basis=basis, reason=reason, client=client, at_ms=told_ms)
            if better.how is not told.how:
                turn.step.departures.append(better)
        return
    member = group.members.get(member_id) or Member(member_id=member_id)
    if client is not None:
        learn_client(member, client)
    member.client_id, member.client_host = (
        client_of(group, member_id)[0] or member.client_id,
        member.client_host,
    )
    group.members.pop(member_id, None)
    gone = Departure(
        at_ms=turn.at_ms if at_ms is None else at_ms,
        member_id=member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        how=how,
        joined_at_ms=member.joined_at_ms,
        last_heartbeat_ms=member.last_heartbeat_ms,
        session_timeout_ms=member.session_timeout_ms,
        instance_id=member.instance_id,
        basis=basis,
        connection=member.connection,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        progressed_at_ms=member.progressed_at_ms,
        reason=reason[:REASON_MAX],
    )
    group.departures = (*group.departures, gone)[-DEPARTURES_MAX:]
    turn.step.departures.append(gone)
    if group.leader_id == member_id:
        _elect(group)


def everybody_left(turn: Turn, how: CauseKind, basis: Basis, at_ms: int) -> None:
    """Remove all members at once."""
    for member_id in list(turn.group.members):
        depart(turn, member_id, how, basis=basis, at_ms=at_ms)


def rename(turn: Turn, old_id: str, new_id: str) -> None:
    """Give a returning static member its new id; its other fields stay."""
    group = turn.group
    member = group.members.pop(old_id, None)
    if member is None:
        return
    if member.instance_id is not None:
        turn.step.notes.append(
            Replaced(
                at_ms=turn.at_ms,
                instance_id=member.instance_id,
                old_id=old_id,
                new_id=new_id,
                client_id=member.client_id,
                client_host=member.client_host,
            )
        )
    member.member_id = new_id
    member.former = (old_id, turn.at_ms + WRITE_TIMEOUT_MS)
    member.last_heartbeat_ms, member.connection = -1, ""  # the new process has sent nothing yet
    _insert(group, member)
    if group.leader_id == old_id:
        group.leader_id = new_id
    turn.step.arrivals.append(new_id)


def recognise(turn: Turn, member_id: str) -> None:
    """Give a static member its new id, if no source has shown ``member_id`` before.

    The line about a replacement names only the old id; the new id is built from the same instance id.
    """
    group = turn.group
    if member_id in group.members or member_id in group.pending or departure_of(group, member_id) is not None:
        return
    static = member_of_instance(group, client_id_in(member_id) or None)
    if static is not None and not is_former(turn, static, member_id):
        rename(turn, static.member_id, member_id)


def is_former(turn: Turn, static: Member, member_id: str) -> bool:
    """Return whether this id belongs to the previous process of a static member, in a late answer.

    The previous process's last requests were accepted before it was replaced, and may be logged after that.
    If such requests go on for longer, the process was not replaced.
    """
    return static.former is not None and static.former[0] == member_id and turn.at_ms <= static.former[1]


def adopt_members(turn: Turn, records: Iterable[MemberRecord]) -> None:
    """Set the members to those of a record; keep what only other sources show.

    The mirror did not see how a missing member left, nor how a new member joined.
    """
    group = turn.group
    before = group.members
    for record in records:
        static = member_of_instance(group, record.instance_id)
        if static is not None and static.member_id != record.member_id:
            rename(turn, static.member_id, record.member_id)
    recorded = {record.member_id: record for record in records}
    for member_id in [m for m in before if m not in recorded]:
        depart(turn, member_id, how_it_went_missing(turn, before[member_id]), basis=Basis.INFERRED)
    members = {}
    for record in list(recorded.values())[:MEMBERS_MAX]:
        members[record.member_id] = _member(turn, before.get(record.member_id), record)
        group.pending.pop(record.member_id, None)
    group.members = members


def how_it_went_missing(turn: Turn, member: Member) -> CauseKind:
    """Infer how a member left that a new generation does not name and that was not seen leaving.

    Either the member had been silent for its session timeout, or it is dynamic and did not rejoin before the
    join phase ended.
    """
    last = turn.group.rebalance
    if last is None:
        return CauseKind.UNKNOWN
    if turn.context.requests_live and member.member_id in last.silent:
        return CauseKind.SESSION_TIMEOUT
    if member.instance_id is not None or member.rebalance_timeout_ms <= 0:
        return CauseKind.UNKNOWN
    waited_ms = last.joined_at_ms - last.started_at_ms
    return CauseKind.REBALANCE_TIMEOUT if waited_ms >= member.rebalance_timeout_ms else CauseKind.UNKNOWN


def update_members(group: Group, records: Iterable[MemberRecord]) -> None:
    """Store what a record of the running generation shows of members that are still in the group."""
    for record in records:
        member = group.members.get(record.member_id)
        if member is not None:
            _fill_in(member, record)


def heard(turn: Turn, client: Client, member_id: str) -> None:
    """Recognise a silent poll timeout: the client that left without a reason joins again.

    librdkafka (LeaveGroup v1) and kafka-python (its heartbeat thread never fills in a reason) leave without a
    reason when ``max.poll.interval.ms`` is over, keep the connection to the coordinator, and join again over
    it as soon as the application polls.  A closed client never joins again.
    """
    for gone in turn.group.departures:
        if gone.member_id == member_id or not _is_silent_poll_timeout(gone, client):
            continue
        explained = msgspec.structs.replace(gone, how=CauseKind.POLL_TIMEOUT, basis=Basis.INFERRED)
        _replace(turn.group, gone, explained)
        turn.step.departures.append(explained)


def _is_silent_poll_timeout(gone: Departure, client: Client) -> bool:
    silence_ms = gone.at_ms - gone.progressed_at_ms
    return (
        gone.how is CauseKind.MEMBER_LEFT
        and not gone.reason
        and gone.connection == client.connection != ""
        and gone.progressed_at_ms >= 0
        and 0 < gone.rebalance_timeout_ms <= silence_ms + POLL_TIMEOUT_SLACK_MS
    )


def bring_back(group: Group, gone: Departure) -> Member:
    """Restore a member whose departure did not happen, or was lost with its coordinator."""
    group.departures = tuple(other for other in group.departures if other is not gone)
    member = Member(
        member_id=gone.member_id,
        client_id=gone.client_id,
        client_host=gone.client_host,
        instance_id=gone.instance_id,
        session_timeout_ms=gone.session_timeout_ms,
        rebalance_timeout_ms=gone.rebalance_timeout_ms,
        joined_at_ms=gone.joined_at_ms,
        last_heartbeat_ms=gone.last_heartbeat_ms,
        connection=gone.connection,
        progressed_at_ms=gone.progressed_at_ms,
    )
    _insert(group, member)
    return member


def resume_members(turn: Turn) -> None:
    """Restore the members of the last record, which is all that a new coordinator loads."""
    group = turn.group
    stored_at_ms = group.stored_at_ms
    if stored_at_ms < 0:
        return
    for member in list(group.members.values()):
        if member.joined_at_ms > stored_at_ms or group.stored_members == 0:
            depart(turn, member.member_id, CauseKind.UNKNOWN, basis=Basis.INFERRED)
    for gone in group.departures:
        if gone.joined_at_ms <= stored_at_ms < gone.at_ms and group.stored_members != 0:
            bring_back(group, gone)


def _complete(
    group: Group,
    gone: Departure,
    *,
    how: CauseKind,
    basis: Basis,
    reason: str,
    client: Client | None,
    at_ms: int,
) -> Departure:
    """Add a second report to a known departure; an observation replaces what was inferred."""
    better = gone
    is_reason_late = gone.how is CauseKind.MEMBER_LEFT and how is CauseKind.POLL_TIMEOUT
    if basis is Basis.OBSERVED and (gone.basis is Basis.INFERRED or is_reason_late):
        when_ms = at_ms if gone.basis is Basis.INFERRED else gone.at_ms
        better = msgspec.structs.replace(better, how=how, basis=basis, at_ms=when_ms)
    if client is not None:
        better = msgspec.structs.replace(
            better,
            client_id=better.client_id or client.client_id,
            client_host=better.client_host or client.host,
            connection=client.connection or better.connection,
        )
    better = msgspec.structs.replace(better, reason=better.reason or reason[:REASON_MAX])
    _replace(group, gone, better)
    return better


def _replace(group: Group, old: Departure, new: Departure) -> None:
    group.departures = tuple(new if gone is old else gone for gone in group.departures)


def _elect(group: Group) -> None:
    """Set the new leader if only one member can be it; otherwise wait until a source names it."""
    only = next(iter(group.members)) if len(group.members) == 1 else None
    group.leader_id, group.leader_basis = only, Basis.INFERRED


def _insert(group: Group, member: Member) -> None:
    group.members[member.member_id] = member
    if len(group.members) > MEMBERS_MAX:
        del group.members[next(iter(group.members))]


def _member(turn: Turn, known: Member | None, record: MemberRecord) -> Member:
    gone = departure_of(turn.group, record.member_id) if known is None else None
    if gone is not None:  # the member had not left after all
        known = bring_back(turn.group, gone)
        restart_session(known, turn.at_ms, may_set_back=True)
    if known is None:
        known = Member(member_id=record.member_id, joined_at_ms=turn.at_ms)
        restart_session(known, turn.at_ms, may_set_back=True)
        turn.step.arrivals.append(record.member_id)
    _fill_in(known, record)
    return known


def _fill_in(member: Member, record: MemberRecord) -> None:
    learn_client_at_second_hand(member, record.client_id, record.client_host)
    member.instance_id = record.instance_id
    member.session_timeout_ms = record.session_timeout_ms
    timeout_ms = record.rebalance_timeout_ms
    # Kafka: a record of version 0 has no rebalance timeout, the session timeout serves as one.
    member.rebalance_timeout_ms = timeout_ms if timeout_ms >= 0 else record.session_timeout_ms
    member.topics = record.topics
    member.assigned = record.assigned
