"""Computes what a rebalance of a consumer or streams group costs, from the records of its members.

Such a group lacks only the partitions that change owners: a partition that a member had, or that the target
assignment gives to a member, and that no member has at the moment, neither as its own nor still to be given
up. A static member that went for a while has its partitions on paper; nobody reads them.  Share groups
reassign nothing.

Source: ``CurrentAssignmentBuilder`` and ``ConsumerGroupMember`` (KIP-848), ``StreamsGroupMember`` (KIP-1071).
"""

from collections.abc import Iterable, Mapping

import msgspec

from coordinator_model.groups.core import (
    COMPUTED_MAX,
    Turn,
    attach,
    counts_of,
    mark,
    mark_before,
    most_kept,
    rate_between,
    rate_within,
    tell_cost,
)
from coordinator_model.groups.modern.replay import Changes
from coordinator_model.kafka import SETTLED, WITHOUT_MEMBERS, GroupState
from coordinator_model.kafka.assignors import ASSIGNORS, Partition, Subscriber, kept
from coordinator_model.observations import Assignment, Current, ModernRecord
from coordinator_model.state import (
    AWAY,
    CONSUMER,
    FIRST_EPOCH_MAX,
    STREAMS,
    CostState,
    Group,
    Modern,
    ModernMember,
    Owned,
    Rebalance,
    RebalanceCost,
)

_COUNTED = frozenset({CONSUMER, STREAMS})
_NOT_ACTIVE = (" standby", " warmup")
"""How ``modern_records.Assignment`` marks tasks that read nothing for the group."""


class Rest(msgspec.Struct, kw_only=True):
    """The state of a group before a write."""

    state: GroupState
    since_ms: int
    group_type: str
    currents: dict[str, Current | None] | None
    """What each member had, if the group was at rest."""
    held: dict[str, Assignment]
    """What each member in the write had, including partitions that it had to give up."""
    members: frozenset[str]
    """The members of a classic group."""

    def rename(self, group: Group, replaced: Mapping[str, str]) -> None:
        """Rename static members that came back under a new id: they keep what they had."""
        running = None if group.costs is None else group.costs.had
        for old, new in replaced.items():
            if self.currents is not None and old in self.currents:
                self.currents[new] = self.currents.pop(old)
            if running is not None and old in running:
                running[new] = running.pop(old)


def before_write(group: Group, records: Iterable[ModernRecord]) -> Rest:
    """Return the state of a group before ``records`` are applied."""
    modern, currents = group.modern, None
    if group.state is GroupState.STABLE and modern is not None:
        currents = {name: one.current for name, one in modern.members.items()}
    elif group.state in WITHOUT_MEMBERS:
        currents = {}
    known = {} if modern is None else modern.members
    return Rest(
        state=group.state,
        since_ms=group.state_since_ms,
        group_type=group.group_type,
        currents=currents,
        held={one.member_id: _held(known.get(one.member_id)) for one in records if one.member_id},
        members=frozenset() if modern is not None else frozenset(group.members),
    )


def note_write(turn: Turn, modern: Modern, changes: Changes, before: Rest) -> None:
    """Follow a group through one write, and report the cost of the rebalance that ends with it."""
    group, last = turn.group, turn.group.rebalance
    if turn.context.backlog or group.group_type not in _COUNTED or last is None:
        return
    state = group.costs = group.costs or CostState()
    if before.group_type != group.group_type:
        state.had, state.gaps, state.since_ms, state.partition_ms = None, {}, -1, 0
    if before.state in SETTLED and not _begin(turn, state, changes, before):
        return
    if before.state is GroupState.STABLE and before.members and before.members <= modern.members.keys():
        # A conversion: the assignments of the classic members are in the same write.
        state.had = {name: _held(modern.members[name]) for name in sorted(before.members)}
    _time_phase(state, before, turn)
    _follow_gaps(state, modern, before, turn.at_ms)
    if changes.retargeted:
        _miss(state, modern, turn.at_ms)
    if group.state is GroupState.STABLE:
        _tell(turn, state, modern, last)
    if group.state in SETTLED:
        state.had, state.gaps, state.since_ms, state.started = None, {}, -1, None
        state.partition_ms = 0


def _begin(turn: Turn, state: CostState, changes: Changes, before: Rest) -> bool:
    """Begin a rebalance; False if the write begins none: a member repeats itself, or the last one leaves."""
    group = turn.group
    if group.state in WITHOUT_MEMBERS:
        return False
    if group.state is GroupState.STABLE and before.state is GroupState.STABLE and not changes.epochs:
        return False
    state.since_ms, state.had = turn.at_ms, None
    if before.currents is not None:
        had = {name: {} if one is None else one.assigned for name, one in before.currents.items()}
        state.had = {name: _active(one) for name, one in had.items()}
    state.gaps, state.partition_ms, state.assigning_ms, state.reconciling_ms = {}, 0, 0, 0
    state.started = mark(group, turn.at_ms) if group.commits else None
    is_new = bool(changes.epochs) and changes.epochs[0] <= FIRST_EPOCH_MAX + 1
    if before.state is GroupState.DEAD and not is_new:
        state.had = None  # first seen in the middle of its life
    return True


def _time_phase(state: CostState, before: Rest, turn: Turn) -> None:
    if turn.group.state is before.state or before.since_ms < 0:
        return
    spent_ms = max(0, turn.at_ms - before.since_ms)
    if before.state is GroupState.ASSIGNING:
        state.assigning_ms += spent_ms
    elif before.state is GroupState.RECONCILING:
        state.reconciling_ms += spent_ms


