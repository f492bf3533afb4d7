"""StaticMemberFenced: a ``group.instance.id`` fails its purpose.

Two processes use one id (each fences the other); the ids change at each restart; or the session ends before a
restart is complete.  A single replacement is a healthy restart.
"""

from typing import Annotated

from alerts.alert import Culprit, Severity, checksum, clock, some, span
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
)
from alerts.rules.members import static_member_holders, static_member_restarts
from alerts.rules.members.hygiene import conclude, culprits_of, forget, has_anything, memory_of
from alerts.rules.members.static_member_restarts import SOON
from alerts.rules.members.static_member_words import FENCED, LATE, NAME, RENAMED, REPLACED, UNRELEASED, WORDS
from coordinator_model.kafka import CauseKind
from coordinator_model.state import Basis, Refused, Replaced

DAY_MS = 24 * 3_600_000


class Options(RuleOptions, frozen=True, kw_only=True):
    """From this many replacements of one instance id within the window, they are not restarts."""

    replacements: Annotated[Count, "replacements of one instance id within the window"] = 3
    window_ms: Annotated[DurationMs, "how far back replacements are counted"] = 10 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    step = situation.step
    if not (step.notes or step.departures or step.arrivals or has_anything(situation, NAME)):
        return NOTHING
    is_news = _note(situation)
    is_news |= static_member_holders.name_holders(situation)
    window_ms = situation.thresholds.of(Options).window_ms
    forget_ms = forget(
        situation, NAME, lambda one: DAY_MS if one.kind in {LATE, RENAMED} else max(window_ms, QUIET_MS)
    )
    proof_ms = static_member_holders.prove_holders(situation)
    is_news = is_news or proof_ms == situation.now_ms
    for due_ms in (proof_ms, static_member_holders.names_due_ms(situation)):
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
    """Remember what a step shows; True if any of it may be news."""
    step, is_news, renamed = situation.step, False, set()
    for note in step.notes:
        if isinstance(note, Replaced):
            renamed.add(note.new_id)
            is_news |= _replaced(situation, note)
        elif isinstance(note, Refused) and note.instance_id and not note.parked:
            is_news |= static_member_holders.note_refused(situation, note)
    for departure in step.departures:
        if departure.instance_id and departure.how is CauseKind.SESSION_TIMEOUT:
            is_news |= static_member_restarts.note_lost(situation, departure)
    for member_id in step.arrivals:
        member = situation.group.members.get(member_id)
        if member is not None and member.instance_id and member_id not in renamed:
            is_news |= static_member_restarts.note_arrived(situation, member)
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
        culprits.insert(0, static_member_holders.successor_of(new, culprits[0]))
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
    """Return the configured severity; info while it may have happened only once."""
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
        # Each round of such a fight has new member ids; that is not news.
        culprit_keys=frozenset(f"{one.instance_id}/{one.client_id}/{one.client_host}" for one in culprits),
        aspect=kind,
    )


STATIC_MEMBER_FENCED = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    remembers="hygiene",
)
