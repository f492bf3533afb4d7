"""GroupIdCollision: clients that do not belong together use one group id.

Three signs: commits without membership under the id of an active group; members that have long had no topic
in common; joins refused because assignors or protocol do not match.  Different clients that read the same
topics are one service in several forms (blue and green, old and new version) and share on purpose.  If one
application's consumers on the same hosts read different topics, the severity is info: they only cause each
other needless rebalances.
"""

import re
from collections.abc import Callable
from typing import Annotated

from alerts.alert import Culprit, Severity, clock, some, span, times, who_is
from alerts.rules.engine import (
    CULPRITS_MAX,
    EVIDENCE_MAX,
    MINUTE_MS,
    NOTHING,
    QUIET_MS,
    Closing,
    DurationMs,
    Finding,
    GroupRule,
    RuleOptions,
    Sighting,
    Situation,
    Verdict,
    culprits_equally,
)
from alerts.rules.members.hygiene import conclude, culprits_of, ended, forget, has_anything, memory_of, sender
from coordinator_model.kafka import WITHOUT_MEMBERS, Error, GroupState
from coordinator_model.state import COMMIT, JOIN, Basis, Group, Member, Refused

NAME = "GroupIdCollision"

APART = "apart"
MANUAL, PROTOCOL = "manual", "protocol"
MANUAL_COMMITS = 2
"""A single refused commit without membership is an attempt to reset an active group."""
MEMBERS_MAX = 1_000
"""Larger groups are not searched for parts without a common topic."""
QUICKER = 5
"""Parts of different applications wait for this fraction only: a rolling change has one application."""

_DOES_NOT_FIT = frozenset({Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_ID_NOT_FOUND})

