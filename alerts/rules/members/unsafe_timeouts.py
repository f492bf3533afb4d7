"""UnsafeTimeouts: timeouts that make trouble likely, judged by what the members actually use.

The alert gives the configured value, the measured value, and a value to set.  It fires once and stays until
the value changes, or for a day after the last sign.  Kafka's defaults cause no alert.

Longer than 400 lines, because each timeout has its measurement, its limit and its words.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated

from alerts.alert import Severity, clock, round_up, some, span, times, who_is
from alerts.rules.engine import (
    EVIDENCE_MAX,
    MINUTE_MS,
    NOTHING,
    Closing,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Sighting,
    Situation,
    Stops,
    Verdict,
    culprit,
    rebalance_timeout_ms,
)
from alerts.rules.members.hygiene import culprits_of, ended, forget, has_anything, memory_of, sender
from coordinator_model.groups.core import NARROW_SHARE, REGULAR
from coordinator_model.kafka import SETTLED, WITHOUT_MEMBERS, CauseKind, Error, GroupState
from coordinator_model.state import (
    JOIN,
    Basis,
    Departure,
    Group,
    IdUnused,
    Member,
    Paused,
    Refused,
    Transition,
)

NAME = "UnsafeTimeouts"

DAY_MS = 24 * 3_600_000
UNUSED_WITHIN_MS = 10 * 60_000
UNUSED_IDS = 5
NARROW_TIMES = 3
"""This many narrow escapes within a day count."""
POLL_TIMES = 3
JOIN_TIMES = 2
JOIN_SHARE = 0.8
"""A join phase that takes this part of the rebalance timeout nearly cost a member."""
DIFFER = 2
"""Timeouts within a group that differ by this factor count as mixed."""
MIXED = "mixed timeouts"
APART_MS = 60_000
"""Pauses, or poll timeouts, closer together than this are one."""

REFUSED, BEATS, NARROW, POLL, JOINS, UNUSED = "refused", "beats", "narrow", "poll", "joins", "unused"
_ENOUGH = {
    REFUSED: 1,
    BEATS: 1,
    NARROW: NARROW_TIMES,
    POLL: POLL_TIMES,
    JOINS: JOIN_TIMES,
}


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long the timeouts within a group may differ (as during a rollout of a change)."""

    severity: Severity = Severity.INFO
    after_ms: Annotated[DurationMs, "time in which timeouts within a group differ"] = 15 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    step, known = situation.step, situation.memory.hygiene
    may_change = step.transitions or step.arrivals or step.departures or step.notes or step.met
    is_mixed = known is not None and MIXED in known.since
    if not (may_change or is_mixed or has_anything(situation, NAME)):
        return NOTHING
    _note(situation)
    mixed_ms = _mixed_ms(situation)
    if mixed_ms is None and not has_anything(situation, NAME):
        return NOTHING  # as of nearly all groups
    _forget_changed(situation)
    forget_ms = forget(situation, NAME, lambda one: UNUSED_WITHIN_MS if one.kind == UNUSED else DAY_MS)
    told = _told(memory_of(situation).of(NAME))
    if mixed_ms is not None and situation.now_ms >= mixed_ms:
        told.append(_mixed(situation))
        mixed_ms = None
    dues = [at_ms for at_ms in (forget_ms, mixed_ms) if at_ms is not None]
    due_ms = min(dues, default=None)
    if told:
        return Verdict(finding=_finding(situation, told), due_ms=due_ms)
    opened = situation.opened(NAME)
    if opened is None or situation.group.state not in SETTLED:
        return Verdict(due_ms=due_ms)
    ends_at_ms = opened.touched_ms + DAY_MS  # what an earlier job saw is not known here
    if opened.adopted and situation.now_ms < ends_at_ms:
        return Verdict(due_ms=ends_at_ms if due_ms is None else min(ends_at_ms, due_ms))
    closing = f"Group {situation.group.group}: the timeouts were changed, or caused no trouble for a day."
    return Verdict(closing=Closing(ends_at_ms=situation.now_ms, summary=closing), due_ms=due_ms)


