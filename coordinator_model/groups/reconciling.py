"""Compares the mirror with the brokers' own answers, and corrects the mirror where it is wrong.

A broker's answer describes the group at some moment between question and answer.  If the mirror made a
transition about then, or was waiting for something, the answer proves nothing.  If the mirror was at rest and
differs, that is a doubt.  If the same mirror differs a second time, seconds later, it is wrong: the
difference is counted, and the mirror takes the broker's answer over.

Where no INFO log reports them, the mirror does not assert phases of a rebalance: one answer sets them. The
same holds for groups older than the first line, where the topic is not read.

Longer than 400 lines: doubt, proof and correction are one procedure, which is read from top to bottom.
"""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from coordinator_model.groups.core import (
    MEMBERS_MAX,
    Context,
    Inference,
    Target,
    Turn,
    add,
    bring_back,
    correct_silently,
    depart,
    departure_of,
    end,
    everybody_left,
    expire_silent,
    forget_guesses,
    learn_client_at_second_hand,
    make,
    member_of_instance,
    place,
    place_of,
    prove,
    reach,
    rename,
    start_by_newcomer,
    turn_of,
)
from coordinator_model.kafka import WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.observations import DescribedMember, GroupDescribed, Seen
from coordinator_model.state import Basis, Cause, Doubt, Group, Step

STATE_DIFFERS = "state_differs"
MEMBERS_DIFFER = "members_differ"
PROTOCOL_DIFFERS = "protocol_differs"
TYPE_DIFFERS = "type_differs"
EPOCH_DIFFERS = "epoch_differs"
UNKNOWN_TO_MIRROR = "group_unknown_to_mirror"
UNKNOWN_TO_BROKER = "group_unknown_to_broker"
KINDS = (
    STATE_DIFFERS,
    MEMBERS_DIFFER,
    PROTOCOL_DIFFERS,
    TYPE_DIFFERS,
    EPOCH_DIFFERS,
    UNKNOWN_TO_MIRROR,
    UNKNOWN_TO_BROKER,
)

SETTLE_MS = 1_000
"""After a transition so shortly before the question, the answer may describe the time before."""
LASTING_MS = 5_000
"""Time between two answers that prove a difference; a record waits as long for its log lines."""
IN_A_ROW_MS = 600_000
"""Two answers further apart do not count as consecutive: much may have happened between them."""

_PHASES = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})
_SPELLED = {str(state): state for state in GroupState}
_NAMED_MAX = 5
_SAID = "the coordinator said so when asked"
_DETAIL = "the mirror had it wrong and took over the coordinator's own answer"
_ONLY_REASON = {
    GroupState.COMPLETING_REBALANCE: CauseKind.JOIN_COMPLETED,
    GroupState.STABLE: CauseKind.ASSIGNMENT_STORED,
}
"""The cause of a transition to a state that has only one cause."""


class Verdict(StrEnum):
    """What an answer proves about the mirror."""

    AGREES = "agrees"
    MOVING = "moving"
    """The group was in transition: nothing is proved."""
    DOUBTED = "doubted"
    """The mirror differs for the first time."""
    WRONG = "wrong"
    """The mirror still differs."""
    TAUGHT = "taught"
    """The answer shows something that the mirror does not assert."""


NEWS = frozenset({Verdict.WRONG, Verdict.TAUGHT})
"""Verdicts after which the mirror takes something over."""
_SAYS_THE_SAME_NOW = frozenset({Verdict.AGREES, Verdict.TAUGHT, Verdict.WRONG})


class Finding(NamedTuple):
    """The result of comparing an answer with the mirror."""

    verdict: Verdict
    kinds: tuple[str, ...] = ()
    doubt: Doubt | None = None
    """The doubt to keep until the next answer."""

    @property
    def compared(self) -> int:
        """Return how many answers this compares; with a second doubt the answer before counts as well."""
        return {Verdict.AGREES: 1, Verdict.WRONG: 2}.get(self.verdict, 0)


def sketch(state: str, group_type: str, generation: int, members: Sequence[str] | None) -> str:
    """Return one side of a difference for people: ``classic Stable 5 [a, b, c, … 7]``."""
    text = f"{group_type} {state}" + (f" {generation}" if generation >= 0 else "")
    if members is None:
        return text
    named = ", ".join(sorted(members)[:_NAMED_MAX])
    more = f", … {len(members)}" if len(members) > _NAMED_MAX else ""
    return f"{text} [{named}{more}]"


