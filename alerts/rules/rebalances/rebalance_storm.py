"""RebalanceStorm: the group rebalances so often that it gets no work done.

It fires at the rebalance with which the count in the window reaches the threshold (``storm_history`` counts).
It ends when the count is below the threshold *and* no rebalance was counted for half a window: a storm
exactly at the threshold would otherwise fire and resolve in turns.
"""

from collections import Counter
from typing import Annotated

from alerts.alert import Culprit, clock, some, span, times, who, who_is, why
from alerts.rules.engine import (
    EVIDENCE_MAX,
    MINUTE_MS,
    NOTHING,
    Closing,
    Count,
    DurationMs,
    Finding,
    GroupRule,
    OpenAlert,
    RuleOptions,
    Situation,
    Stops,
    StormMemory,
    Trigger,
    Verdict,
)
from alerts.rules.rebalances import rebalance_costs, storm_history, storm_runs, storm_words, stuck
from alerts.rules.rebalances.diagnosis import diagnose, dominant_kind, same_client
from coordinator_model.state import Basis

NAME = "RebalanceStorm"

_CULPRITS_TOLD = 10
_MOSTLY = 0.5
"""A culprit with a smaller share of the blame is one of several."""
_NEVER_BEGAN = -1


class Options(RuleOptions, frozen=True, kw_only=True):
    """From this many counted rebalances within the window on, it is a storm."""

    rebalances: Annotated[Count, "rebalances within the window that make a storm"] = 5
    window_ms: Annotated[DurationMs, "how far back rebalances are counted"] = 10 * MINUTE_MS


def evaluate(situation: Situation) -> Verdict:
    """Return the verdict on the group."""
    began = _note(situation)
    memory = situation.memory.storm
    opened = situation.opened(NAME)
    if memory is None:
        return NOTHING if opened is None else _judge_open(situation, opened, [], began=False)
    rule = situation.thresholds.of(Options)
    if not began and opened is None:
        return NOTHING
    counted = storm_history.counted(memory, now_ms=situation.now_ms, window_ms=rule.window_ms)
    if opened is not None:
        return _judge_open(situation, opened, counted, began=began)
    if len(counted) < rule.rebalances:
        return NOTHING
    return Verdict(finding=_finding(situation, memory, counted), due_ms=_over_at_ms(situation, None, counted))


def _note(situation: Situation) -> bool:
    """Update the history; True if a rebalance started."""
    step, memory, rule = situation.step, situation.memory, situation.thresholds.of(Options)
    began = False
    if step.transitions or step.departures:
        memory.storm = memory.storm or StormMemory()
        memory.storm.members_max = max(memory.storm.members_max, len(situation.group.members))
        began = storm_history.note(
            memory.storm,
            situation.group,
            step,
            window_ms=rule.window_ms,
            limit=storm_history.history_max(rule.rebalances),
        )
    if memory.storm is not None:
        storm_runs.note(memory.storm, situation.group)
    is_idle = memory.storm is not None and storm_history.forget(
        memory.storm, now_ms=situation.now_ms, window_ms=rule.window_ms
    )
    if is_idle:
        memory.storm = None
    return began


def _judge_open(situation: Situation, opened: OpenAlert, counted: list[Trigger], *, began: bool) -> Verdict:
    over_at_ms = _over_at_ms(situation, opened, counted)
    if situation.now_ms >= over_at_ms:
        return Verdict(closing=_closing(situation, opened))
    memory = situation.memory.storm
    is_news = began and memory is not None and len(counted) >= situation.thresholds.of(Options).rebalances
    if not is_news or memory is None:
        return Verdict(due_ms=over_at_ms)
    return Verdict(finding=_finding(situation, memory, counted), due_ms=over_at_ms)


def _over_at_ms(situation: Situation, opened: OpenAlert | None, counted: list[Trigger]) -> int:
    """Return when the storm ends if no further rebalance starts."""
    rule = situation.thresholds.of(Options)
    newest_ms = counted[-1].at_ms if counted else _NEVER_BEGAN
    if opened is not None and opened.adopted:
        newest_ms = max(newest_ms, opened.touched_ms)
    over_ms = newest_ms + rule.window_ms // 2
    if len(counted) >= rule.rebalances:
        over_ms = max(over_ms, counted[-rule.rebalances].at_ms + rule.window_ms)
    return over_ms