def _told(seen: list[Sighting]) -> list[Sighting]:
    """Return what was seen often enough; all unused member ids together are one thing."""
    told = [one for one in seen if one.kind != UNUSED and one.count >= _ENOUGH[one.kind]]
    unused = [one for one in seen if one.kind == UNUSED]
    if len(unused) < UNUSED_IDS:
        return told
    whole = Sighting(
        kind=UNUSED,
        key="",
        first_ms=unused[0].first_ms,
        last_ms=unused[-1].last_ms,
        count=len(unused),
        sentence=unused[-1].sentence,
    )
    return [*told, whole]


# --- what is seen ------------------------------------------------------------------------------------


def _note(situation: Situation) -> None:
    step = situation.step
    for note in step.notes:
        if isinstance(note, Paused):
            _paused(situation, note)
        elif isinstance(note, IdUnused):
            _unused(situation, note)
        elif isinstance(note, Refused) and note.operation == JOIN:
            _refused(situation, note)
    for departure in step.departures:
        _polled_late(situation, departure)
    for transition in step.transitions:
        _joined_late(situation, transition)


def _add(situation: Situation, kind: str, member: Member | Departure, sentence: str, **values: int) -> None:
    """Count one more of a kind about a configured value, unless it belongs to the one before."""
    memory, at_ms, key = memory_of(situation), situation.now_ms, str(values["number"])
    known = memory.find(NAME, kind, key)
    if known is not None and at_ms - known.last_ms < APART_MS:
        known.measured = max(known.measured, values["measured"])
        return
    who = culprit(member, share=1, basis=Basis.OBSERVED)
    culprits = [who] if known is None else [who, *(one for one in known.culprits if one != who)][:5]
    seen = Sighting(
        kind=kind,
        key=key,
        first_ms=at_ms,
        last_ms=at_ms,
        culprits=culprits,
        sentence=f"{clock(at_ms)}: {sentence}",
        **values,
    )
    memory.note(NAME, seen)


def _paused(situation: Situation, note: Paused) -> None:
    member = situation.group.members.get(note.member_id)
    if member is None:
        return
    session_ms = member.session_timeout_ms
    values = {"number": session_ms, "measured": note.pause_ms}
    if note.in_a_row >= REGULAR:
        text = f"{who_is(member)} sends a heartbeat every {span(note.pause_ms)}"
        _add(
            situation,
            BEATS,
            member,
            f"{text}, {session_ms / note.pause_ms:.1f} fit in its session.",
            **values,
        )
    elif note.pause_ms >= NARROW_SHARE * session_ms and _log_was_heard(situation, note):
        text = f"{who_is(member)} sent no heartbeat for {span(note.pause_ms)}, and was nearly removed."
        _add(situation, NARROW, member, text, **values)