def both_sides(group: Group, what: GroupDescribed) -> str:
    """Return both sides, the mirror's and the broker's, for the log."""
    ids = None if what.members is None else [member.member_id for member in what.members]
    mirror = sketch(str(group.state), group.group_type, group.generation, list(group.members))
    return f"mirror: {mirror}; broker: {sketch(what.state, what.group_type, what.epoch, ids)}"


# --- comparing -------------------------------------------------------------------------------------


def find(
    group: Group,
    seen: Seen,
    context: Context,
    *,
    known: bool,
    coordinator: int = -1,
    before: Doubt | None = None,
) -> Finding:
    """Compare an answer (``GroupDescribed``) with the mirror.

    Args:
        group: the mirror's; a new one if it has none.
        seen: the answer.
        context: the live sources of the shard.
        known: whether the mirror has the group.
        coordinator: broker that leads the shard, -1 unknown; the answer of another proves nothing.
        before: the doubt that the previous answer left.
    """
    what = seen.what
    assert isinstance(what, GroupDescribed)  # noqa: S101 - the caller's branch
    if what.state not in _SPELLED or coordinator not in (-1, seen.broker):
        return Finding(Verdict.MOVING, doubt=before)
    if known and is_moving(group, what.asked_at_ms):
        return Finding(Verdict.MOVING)
    kinds = differences(group, what, known=known)
    if not kinds:
        return Finding(Verdict.AGREES)
    if _teaches(group, what, context, known=known):
        return Finding(Verdict.TAUGHT, kinds)
    return _doubted(group, seen, what, kinds, before)


def _doubted(
    group: Group, seen: Seen, what: GroupDescribed, kinds: tuple[str, ...], before: Doubt | None
) -> Finding:
    mirror = digest(group)
    now = Doubt(answered_at_ms=seen.at_ms, state=what.state, mirror=mirror)
    if before is None or before.mirror != mirror:
        return Finding(Verdict.DOUBTED, kinds, now)
    waited_ms = what.asked_at_ms - before.answered_at_ms
    if waited_ms > IN_A_ROW_MS:
        return Finding(Verdict.DOUBTED, kinds, now)
    if waited_ms < LASTING_MS:
        return Finding(Verdict.DOUBTED, kinds, before)
    return Finding(Verdict.WRONG, kinds)


def differences(group: Group, what: GroupDescribed, *, known: bool) -> tuple[str, ...]:
    """Return how an answer differs from the mirror; a greater difference hides those it explains."""
    is_there = what.state != GroupState.DEAD
    if not known or group.state is GroupState.DEAD:
        return (UNKNOWN_TO_MIRROR,) if is_there else ()
    if not is_there:
        return (UNKNOWN_TO_BROKER,)
    if what.group_type != group.group_type:
        return (TYPE_DIFFERS,)
    if what.state != group.state:
        return (STATE_DIFFERS,)
    return tuple(kind for kind, differs in _details(group, what) if differs)


def _details(group: Group, what: GroupDescribed) -> list[tuple[str, bool]]:
    """Compare what only a group at rest shows: during a rebalance members are known late or not at all."""
    is_classic = group.group_type == "classic"
    if is_classic and group.state is not GroupState.STABLE:
        return []
    ids = None if what.members is None else {member.member_id for member in what.members}
    return [
        (EPOCH_DIFFERS, not is_classic and what.epoch >= 0 and what.epoch != group.generation),
        (MEMBERS_DIFFER, ids is not None and ids != group.members.keys()),
        (PROTOCOL_DIFFERS, is_classic and "" != what.protocol != (group.protocol or what.protocol)),
    ]


def is_moving(group: Group, asked_at_ms: int) -> bool:
    """Return whether the mirror changed since shortly before the question, or waits for something."""
    if group.held_record is not None:
        return True
    moves_ms = [group.state_since_ms, *(member.joined_at_ms for member in group.members.values())]
    moves_ms += [gone.at_ms for gone in group.departures[-1:]]
    return max(moves_ms) > asked_at_ms - SETTLE_MS


def digest(group: Group) -> bytes:
    """Return a digest of the mirror's group in 8 bytes, which any transition changes."""
    said = (
        group.group_type,
        str(group.state),
        group.state_since_ms,
        group.generation,
        group.protocol,
        sorted(group.members),
    )
    return blake2b(repr(said).encode("utf-8", "backslashreplace"), digest_size=8).digest()


def _teaches(group: Group, what: GroupDescribed, context: Context, *, known: bool) -> bool:
    """Return whether the answer shows something that no source of ours could have shown."""
    if not known:
        return not context.offsets_enabled
    is_classic = group.group_type == what.group_type == "classic" and group.state is not GroupState.DEAD
    return is_classic and not context.info_live and _SPELLED[what.state] in _PHASES


