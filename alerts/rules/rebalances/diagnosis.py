"""Finds the pattern behind a run of rebalances: deployment, autoscaler, crash loop and so on.

Each rebalance has a cause; several together have a pattern, and the pattern decides what to do.  A member
that comes and goes repeatedly differs from one that restarts once, and four members that fall silent on one
host are trouble of that host, not of four clients.
"""

from collections import Counter
from enum import StrEnum
from itertools import pairwise

import msgspec

from alerts.rules.engine import Leave, Loss, StormMemory, Trigger
from coordinator_model.kafka import CauseKind


class Pattern(StrEnum):
    """A reason for which a group rebalances again and again."""

    CRASH_LOOP = "crash loop"
    """One client (or each of a few) leaves, returns and leaves again."""
    PAUSES = "pauses of one process"
    """The same process, on the same connection, is lost repeatedly: GC, CPU limit, network."""
    HOST = "trouble of one host"
    """Several members on one host fall silent, and members elsewhere do not."""
    SILENCE = "silent members"
    """Members fall silent, each once at most."""
    SLOW = "slow processing"
    HANGING = "members that hang after joining"
    DEPLOY = "deployment"
    """Many members leave and join, each once, or each is replaced at once."""
    AUTOSCALER = "autoscaler"
    """The number of members rises and falls and rises, and stays at each level for a while."""
    SUBSCRIPTION = "subscription changes"
    PARTITIONS = "partition changes"
    LEADER = "leader that keeps joining"
    STATIC = "contested instance id"
    PROTOCOL = "protocol changes"
    COORDINATOR = "coordinator moves"
    UNKNOWN = "unknown"


DIRECT = {
    CauseKind.POLL_TIMEOUT: Pattern.SLOW,
    CauseKind.REBALANCE_TIMEOUT: Pattern.SLOW,
    CauseKind.SYNC_TIMEOUT: Pattern.HANGING,
    CauseKind.SUBSCRIPTION_CHANGED: Pattern.SUBSCRIPTION,
    CauseKind.PARTITIONS_CHANGED: Pattern.PARTITIONS,
    CauseKind.LEADER_REJOINED: Pattern.LEADER,
    CauseKind.STATIC_MEMBER_REPLACED: Pattern.STATIC,
    CauseKind.PROTOCOL_CHANGED: Pattern.PROTOCOL,
    CauseKind.COORDINATOR_MOVED: Pattern.COORDINATOR,
}
"""Causes that are patterns by themselves."""

_MOVES = frozenset({CauseKind.MEMBER_JOINED, CauseKind.MEMBER_LEFT})

_WEIGHTS = {CauseKind.MEMBER_JOINED: 0.5, CauseKind.UNKNOWN: 0.001}
"""An arrival after a timeout is an echo of that timeout, so arrivals weigh half.  An unknown cause may still
become known, and beside a known one it does not help."""

_KEEP_SHARE = 0.67
"""A reported pattern stays until another weighs half as much again, so that the words do not alternate."""

_ONE_SHARE = 0.67
"""Among several clients that come and go, one with this share explains the run."""

_RESTART_MS = 60_000
"""A member replaced this soon was restarted: autoscalers wait minutes between two steps."""

_IN_TURN_MS = 5_000
"""Losses further apart than this are separate; a common cause hits all members within less."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The pattern that outweighs the others, and the clients behind it."""

    pattern: Pattern
    triggers: tuple[Trigger, ...]
    """The rebalances that belong to the pattern."""
    clients: tuple[int, ...] = ()
    """Indices in ``StormMemory.actors`` of those who started them, largest share first."""
    others: tuple[tuple[Pattern, int], ...] = ()
    """Other patterns with at least a quarter of the weight, with their numbers of rebalances."""
    hosts: tuple[str, ...] = ()
    """Hosts on which members fell silent."""
    losses: int = 0
    """Members lost to a session timeout in the window."""


def dominant_kind(counted: list[Trigger]) -> CauseKind:
    """Return the kind of cause to act on; among equals the one seen first."""
    weights: Counter[CauseKind] = Counter()
    for trigger in counted:
        weights[trigger.kind] += 1
    weighed = {kind: count * _WEIGHTS.get(kind, 1) for kind, count in weights.items()}
    return max(weighed, key=lambda kind: weighed[kind])


def same_client(memory: StormMemory) -> dict[int, int]:
    """Return for each actor which one to blame: one client on one host, as far as hosts are known.

    An actor that left before its host was known goes to its client's only host, or to the others without one.
    """
    known: dict[str, list[int]] = {}
    nowhere: dict[str, int] = {}
    for index, actor in enumerate(memory.actors):
        if actor.client_id and actor.client_host:
            known.setdefault(actor.client_id, []).append(index)
        elif actor.client_id:
            nowhere.setdefault(actor.client_id, index)
    same = {}
    for index, actor in enumerate(memory.actors):
        hosts = [index] if actor.client_host else known.get(actor.client_id, [])
        same[index] = hosts[0] if len(hosts) == 1 else nowhere.get(actor.client_id, index)
    return same