def _finding(situation: Situation, memory: StormMemory, counted: list[Trigger]) -> Finding:
    rule, group = situation.thresholds.of(Options), situation.group
    culprits = _culprits(memory, counted)
    dominant = dominant_kind(counted)
    told = situation.opened(NAME)
    alike = Counter(member.client_id for member in group.members.values())
    found = diagnose(
        memory,
        counted,
        hosts=frozenset(member.client_host for member in group.members.values() if member.client_host),
        clients=frozenset(
            member.client_id
            for member in group.members.values()
            if member.joined_at_ms < counted[0].at_ms or alike[member.client_id] > 1
        ),
        before=told.aspect if told else "",
    )
    first_ms, elapsed = counted[0].at_ms, span(situation.now_ms - counted[0].at_ms)
    pattern = f" ({found.pattern})" if found.pattern in storm_words.IN_SUMMARY else ""
    blame = _blame(culprits)
    return Finding(
        starts_at_ms=first_ms,
        severity=rule.severity,
        summary=f"Group {group.group} rebalanced {len(counted)} times in {elapsed} because of "
        f"{why(dominant)}{pattern}{blame}.",
        cause=" ".join(
            (
                storm_words.sentence(memory, found),
                _cause(counted, culprits),
                *stuck.moves(situation, counted[0].at_ms),
            )
        ),
        culprits=culprits,
        evidence=_evidence(memory, counted),
        cost=_cost(situation, memory, counted),
        advice=storm_words.ADVICE[found.pattern],
        culprit_keys=frozenset(f"{one.client_id}/{one.client_host}/{one.basis}" for one in culprits),
        aspect=str(found.pattern),
    )


def _culprits(memory: StormMemory, counted: list[Trigger]) -> tuple[Culprit, ...]:
    """Return who started the counted rebalances, by client and host, largest share first."""
    same = same_client(memory)
    share: Counter[int] = Counter(same[trigger.actor] for trigger in counted if trigger.actor >= 0)
    guessed = {same[trigger.actor] for trigger in counted if trigger.actor >= 0 and not trigger.observed}
    newest = {same[trigger.actor]: trigger.actor for trigger in counted if trigger.actor >= 0}
    found = []
    for index, count in share.most_common(_CULPRITS_TOLD):
        actor = memory.actors[index]
        found.append(
            Culprit(
                member_id=memory.actors[newest[index]].member_id,
                client_id=actor.client_id,
                client_host=actor.client_host,
                instance_id=actor.instance_id,
                share=round(count / len(counted), 4),
                basis=Basis.INFERRED if index in guessed else Basis.OBSERVED,
            )
        )
    return tuple(found)


def _blame(culprits: tuple[Culprit, ...]) -> str:
    if not culprits:
        return ""
    if culprits[0].share >= _MOSTLY:
        return f", mostly by {who_is(culprits[0])}"
    return f", by {some([who_is(one) for one in culprits], at_most=2)}"


def _cause(counted: list[Trigger], culprits: tuple[Culprit, ...]) -> str:
    kinds = Counter(trigger.kind for trigger in counted)
    told = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
    if not culprits:
        return f"{told}. No source tells which members caused them."
    shares = some([f"{who_is(one)} ({one.share:.0%})" for one in culprits])
    return f"{told}. By: {shares}."


def _evidence(memory: StormMemory, counted: list[Trigger]) -> tuple[str, ...]:
    lines = [f"{clock(one.at_ms)}: {one.kind}{_by(memory, one)}" for one in counted[-EVIDENCE_MAX:]]
    explained = len(memory.triggers) - len(counted)
    if explained > 0:
        lines.append(
            f"Not counted: {times(explained, 'rebalance')}; a restart, a first start or a second step "
            "explains them."
        )
    return tuple(lines)


def _by(memory: StormMemory, trigger: Trigger) -> str:
    if trigger.actor < 0:
        return ""
    actor = memory.actors[trigger.actor]
    return " of " + who(member_id=actor.member_id, client_id=actor.client_id, client_host=actor.client_host)


def _cost(situation: Situation, memory: StormMemory, counted: list[Trigger]) -> str:
    lost_ms = sum(
        trigger.lasted_ms if trigger.lasted_ms >= 0 else situation.now_ms - trigger.at_ms
        for trigger in counted
    )
    # At this moment a group in a storm is often empty, or lacks the members that just left.
    members = times(max(memory.members_max, 1), "member")
    lost = f"{times(len(counted), 'rebalance')}; not Stable for {span(lost_ms)} in total"
    costs = rebalance_costs.since(situation.memory, counted[0].at_ms)
    return f"{lost}, which stops {members} each time." + rebalance_costs.sentences(
        costs, situation.group, situation.now_ms
    )


def _closing(situation: Situation, opened: OpenAlert) -> Closing:
    now_ms, group = situation.now_ms, situation.group
    lasted = span(now_ms - opened.alert.starts_at_ms)
    summary = (
        f"The rebalance storm of group {group.group} is over after {lasted}; "
        f"the group is {group.state} at generation {group.generation}."
    )
    costs = rebalance_costs.since(situation.memory, opened.alert.starts_at_ms)
    told = rebalance_costs.in_all(costs, group, now_ms)
    return Closing(ends_at_ms=now_ms, summary=summary, cost=told)


REBALANCE_STORM = GroupRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    stops=Stops.GROUP,
    remembers="storm",
)