# --- healing -----------------------------------------------------------------------------------------


def reconcile(group: Group, seen: Seen, finding: Finding, context: Context, before: Doubt | None) -> Step:
    """Correct the mirror by an answer as far as ``finding`` allows; return the effects on the group."""
    step = Step()
    what = seen.what
    assert isinstance(what, GroupDescribed)  # noqa: S101 - the caller's branch
    turn = turn_of(group, seen, context, step)
    if finding.verdict is Verdict.AGREES:
        _enrich(group, what)
    elif finding.verdict is Verdict.TAUGHT:
        turn.at_ms = what.asked_at_ms
        _learn(turn, what)
    elif finding.verdict is Verdict.WRONG:
        is_old_news = before is not None and before.state == what.state
        turn.at_ms = before.answered_at_ms if before is not None and is_old_news else what.asked_at_ms
        _heal(turn, what, finding.kinds)
    if finding.verdict in _SAYS_THE_SAME_NOW:
        group.agreed_at_ms = max(group.agreed_at_ms, what.asked_at_ms)
    if what.state != GroupState.DEAD:
        group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    return step


def _learn(turn: Turn, what: GroupDescribed) -> None:
    group = turn.group
    if group.state is GroupState.DEAD:
        _adopt_silently(turn, what)
        return
    if what.state == GroupState.COMPLETING_REBALANCE:
        said = Cause(kind=CauseKind.JOIN_COMPLETED, detail=_SAID)
        prove(
            turn,
            GroupState.COMPLETING_REBALANCE,
            group.generation + 1,
            turn.at_ms,
            said,
            by=Inference.BROKER_SAYS_SO,
        )
    else:
        _learn_of_rebalance(turn)


def _learn_of_rebalance(turn: Turn) -> None:
    """Begin the rebalance by the time of the question, caused by a silent member or one about to join."""
    group = turn.group
    expire_silent(turn, turn.at_ms, heard="")
    said = Cause(kind=_why_begun(group), detail=_SAID)
    why, began_ms = start_by_newcomer(group, turn.at_ms) or (said, turn.at_ms)
    began_ms = max(began_ms, group.state_since_ms)
    if (
        prove(
            turn, GroupState.PREPARING_REBALANCE, group.generation, began_ms, why, by=Inference.BROKER_SAYS_SO
        )
        and group.rebalance
    ):
        group.rebalance.told_at_ms = turn.at_ms


def _why_begun(group: Group) -> CauseKind:
    """Return why the group rebalances.  Kafka: an empty group does so for one reason only."""
    return CauseKind.MEMBER_JOINED if group.state is GroupState.EMPTY else CauseKind.UNKNOWN


def _adopt_silently(turn: Turn, what: GroupDescribed) -> None:
    """Copy a group that existed before we started: a snapshot, so without transitions."""
    group = turn.group
    group.group_type = what.group_type
    state, generation = _SPELLED[what.state], max(what.epoch, 0)
    correct_silently(group, state=state, generation=generation, since_ms=turn.at_ms)
    group.told = ()
    _take_members(turn, what)
    _take_protocol(group, what)
    for member in group.members.values():
        member.joined_at_ms = -1
    turn.step.arrivals.clear()


def _heal(turn: Turn, what: GroupDescribed, kinds: tuple[str, ...]) -> None:
    group = turn.group
    if UNKNOWN_TO_BROKER in kinds:
        detail = "the coordinator does not know the group"
        everybody_left(turn, CauseKind.UNKNOWN, Basis.INFERRED, turn.at_ms)
        end(turn, Cause(kind=CauseKind.GROUP_DELETED, detail=detail), by=Inference.BROKER_SAYS_SO)
        return
    is_new = UNKNOWN_TO_MIRROR in kinds
    if is_new or TYPE_DIFFERS in kinds or what.group_type != "classic":
        _take_over(turn, what)
    elif STATE_DIFFERS in kinds:
        _move(turn, _SPELLED[what.state])
    _take_members(turn, what)
    _take_protocol(group, what)


def _take_over(turn: Turn, what: GroupDescribed) -> None:
    """Put the group at the broker's place, whatever it was: it was seen first in mid-life, or converted."""
    group = turn.group
    kind = CauseKind.PROTOCOL_CHANGED if what.group_type != group.group_type else CauseKind.UNKNOWN
    if group.state is GroupState.DEAD:
        kind = CauseKind.UNKNOWN
    generation = what.epoch if what.epoch >= 0 else max(group.generation, 0)
    has_moved = (group.state, group.generation) != (_SPELLED[what.state], generation)
    group.group_type = what.group_type
    if has_moved or kind is CauseKind.PROTOCOL_CHANGED:
        _make(turn, _SPELLED[what.state], generation, Cause(kind=kind, detail=_DETAIL))


