"""Static members whose session ends during a restart: late returns, and returns under another id."""

from alerts.alert import Culprit, checksum, clock, span, who_is
from alerts.rules.engine import Sighting, Situation, culprit
from alerts.rules.members.hygiene import memory_of
from alerts.rules.members.static_member_words import LATE, NAME, RENAMED
from coordinator_model.state import Basis, Departure, Member

LOST = "lost"
SESSION_MS = 45_000
"""Used if no source gives the session timeout: the default of Java's client, and of KIP-848."""
SOON = 2
"""A member that returns within this many session timeouts after its session ended was restarted."""
SLACK_MS = 5_000


def note_lost(situation: Situation, departure: Departure) -> bool:
    """Remember a static member whose session ended; True if another id has replaced it."""
    session_ms = departure.session_timeout_ms if departure.session_timeout_ms > 0 else SESSION_MS
    lost = Sighting(
        kind=LOST,
        key=str(departure.instance_id),
        first_ms=departure.at_ms,
        last_ms=departure.at_ms,
        culprits=[culprit(departure, share=1, basis=departure.basis)],
        number=session_ms,
    )
    lost = memory_of(situation).note(NAME, lost)
    lost.last_ms = departure.at_ms
    began_ms = departure.at_ms - session_ms - SLACK_MS
    for member in situation.group.members.values():
        if began_ms <= member.joined_at_ms <= departure.at_ms and _renamed(situation, lost, member):
            return True
    return False


def note_arrived(situation: Situation, member: Member) -> bool:
    """Remember a static member that joined: after its session, or its process under another id."""
    memory = memory_of(situation)
    lost = memory.find(NAME, LOST, str(member.instance_id))
    if lost is not None:
        memory.keep(NAME, [one for one in memory.of(NAME) if one is not lost])
        return _came_late(situation, lost, member)
    for one in memory.of(NAME):
        away_ms = situation.now_ms - one.last_ms
        if one.kind == LOST and away_ms <= SOON * one.number + SLACK_MS and _renamed(situation, one, member):
            return True
    return False


def _came_late(situation: Situation, lost: Sighting, member: Member) -> bool:
    away_ms, session_ms = situation.now_ms - lost.last_ms, lost.number
    if away_ms > 2 * SOON * session_ms + 60_000:
        return False  # it was stopped, not restarted
    took_ms, before = away_ms + session_ms, lost.culprits[0]
    who = Culprit(
        member_id=member.member_id,
        # The coordinator's line about a join names neither client nor host.
        client_id=member.client_id or before.client_id,
        client_host=member.client_host or before.client_host,
        instance_id=member.instance_id,
    )
    late = Sighting(
        kind=LATE,
        key=str(member.instance_id),
        first_ms=situation.now_ms,
        last_ms=situation.now_ms,
        culprits=[who],
        sentence=f"{clock(situation.now_ms)}: {who_is(who)} came back {span(away_ms)} after its session "
        f"of {span(session_ms)} had ended: the restart took about {span(took_ms)}.",
        number=session_ms,
        measured=took_ms,
    )
    memory_of(situation).note(NAME, late)
    return True


def _renamed(situation: Situation, lost: Sighting, member: Member) -> bool:
    """Remember a new instance id that replaces a lost one; True if it does."""
    memory, before = memory_of(situation), lost.culprits[0]
    if not member.instance_id or member.instance_id == lost.key:
        return False
    same_client = bool(before.client_id) and before.client_id == member.client_id
    same_host = bool(before.client_host) and before.client_host == member.client_host
    number = checksum(member.instance_id)
    is_used = any(one.kind == RENAMED and (one.key == lost.key or one.number == number)
                  for one in memory.of(NAME))  # fmt: skip
    is_old = memory.find(NAME, LOST, member.instance_id) or memory.find(NAME, LATE, member.instance_id)
    if is_used or is_old or not (same_client or same_host):
        return False
    renamed = Sighting(
        kind=RENAMED,
        key=lost.key,
        first_ms=situation.now_ms,
        last_ms=situation.now_ms,
        culprits=[culprit(member, share=1, basis=Basis.INFERRED)],
        sentence=f"{clock(situation.now_ms)}: {who_is(member)} came in the place of instance {lost.key}, "
        "which did not come back.",
        number=number,
    )
    memory.note(NAME, renamed)
    return True
