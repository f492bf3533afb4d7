"""Groups transitions into episodes: a rebalance is one episode, however many transitions it made."""

from collections.abc import Iterable

import msgspec
from msgspec import UnsetType

from alerts.alert import Alert
from alerts.story.costs import Spent, carried, spent
from coordinator_model.kafka import MAYBE_LEAVES, SETTLED, CauseKind, GroupState
from coordinator_model.state import Transition

_POLL_TIMEOUT = "PollIntervalExceeded"
_CHAIN_MAX = 50
"""How many corrections of a transition, and steps of a rebalance, are followed; real ones are few."""


class Episode(msgspec.Struct):
    """The transitions from leaving a settled state until the next settled state."""

    steps: list[Transition]
    then: list[list[Transition]] = []
    """The second and further steps of a cooperative rebalance; they belong to the first."""
    reread: int | None = None
    """Records read again afterwards."""

    @property
    def first(self) -> Transition:
        """The transition that began it."""
        return self.steps[0]

    @property
    def last(self) -> Transition:
        """The transition that ended it, or the last one known."""
        return (self.then or [self.steps])[-1][-1]

    @property
    def is_over(self) -> bool:
        """Whether the group has settled again."""
        return self.last.to_state in SETTLED

    @property
    def is_rebalance(self) -> bool:
        """Whether it is more than a change of state."""
        return len(self.steps) > 1 or not self.is_over

    @property
    def lasted_ms(self) -> int:
        """How long the group was not Stable, once it has settled."""
        return sum(part[-1].at_ms - part[0].at_ms for part in (self.steps, *self.then))

    @property
    def cost(self) -> Spent | None:
        """Its cost, if it ended in an assignment."""
        if not self.is_rebalance or self.last.to_state is not GroupState.STABLE:
            return None
        return spent([self.steps, *self.then], self.reread)


def moves_of(transitions: Iterable[Transition], group: str) -> list[Transition]:
    """Return the group's transitions by time, each once, without replaced ones."""
    found = {one.id: one for one in transitions if one.group == group}
    wrong = {one.replaces for one in found.values() if one.replaces}
    right = [_whole(one, found) for one in found.values() if one.id not in wrong]
    return sorted(right, key=lambda one: one.at_ms)


def _whole(move: Transition, found: dict[str, Transition]) -> Transition:
    """Return a transition with the costs of all that it replaced, directly or not."""
    seen, earlier = {move.id}, move.replaces
    while earlier and earlier in found and earlier not in seen and len(seen) < _CHAIN_MAX:
        seen.add(earlier)
        move, earlier = carried(move, found[earlier]), found[earlier].replaces
    return move


def refined(moves: list[Transition], alerts: list[Alert]) -> list[Transition]:
    """Return the transitions with facts learned later: hosts, and departures by a poll timeout.

    A member id belongs to one life of a member, so it shows which departure an alert is about.
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
    """Return the episodes in order, each from a settled state to the next."""
    found: list[Episode] = []
    for move in moves:
        if found and not found[-1].is_over:
            found[-1].steps.append(move)
        else:
            found.append(Episode([move]))
    return found


def with_late_news(episodes: list[Episode], now: tuple[int, int] | None) -> list[Episode]:
    """Add to each rebalance the facts from later transitions: records read again, and late costs.

    ``now`` is the end of the last one and the records read again since then; None: unknown.
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
    """Add a cost that a transition reports about the previous rebalance to that rebalance."""
    is_late = step.to_state is not GroupState.STABLE and not isinstance(step.cost, UnsetType)
    if is_late and ended is not None and isinstance(ended.last.cost, UnsetType):
        ended.steps[-1] = msgspec.structs.replace(ended.last, cost=step.cost)


def joined(episodes: list[Episode]) -> list[Episode]:
    """Return the episodes with the second step of each cooperative rebalance joined to its first."""
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
