"""ZombieCommit: a member commits partitions that it no longer owns.

If the coordinator removed a member after a timeout and the member commits afterwards, it had continued to
work. A single commit overtaken by a rebalance is ordinary: refusals for a stale generation count only if they
continue.
"""

from alerts.alert import Culprit, clock, some, span, times, who_is
from alerts.rules.engine import (
    EVIDENCE_MAX,
    NOTHING,
    QUIET_MS,
    Finding,
    GroupRule,
    RuleOptions,
    Sees,
    Sighting,
    Situation,
    Verdict,
)
from alerts.rules.members.hygiene import conclude, culprits_of, forget, has_anything, memory_of, sender
from alerts.rules.members.static_member_fenced import STATIC_MEMBER_FENCED
from coordinator_model.groups.core import departure_of
from coordinator_model.kafka import CauseKind, Error
from coordinator_model.state import COMMIT, Departure, Refused

NAME = "ZombieCommit"

GOES_ON_MS = 10_000
"""A live client learns of a rebalance at its next heartbeat or poll; a client that commits a stale generation
for this long has not."""
CLAIMS_TOLD = 3

ZOMBIE, STALE = "zombie", "stale"
_REMOVED = {
    CauseKind.SESSION_TIMEOUT: "its session timed out",
    CauseKind.POLL_TIMEOUT: "it did not poll in time",
    CauseKind.REBALANCE_TIMEOUT: "it did not rejoin in time",
    CauseKind.SYNC_TIMEOUT: "it did not fetch its assignment in time",
}


class Options(RuleOptions, frozen=True, kw_only=True):
    """No threshold: the rule reports events."""


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    notes = [note for note in situation.step.notes if isinstance(note, Refused) and _is_commit(note)]
    if not notes and not has_anything(situation, NAME):
        return NOTHING
    is_news = False
    for note in notes:
        is_news |= _note(situation, note)
    forget_ms = forget(situation, NAME, lambda _: QUIET_MS)
    return conclude(
        situation,
        NAME,
        told=[one for one in memory_of(situation).of(NAME) if _counts(one)],
        is_news=is_news,
        forget_ms=forget_ms,
        finding=lambda told: _finding(situation, told),
        closing=f"Group {situation.group.group}: no further commit of a removed member for {span(QUIET_MS)}.",
    )


def _is_commit(note: Refused) -> bool:
    # A commit without a member id is not a member's: GroupIdCollision reports it.
    return note.operation == COMMIT and note.member_id != ""


def _note(situation: Situation, note: Refused) -> bool:
    if (
        note.error_code == Error.FENCED_INSTANCE_ID
        and situation.opened(STATIC_MEMBER_FENCED.name) is not None
    ):
        return False  # one trouble, one alert: there it is evidence
    gone = departure_of(situation.group, note.member_id)
    removed = gone is not None and gone.how in _REMOVED
    who = _sender(note, gone)
    seen = Sighting(
        kind=ZOMBIE if removed else STALE,
        key=f"{note.member_id}/{note.generation}",
        first_ms=note.at_ms,
        last_ms=max(note.at_ms, situation.now_ms),
        culprits=[who],
        sentence=f"{clock(note.at_ms)}: commit of {who_is(who)} (member {note.member_id}) with generation "
        f"{note.generation}{_claims(note)} refused with {Error(note.error_code).name}; "
        f"{_why(situation, note, gone)}.",
        number=note.generation,
    )
    return _counts(memory_of(situation).note(NAME, seen))


def _sender(note: Refused, gone: Departure | None) -> Culprit:
    if gone is None or note.client_id:
        return sender(note)
    return Culprit(
        member_id=gone.member_id,
        client_id=gone.client_id,
        client_host=note.client_host or gone.client_host,
        instance_id=gone.instance_id,
    )


def _claims(note: Refused) -> str:
    told = [f"{topic}-{partition} at {offset}" for topic, partition, offset in note.claims]
    return f" ({some(told, at_most=CLAIMS_TOLD)})" if told else ""


def _why(situation: Situation, note: Refused, gone: Departure | None) -> str:
    group = situation.group
    now = f"the group is {group.state} at generation {group.generation}"
    if gone is None:
        return now
    ago = span(max(0, note.at_ms - gone.at_ms))
    return f"it was removed {ago} before ({_REMOVED.get(gone.how, gone.how)}), {now}"


def _counts(one: Sighting) -> bool:
    return one.kind == ZOMBIE or (one.count > 1 and one.last_ms - one.first_ms >= GOES_ON_MS)


def _finding(situation: Situation, told: list[Sighting]) -> Finding:
    newest = max(told, key=lambda one: one.last_ms)
    count, culprits = sum(one.count for one in told), culprits_of(told)
    names = some([who_is(one) for one in culprits])
    generations = some(sorted({str(one.number) for one in told}))
    working = "works after losing its" if len(culprits) == 1 else "work after losing their"
    return Finding(
        starts_at_ms=min(one.first_ms for one in told),
        severity=situation.thresholds.of(Options).severity,
        summary=f"Group {situation.group.group}: {names} still {working} partitions; the coordinator refused "
        f"{times(count, 'commit')} of generation {generations}.",
        cause=newest.sentence,
        culprits=culprits,
        evidence=tuple(one.sentence for one in sorted(told, key=lambda one: one.last_ms)[-EVIDENCE_MAX:]),
        cost="The new owner does again what the removed member has done since its removal: side effects "
        "happen twice.",
        advice="Look at the client's log and host since its removal: what kept it from heartbeats or poll(), "
        "a pause or a slow record? Raise session.timeout.ms or max.poll.interval.ms above that. Let the "
        "client "
        "stop working when it loses its partitions (onPartitionsLost; check the generation before side "
        "effects), or make the work idempotent.",
    )


ZOMBIE_COMMIT = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.REQUESTS,
    remembers="hygiene",
)
