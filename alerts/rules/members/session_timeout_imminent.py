"""SessionTimeoutImminent: a member of a Stable group has been silent for most of its session timeout.

Silence counts only if earlier heartbeats of the member were seen, and if the broker's request log had other
lines when the member should have sent its next one.  A member that was not heard since a failover may still
be looking for the coordinator, as all its neighbours do: CoordinatorMoved reports that.
"""

from typing import Annotated

from alerts.alert import clock, some, span, times, who_is
from alerts.rules.engine import (
    EVIDENCE_MAX,
    Closing,
    Finding,
    GroupRule,
    RuleOptions,
    Sees,
    Share,
    Situation,
    Stops,
    Thresholds,
    Verdict,
    culprits_equally,
    over,
)
from coordinator_model.groups.core import USUAL_SLACK, is_rhythm_known, last_word_ms, usual_gap_ms
from coordinator_model.kafka import GroupState
from coordinator_model.shard import ASKED_AGAIN_MS, PROOF_MS_MAX
from coordinator_model.state import Basis, Group, Member

NAME = "SessionTimeoutImminent"

EVICTION_GRACE_MS = 10_000
"""If the coordinator's line about the eviction does not come within this time, it kept the member."""

AT_UNKNOWN = 0.95
"""After a single heartbeat three per session are assumed: most clients send that many, not all."""

TOGETHER_MS = 10_500
"""If a whole group is silent, its coordinator may be waiting for a replica on another broker.  It says so
after 5 s (``offsets.commit.timeout.ms``), once a commit has met that: clients commit every 5 s."""

_NEXT_BEAT_SHARE = 1 / 3
"""Clients send at least three heartbeats per session.  If the log had lines only before that, it may have
been switched off; if only just now, switched on.  Either would make every member of every group seem
silent."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """The part of its session timeout that a member may be silent."""

    at: Annotated[Share, "share of the session timeout without a heartbeat"] = 0.7


def base_ms(member: Member) -> int:
    """Return when the member's session timer started, as far as we saw."""
    return max(member.last_heartbeat_ms, member.session_base_ms)


def _silence_ms(member: Member, at: float) -> int:
    """Return how long a member may be silent: longer than ``at``, and longer than its usual silences.

    That may exceed its session; then no forecast is possible, and UnsafeTimeouts says so.
    """
    timeout_ms = member.session_timeout_ms
    # Without a long gap nothing is usual, and nobody need ask for the last sign of life.
    usual_ms = usual_gap_ms(member, base_ms(member)) if member.rhythm_ms >= 0 else 0
    slack = usual_ms / timeout_ms + USUAL_SLACK if usual_ms else 0
    return round(max(at, slack, 0 if is_rhythm_known(member) else AT_UNKNOWN) * timeout_ms)


def _watched(group: Group) -> list[Member]:
    if group.state is not GroupState.STABLE:
        return []
    members = group.members.values()
    return [one for one in members if one.last_heartbeat_ms >= 0 and one.session_timeout_ms > 0]


def silence_due_ms(group: Group, thresholds: Thresholds, now_ms: int) -> int | None:
    """Return when the first member is silent for too long; ``now_ms`` if one already is.

    Heartbeats alone do not ask again, so a member of which only one is known is looked at as soon as if its
    rhythm were known: its second heartbeat makes it so.  This runs often, so it is one plain loop.
    """
    if group.state is not GroupState.STABLE:
        return None
    at, found = thresholds.of(Options).at, None
    for member in group.members.values():
        timeout_ms, beat_ms = member.session_timeout_ms, member.last_heartbeat_ms
        if beat_ms < 0 or timeout_ms <= 0:
            continue
        since_ms = max(beat_ms, member.session_base_ms)
        if since_ms + timeout_ms <= now_ms:
            continue
        silence_ms = round(at * timeout_ms)
        if member.rhythm_ms >= 0 or (beat_ms == member.first_beat_ms and since_ms + silence_ms <= now_ms):
            silence_ms = _silence_ms(member, at)
            if silence_ms >= timeout_ms:
                continue
        deadline_ms = max(since_ms + silence_ms, now_ms)
        if found is None or deadline_ms < found:
            found = deadline_ms
    return found


def silent_share(thresholds: Thresholds) -> float:
    """Return the part of its session timeout after which a member's silence may be too long."""
    return thresholds.of(Options).at


