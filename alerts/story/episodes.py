"""What happened to a group, put together: a rebalance is one, however many transitions it made."""

from collections.abc import Iterable

import msgspec
from msgspec import UnsetType

from alerts.alert import Alert
from alerts.story.costs import Spent, carried, spent
from coordinator_model.kafka import MAYBE_LEAVES, SETTLED, CauseKind, GroupState
from coordinator_model.state import Transition

_POLL_TIMEOUT = "PollIntervalExceeded"
_CHAIN_MAX = 50
"""Corrections of one transition, and steps of one rebalance, that are followed: a few are real."""


class Episode(msgspec.Struct):
    """From leaving a settled state until the next."""

    steps: list[Transition]
    then: list[list[Transition]] = []
    """The second step of a cooperative rebalance, and further ones, which are one with the first."""
    reread: int | None = None
    """Records read again afterwards."""

    @property
    def first(self) -> Transition:
        """What began it."""
        return self.steps[0]

    @property
    def last(self) -> Transition:
        """What ended it, or the last that is known of it."""
        return (self.then or [self.steps])[-1][-1]

    @property
    def is_over(self) -> bool:
        """Whether the group has come to rest."""
        return self.last.to_state in SETTLED

    @property
    def is_rebalance(self) -> bool:
        """Whether it is more than a change of state."""
        return len(self.steps) > 1 or not self.is_over

    @property
    def lasted_ms(self) -> int:
        """How long the group was not Stable, once it is over."""
        return sum(part[-1].at_ms - part[0].at_ms for part in (self.steps, *self.then))

    @property
    def cost(self) -> Spent | None:
        """What it cost, if it ended in an assignment."""
        if not self.is_rebalance or self.last.to_state is not GroupState.STABLE:
            return None
        return spent([self.steps, *self.then], self.reread)


def moves_of(transitions: Iterable[Transition], group: str) -> list[Transition]:
    """Return the group's transitions by time, each once, without those that were replaced."""
    found = {one.id: one for one in transitions if one.group == group}
    wrong = {one.replaces for one in found.values() if one.replaces}
    right = [_whole(one, found) for one in found.values() if one.id not in wrong]
    return sorted(right, key=lambda one: one.at_ms)


def _whole(move: Transition, found: dict[str, Transition]) -> Transition:
    """Return a transition with what those told of costs that it replaces, one after the other."""
    seen, earlier = {move.id}, move.replaces
    while earlier and earlier in found and earlier not in seen and len(seen) < _CHAIN_MAX:
        seen.add(earlier)
        move, earlier = carried(move, found[earlier]), found[earlier].replaces
    return move


def refined(moves: list[Transition], alerts: list[Alert]) -> list[Transition]:
    """Return the moves with what was found out later: hosts, and who left as it had not polled in time.

    A member id is that of one life, so it tells which leave an alert is about.
    """
    slow = {c.member_id: c.basis for one in alerts if one.name == _POLL_TIMEOUT for c in one.culprits}
    hosts = {move.cause.member_id: move.cause.client_host for move in moves if move.cause.client_host}
    found = []
    for move in moves:
        cause, basis = move.cause, move.basis
        if cause.member_id and not cause.client_host:
            cause = msgspec.structs.replace(cause, client_host=hosts.get(cause.member_id, ""))
        if cause.kind in MAYBE_LEAVES and cause.member_id in slow:
            cause = msgspec.structs.replace(cause, kind=CauseKind.POLL_TIMEOUT)
            basis = slow[cause.member_id]
        found.append(msgspec.structs.replace(move, cause=cause, basis=basis))
    return found


def episodes_of(moves: list[Transition]) -> list[Episode]:
    """Return what happened, in order: each from a settled state to the next."""
    found: list[Episode] = []
    for move in moves:
        if found and not found[-1].is_over:
            found[-1].steps.append(move)
        else:
            found.append(Episode([move]))
    return found


def with_late_news(episodes: list[Episode], now: tuple[int, int] | None) -> list[Episode]:
    """Give each rebalance what later transitions tell of it: records read again, and costs that came late.

    ``now`` is when the last one ended, and what was read again since; None: not known.
    """
    ended: Episode | None = None
    for episode in episodes:
        for step in episode.steps:
            _take_late_cost(step, ended)
            if ended is not None and not isinstance(step.reread, UnsetType):
                ended.reread = (ended.reread or 0) + step.reread
        ended = episode if episode.last.to_state is GroupState.STABLE else ended
    if now is not None and episodes and episodes[-1].last.at_ms == now[0]:
        episodes[-1].reread = now[1]
    return episodes


def _take_late_cost(step: Transition, ended: Episode | None) -> None:
    """Give a cost that a transition tells of the rebalance before it to that rebalance."""
    is_late = step.to_state is not GroupState.STABLE and not isinstance(step.cost, UnsetType)
    if is_late and ended is not None and isinstance(ended.last.cost, UnsetType):
        ended.steps[-1] = msgspec.structs.replace(ended.last, cost=step.cost)


def joined(episodes: list[Episode]) -> list[Episode]:
    """Return episodes with the second step of a cooperative rebalance put to its first."""
    found: list[Episode] = []
    for one in episodes:
        cost = one.last.cost
        is_second = not isinstance(cost, UnsetType) and cost.second_step and one.is_rebalance
        before = found[-1] if found else None
        is_open = before is not None and len(before.then) < _CHAIN_MAX
        if before is not None and is_open and is_second and before.cost is not None:
            before.then = [*before.then, one.steps]
            before.reread = None if one.reread is None else one.reread + (before.reread or 0)
        else:
            found.append(one)
    return found