_APPLICATION = re.compile(r"[^\W\d_]+")


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long members may have no topic in common; a fifth of that if their applications differ."""

    after_ms: Annotated[DurationMs, "time in which members have no topic in common"] = 10 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    step, known = situation.step, situation.memory.hygiene
    may_change = step.transitions or step.arrivals or step.departures or step.notes or step.met
    is_apart = known is not None and APART in known.since
    if not (may_change or is_apart or has_anything(situation, NAME)):
        return NOTHING
    is_news = _note(situation)
    parts = _parts(situation.group)
    apart_ms = _apart_ms(situation, parts)
    if apart_ms is None and not has_anything(situation, NAME):
        return NOTHING  # as of nearly all groups
    forget_ms = forget(situation, NAME, lambda _: QUIET_MS)
    told = [one for one in memory_of(situation).of(NAME) if _counts(one)]
    opened = situation.opened(NAME)
    if apart_ms is not None and situation.now_ms >= apart_ms:
        return Verdict(finding=_apart(situation, parts or [], told), due_ms=forget_ms)
    if parts is None and opened is not None and opened.aspect == APART:
        return Verdict(due_ms=forget_ms)  # in the middle of a rebalance
    verdict = _of_sightings(situation, told, is_news=is_news, forget_ms=forget_ms)
    if apart_ms is None:
        return verdict
    dues = [at_ms for at_ms in (apart_ms, verdict.due_ms) if at_ms is not None]
    return Verdict(finding=verdict.finding, closing=verdict.closing, due_ms=min(dues))


def _of_sightings(
    situation: Situation, told: list[Sighting], *, is_news: bool, forget_ms: int | None
) -> Verdict:
    opened = situation.opened(NAME)
    if opened is not None and opened.aspect == APART and not told and not opened.adopted:
        closing = f"Group {situation.group.group}: its members have topics in common again."
        return Verdict(closing=Closing(ends_at_ms=situation.now_ms, summary=closing), due_ms=forget_ms)
    return conclude(
        situation,
        NAME,
        told=told,
        is_news=is_news,
        forget_ms=forget_ms,
        finding=lambda told: _finding(situation, told),
        closing=f"Group {situation.group.group}: nobody else used its id for {span(QUIET_MS)}.",
    )


# --- requests that were refused ------------------------------------------------------------------------


def _note(situation: Situation) -> bool:
    is_news = False
    for note in situation.step.notes:
        if not isinstance(note, Refused):
            continue
        if note.operation == COMMIT and note.error_code == Error.UNKNOWN_MEMBER_ID and not note.member_id:
            is_news |= not _is_own(situation.group, note) and _manual(situation, note)
        elif note.operation == JOIN and note.error_code in _DOES_NOT_FIT:
            is_news |= _does_not_fit(situation, note)
    return is_news


def _is_own(group: Group, note: Refused) -> bool:
    """Say whether a member, present or gone, commits over its own connection without its member id."""
    known = {one.connection for one in group.members.values()} | {one.connection for one in group.departures}
    return note.connection != "" and note.connection in known


def _manual(situation: Situation, note: Refused) -> bool:
    client = sender(note)
    claims = [f"{topic}-{partition} at {offset}" for topic, partition, offset in note.claims]
    seen = Sighting(
        kind=MANUAL,
        key=f"{note.client_id}\0{note.client_host}",
        first_ms=note.at_ms,
        last_ms=max(note.at_ms, situation.now_ms),
        culprits=[client],
        sentence=f"{clock(note.at_ms)}: commit of {who_is(client)} without membership"
        f"{f' ({some(claims)})' if claims else ''} refused with {Error(note.error_code).name}, since the "
        f"group has {times(len(situation.group.members), 'member')}.",
    )
    return _counts(memory_of(situation).note(NAME, seen))


def _does_not_fit(situation: Situation, note: Refused) -> bool:
    client, group = sender(note), situation.group
    protocol_type, *assignors = note.protocols or ("",)
    if note.error_code == Error.GROUP_ID_NOT_FOUND:
        offers, uses = f"a {protocol_type} group", f"as a {group.group_type} group"
    else:
        offers = f"{protocol_type or 'no type'}: {some(assignors) or 'nothing'}"
        uses = f"{group.protocol_type or group.group_type}: {group.protocol or 'not chosen yet'}"
    seen = Sighting(
        kind=PROTOCOL,
        key=f"{note.client_id}\0{note.client_host}",
        first_ms=note.at_ms,
        last_ms=max(note.at_ms, situation.now_ms),
        culprits=[client],
        sentence=f"{clock(note.at_ms)}: join of {who_is(client)} ({offers}) refused with "
        f"{Error(note.error_code).name}; the group runs {uses}.",
    )
    memory_of(situation).note(NAME, seen)
    return True


def _counts(one: Sighting) -> bool:
    return one.kind == PROTOCOL or one.count >= MANUAL_COMMITS


def _finding(situation: Situation, told: list[Sighting]) -> Finding:
    newest = max(told, key=lambda one: one.last_ms)
    culprits = culprits_of(told)
    names = some([who_is(one) for one in culprits])
    summary, cost, advice = _WORDS[newest.kind]
    return Finding(
        starts_at_ms=min(one.first_ms for one in told),
        severity=situation.thresholds.of(Options).severity,
        summary=f"Group {situation.group.group}: {names} {summary}",
        cause=newest.sentence,
        culprits=culprits,
        evidence=_evidence(told),
        cost=cost,
        advice=advice,
        culprit_keys=_keys(culprits),
        aspect=newest.kind,
    )


def _evidence(told: list[Sighting]) -> tuple[str, ...]:
    return tuple(one.sentence for one in sorted(told, key=lambda one: one.last_ms)[-EVIDENCE_MAX:])


def _keys(culprits: tuple[Culprit, ...]) -> frozenset[str]:
    return frozenset(f"{one.client_id}/{one.client_host}" for one in culprits)


_WORDS = {
    MANUAL: (
        "commits offsets under the id of this group without being a member of it.",
        "The coordinator refuses its commits, so it reads its records again after each restart. While the "
        "group is empty, its commits overwrite the offsets of the group.",
        "Give the client that assigns its partitions by hand a group.id of its own. If somebody wanted to "
        "reset the offsets of the group: stop its members first.",
    ),
    PROTOCOL: (
        "cannot join: its protocol or assignors do not fit those of the members.",
        "These clients consume nothing until the other members are gone.",
        "If it is another application, give it a group.id of its own. If it is the same application with new "
        "assignors, deploy in two steps: first with both assignors in partition.assignment.strategy, then "
        "without the old one.",
    ),
}
"""Kind -> summary, cost, advice."""


# --- members that have nothing in common ------------------------------------------------------------------


def _parts(group: Group) -> list[list[Member]] | None:
    """Return the members in parts that share no topic, oldest part first; None while unknown."""
    if group.state in WITHOUT_MEMBERS:
        return []
    if group.state is not GroupState.STABLE:
        return None
    members = list(group.members.values())
    wanted = {member.topics for member in members}
    if not all(wanted):
        return None
    if not 1 < len(members) <= MEMBERS_MAX:
        return []
    if len(wanted) == 1:
        return [members]  # as nearly all groups are
    return _separated(members)


def _separated(members: list[Member]) -> list[list[Member]]:
    """Return members in parts that share no topic, oldest part first."""
    parts: list[tuple[set[str], list[Member]]] = []
    for member in members:
        topics, together = set(member.topics or ()), [member]
        apart = []
        for part in parts:
            if topics.isdisjoint(part[0]):
                apart.append(part)
            else:
                topics |= part[0]
                together = part[1] + together
        parts = [*apart, (topics, together)]
    parts.sort(key=lambda part: min(member.joined_at_ms for member in part[1]))
    return [together for _, together in parts]


def _apart_ms(situation: Situation, parts: list[list[Member]] | None) -> int | None:
    """Return when the parts will have been apart for too long; None if they are not, or that is unknown."""
    if parts is None:
        return None
    if len(parts) < 2:
        ended(situation, APART)
        return None
    return memory_of(situation).holds(APART, situation.now_ms) + _after_ms(situation, parts)


def _after_ms(situation: Situation, parts: list[list[Member]]) -> int:
    after_ms = situation.thresholds.of(Options).after_ms
    return after_ms // QUICKER if _differ(parts, _application) else after_ms


def _differ(parts: list[list[Member]], what: Callable[[Member], str]) -> bool:
    """Say whether no two parts have a value in common; an unknown value may be the same."""
    seen: set[str] = set()
    for part in parts:
        values = {what(member) for member in part}
        if "" in values or not seen.isdisjoint(values):
            return False
        seen |= values
    return True


def _application(member: Member) -> str:
    """Return the first word of a client id: "orders-7" and "orders-blue" are one application."""
    found = _APPLICATION.search(member.client_id)
    return found[0].lower() if found else ""


def _severity_apart(situation: Situation, parts: list[list[Member]]) -> Severity:
    """Return the configured severity; info if it may be one application with several consumers."""
    strangers = _differ(parts, _application) or _differ(parts, lambda member: member.client_host)
    return situation.thresholds.of(Options).severity if strangers else Severity.INFO


def _apart(situation: Situation, parts: list[list[Member]], told: list[Sighting]) -> Finding:
    group, opened = situation.group, situation.opened(NAME)
    since_ms = memory_of(situation).since[APART]
    if opened is not None and opened.aspect != APART:
        since_ms = min(since_ms, opened.alert.starts_at_ms)
    late = [member for part in parts[1:] for member in part]
    described = [
        f"{some([who_is(member) for member in part])} read{'s' if len(part) == 1 else ''} "
        f"{some(sorted({topic for member in part for topic in member.topics or ()}))}"
        for part in parts
    ]
    return Finding(
        starts_at_ms=since_ms,
        severity=_severity_apart(situation, parts),
        summary=f"Group {group.group} is used by {len(parts)} sets of consumers that have no topic in "
        f"common, for {span(situation.now_ms - since_ms)}: {'; '.join(described[:3])}.",
        cause=f"{times(len(late), 'member')} with other topics joined the group of {who_is(parts[0][0])}.",
        culprits=culprits_equally(late[:CULPRITS_MAX], Basis.OBSERVED),
        evidence=(*(f"{one}." for one in described[:EVIDENCE_MAX]), *_evidence(told)),
        cost="Each deployment, crash or slow record of one set makes the others rebalance and stop as well.",
        advice="Give each application a group.id of its own, also each consumer of one application that "
        "reads other topics. Start the new group at the offsets of the old one.",
        culprit_keys=_keys(culprits_equally(late, Basis.OBSERVED)),
        aspect=APART,
    )


GROUP_ID_COLLISION = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    remembers="hygiene",
)