def _log_was_heard(situation: Situation, note: Paused) -> bool:
    """Say whether the request log had lines all through a pause: otherwise the log may have paused."""
    gap_ms = max(1_500, note.pause_ms // 3)
    since_ms = situation.evidence.requests_since_ms(gap_ms)
    return 0 <= since_ms <= note.at_ms - note.pause_ms + 1_000


def _refused(situation: Situation, note: Refused) -> None:
    if note.error_code != Error.INVALID_SESSION_TIMEOUT:
        return
    who = sender(note)
    seen = Sighting(
        kind=REFUSED,
        key=f"{note.client_id}\0{note.client_host}",
        first_ms=note.at_ms,
        last_ms=situation.now_ms,
        culprits=[who],
        sentence=f"{clock(note.at_ms)}: join of {who_is(who)} with session.timeout.ms "
        f"{note.session_timeout_ms} refused with INVALID_SESSION_TIMEOUT.",
        number=note.session_timeout_ms,
    )
    memory_of(situation).note(NAME, seen)


def _unused(situation: Situation, note: IdUnused) -> None:
    seen = Sighting(
        kind=UNUSED,
        key=note.member_id,
        first_ms=note.at_ms,
        last_ms=situation.now_ms,
        sentence=f"{clock(note.at_ms)}: nobody came back with member id {note.member_id}.",
    )
    memory_of(situation).note(NAME, seen)


def _polled_late(situation: Situation, departure: Departure) -> None:
    timeout_ms = departure.rebalance_timeout_ms
    if departure.how is not CauseKind.POLL_TIMEOUT or timeout_ms <= 0:
        return
    since_ms = departure.progressed_at_ms
    worked_ms = max(timeout_ms, departure.at_ms - since_ms if since_ms >= 0 else timeout_ms)
    text = f"{who_is(departure)} did not poll for {span(worked_ms)}."
    _add(situation, POLL, departure, text, number=timeout_ms, measured=worked_ms)


def _joined_late(situation: Situation, transition: Transition) -> None:
    """Remember the end of a join phase that came close to the rebalance timeout, or reached it."""
    group, timeout_ms = situation.group, rebalance_timeout_ms(situation.group)
    last, is_end = group.rebalance, transition.to_state is GroupState.COMPLETING_REBALANCE
    if not is_end or last is None or last.initial or timeout_ms <= 0 or not group.members:
        return
    took_ms = transition.at_ms - last.started_at_ms
    if took_ms < JOIN_SHARE * timeout_ms:
        return
    slowest: Member | Departure = max(group.members.values(), key=lambda one: one.rebalance_timeout_ms)
    kicked: list[Member | Departure] = [
        gone
        for gone in group.departures
        if gone.how is CauseKind.REBALANCE_TIMEOUT and gone.at_ms >= last.started_at_ms
    ]
    text = f"a join phase took {span(took_ms)}"
    if kicked:
        text += f" and cost {some([who_is(gone) for gone in kicked])}"
    _add(situation, JOINS, (kicked or [slowest])[0], f"{text}.", number=timeout_ms, measured=took_ms)


def _forget_changed(situation: Situation) -> None:
    """Drop sightings of values that no member has any more."""
    group, memory = situation.group, memory_of(situation)
    if group.state is not GroupState.STABLE or not group.members or not memory.of(NAME):
        return
    sessions = {member.session_timeout_ms for member in group.members.values()}
    rebalances = {member.rebalance_timeout_ms for member in group.members.values()}
    if -1 in sessions | rebalances and group.group_type == "classic":
        return
    there = {BEATS: sessions, NARROW: sessions, POLL: rebalances, JOINS: rebalances}
    kept = [one for one in memory.of(NAME) if one.kind not in there or one.number in there[one.kind]]
    if len(kept) < len(memory.of(NAME)):
        memory.keep(NAME, kept)


# --- settings that differ within the group ---------------------------------------------------------------


_SETTINGS: Mapping[str, Callable[[Member], int]] = {
    "session.timeout.ms": attrgetter("session_timeout_ms"),
    "max.poll.interval.ms": attrgetter("rebalance_timeout_ms"),
}


def _differ(group: Group) -> dict[str, tuple[Member, Member]]:
    """Return the settings that differ much among the members: name -> members with the least and the most."""
    found = {}
    for name, value in _SETTINGS.items():
        if len(set(map(value, group.members.values()))) < 2:
            continue  # all have the same, as in nearly all groups
        known = sorted((one for one in group.members.values() if value(one) > 0), key=value)
        if known and value(known[-1]) >= DIFFER * value(known[0]):
            found[name] = (known[0], known[-1])
    return found


def _mixed_ms(situation: Situation) -> int | None:
    """Return when settings have differed for too long; None if they do not differ, or that is unknown."""
    group, known = situation.group, situation.memory.hygiene
    after_ms = situation.thresholds.of(Options).after_ms
    if group.state in WITHOUT_MEMBERS:
        ended(situation, MIXED)
        return None
    if group.state is not GroupState.STABLE:
        since_ms = None if known is None else known.since.get(MIXED)
        fires_at_ms = None if since_ms is None else since_ms + after_ms
        return None if fires_at_ms is None or fires_at_ms <= situation.now_ms else fires_at_ms
    if not _differ(group):
        ended(situation, MIXED)
        return None
    return memory_of(situation).holds(MIXED, situation.now_ms) + after_ms


def _mixed(situation: Situation) -> Sighting:
    since_ms, parts, proposed, culprits = memory_of(situation).since[MIXED], [], [], []
    for name, (least, most) in _differ(situation.group).items():
        value = _SETTINGS[name]
        parts.append(f"{name} is {value(least)} at {who_is(least)} and {value(most)} at {who_is(most)}")
        proposed.append(f"{name} {_usual(situation.group, value)}")
        culprits.append(culprit(least, share=1, basis=Basis.OBSERVED))
    return Sighting(
        kind=MIXED,
        key=" and ".join(proposed),
        first_ms=since_ms,
        last_ms=situation.now_ms,
        culprits=culprits,
        sentence=f"{'; '.join(parts)}.",
    )


def _usual(group: Group, value: Callable[[Member], int]) -> int:
    """Return the most frequent value among the members; among equally frequent values the largest."""
    known = Counter(value(one) for one in group.members.values())
    return max(known, key=lambda one: (known[one], one))


# --- what is said -------------------------------------------------------------------------------------


def _finding(situation: Situation, told: list[Sighting]) -> Finding:
    said = [_said(one) for one in told]
    culprits = culprits_of(told)
    kinds = sorted({f"{one.kind}/{one.number}" for one in told})
    return Finding(
        starts_at_ms=min(one.first_ms for one in told),
        severity=situation.thresholds.of(Options).severity,
        summary=f"Group {situation.group.group}: {said[0][0]}{_and_more(len(said) - 1)}",
        cause=told[0].sentence,
        culprits=culprits,
        evidence=tuple(one.sentence for one in told if one.sentence)[-EVIDENCE_MAX:],
        cost=said[0][1],
        advice=" ".join(dict.fromkeys(advice for _, _, advice in said)),
        # Not repeated while the same values remain.
        culprit_keys=frozenset(kinds),
        aspect=" ".join(kinds),
    )


def _and_more(count: int) -> str:
    return f" The evidence lists {times(count, 'more finding')}." if count else ""


def _said(one: Sighting) -> tuple[str, str, str]:
    """Return summary, cost and advice for one sighting."""
    values = {
        "set": str(one.number),
        "measured": span(one.measured),
        "count": str(one.count),
        "names": some([who_is(culprit) for culprit in one.culprits]),
        "three": str(round_up(3 * one.measured)),
        "double": str(round_up(2 * one.measured)),
        "third": str(one.number // 3),
        "proposed": one.key,
        "half_more": str(round_up(3 * one.measured // 2)),
    }
    summary, cost, advice = (text.format_map(values) for text in _WORDS[one.kind])
    return summary, cost, advice


_WORDS: dict[str, tuple[str, str, str]] = {
    REFUSED: (
        "the coordinator refuses session.timeout.ms {set} of {names}: it is outside the broker's limits.",
        "These clients cannot join at all.",
        "Choose a session.timeout.ms between the brokers' group.min.session.timeout.ms (6000 by default) and "
        "group.max.session.timeout.ms (1800000), or change those.",
    ),
    BEATS: (
        "session.timeout.ms {set} leaves room for less than three heartbeats of {names}, which come every "
        "{measured}.",
        "One lost heartbeat or a short pause removes a healthy member, and the whole group rebalances.",
        "Set heartbeat.interval.ms to {third} at most, or session.timeout.ms to {three} or more.",
    ),
    NARROW: (
        "{names} came within a fifth of session.timeout.ms {set} of being removed, {count} times (longest "
        "pause {measured}).",
        "The next pause that is a little longer makes the whole group rebalance.",
        "Find the pauses (GC, CPU throttling, network), or set session.timeout.ms to {double}.",
    ),
    POLL: (
        "max.poll.interval.ms {set} is too short for what {names} does between two polls: {count} poll "
        "timeouts, longest work {measured} or more.",
        "Each time the group rebalances twice, and another member does the work again.",
        "Set max.poll.interval.ms to {half_more} or more, or lower max.poll.records so that a batch takes "
        "less than half of it.",
    ),
    JOINS: (
        "join phases took up to {measured} ({count} times); members have {set} ms to rejoin.",
        "The group consumes nothing for that time at each rebalance; the coordinator removes members that "
        "are too late.",
        "Members join when they poll: lower max.poll.records, or raise max.poll.interval.ms to {half_more}.",
    ),
    UNUSED: (
        "the coordinator gave out {count} member ids, and no client used them within 10 minutes.",
        "Each of these ids delays the next join phase until it expires, and such clients do not consume.",
        "Find clients that give up while they join (request.timeout.ms or a health check shorter than the "
        "join), and old client versions.",
    ),
    MIXED: (
        "members have different timeouts.",
        "A rebalance waits for the longest max.poll.interval.ms of all members. The member with the shortest "
        "session is removed first.",
        "Give all members of the group the timeouts that most of them have: {proposed}.",
    ),
}
"""Kind -> summary, cost, advice with the value to set."""


UNSAFE_TIMEOUTS = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.NOTHING,
    remembers="hygiene",
    blames_nobody="no member: no source tells which client asked for these ids",
)
