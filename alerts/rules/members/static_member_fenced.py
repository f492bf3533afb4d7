"""StaticMemberFenced: a ``group.instance.id`` that does not do what it is for.

Two processes hold one (each throws the other out); the ids change at each restart; or the session
ends before a restart is done.  One replacement is a restart, and healthy.
"""

from typing import Annotated

import msgspec

from alerts.alert import Culprit, Severity, checksum, clock, some, span, who_is
from alerts.rules.engine import (
    EVIDENCE_MAX,
    MINUTE_MS,
    NOTHING,
    QUIET_MS,
    Count,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Sighting,
    Situation,
    Verdict,
    culprit,
)
from alerts.rules.members.hygiene import conclude, culprits_of, forget, has_anything, memory_of, sender
from alerts.rules.members.static_member_words import FENCED, LATE, RENAMED, REPLACED, UNRELEASED, WORDS
from coordinator_model.groups.core import departure_of, member_of_instance
from coordinator_model.kafka import CauseKind, Error
from coordinator_model.state import Basis, Departure, Member, Refused, Replaced

NAME = "StaticMemberFenced"

LOST = "lost"
DAY_MS = 24 * 3_600_000
SESSION_MS = 45_000
"""Where no source tells the session timeout: the default of Java's client, and of KIP-848."""
HOLDER_LIVES_MS = 10_000
"""A process that is refused while the holder is only being stopped is none too many."""
HOLDER_STAYS_MS = 75_000
"""A dead holder is removed by then: ``group.consumer.max.session.timeout.ms`` is 60 s."""
SOON = 2
"""A member that is back within so many session timeouts after its own ended was restarted."""
SLACK_MS = 5_000
NAMES_MS, NAMES_EVERY_MS = 30_000, 2_000
"""How long, and how often, the client of a holder is looked for: ten heartbeats at the usual interval."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """So many replacements of one instance id within the window are no restarts any more."""

    replacements: Annotated[Count, "replacements of one instance id within the window"] = 3
    window_ms: Annotated[DurationMs, "how far back replacements are counted"] = 10 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    step = situation.step
    if not (step.notes or step.departures or step.arrivals or has_anything(situation, NAME)):
        return NOTHING
    is_news = _note(situation)
    is_news |= _name_holders(situation)
    window_ms = situation.thresholds.of(Options).window_ms
    forget_ms = forget(
        situation, NAME, lambda one: DAY_MS if one.kind in {LATE, RENAMED} else max(window_ms, QUIET_MS)
    )
    proof_ms = _prove_holders(situation)
    is_news = is_news or proof_ms == situation.now_ms
    for due_ms in (proof_ms, _names_due(situation)):
        if due_ms is not None and due_ms > situation.now_ms:
            forget_ms = due_ms if forget_ms is None else min(due_ms, forget_ms)
    told = _told(situation)
    return conclude(
        situation,
        NAME,
        told=told,
        is_news=is_news,
        forget_ms=forget_ms,
        finding=lambda told: _finding(situation, told),
        closing=f"Group {situation.group.group}: no further trouble with instance ids for {span(QUIET_MS)}.",
    )


# --- what is seen ------------------------------------------------------------------------------------


def _note(situation: Situation) -> bool:
    """Take in what a step tells; True if anything may be news."""
    step, is_news, renamed = situation.step, False, set()
    for note in step.notes:
        if isinstance(note, Replaced):
            renamed.add(note.new_id)
            is_news |= _replaced(situation, note)
        elif isinstance(note, Refused) and note.instance_id and not note.parked:
            is_news |= _refused(situation, note)
    for departure in step.departures:
        if departure.instance_id and departure.how is CauseKind.SESSION_TIMEOUT:
            is_news |= _lost(situation, departure)
    for member_id in step.arrivals:
        member = situation.group.members.get(member_id)
        if member is not None and member.instance_id and member_id not in renamed:
            is_news |= _arrived(situation, member)
    return is_news


def _replaced(situation: Situation, note: Replaced) -> bool:
    memory = memory_of(situation)
    old = checksum(note.old_id)
    same = [one for one in memory.of(NAME) if one.kind == REPLACED and one.number == old]
    if same:
        return False  # the coordinator's line and its record tell of one replacement
    culprits = [
        Culprit(
            member_id=note.old_id,
            client_id=note.client_id,
            client_host=note.client_host,
            instance_id=note.instance_id,
            basis=Basis.INFERRED,
        )
    ]
    new = situation.group.members.get(note.new_id)
    if new is not None:
        culprits.insert(0, _successor(new, culprits[0]))
    seen = Sighting(
        kind=REPLACED,
        key=f"{note.instance_id}\0{old}",
        first_ms=note.at_ms,
        last_ms=max(note.at_ms, situation.now_ms),
        culprits=culprits,
        sentence=f"{clock(note.at_ms)}: another process took over instance {note.instance_id}.",
        number=old,
    )
    memory.note(NAME, seen)
    return True


def _holds(culprits: list[Culprit]) -> str:
    return f"; {who_is(culprits[1])} holds it" if len(culprits) > 1 else ""


def _refused(situation: Situation, note: Refused) -> bool:
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
        culprits.append(_successor(holder, culprits[0]))
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


def _successor(member: Member, before: Culprit) -> Culprit:
    """Return who holds an instance id after another.

    Kafka: replaceStaticMember keeps client and host of the one before in the record, so only requests tell
    the new one's.
    """
    unknown = _unknown(member, before)
    is_told = (member.client_id, member.client_host) != (before.client_id, before.client_host)
    if not (is_told or member.last_heartbeat_ms >= 0):
        return unknown
    return msgspec.structs.replace(unknown, client_id=member.client_id, client_host=member.client_host)


def _known(situation: Situation, note: Refused) -> Refused:
    """Fill in the client of a member that went, where the refusal does not name it."""
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


def _name_holders(situation: Situation) -> bool:
    """Complete what was told before we heard who took an instance over; True if that is news.

    Sources overtake each other: the refusal may come before the record of the one that holds the id, and
    that before the first request that tells its client.
    """
    is_news = False
    for one in memory_of(situation).of(NAME):
        holder = member_of_instance(situation.group, one.key) if one.kind == FENCED else None
        if holder is None or holder.member_id == one.culprits[0].member_id:
            continue
        is_open = one.culprits[1:] in ([], [_unknown(holder, one.culprits[0])])
        successor = _successor(holder, one.culprits[0])
        if is_open and one.culprits[1:] != [successor]:
            refused = one.sentence.removesuffix(f"{_holds(one.culprits)}.")
            one.culprits = [one.culprits[0], successor]
            one.sentence = f"{refused}{_holds(one.culprits)}."
            is_news = True
    return is_news


def _names_due(situation: Situation) -> int | None:
    """Return when to look again who holds an instance id: heartbeats, which tell, are nobody's news."""
    now_ms = situation.now_ms
    open_ = [one for one in memory_of(situation).of(NAME) if one.kind == FENCED and _is_nameless(one)]
    return now_ms + NAMES_EVERY_MS if any(now_ms < one.first_ms + NAMES_MS for one in open_) else None


