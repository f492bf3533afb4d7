"""Chooses the groups to ask the brokers about next; pure, so that tests can cover rate and order.

First come groups whose last answer did not match, then groups that the brokers' list shows differently from
our mirror, then groups that are not settled or have just settled.  The rest of the rate goes through all
groups in turn, shard by shard, since each answer makes the job load the whole shard.  A quarter is always
left for these turns: troubled groups must not hide a quiet one that is wrong.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from coordinator_model.kafka import SETTLED, GroupState

AGAIN_S = 5.5
"""A group in doubt is asked about again after this time; the model wants its answers 5 s apart."""
FRESH_S = 2.0
"""A group that has just changed is asked about after this: an answer during the change proves nothing."""
ROUTINE_S = 30.0
"""A settled group is not asked about more often than this."""
ROUTINE_SHARE = 0.25
NEVER_S = float("-inf")


class TypeAndState(NamedTuple):
    """A group in the brokers' list or in our mirror; "" where the brokers are too old to say."""

    group_type: str
    state: str


class Bucket:
    """How many groups may be asked about now: a rate per second, with one second's worth saved at most."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._tokens = max(1.0, per_second)
        self._at = now

    def available(self, now: float) -> int:
        """Return the number of groups that may be asked about."""
        most = max(1.0, self._per_second)
        self._tokens = min(most, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Record that ``count`` groups were asked about."""
        self._tokens -= count


class Rota:
    """Remembers when each group was asked about, and chooses the next ones."""

    def __init__(self, shard_of: Callable[[str], int]) -> None:
        self._shard_of = shard_of
        self._asked_at: dict[str, float] = {}
        self._doubtful: set[str] = set()
        self._suspects: list[str] = []
        self._restless: list[str] = []
        self._moved: dict[str, float] = {}
        self._mirrored: dict[str, TypeAndState] = {}
        self._everyone: set[str] = set()
        self._order: list[str] = []
        """The same, by shard: sorted anew only when they change, for that costs a hash of each name."""
        self._next = 0
        self._credit = 0.0
        """The part of the rate that is left for the turns."""

    def look(
        self,
        mirrored: Mapping[str, TypeAndState],
        listed: Mapping[str, TypeAndState],
        *,
        complete: bool,
        now: float,
    ) -> None:
        """Take our mirror and the brokers' list of groups.

        Args:
            mirrored: the groups that the mirror has.
            listed: the groups that the brokers list.
            complete: every broker gave its list; otherwise no group counts as missing from it.
            now: in seconds, of a clock that never goes back.
        """
        for group in mirrored.keys() & self._mirrored.keys():
            if mirrored[group] != self._mirrored[group]:
                self._moved[group] = now
        self._mirrored = dict(mirrored)
        missing = [g for g, seen in mirrored.items() if g not in listed and seen.state != GroupState.DEAD]
        other = [group for group, seen in listed.items() if _differs(mirrored.get(group), seen)]
        self._suspects = [*other, *(missing if complete else ())]
        self._restless = [group for group, seen in mirrored.items() if seen.state not in SETTLED]
        everyone = {*mirrored, *listed}
        if everyone != self._everyone:
            self._everyone = everyone
            self._order = sorted(everyone, key=lambda group: (self._shard_of(group), group))
        self._next %= max(1, len(self._order))
        for kept in (self._asked_at, self._moved):
            for group in kept.keys() - everyone:
                del kept[group]
        self._doubtful &= everyone

    def doubt_everyone(self) -> None:
        """Ask about every known or listed group, before the turns."""
        self._doubtful = set(self._order)

    def due(self, budget: int, now: float) -> list[str]:
        """Return at most ``budget`` groups to ask about now, most urgent first."""
        if budget <= 0:
            return []
        self._credit = min(self._credit + budget * ROUTINE_SHARE, budget)
        turns: list[str] = []
        self._take_turns(turns, int(self._credit), frozenset(), now)
        urgent = self._urgent(budget - len(turns), frozenset(turns), now)
        self._take_turns(turns, budget - len(urgent), frozenset(urgent), now)
        self._credit = max(0.0, self._credit - len(turns))
        chosen = [*urgent, *turns]
        for group in chosen:
            self._asked_at[group] = now
            self._moved.pop(group, None)
        return chosen

    def answered(self, group: str, *, fits: bool) -> None:
        """Record whether an answer matched our mirror."""
        if fits:
            self._doubtful.discard(group)
        else:
            self._doubtful.add(group)

    def _urgent(self, count: int, chosen: frozenset[str], now: float) -> list[str]:
        """Return groups in doubt first, then groups that may be wrong or changing, by their wait."""
        moved = [group for group, at in self._moved.items() if now - at >= FRESH_S]
        waiting = [g for g in (*self._suspects, *self._restless) if self._rested(g, AGAIN_S, now)]
        waiting = sorted({*waiting, *moved}, key=lambda group: (self._asked_at.get(group, NEVER_S), group))
        doubtful = [group for group in sorted(self._doubtful) if self._rested(group, AGAIN_S, now)]
        found = dict.fromkeys(group for group in (*doubtful, *waiting) if group not in chosen)
        return list(found)[: max(0, count)]

    def _take_turns(self, turns: list[str], most: int, chosen: frozenset[str], now: float) -> None:
        """Continue the turns in the order of shards and groups, without groups asked about lately."""
        if len(turns) >= most:
            return
        known = {*chosen, *turns}
        for _ in range(len(self._order)):
            group = self._order[self._next]
            if turns and (len(turns) >= most or self._shard_of(group) != self._shard_of(turns[0])):
                return
            self._next = (self._next + 1) % len(self._order)
            if group not in known and self._rested(group, ROUTINE_S, now):
                turns.append(group)

    def _rested(self, group: str, pause_s: float, now: float) -> bool:
        return now - self._asked_at.get(group, NEVER_S) >= pause_s


def _differs(mirrored: TypeAndState | None, listed: TypeAndState) -> bool:
    if mirrored is None:
        return True
    is_same_state = listed.state in ("", mirrored.state)
    return mirrored.group_type != listed.group_type or not is_same_state


def by_call(
    groups: Iterable[str], broker_of: Callable[[str], int | None], type_of: Callable[[str], str]
) -> dict[tuple[int, str], Sequence[str]]:
    """Return (broker, group type) -> groups, one call each; groups without a known broker are left out."""
    calls: dict[tuple[int, str], list[str]] = {}
    for group in groups:
        broker = broker_of(group)
        if broker is not None:
            calls.setdefault((broker, type_of(group)), []).append(group)
    return {call: sorted(names) for call, names in sorted(calls.items())}