def _move(turn: Turn, to: GroupState) -> None:
    group = turn.group
    if to is GroupState.EMPTY:
        everybody_left(turn, CauseKind.UNKNOWN, Basis.INFERRED, turn.at_ms)
    generation = _generation(turn, to)
    if place(to, generation) > place_of(group):
        begun = Cause(kind=_why_begun(group), detail=_DETAIL)
        why = Cause(kind=_ONLY_REASON.get(to, CauseKind.UNKNOWN), detail=_DETAIL)
        told = Target(
            to=to,
            generation=generation,
            at_ms=turn.at_ms,
            cause=begun if to is GroupState.PREPARING_REBALANCE else why,
            by=Inference.BROKER_SAYS_SO,
            start=begun,
        )
        reach(turn, told)
    else:
        # The group never made the transition that we saw, or its coordinator lost it.
        _make(turn, to, generation, Cause(kind=CauseKind.UNKNOWN, detail=_DETAIL))


def _generation(turn: Turn, to: GroupState) -> int:
    """Return the generation for a state that the broker reports without one.

    Every completed generation has a record.  So where the topic is read, a group that is Stable and has no
    new record is back at the last one.
    """
    group = turn.group
    if to is GroupState.PREPARING_REBALANCE:
        return group.generation
    if to is not GroupState.COMPLETING_REBALANCE and group.state in _PHASES and _fits_record(turn, to):
        return group.stored_generation
    if to is GroupState.STABLE and group.state is GroupState.COMPLETING_REBALANCE:
        return group.generation
    return group.generation + 1


def _fits_record(turn: Turn, to: GroupState) -> bool:
    group = turn.group
    if not turn.context.offsets_enabled or group.stored_generation < 0 or group.stored_members < 0:
        return False
    return (group.stored_members == 0) == (to is GroupState.EMPTY)


def _make(turn: Turn, to: GroupState, generation: int, why: Cause) -> None:
    group = turn.group
    wrong = forget_guesses(group, group.state, group.generation)
    told = Target(to=to, generation=generation, at_ms=turn.at_ms, cause=why, by=Inference.BROKER_SAYS_SO)
    make(turn, told, replaces=wrong)


# --- members ---------------------------------------------------------------------------------------


def _take_members(turn: Turn, what: GroupDescribed) -> None:
    """Set the members to those in the broker's list; how the others left is unknown."""
    group = turn.group
    if what.members is None or group.state in WITHOUT_MEMBERS:
        return
    for described in what.members:
        static = member_of_instance(group, described.instance_id)
        if static is not None and static.member_id != described.member_id:
            rename(turn, static.member_id, described.member_id)
    listed = {described.member_id for described in what.members}
    for member_id in [one for one in group.members if one not in listed]:
        depart(turn, member_id, CauseKind.UNKNOWN, basis=Basis.INFERRED)
        if group.modern is not None:
            group.modern.members.pop(member_id, None)
            group.modern.targets.pop(member_id, None)
    for described in what.members[:MEMBERS_MAX]:
        _take_member(turn, described)


def _take_member(turn: Turn, described: DescribedMember) -> None:
    group = turn.group
    group.pending.pop(described.member_id, None)
    gone = departure_of(group, described.member_id)
    if described.member_id not in group.members and gone is not None:  # the member had not left after all
        bring_back(group, gone)
    add(turn, described.member_id, instance_id=described.instance_id)
    _fill_in(group, described)


def _take_protocol(group: Group, what: GroupDescribed) -> None:
    group.protocol_type = what.protocol_type or group.protocol_type
    group.protocol = what.protocol or group.protocol


def _enrich(group: Group, what: GroupDescribed) -> None:
    """Fill in from an agreeing answer what no other source shows."""
    if group.group_type != "classic":
        return
    if group.state is GroupState.STABLE:
        _take_protocol(group, what)
    for described in what.members or ():
        _fill_in(group, described)


def _fill_in(group: Group, described: DescribedMember) -> None:
    member = group.members.get(described.member_id)
    if member is None:
        return
    learn_client_at_second_hand(
        member, described.client_id or member.client_id, described.client_host or member.client_host
    )
    member.instance_id = described.instance_id or member.instance_id
    if described.topics is not None:
        member.topics = described.topics
    if described.assigned is not None:
        member.assigned = described.assigned