def _is_nameless(fenced: Sighting) -> bool:
    return len(fenced.culprits) == 1 or not fenced.culprits[1].client_id


def _unknown(member: Member, before: Culprit) -> Culprit:
    return Culprit(
        member_id=member.member_id,
        client_id="",
        client_host="",
        instance_id=member.instance_id,
        basis=before.basis,
    )


def _prove_holders(situation: Situation) -> int | None:
    """Find out whether the holder of a refused instance id lives; returns when to look again.

    A process that was started after a crash is refused until its dead self is removed, and that is no
    second process.
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


def _lost(situation: Situation, departure: Departure) -> bool:
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


def _arrived(situation: Situation, member: Member) -> bool:
    """Take in a static member that came: back after its session, or its process under another id."""
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
        # The coordinator's line about a join names neither.
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
    """Note a new instance id that stands for one that was lost; True if it is one."""
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


# --- what counts -------------------------------------------------------------------------------------


def _told(situation: Situation) -> list[Sighting]:
    """Return the sightings that count."""
    seen, rule = memory_of(situation).of(NAME), situation.thresholds.of(Options)
    opened_ms = situation.now_ms - rule.window_ms
    replaced: dict[str, list[Sighting]] = {}
    for one in seen:
        if one.kind == REPLACED and one.last_ms > opened_ms:
            replaced.setdefault(one.key.partition("\0")[0], []).append(one)
    told = [one for one in seen if one.kind == FENCED or (one.kind == UNRELEASED and one.measured)]
    for several in replaced.values():
        if len(several) >= rule.replacements:
            told += several
    late = [one for one in seen if one.kind == LATE]
    if _number(late) > 1:
        told += late
    else:
        told += [one for one in late if one.measured - one.number <= SOON * one.number]
    renamed = [one for one in seen if one.kind == RENAMED]
    return told + (renamed if len(renamed) > 1 else [])


def _number(seen: list[Sighting]) -> int:
    return sum(one.count for one in seen)


def _severity(situation: Situation, told: list[Sighting]) -> Severity:
    """Return the configured severity, or info as long as it may have happened just once."""
    late = [one for one in told if one.kind == LATE]
    renamed = [one for one in told if one.kind == RENAMED]
    is_sure = len(told) > len(late) + len(renamed) or _number(late) > 1 or len(renamed) > 2
    return situation.thresholds.of(Options).severity if is_sure else Severity.INFO


def _finding(situation: Situation, told: list[Sighting]) -> Finding:
    kind = next(kind for kind in WORDS if any(one.kind == kind for one in told))
    mine = [one for one in told if one.kind == kind]
    newest = max(mine, key=lambda one: one.last_ms)
    ids = sorted({one.key.partition("\0")[0] for one in mine})
    values = {
        "ids": some(ids),
        "times": str(_number(mine)),
        "span": span(situation.now_ms - min(one.first_ms for one in mine)),
        "session": span(min((one.number for one in mine if kind == LATE), default=0)),
        "took": span(max((one.measured for one in mine), default=0)),
    }
    summary, cost, advice = (text.format_map(values) for text in WORDS[kind])
    recent = sorted(told, key=lambda one: one.last_ms)[-EVIDENCE_MAX:]
    culprits = culprits_of(mine)
    return Finding(
        starts_at_ms=min(one.first_ms for one in told),
        severity=_severity(situation, told),
        summary=f"Group {situation.group.group}: {summary}",
        cause=newest.sentence,
        culprits=culprits,
        evidence=tuple(one.sentence for one in recent if one.sentence),
        cost=cost,
        advice=advice,
        # Each turn of such a fight has new member ids, and is no news.
        culprit_keys=frozenset(f"{one.instance_id}/{one.client_id}/{one.client_host}" for one in culprits),
        aspect=kind,
    )


STATIC_MEMBER_FENCED = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    remembers="hygiene",
)