def diagnose(
    memory: StormMemory,
    counted: list[Trigger],
    *,
    hosts: frozenset[str],
    clients: frozenset[str] = frozenset(),
    before: str = "",
) -> Diagnosis:
    """Return what ``counted`` rebalances have in common.

    Args:
        memory: the history they are from.
        counted: the rebalances that nothing explains, at least one, oldest first.
        hosts: where the group's members are now.
        clients: client ids of members that were there before the first of ``counted``, or that several have.
        before: the pattern told so far, "" if none was.
    """
    labels = _Labels(memory, counted, hosts, clients).of_triggers()
    weights: Counter[Pattern] = Counter()
    for trigger, pattern in zip(counted, labels, strict=True):
        weights[pattern] += _weight(trigger)  # type: ignore[assignment]  # halves are no whole numbers
    chosen = max(weights, key=lambda pattern: weights[pattern])
    kept = next((pattern for pattern in weights if pattern == before), chosen)
    if weights[kept] >= _KEEP_SHARE * weights[chosen]:
        chosen = kept
    mine = tuple(trigger for trigger, pattern in zip(counted, labels, strict=True) if pattern is chosen)
    same, total = same_client(memory), sum(weights.values())
    share = Counter(same[trigger.actor] for trigger in mine if trigger.actor >= 0)
    lost = [loss for loss in memory.losses if loss.at_ms >= counted[0].at_ms]
    return Diagnosis(
        pattern=chosen,
        triggers=mine,
        clients=tuple(index for index, _ in share.most_common()),
        others=tuple(
            (pattern, labels.count(pattern))
            for pattern, weight in weights.most_common()
            if pattern is not chosen and pattern is not Pattern.UNKNOWN and weight * 4 >= total
        ),
        hosts=tuple(dict.fromkeys(loss.client_host for loss in lost if loss.client_host)),
        losses=len(lost),
    )


def is_one_host(lost: list[Loss], hosts: frozenset[str]) -> bool:
    """Say whether several members fell silent on one host at once, and none of those elsewhere.

    Args:
        lost: members whose session timed out, oldest first.
        hosts: where the group's members are now.
    """
    silent = {loss.client_host for loss in lost}
    at_once = any(b.at_ms - a.at_ms <= _IN_TURN_MS and a.member != b.member for a, b in pairwise(lost))
    return len(silent) == 1 and at_once and all(silent) and bool(hosts - silent - {""})


def _weight(trigger: Trigger) -> float:
    return _WEIGHTS.get(trigger.kind, 1)


