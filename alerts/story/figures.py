"""The story of one group as figures: the states it was in, and its rebalances, each with cause and cost.

Pure; the page draws it, and ``narrative`` says the same in sentences.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from alerts.alert import Alert
from alerts.story.costs import Spent, in_words, spent
from alerts.story.episodes import Episode, episodes_of, moves_of, refined, with_late_news
from alerts.story.words import began, how_it_went
from coordinator_model.kafka import SETTLED, GroupState
from coordinator_model.state import Basis, Cause, Transition

REBALANCES_MAX = 2_000


class StateSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a group was in one state."""

    from_ms: int
    """It may lie before the window; -1: unknown, before everything that is known."""
    to_ms: int
    """-1: it lasts."""
    state: str
    generation: int
    """-1: unknown."""
    basis: Basis
    """How the beginning is known."""


class RebalanceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance: from leaving a settled state until the next one."""

    started_at_ms: int
    joined_at_ms: int
    """When its last join phase ended; -1: it has none, or has not ended yet."""
    ended_at_ms: int
    """-1: it runs, or its end is unknown."""
    state: str
    """The state it ended in, or is in."""
    generation: int
    basis: Basis
    """How the beginning is known."""
    cause: Cause
    cost: Spent | None
    """None: it has not ended in an assignment."""
    words: str
    """Why it began, how it went and what it cost, in sentences."""
    restarts: list[int]
    """When it began anew, before it had ended."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """States and rebalances of one group, oldest first."""

    states: list[StateSpan]
    rebalances: list[RebalanceSpan]
    """The newest, if there are more than can be shown."""
    left_out: int = 0
    """How many older ones there are."""


def timeline(
    group: str,
    transitions: Iterable[Transition],
    alerts: Sequence[Alert],
    *,
    from_ms: int,
    to_ms: int,
    now_ms: int,
    reread: tuple[int, int] | None = None,
) -> Timeline:
    """Return what of a group's states and rebalances touches a window.

    Args:
        group: its name; transitions of others are passed over.
        transitions: in any order, with repeats; those that were replaced are left out.
        alerts: of the group: they know of some departures what they were.
        from_ms: the window's beginning …
        to_ms: … and end.
        now_ms: until when a running rebalance has lasted.
        reread: when the last rebalance ended, and the records read again since.
    """
    moves = refined(moves_of(transitions, group), list(alerts))
    states = [one for one in _states(moves) if one.from_ms < to_ms and not 0 <= one.to_ms < from_ms]
    episodes = [
        one
        for one in with_late_news(episodes_of(moves), reread)
        if one.is_rebalance and one.first.at_ms < to_ms and (not one.is_over or one.last.at_ms >= from_ms)
    ]
    shown = episodes[-REBALANCES_MAX:]
    return Timeline(
        states=states,
        rebalances=[_rebalance(one, now_ms) for one in shown],
        left_out=len(episodes) - len(shown),
    )


def _states(moves: Sequence[Transition]) -> list[StateSpan]:
    if not moves:
        return []
    first = moves[0]
    before = StateSpan(
        from_ms=-1, to_ms=first.at_ms, state=first.from_state, generation=-1, basis=first.basis
    )
    ends = [*(after.at_ms for _, after in pairwise(moves)), -1]
    return [
        before,
        *(
            StateSpan(
                from_ms=one.at_ms, to_ms=end, state=one.to_state, generation=one.generation, basis=one.basis
            )
            for one, end in zip(moves, ends, strict=True)
            if end != one.at_ms
        ),
    ]


def _rebalance(episode: Episode, now_ms: int) -> RebalanceSpan:
    first, last = episode.first, episode.last
    is_assigned = last.to_state is GroupState.STABLE
    cost = spent([episode.steps], episode.reread) if is_assigned else None
    sentences = [f"{began(first)}.", how_it_went(episode.steps, now_ms)]
    if cost is not None:
        sentences.append(in_words(cost, first.group_type))
    joined = [one.at_ms for one in episode.steps if one.to_state is GroupState.COMPLETING_REBALANCE]
    return RebalanceSpan(
        started_at_ms=first.at_ms,
        joined_at_ms=joined[-1] if joined else -1,
        ended_at_ms=last.at_ms if last.to_state in SETTLED else -1,
        state=last.to_state,
        generation=last.generation,
        basis=first.basis,
        cause=first.cause,
        cost=cost,
        words=" ".join(sentences),
        restarts=[one.at_ms for one in episode.steps[1:] if one.to_state is GroupState.PREPARING_REBALANCE],
    )