def _follow_gaps(state: CostState, modern: Modern, before: Rest, at_ms: int) -> None:
    """Note partitions that members gave up, and add up how long partitions had no owner.

    Only the partitions in the write matter: each has one owner, who gives it up before the next one gets it.
    """
    had = _union(before.held.values())
    has = _union(_held(modern.members.get(name)) for name in before.held)
    for topic in {**had, **has}:
        gave, got = had.get(topic, set()), has.get(topic, set())
        gaps = state.gaps.get(topic, {})
        state.partition_ms += sum(at_ms - gaps.pop(number) for number in got if number in gaps)
        gaps.update((number, at_ms) for number in sorted(gave - got))
        _keep(state, topic, gaps)


def _miss(state: CostState, modern: Modern, at_ms: int) -> None:
    """Note partitions without an owner in a new target assignment: new ones, or ones that were freed."""
    held = _union(map(_held, modern.members.values()))
    for topic, wanted in _union(map(_active, modern.targets.values())).items():
        gaps = state.gaps.get(topic, {})
        lacking = sorted(wanted - held.get(topic, set()))
        gaps.update((number, at_ms) for number in lacking if number not in gaps)
        _keep(state, topic, gaps)


def _keep(state: CostState, topic: str, gaps: dict[int, int]) -> None:
    if gaps:
        state.gaps[topic] = gaps
    else:
        state.gaps.pop(topic, None)


def _tell(turn: Turn, state: CostState, modern: Modern, last: Rebalance) -> None:
    """Report the cost of the rebalance; partitions that no member wants or gets do not count as missing."""
    group, had, seen = turn.group, state.had, state.since_ms >= 0
    has = {name: _active(one.assigned) for name, one in modern.members.items()}
    total = sum(map(len, _union(has.values()).values()))
    moved = None if had is None else total - _stayed(had, has)
    now = mark(group, turn.at_ms)
    cost = RebalanceCost(
        started_ms=state.since_ms if seen else last.unstable_since_ms,
        ended_ms=turn.at_ms,
        eager=False,
        partitions=total,
        partition_ms=state.partition_ms if had is not None else None,
        moved=moved,
        least=None if had is None else _least(group.group_type, modern, had, has),
        rate_before=rate_between(mark_before(state), state.started),
        rate_during=rate_within(state.started, now),
        start=state.started,
        initial=last.initial if had is None else not had,
        assigning_ms=state.assigning_ms if seen else None,
        reconciling_ms=state.reconciling_ms if seen else None,
    )
    if last.ended_at_ms == turn.at_ms:
        state.generation = group.generation
        tell_cost(turn, cost)
    else:
        # No epoch grew: a static member left and came back.  That is no rebalance, and yet nobody read.
        attach(turn, cost)
    state.stable = now


def _held(member: ModernMember | None) -> Assignment:
    """Return a member's partitions, including those still to be given up; none while it is away."""
    if member is None or member.epoch == AWAY:
        return {}
    assigned, revoking = _active(member.assigned), _active(member.revoking)
    if not revoking:
        return assigned
    return {topic: (*assigned.get(topic, ()), *revoking.get(topic, ())) for topic in {**assigned, **revoking}}


def _active(assigned: Assignment) -> Assignment:
    """Return an assignment without standby and warm-up tasks, which read nothing for the group."""
    if not any(topic.endswith(_NOT_ACTIVE) for topic in assigned):
        return assigned
    return {topic: numbers for topic, numbers in assigned.items() if not topic.endswith(_NOT_ACTIVE)}


def _union(assignments: Iterable[Assignment]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for assigned in assignments:
        for topic, numbers in assigned.items():
            found.setdefault(topic, set()).update(numbers)
    return found


def _stayed(had: Owned, has: Owned) -> int:
    """Return how many partitions are with the member that had them."""
    return sum(
        len(set(numbers).intersection(had[name].get(topic, ())))
        for name, assigned in has.items()
        if name in had
        for topic, numbers in assigned.items()
    )


def _least(group_type: str, modern: Modern, had: Owned, has: Owned) -> int | None:
    """Return how many partitions an even assignment had to reassign; None: unknown or too costly."""
    all_now = _union(has.values())
    total = sum(map(len, all_now.values()))
    subscribed = {name: _subscribed(modern, one) for name, one in modern.members.items()}
    if group_type == STREAMS or len(set(subscribed.values())) == 1:
        kept_most = [_count_in(had[name], all_now) for name in has if name in had]
        return total - most_kept(kept_most, divmod(total, len(has)))
    if (
        None in subscribed.values()
        or len(has) * total > COMPUTED_MAX
        or not all_now.keys() <= modern.names.keys()
    ):
        return None
    members = [
        Subscriber(
            member_id=name,
            topics=topics or (),
            owned=tuple(sorted(_named(modern, had.get(name, {}), all_now))),
        )
        for name, topics in subscribed.items()
    ]
    counts = counts_of(_named(modern, {topic: tuple(numbers) for topic, numbers in all_now.items()}, all_now))
    return total - kept(members, ASSIGNORS["sticky"](members, counts))


def _count_in(assigned: Assignment, all_now: Mapping[str, set[int]]) -> int:
    return sum(len(all_now.get(topic, set()).intersection(numbers)) for topic, numbers in assigned.items())


def _named(modern: Modern, assigned: Assignment, all_now: Mapping[str, set[int]]) -> list[Partition]:
    """Return partitions by the names of their topics, without those that have no owner at the moment."""
    return [
        Partition(modern.names[topic], number)
        for topic, numbers in assigned.items()
        for number in numbers
        if number in all_now.get(topic, set())
    ]


def _subscribed(modern: Modern, member: ModernMember) -> tuple[str, ...] | None:
    metadata = member.metadata
    if metadata is None:
        return None
    found = modern.regexes.get(metadata.regex, ()) if metadata.regex else ()
    return tuple(sorted({*metadata.topics, *found}))