class _Client(msgspec.Struct):
    """What counts of one client's acts within the window."""

    lost: int = 0
    left: int = 0
    came: int = 0
    slow: int = 0
    young: int = 0
    """Losses and departures of members that had joined within the window."""
    pauses: int = 0
    """Losses of a process that continued on the same connection."""

    @property
    def gone(self) -> int:
        return self.lost + self.left

    @property
    def loops(self) -> bool:
        """Say whether it returned and left again, at least once."""
        return self.gone >= 2 and self.young >= max(1, self.gone // 2)

    @property
    def visits(self) -> bool:
        """Say whether it joined within the window and left again voluntarily.

        If several join or leave within one rebalance, only the first is known to have started it.
        """
        return (self.young >= 1 or self.came >= 2) and self.lost <= self.left and not self.slow

    @property
    def activity(self) -> int:
        return self.came + self.gone


class _Labels:
    """Labels each rebalance with its pattern."""

    def __init__(
        self, memory: StormMemory, counted: list[Trigger], hosts: frozenset[str], settled: frozenset[str]
    ) -> None:
        self._settled = settled
        self._memory = memory
        self._counted = counted
        self._hosts = hosts
        self._same = same_client(memory)
        self._clients: dict[int, _Client] = {}
        self._lost = {loss.member: loss for loss in memory.losses}
        self._left = {leave.member: leave for leave in memory.leaves}
        for trigger in counted:
            self._note(trigger)

    def _note(self, trigger: Trigger) -> None:
        if trigger.actor < 0:
            return
        client = self._clients.setdefault(self._same[trigger.actor], _Client())
        if trigger.kind is CauseKind.MEMBER_JOINED:
            client.came += 1
        elif trigger.kind is CauseKind.SESSION_TIMEOUT:
            loss = self._lost.get(trigger.member)
            client.lost += 1
            client.young += self._is_young(trigger, loss)
            client.pauses += loss is not None and loss.same_process
        elif trigger.kind is CauseKind.MEMBER_LEFT:
            client.left += 1
            client.young += self._is_young(trigger, self._left.get(trigger.member))
        elif DIRECT.get(trigger.kind) is Pattern.SLOW:
            client.slow += 1

    def _is_young(self, trigger: Trigger, departure: Loss | Leave | None) -> bool:
        """Say whether the departed member had joined within the window."""
        if departure is not None and departure.joined_at_ms >= self._memory.triggers[0].at_ms:
            return True
        return any(
            other.member == trigger.member and other.kind is CauseKind.MEMBER_JOINED and trigger.member
            for other in self._memory.triggers
        )

    def of_triggers(self) -> list[Pattern]:
        """Return the pattern of each rebalance."""
        loops, silence, moves = self._of_loops(), self._of_silence(), self._of_moves()
        found = []
        for trigger in self._counted:
            client = self._clients.get(self._same.get(trigger.actor, -1))
            found.append(_of_trigger(trigger, client, loops=loops, silence=silence, moves=moves))
        return found

    def _of_loops(self) -> Pattern:
        """Return the pattern of clients that come and go again and again."""
        looping = [client for client in self._clients.values() if client.loops]
        gone = sum(client.gone for client in looping)
        if self._is_one_host():
            return Pattern.HOST
        if 2 * sum(client.pauses for client in looping) >= max(gone, 1):
            return Pattern.PAUSES
        return Pattern.AUTOSCALER if self._is_scaled() else Pattern.CRASH_LOOP

    def _is_scaled(self) -> bool:
        """Say whether several clients come and go voluntarily, two or more at a time, none most of all."""
        visitors = [client.activity for client in self._clients.values() if client.visits]
        in_step = len(visitors) >= 2 and max(visitors) < _ONE_SHARE * sum(visitors)
        return in_step and self._moves_together()

    def _of_silence(self) -> Pattern:
        """Return the pattern of clients that were lost once at most."""
        if self._is_one_host():
            return Pattern.HOST
        once = [t for t in self._counted if t.kind is CauseKind.SESSION_TIMEOUT and not self._loops(t)]
        came = [t for t in self._counted if t.kind is CauseKind.MEMBER_JOINED and not self._loops(t)]
        if any((loss := self._lost.get(trigger.member)) and loss.same_process for trigger in once):
            return Pattern.SILENCE
        in_turn = [b.at_ms - a.at_ms for a, b in pairwise(once)]
        are_replaced = len(once) >= 3 and 2 * len(came) >= len(once)
        return Pattern.DEPLOY if are_replaced and min(in_turn) > _IN_TURN_MS else Pattern.SILENCE

    def _is_one_host(self) -> bool:
        since_ms = self._counted[0].at_ms
        lost = [loss for loss in self._memory.losses if loss.at_ms >= since_ms]
        return is_one_host(lost, self._hosts)

    def _of_moves(self) -> Pattern:
        """Return the pattern of members that come and go voluntarily, none of them repeatedly."""
        visitors = [index for index, client in self._clients.items() if client.visits]
        if len(visitors) < 2:
            return Pattern.DEPLOY
        if self._is_scaled():
            return Pattern.AUTOSCALER
        names = {self._memory.actors[index].client_id for index in visitors}
        # One client id from ever new hosts, one at a time, is a service that is restarted.
        if len(names) == 1 and "" not in names and not names & self._settled:
            return Pattern.CRASH_LOOP
        return Pattern.DEPLOY if self._are_restarts() else Pattern.AUTOSCALER

    def _are_restarts(self) -> bool:
        """Say whether most members that left were replaced at once, or in the same rebalance."""
        moves = [t for t in self._memory.triggers if t.kind in _MOVES]
        gone = {place for place, one in enumerate(moves) if one.kind is CauseKind.MEMBER_LEFT}
        pairs = list(enumerate(pairwise(moves)))
        in_one = {place + 1 for place, (before, one) in pairs if 0 < before.size <= one.size}
        at_once = {
            place
            for place, (one, after) in pairs
            if after.kind is CauseKind.MEMBER_JOINED and after.at_ms - one.at_ms <= _RESTART_MS
        }
        return 2 * len(gone & (in_one | at_once)) >= len(gone) > 0

    def _loops(self, trigger: Trigger) -> bool:
        client = self._clients.get(self._same.get(trigger.actor, -1))
        return client is not None and client.loops

    def _moves_together(self) -> bool:
        """Say whether the group grows or shrinks by two members or more at a time."""
        sizes = [trigger.size for trigger in self._counted if trigger.size >= 0]
        return bool(sizes) and max(sizes) - min(sizes) >= 2


def _of_trigger(
    trigger: Trigger, client: _Client | None, *, loops: Pattern, silence: Pattern, moves: Pattern
) -> Pattern:
    if trigger.kind in DIRECT:
        return DIRECT[trigger.kind]
    if trigger.kind is CauseKind.UNKNOWN:
        return Pattern.UNKNOWN
    if client is None:
        return silence if trigger.kind is CauseKind.SESSION_TIMEOUT else moves
    if client.loops or (client.visits and loops is Pattern.AUTOSCALER):
        return loops
    if trigger.kind is CauseKind.MEMBER_JOINED and client.slow:
        return Pattern.SLOW
    if trigger.kind is CauseKind.SESSION_TIMEOUT or client.lost:
        return silence
    return moves
