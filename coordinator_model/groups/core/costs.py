"""Computes the cost of rebalances: phase times, partitions without owner or reassigned, records read again.

An eager group has nobody reading any of its partitions from the start of a rebalance until it is Stable; a
cooperative group lacks only the partitions that change owners.  None means that no source shows the figure. A
heartbeat costs nothing here, a commit one comparison.

Source: ``ConsumerCoordinator`` (KIP-429, eager and cooperative), ``AbstractStickyAssignor`` for the least
number of reassigned partitions.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from coordinator_model.kafka import GroupState
from coordinator_model.kafka.assignors import ASSIGNORS, Partition, Subscriber, kept
from coordinator_model.observations import Commit
from coordinator_model.state import (
    CostState,
    Group,
    LastCost,
    Mark,
    Member,
    Owned,
    Rebalance,
    RebalanceCost,
    StepCost,
    ToldCost,
)
from coordinator_model.state import told as told_of

if TYPE_CHECKING:
    from coordinator_model.groups.core.turn import Turn

SECOND_STEP_MS = 10_000
"""Members that had to give partitions up join again within this time after Stable."""
IDLE_MS = 60_000
"""A longer time without a commit gives no throughput; a shorter one may be the pause between two commits."""
ROLL_MS = 600_000
"""The throughput before a rebalance covers the last ten to twenty minutes, never the rebalance before it."""
COMPUTED_MAX = 50_000
"""Limit of members times partitions up to which the sticky assignor is run where subscriptions differ."""

_EAGER = ("range", "roundrobin", "sticky")
_COOPERATIVE = ("cooperative", "stream")


def is_eager(protocol: str | None) -> bool | None:
    """Return whether members give up everything before they join; None: unknown for this assignor."""
    if protocol in _EAGER:
        return True
    return False if protocol and protocol.startswith(_COOPERATIVE) else None


def mark(group: Group, at_ms: int) -> Mark:
    """Return how far the group's commits have come."""
    committed = partitions = 0
    for offsets in group.commits.values():
        partitions += len(offsets)
        committed += sum(offset for offset, _ in offsets.values())
    return Mark(at_ms=at_ms, committed=committed, partitions=partitions, last_commit_ms=group.last_commit_ms)


def rate_between(earlier: Mark | None, later: Mark | None) -> float | None:
    """Return offsets committed per second between two marks, from commit to commit; None: unknown."""
    if earlier is None or later is None or earlier.partitions != later.partitions or not later.partitions:
        return None
    grown, took_ms = later.committed - earlier.committed, later.last_commit_ms - earlier.last_commit_ms
    if took_ms <= 0:
        return 0.0 if later.at_ms - earlier.at_ms >= IDLE_MS else None
    return None if grown < 0 else grown * 1_000 / took_ms


def rate_within(earlier: Mark | None, later: Mark | None) -> float | None:
    """Return offsets committed per second over the whole time between two marks; None: unknown."""
    if earlier is None or later is None or earlier.partitions != later.partitions or not later.partitions:
        return None
    grown, took_ms = later.committed - earlier.committed, later.at_ms - earlier.at_ms
    return None if grown < 0 or took_ms <= 0 else grown * 1_000 / took_ms


def rate_since(earlier: Mark | None, later: Mark | None) -> float | None:
    """Return offsets committed per second from a moment to the last commit; None: unknown or no commit."""
    if earlier is None or later is None or later.last_commit_ms <= earlier.at_ms:
        return None
    return rate_within(earlier, msgspec.structs.replace(later, at_ms=later.last_commit_ms))


def note_start(turn: "Turn") -> None:
    """Keep where the commits were when the group left Stable, if the start was reported in time."""
    group, running = turn.group, turn.group.rebalance
    if turn.context.backlog or running is None or running.unstable_since_ms != running.started_at_ms:
        return
    group.costs = group.costs or CostState()
    # If the start was inferred from the end of the rebalance, commits had gone on since it.
    told_in_time = turn.at_ms - running.started_at_ms < SECOND_STEP_MS and bool(group.commits)
    group.costs.started = mark(group, running.started_at_ms) if told_in_time else None


def assigned_now(group: Group) -> Owned:
    """Return the assignment of each member, as far as records show it."""
    return {name: one.assigned for name, one in group.members.items() if one.assigned is not None}


