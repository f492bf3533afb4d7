"""Two processes with one instance id: who was refused, who holds the id, and whether the holder lives."""

import msgspec

from alerts.alert import Culprit, checksum, clock, who_is
from alerts.rules.engine import Sighting, Situation
from alerts.rules.members.hygiene import memory_of, sender
from alerts.rules.members.static_member_words import FENCED, NAME, REPLACED, UNRELEASED
from coordinator_model.groups.core import departure_of, member_of_instance
from coordinator_model.kafka import Error
from coordinator_model.state import Departure, Member, Refused

HOLDER_LIVES_MS = 10_000
"""A refusal while the holder is still shutting down is not a second process."""
HOLDER_STAYS_MS = 75_000
"""A dead holder is removed by then: ``group.consumer.max.session.timeout.ms`` is 60 s."""
NAMES_MS, NAMES_EVERY_MS = 30_000, 2_000
"""How long, and how often, a holder's client is looked for: ten heartbeats at the usual interval."""


def note_refused(situation: Situation, note: Refused) -> bool:
    """Remember a refusal because of an instance id; True if it is news at once."""
    if note.error_code == Error.FENCED_INSTANCE_ID:
        kind = FENCED
    elif note.error_code == Error.UNRELEASED_INSTANCE_ID:
        kind = UNRELEASED
    else:
        return False
    holder = situation.group.members.get(note.holder_id) or member_of_instance(
        situation.group, note.instance_id
    )
    culprits = [sender(_known(situation, note))]
    if holder is not None and holder.member_id != note.member_id:
        culprits.append(successor_of(holder, culprits[0]))
    seen = Sighting(
        kind=kind,
        key=str(note.instance_id),
        first_ms=note.at_ms,
        last_ms=max(note.at_ms, situation.now_ms),
        culprits=culprits,
        sentence=f"{clock(note.at_ms)}: {note.operation} of {who_is(culprits[0])} refused with "
        f"{Error(note.error_code).name}{_holds(culprits)}.",
        number=checksum(holder.member_id) if holder else 0,
        measured=0,
    )
    memory_of(situation).note(NAME, seen)
    return kind == FENCED


def _holds(culprits: list[Culprit]) -> str:
    return f"; {who_is(culprits[1])} holds it" if len(culprits) > 1 else ""


def _known(situation: Situation, note: Refused) -> Refused:
    """Return the refusal with the client of a departed member, if the refusal does not name it."""
    if note.client_id or note.client_host:
        return note
    gone = departure_of(situation.group, note.member_id)
    seen = [one for one in memory_of(situation).of(NAME) if one.kind == REPLACED]
    for one in (other for sighting in seen for other in sighting.culprits):
        if one.member_id == note.member_id:
            return _with_client(note, one)
    return _with_client(note, gone) if gone else note


def _with_client(note: Refused, of: Culprit | Departure) -> Refused:
    return msgspec.structs.replace(note, client_id=of.client_id, client_host=of.client_host)


def name_holders(situation: Situation) -> bool:
    """Add the holder to sightings from before it was known; True if that is news.

    Sources overtake each other: the refusal may come before the record of the holder, and that record before
    the first request that names the holder's client.
    """
    is_news = False
    for one in memory_of(situation).of(NAME):
        holder = member_of_instance(situation.group, one.key) if one.kind == FENCED else None
        if holder is None or holder.member_id == one.culprits[0].member_id:
            continue
        is_open = one.culprits[1:] in ([], [_unknown(holder, one.culprits[0])])
        successor = successor_of(holder, one.culprits[0])
        if is_open and one.culprits[1:] != [successor]:
            refused = one.sentence.removesuffix(f"{_holds(one.culprits)}.")
            one.culprits = [one.culprits[0], successor]
            one.sentence = f"{refused}{_holds(one.culprits)}."
            is_news = True
    return is_news


def names_due_ms(situation: Situation) -> int | None:
    """Return when to look for holders again: heartbeats name them, but trigger no judgement."""
    now_ms = situation.now_ms
    open_ = [one for one in memory_of(situation).of(NAME) if one.kind == FENCED and _is_nameless(one)]
    return now_ms + NAMES_EVERY_MS if any(now_ms < one.first_ms + NAMES_MS for one in open_) else None


def _is_nameless(fenced: Sighting) -> bool:
    return len(fenced.culprits) == 1 or not fenced.culprits[1].client_id


def prove_holders(situation: Situation) -> int | None:
    """Find out whether the holder of a refused instance id lives; return when to look again.

    A process that restarts after a crash is refused until its old member is removed; that is not a second
    process.
    """
    dues = []
    for one in memory_of(situation).of(NAME):
        holder = member_of_instance(situation.group, one.key)
        is_open = one.kind == UNRELEASED and one.measured == 0
        if not is_open or holder is None or checksum(holder.member_id) != one.number:
            continue
        lives = holder.last_heartbeat_ms >= one.first_ms + HOLDER_LIVES_MS
        if lives or situation.now_ms >= one.first_ms + HOLDER_STAYS_MS:
            one.measured, one.last_ms = 1, situation.now_ms
            dues.append(situation.now_ms)
        else:
            looks = (one.first_ms + 2 * HOLDER_LIVES_MS, one.first_ms + HOLDER_STAYS_MS)
            dues.append(min(at_ms for at_ms in looks if at_ms > situation.now_ms))
    return min(dues, default=None)


def successor_of(member: Member, before: Culprit) -> Culprit:
    """Return the new holder of an instance id.

    Kafka: replaceStaticMember keeps the previous client and host in the record, so only requests name the new
    ones.
    """
    unknown = _unknown(member, before)
    is_told = (member.client_id, member.client_host) != (before.client_id, before.client_host)
    if not (is_told or member.last_heartbeat_ms >= 0):
        return unknown
    return msgspec.structs.replace(unknown, client_id=member.client_id, client_host=member.client_host)


def _unknown(member: Member, before: Culprit) -> Culprit:
    return Culprit(
        member_id=member.member_id,
        client_id="",
        client_host="",
        instance_id=member.instance_id,
        basis=before.basis,
    )