def shortest_silence_ms(group: Group, thresholds: Thresholds) -> int:
    """Return the shortest silence that is too long for any member, heard or not; 0 if unknown."""
    at = thresholds.of(Options).at
    known = [member.session_timeout_ms for member in group.members.values() if member.session_timeout_ms > 0]
    return round(at * min(known, default=0))


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    opened = situation.opened(NAME)
    silent, due = _judge(situation, is_open=opened is not None)
    if not silent:
        return Verdict(due_ms=due) if opened is None else Verdict(closing=_closing(situation), due_ms=due)
    rule, now_ms = situation.thresholds.of(Options), situation.now_ms
    first = min(silent, key=base_ms)
    left_ms = max(0, base_ms(first) + first.session_timeout_ms - now_ms)
    names = some([who_is(member) for member in silent])
    whom = "it" if len(silent) == 1 else "the first"
    finding = Finding(
        starts_at_ms=base_ms(first),
        severity=rule.severity,
        summary=f"{names} in group {situation.group.group}: no heartbeat for "
        f"{span(now_ms - base_ms(first))}; the coordinator removes {whom} "
        f"in {span(left_ms)} (session timeout {span(first.session_timeout_ms)}).",
        cause=f"{times(len(silent), 'member')} stopped sending heartbeats while the broker still receives "
        "requests of others.",
        culprits=culprits_equally(silent, Basis.OBSERVED),
        evidence=_evidence(situation, silent),
        cost="Nobody reads the partitions of a silent member until it is removed; then "
        f"{_others(situation)}.",
        advice="Look at its host now: did the process crash, is it in a long GC pause, is its CPU "
        "limited, or "
        "is it cut off from the broker? If somebody stops it on purpose, let it close its consumer.",
    )
    return Verdict(finding=finding, due_ms=due)


def _others(situation: Situation) -> str:
    members = len(situation.group.members)
    return (
        f"all {members:,} members rebalance" if members > 1 else "no other member is there to take them over"
    )


def _judge(situation: Situation, *, is_open: bool) -> tuple[list[Member], int | None]:
    """Return the members that are silent for too long, and when to look again."""
    watched = _watched(situation.group)
    if not watched:
        return [], None
    at, now_ms = situation.thresholds.of(Options).at, situation.now_ms
    silent, dues = [], []
    has_replicas = situation.evidence.brokers_heard > 1
    heard_ms = max(member.last_heartbeat_ms for member in watched)
    for member in watched:
        silence_ms = _silence_ms(member, at)
        soonest_ms = base_ms(member) + (
            silence_ms if is_rhythm_known(member) else round(at * member.session_timeout_ms)
        )
        if has_replicas and heard_ms < base_ms(member) + _next_beat_ms(member, at):
            silence_ms = max(silence_ms, min(TOGETHER_MS, round(AT_UNKNOWN * member.session_timeout_ms)))
        if silence_ms >= member.session_timeout_ms:
            continue
        deadline_ms = base_ms(member) + silence_ms
        over_ms = base_ms(member) + member.session_timeout_ms + (EVICTION_GRACE_MS if is_open else 0)
        if now_ms < deadline_ms:
            # What makes it wait longer may end with a heartbeat, which is no news.
            dues.append(min(deadline_ms, max(soonest_ms, now_ms + ASKED_AGAIN_MS)))
        elif now_ms >= over_ms or _is_looking(situation, member):
            continue
        elif _is_proved(situation, member, at):
            silent.append(member)
            dues.append(base_ms(member) + member.session_timeout_ms + EVICTION_GRACE_MS)
        else:
            dues.append(now_ms + ASKED_AGAIN_MS)  # the request log is exact to a second
    return silent, min(dues, default=None)


def _is_looking(situation: Situation, member: Member) -> bool:
    """Say whether a member was last heard before a failover, or before a wait for a replica.

    Clients look for brokers with growing pauses of up to half a minute; a dead client looks the same.
    """
    moved = situation.evidence.moved
    return moved is not None and last_word_ms(member) < moved.over_ms


def _next_beat_ms(member: Member, at: float) -> int:
    """Return how long after a member's last sign of life the next one was due."""
    return round(member.session_timeout_ms * min(_NEXT_BEAT_SHARE, at / 2))


def _is_proved(situation: Situation, member: Member, at: float) -> bool:
    evidence = situation.evidence
    next_beat_ms = _next_beat_ms(member, at)
    if evidence.requests_heard_ms < base_ms(member) + next_beat_ms:
        return False
    listened_ms = situation.now_ms - evidence.requests_since_ms(next_beat_ms)
    return listened_ms >= min(next_beat_ms, PROOF_MS_MAX)


def _evidence(situation: Situation, silent: list[Member]) -> tuple[str, ...]:
    lines = [
        f"{who_is(one)}: last heartbeat {clock(one.last_heartbeat_ms)}, to be removed at "
        f"{clock(base_ms(one) + one.session_timeout_ms)}.{_rhythm(one)}"
        for one in silent[: EVIDENCE_MAX - 1]
    ]
    heard = clock(situation.evidence.requests_heard_ms)
    return (
        *lines,
        f"Newest line of the request log of broker {situation.group.coordinator}: {heard}.",
    )


def _rhythm(member: Member) -> str:
    usual_ms = usual_gap_ms(member, base_ms(member))
    return f" It usually sends one every {span(usual_ms)}." if usual_ms else ""


def _closing(situation: Situation) -> Closing:
    group = situation.group
    gone = {departure.member_id for departure in situation.step.departures}
    opened = situation.opened(NAME)
    named = opened.alert.culprits if opened else ()
    if any(one.member_id in gone for one in named):
        what = "the silent member has left the group"
    elif group.state is not GroupState.STABLE:
        what = f"the group is {group.state}"
    elif any(one.member_id in group.members for one in named):
        what = "heartbeats are back"
    else:
        what = "the silent member is gone"
    return over(situation, what)


SESSION_TIMEOUT_IMMINENT = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.REQUESTS,
    stops=Stops.NOTHING,
    timed=False,
    watched=True,
)