def note_assignment(turn: "Turn", before: Owned) -> None:
    """Report the cost of the rebalance that has just ended with a stored assignment.

    Args:
        turn: the record.
        before: ``assigned_now`` before the record was applied.
    """
    group, last = turn.group, turn.group.rebalance
    if turn.context.backlog or group.state is not GroupState.STABLE or last is None:
        return
    state = group.costs = group.costs or CostState()
    if last.ended_at_ms < 0 or state.generation == group.generation:
        return
    state.generation = group.generation
    now = mark(group, group.state_since_ms)
    cost = _cost(group, last, before, now)
    state.untold = None if tell_cost(turn, cost) else told_of(cost)
    state.stable, state.started = now, None


def note_commits(turn: "Turn", commits: Iterable[Commit]) -> None:
    """Count records that are read again: the first commit after a rebalance that lies before the last one."""
    group = turn.group
    if turn.context.backlog or not group.commits:
        return
    state = group.costs
    if state is None:
        state = group.costs = CostState()
    _roll(group, state, turn.at_ms)
    if state.stable is None or turn.at_ms - state.stable.at_ms > ROLL_MS:
        return
    again = sum(_went_back(group, commit, state.stable.at_ms) for commit in commits)
    if again:
        turn.step.cost = turn.step.cost or StepCost()
        turn.step.cost.reread += again
        state.again += again
        if state.last is not None:
            state.last.reread += again


def _went_back(group: Group, commit: Commit, since_ms: int) -> int:
    """Return by how many records a partition's first commit after ``since_ms`` lies before its last one."""
    last = group.commits.get(commit.topic, {}).get(commit.partition)
    if last is None or commit.offset is None or commit.offset >= last[0]:
        return 0
    return last[0] - commit.offset if last[1] <= since_ms < commit.committed_at_ms else 0


def _roll(group: Group, state: CostState, at_ms: int) -> None:
    """Keep a mark that is some minutes old; drop one of other partitions."""
    last = state.recent
    if last is None or last.partitions != sum(map(len, group.commits.values())):
        state.recent, state.older = mark(group, at_ms), None
    elif at_ms - last.at_ms >= ROLL_MS:
        state.recent, state.older = mark(group, at_ms), last


def mark_before(state: CostState) -> Mark | None:
    """Return the mark at which the throughput before the running rebalance starts."""
    marks = [one for one in (state.stable, state.older or state.recent) if one is not None]
    usable = [one for one in marks if state.started and one.partitions == state.started.partitions]
    return max(usable, key=lambda one: one.at_ms, default=None)


def tell_cost(turn: "Turn", cost: RebalanceCost) -> bool:
    """Give the cost of a rebalance that ends in this turn to the rules, the report and its transition.

    Returns False if this turn emits no transition that ends the rebalance.
    """
    turn.step.cost = turn.step.cost or StepCost()
    turn.step.cost.finished = cost
    if turn.group.costs is not None:
        names = [name for name in LastCost.__struct_fields__ if name != "reread"]
        known = {name: getattr(cost, name) for name in names}
        numbers = {name: -1 if number is None else number for name, number in known.items()}
        turn.group.costs.last = LastCost(**numbers)
    return attach(turn, cost)


def attach(turn: "Turn", cost: RebalanceCost) -> bool:
    """Put a cost into the transition that ends its rebalance; False if this turn emits none."""
    told, is_told = turn.step.transitions, False
    for index, one in enumerate(told):
        if one.to_state is GroupState.STABLE and one.generation == turn.group.generation:
            told[index], is_told = msgspec.structs.replace(one, cost=told_of(cost)), True
    return is_told


def untold(turn: "Turn", to: GroupState) -> ToldCost | UnsetType:
    """Return the cost of the last rebalance for the transition to ``to``, and mark it as emitted.

    Without the INFO log, members' answers may end a rebalance before its record is read.
    """
    state = turn.group.costs
    if turn.context.backlog or state is None or state.untold is None or to is GroupState.STABLE:
        return UNSET
    cost, state.untold = state.untold, None
    return cost


def reread_since(turn: "Turn", came_from: GroupState) -> int | UnsetType:
    """Return how many records were read again that no transition has carried, and mark them as emitted.

    Unknown where no commit followed: a group that left Stable before its first commit may read again.
    """
    group, state = turn.group, turn.group.costs
    if turn.context.backlog or state is None or state.stable is None:
        return UNSET
    again, state.again = state.again, 0
    committed_since = group.last_commit_ms > state.stable.at_ms
    return again if again or (came_from is GroupState.STABLE and committed_since) else UNSET


def _cost(group: Group, last: Rebalance, before: Owned, now: Mark) -> RebalanceCost:
    state = group.costs or CostState()
    ended_ms = group.state_since_ms
    started_ms = last.unstable_since_ms if last.unstable_since_ms >= 0 else last.started_at_ms
    # Where no source reports the start, it is put where the join phase ended.
    is_start_known = last.joined_at_ms < 0 or last.started_at_ms < last.joined_at_ms
    moves = _Moves(group, before)
    second_step = state.withheld > 0 and state.stable is not None
    second_step = second_step and started_ms - now_or(state.stable, started_ms) <= SECOND_STEP_MS
    eager, lost_ms = is_eager(group.protocol), None
    if moves.known and eager is not None and is_start_known:
        lacking = moves.total if eager else max(0, moves.orphans - state.withheld)
        lost_ms = lacking * (ended_ms - started_ms)
        lost_ms += state.withheld * (ended_ms - now_or(state.stable, ended_ms))
    moved, least = moves.moved, moves.least()
    if second_step and moved is not None and least is not None:
        moved, least = max(0, moved - state.withheld), max(0, least - state.withheld)
    state.withheld = moves.withheld if eager is False else 0
    return RebalanceCost(
        started_ms=started_ms,
        ended_ms=ended_ms,
        join_ms=last.joined_at_ms - last.started_at_ms if is_start_known and last.joined_at_ms >= 0 else None,
        sync_ms=ended_ms - last.joined_at_ms if last.joined_at_ms >= 0 else None,
        eager=eager,
        partitions=moves.total if moves.known else None,
        partition_ms=lost_ms,
        moved=moved,
        least=least,
        second_step=second_step,
        rate_before=rate_between(mark_before(state), state.started),
        rate_during=rate_within(state.started, now),
        start=state.started,
        before=moves.before,
        initial=last.initial,
    )


def now_or(one: Mark | None, otherwise_ms: int) -> int:
    """Return when a mark was made, or ``otherwise_ms`` if there is none."""
    return otherwise_ms if one is None else one.at_ms


class _Moves:
    """The partitions that changed owners between two assignments of a group."""

    def __init__(self, group: Group, before: Owned) -> None:
        self._members = list(group.members.values())
        self.known = bool(self._members) and all(one.assigned is not None for one in self._members)
        self.before = {name: had for name, had in before.items() if name in group.members}
        self._had = {name: partitions_of(had) for name, had in self.before.items()}
        has = {one.member_id: partitions_of(one.assigned or {}) for one in self._members}
        self._all = set().union(*has.values())
        wanted = {topic for one in self._members for topic in one.topics or ()}
        still_read = {p for had in self._had.values() for p in had if p.topic in wanted}
        self.withheld = len(still_read - self._all)
        self._all |= still_read
        self.orphans = len(self._all - still_read)
        self.total = len(self._all)
        stayed = sum(len(had & has[name]) for name, had in self._had.items())
        self.moved = self.total - stayed if self.known else None

    def least(self) -> int | None:
        """Return how many partitions had to change owners; None: unknown, or too costly to compute."""
        if not self.known or any(one.topics is None for one in self._members):
            return None
        if len({one.topics for one in self._members}) == 1:
            had = [len(had & self._all) for had in self._had.values()]
            return self.total - most_kept(had, divmod(self.total, len(self._members)))
        if len(self._members) * self.total > COMPUTED_MAX:
            return None
        members = subscribers(self._members, self.before)
        return self.total - kept(members, ASSIGNORS["sticky"](members, counts_of(self._all)))


def most_kept(owned: list[int], shares: tuple[int, int]) -> int:
    """Return how many partitions can stay with their owners in an even assignment.

    Args:
        owned: how many partitions each of the old members had.
        shares: partitions that each member gets, and how many members get one more.
    """
    share, more = shares
    return sum(min(count, share + (index < more)) for index, count in enumerate(sorted(owned, reverse=True)))


def partitions_of(assigned: dict[str, tuple[int, ...]]) -> set[Partition]:
    """Return an assignment as a set."""
    return {Partition(topic, number) for topic, numbers in assigned.items() for number in numbers}


def counts_of(partitions: Iterable[Partition]) -> dict[str, int]:
    """Return the least number of partitions that each topic has, by the highest partition seen."""
    counts: dict[str, int] = {}
    for topic, number in partitions:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def subscribers(members: Iterable[Member], before: Owned) -> list[Subscriber]:
    """Return members in the form that an assignor takes, with the partitions that they had before."""
    return [
        Subscriber(
            member_id=one.member_id,
            topics=one.topics or (),
            owned=tuple(sorted(partitions_of(before.get(one.member_id, {})))),
            instance_id=one.instance_id,
        )
        for one in members
    ]
