"""A small classic group coordinator, written from Kafka's rules alone, that tells everything it does.

It shares no code with the model.  Each request and timer gives what a real broker gives: lines of the
INFO log, records, answers in the request log (joins and syncs only once they are answered), and the
truth: every transition with its time and cause.

``tests.oracle`` is the larger simulation.  This one stays beside it: duels of that one with a real broker
do not come out without a difference each time, this group fails over in the middle of its clients' lives,
and the two were written apart (``tests/oracle/README.md`` has the figures, and when this one can go).

Source: ``GroupMetadataManager`` (classic half) and ``ClassicGroup`` of Apache Kafka 4.3.1.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from coordinator_model.observations.base import Observation, Source
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupEmptied,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    JoinPhaseEnded,
    LeaderReplaced,
    MemberFailed,
    MemberIdHandedOut,
    MemberJoined,
    MemberLeft,
    MembersKicked,
    NobodyRejoined,
    PendingMemberExpired,
    Reason,
    RebalanceStarted,
    StaticMemberReplaced,
)
from coordinator_model.observations.records import (
    Commit,
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    OffsetsCommitted,
)
from coordinator_model.observations.requests import (
    Client,
    CommitsAnswered,
    DeleteAnswered,
    Heartbeats,
    JoinAnswered,
    LeaveAnswered,
    SyncAnswered,
)
from coordinator_model.observations.seen import Seen
from tests.unit.made_seen import seen

GROUP = "orders"
DELAY_MS = 3_000
"""``group.initial.rebalance.delay.ms``."""
NEW_MEMBER_MS = 300_000
DEAD, EMPTY, PREPARING, COMPLETING, STABLE = (
    "Dead",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)
Answer = Callable[[int, dict[str, Any]], None]
"""Called with the error code and the fields of an answer."""


class Truth(NamedTuple):
    """One transition that the coordinator really made."""

    at_ms: int
    came_from: str
    to: str
    generation: int
    kind: str


@dataclass
class Ask:
    """What a JoinGroup asks."""

    client: Client
    member_id: str = ""
    instance_id: str | None = None
    session_ms: int = 6_000
    rebalance_ms: int = 10_000
    metadata: str = "t"
    reason: str | None = None
    needs_id: bool = True
    """JoinGroup v4 and later: an unknown dynamic member first gets an id."""


class Parked(NamedTuple):
    """A request that waits for its answer."""

    arrived_ms: int
    answer: Answer


@dataclass
class Member:
    """A member as the coordinator knows it."""

    member_id: str
    ask: Ask
    is_new: bool = True
    join: Parked | None = None
    sync: Parked | None = None
    assigned: dict[str, tuple[int, ...]] = field(default_factory=dict)


Act = TypeVar("Act", bound=Callable[..., None])


def after_the_commit(act: Act) -> Act:
    """Let a request or timer wait while a record is not committed: what a tie means, no source can tell."""

    @wraps(act)
    def acting(self: "Coordinator", *args: Any) -> None:
        if self.uncommitted:
            self.world.after(2, lambda: acting(self, *args))
        else:
            act(self, *args)

    return cast("Act", acting)


class World:
    """Simulated time, and what was seen in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now_ms = 1_000_000
        self.seen: list[Seen] = []
        self.truth: list[Truth] = []
        self.broker = 1
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Do something later."""
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, act))

    def run_until(self, until_ms: int) -> None:
        """Let time pass."""
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._queue)
            act()
        self.now_ms = until_ms

    def uuid(self) -> str:
        """Return a UUID as the coordinator appends it to a client id."""
        text = f"{self.chance.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def see(self, source: Source, what: Any) -> None:
        """Let something be seen now."""
        broker = -1 if source is Source.OFFSETS else self.broker
        self.seen.append(seen(self.now_ms, what, source, broker=broker, offset=len(self.seen)))

    def line(self, what: Observation) -> None:
        """Write a line of the coordinator's INFO log."""
        self.see(Source.COORDINATOR_LOG, what)

    def record(self, what: Observation) -> None:
        """Append to ``__consumer_offsets``."""
        self.see(Source.OFFSETS, what)

    def answered(self, what: Observation) -> None:
        """Write a line of the request log."""
        self.see(Source.REQUEST_LOG, what)


class Coordinator:
    """One classic group on its coordinator."""

    def __init__(self, world: World, *, max_size: int = 1_000) -> None:
        self.world = world
        self.max_size = max_size
        self.timers: dict[str, int] = {}
        self.stored: GroupRecorded | None = None
        self.commits: set[tuple[str, int]] = set()
        self.saved: dict[str, Member] = {}
        self.loading = False
        self.uncommitted = False
        self._forget()

    def _forget(self) -> None:
        self.state = self.previous = DEAD
        self.since_ms = self.world.now_ms
        self.generation = 0
        self.protocol_type = ""
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        self.new_member_added = False
        self.timers.clear()

    # --- time ---

    def _timer(self, key: str, delay_ms: int, act: Callable[[], None]) -> None:
        self.world._count += 1
        token = self.world._count
        self.timers[key] = token

        def fire() -> None:
            if self.timers.get(key) == token:
                del self.timers[key]
                act()

        self.world.after(delay_ms, fire)

    def _session(self, member: Member, timeout_ms: int = -1) -> None:
        """Restart a member's session timer."""
        wait_ms = timeout_ms if timeout_ms >= 0 else member.ask.session_ms
        self._timer(f"hb {member.member_id}", wait_ms, lambda: self._expire(member))

    # --- moves ---

    def _move(self, to: str, kind: str) -> None:
        self.world.truth.append(Truth(self.world.now_ms, self.state, to, self.generation, kind))
        self.previous, self.state, self.since_ms = self.state, to, self.world.now_ms

    def _prepare(self, kind: str, text: str, ids: tuple[str, ...], instance: str | None = None) -> None:
        if self.state == COMPLETING:
            for member in self.members.values():
                member.assigned = {}
                self._answer_sync(member, 27)
        self.timers.pop("sync", None)
        initial = self.state == EMPTY
        self._move(PREPARING, kind)
        reason = Reason(kind=kind, text=text, member_ids=ids, instance_id=instance)
        self.world.line(RebalanceStarted(group=GROUP, generation=self.generation, reason=reason))
        if initial:
            remaining = max(self._rebalance_ms() - DELAY_MS, 0)
            self._timer("join", DELAY_MS, lambda: self._initial(DELAY_MS, remaining))
        elif self._all_joined():
            self._complete()
        else:
            self._timer("join", self._rebalance_ms(), self._complete)

    def _initial(self, delay_ms: int, remaining_ms: int) -> None:
        if self.new_member_added and remaining_ms:
            self.new_member_added = False
            delay, left = min(DELAY_MS, remaining_ms), max(remaining_ms - delay_ms, 0)
            self._timer("join", delay, lambda: self._initial(delay, left))
        else:
            self._complete()

    def _rebalance_ms(self) -> int:
        return max((member.ask.rebalance_ms for member in self.members.values()), default=0)

    def _all_joined(self) -> bool:
        return all(member.join for member in self.members.values()) and not self.pending

    def _rebalance_or_complete(
        self, kind: str, text: str, ids: tuple[str, ...], instance: str | None = None
    ) -> None:
        if self.state in {STABLE, COMPLETING, EMPTY}:
            self._prepare(kind, text, ids, instance)
        else:
            self._maybe_complete()

    def _maybe_complete(self) -> None:
        if self.state == PREPARING and self._all_joined() and self.previous != EMPTY:
            self._complete()

    def _complete(self) -> None:
        self.timers.pop("join", None)
        kicked = [m for m in self.members.values() if not m.join and m.ask.instance_id is None]
        if kicked:
            self.world.line(
                MembersKicked(group=GROUP, member_ids=tuple(member.member_id for member in kicked))
            )
        for member in kicked:
            self._remove(member.member_id)
        joined = [member for member in self.members.values() if member.join]
        if self.members and not joined:
            self.world.line(NobodyRejoined(group=GROUP))
            self._timer("join", self._rebalance_ms(), self._complete)
            return
        if joined and (self.leader not in self.members or not self.members[str(self.leader)].join):
            if self.leader is not None:
                self.world.line(LeaderReplaced(old_leader_id=self.leader, new_leader_id=joined[0].member_id))
            self.leader = joined[0].member_id
        self.generation += 1
        if joined:
            self._sync_phase()
        else:
            self._empty("rebalance_timeout" if kicked else "all_members_left")

    def _sync_phase(self) -> None:
        self._move(COMPLETING, "join_completed")
        self.world.line(
            JoinPhaseEnded(group=GROUP, generation=self.generation, member_count=len(self.members))
        )
        self.pending_sync = set(self.members)
        for member in self.members.values():
            self._answer_join(member, 0)
            self._session(member)
            member.is_new = False
        self._timer("sync", self._rebalance_ms(), self._expire_sync)

    def _empty(self, kind: str) -> None:
        self.leader = None
        self._move(EMPTY, kind)
        self.world.line(GroupEmptied(group=GROUP, generation=self.generation))
        self._store("")

    def _store(self, protocol: str) -> None:
        members = tuple(
            MemberRecord(
                member_id=member.member_id,
                client_id=member.ask.client.client_id,
                client_host=member.ask.client.host,
                session_timeout_ms=member.ask.session_ms,
                rebalance_timeout_ms=member.ask.rebalance_ms,
                instance_id=member.ask.instance_id,
                topics=(member.ask.metadata,),
                assigned=member.assigned,
            )
            for member in self.members.values()
        )
        self.stored = GroupRecorded(
            group=GROUP,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=protocol or None,
            leader_id=self.leader,
            state_since_ms=self.since_ms,
            members=members,
        )
        self.saved = {
            member.member_id: Member(member.member_id, member.ask, is_new=False)
            for member in self.members.values()
        }
        self.world.record(self.stored)

    # --- answers ---

    def _answer_join(self, member: Member, error: int) -> None:
        parked, member.join = member.join, None
        if parked is not None:
            self._say_joined(member.ask, member.member_id, error, parked)

    def _say_joined(self, ask: Ask, member_id: str, error: int, parked: Parked) -> None:
        generation = self.generation if error == 0 else -1
        leader = (self.leader or "") if error == 0 else ""
        is_leader = error == 0 and leader == member_id
        self.world.answered(
            JoinAnswered(
                group=GROUP,
                member_id=member_id,
                error_code=error,
                generation=generation,
                leader_id=leader,
                arrived_at_ms=parked.arrived_ms,
                requested_member_id=ask.member_id,
                instance_id=ask.instance_id,
                session_timeout_ms=ask.session_ms,
                rebalance_timeout_ms=ask.rebalance_ms,
                protocol_type="consumer",
                protocol="range" if error == 0 else None,
                reason=ask.reason,
                member_ids=tuple(self.members) if is_leader else (),
                client=ask.client,
            )
        )
        parked.answer(error, {"member_id": member_id, "generation": generation, "leader": leader})

    def _answer_sync(self, member: Member, error: int) -> None:
        parked, member.sync = member.sync, None
        if parked is None:
            return
        self._say_synced(member.ask, member.member_id, self.generation, error, parked)
        if error == 0:
            self.pending_sync.discard(member.member_id)
            self._session(member)
            if not self.pending_sync:
                self.timers.pop("sync", None)

    def _say_synced(self, ask: Ask, member_id: str, generation: int, error: int, parked: Parked) -> None:
        self.world.answered(
            SyncAnswered(
                group=GROUP,
                member_id=member_id,
                error_code=error,
                generation=generation,
                arrived_at_ms=parked.arrived_ms,
                by_leader=member_id == self.leader,
                instance_id=ask.instance_id,
                client=ask.client,
            )
        )
        parked.answer(error, {})

    # --- JoinGroup ---

    @after_the_commit
    def join(self, ask: Ask, answer: Answer) -> None:
        """Take a JoinGroup."""
        parked = Parked(self.world.now_ms, answer)
        if self.loading:
            self._say_joined(ask, ask.member_id, 16, parked)
            return
        if self.state == DEAD:
            if ask.member_id:
                self._say_joined(ask, ask.member_id, 25, parked)
                return
            self._create()
        if not self._accepts(ask):
            self.pending.discard(ask.member_id)
            if ask.member_id in self.members:
                self._remove(ask.member_id)
            self._say_joined(ask, ask.member_id, 81, parked)
        elif not ask.member_id:
            self._join_unknown(ask, parked)
        else:
            self._join_known(ask, parked)

    def _create(self) -> None:
        self.generation = 0
        self._move(EMPTY, "group_created")
        self.protocol_type = ""
        self._store("")

    def _accepts(self, ask: Ask) -> bool:
        if self.state in {EMPTY, DEAD}:
            return True
        member = self.members.get(ask.member_id)
        if self.state == PREPARING:
            awaiting = sum(1 for one in self.members.values() if one.join)
            return (member is not None and member.join is not None) or awaiting < self.max_size
        return member is not None or len(self.members) < self.max_size

    def _join_unknown(self, ask: Ask, parked: Parked) -> None:
        member_id = f"{ask.instance_id or ask.client.client_id}-{self.world.uuid()}"
        if ask.instance_id is not None:
            old = next((m for m in self.members.values() if m.ask.instance_id == ask.instance_id), None)
            if old is not None:
                self._replace(old, member_id, ask, parked)
                return
            self.world.line(MemberJoined(group=GROUP, member_id=member_id, instance_id=ask.instance_id))
            self._add(member_id, ask, parked)
        elif ask.needs_id:
            self.world.line(MemberIdHandedOut(group=GROUP, member_id=member_id, state=self.state))
            self.pending.add(member_id)
            self._timer(f"hb {member_id}", ask.session_ms, lambda: self._expire_pending(member_id))
            self._say_joined(ask, member_id, 79, parked)
        else:
            self.world.line(MemberJoined(group=GROUP, member_id=member_id))
            self._add(member_id, ask, parked)

    def _add(self, member_id: str, ask: Ask, parked: Parked) -> None:
        self.protocol_type = "consumer"
        member = Member(member_id, ask, join=parked)
        if self.state == PREPARING and self.previous == EMPTY:
            self.new_member_added = True
        self.members[member_id] = member
        self.leader = self.leader or member_id
        self._session(member, NEW_MEMBER_MS)
        self.pending.discard(member_id)
        self._rebalance_or_complete("member_joined", "Adding new member", (member_id,), ask.instance_id)

    def _replace(self, old: Member, member_id: str, ask: Ask, parked: Parked) -> None:
        instance = str(ask.instance_id)
        self.world.line(StaticMemberReplaced(group=GROUP, instance_id=instance, old_member_id=old.member_id))
        self._answer_join(old, 82)
        if old.sync is not None:
            self._answer_sync(old, 82)
        self.timers.pop(f"hb {old.member_id}", None)
        same = old.ask.metadata == ask.metadata
        was_pending_sync = old.member_id in self.pending_sync
        self.pending_sync.discard(old.member_id)
        if was_pending_sync:
            self.pending_sync.add(member_id)
        member = Member(member_id, ask, is_new=False, assigned=old.assigned)
        self.members = {
            (member_id if name == old.member_id else name): (member if name == old.member_id else one)
            for name, one in self.members.items()
        }
        if self.leader == old.member_id:
            self.leader = member_id
        self._session(member)
        if self.state == STABLE and same:
            self._store("range")
            self._say_joined(ask, member_id, 0, parked)
            return
        member.join = parked
        kind = "protocol_changed" if self.state == STABLE else "static_member_replaced"
        self._rebalance_or_complete(kind, "static member", (member_id,), instance)

    def _join_known(self, ask: Ask, parked: Parked) -> None:
        member = self.members.get(ask.member_id)
        if ask.member_id in self.pending:
            self.world.line(MemberJoined(group=GROUP, member_id=ask.member_id))
            self._add(ask.member_id, ask, parked)
        elif member is None:
            by_instance = ask.instance_id is not None and any(
                one.ask.instance_id == ask.instance_id for one in self.members.values()
            )
            self._say_joined(ask, ask.member_id, 82 if by_instance else 25, parked)
        elif self.state == PREPARING:
            self._update(member, ask, parked)
            self._maybe_complete()
        else:
            self._rejoin(member, ask, parked)

    def _update(self, member: Member, ask: Ask, parked: Parked) -> None:
        if member.join is not None:  # a second request of the same member: the first one never is answered
            member.join = None
        member.ask, member.join = ask, parked

    def _rejoin(self, member: Member, ask: Ask, parked: Parked) -> None:
        changed = member.ask.metadata != ask.metadata
        leads = self.state == STABLE and member.member_id == self.leader
        if not changed and not leads:
            self._say_joined(ask, member.member_id, 0, parked)
            return
        kind = "leader_rejoined" if leads else "subscription_changed"
        if (ask.reason or "").startswith("cached metadata has changed"):
            kind = "partitions_changed"
        elif (ask.reason or "").startswith("subscription has changed"):
            kind = "subscription_changed"
        self._update(member, ask, parked)
        self._rebalance_or_complete(kind, "rejoins", (member.member_id,))

    # --- SyncGroup, Heartbeat, commits, LeaveGroup ---

    def _refusal(self, member_id: str, instance_id: str | None, generation: int) -> int:
        if self.loading:
            return 16
        if self.state in {DEAD, EMPTY}:
            return 25
        if member_id not in self.members:
            known = any(one.ask.instance_id == instance_id for one in self.members.values())
            return 82 if instance_id is not None and known else 25
        return 22 if generation != self.generation else 0

    @after_the_commit
    def sync(self, member_id: str, generation: int, ask: Ask, answer: Answer) -> None:
        """Take a SyncGroup."""
        parked = Parked(self.world.now_ms, answer)
        error = self._refusal(member_id, ask.instance_id, generation)
        if not error and self.state == PREPARING:
            error = 27
        if error:
            self._say_synced(ask, member_id, generation, error, parked)
            return
        member = self.members[member_id]
        member.sync = parked
        if self.state == STABLE:
            self._answer_sync(member, 0)
            return
        self.pending_sync.discard(member_id)
        if member_id == self.leader:
            self.world.line(
                AssignmentReceived(
                    group=GROUP,
                    generation=self.generation,
                    leader_id=member_id,
                    member_count=len(self.members),
                )
            )
            for number, one in enumerate(self.members.values()):
                one.assigned = {"t": (number,)}
            self._store("range")
            self.uncommitted = True
            self.world.after(1, lambda: self._stored(generation))

    def _stored(self, generation: int) -> None:
        """The record is committed: the assignment counts."""
        assert (self.state, self.generation) == (COMPLETING, generation)
        self.uncommitted = False
        self._move(STABLE, "assignment_stored")
        for one in list(self.members.values()):
            self._answer_sync(one, 0)

    @after_the_commit
    def heartbeat(self, member_id: str, generation: int, ask: Ask, answer: Answer) -> None:
        """Take a Heartbeat."""
        error = self._refusal(member_id, ask.instance_id, generation)
        if not error:
            self._session(self.members[member_id])
            error = 27 if self.state == PREPARING else 0
        self.world.answered(
            Heartbeats(
                group=GROUP,
                member_id=member_id,
                generation=generation,
                error_code=error,
                times=(self.world.now_ms,),
                client=ask.client,
                instance_id=ask.instance_id,
            )
        )
        answer(error, {})

    @after_the_commit
    def commit(self, member_id: str, generation: int, ask: Ask, offset: int, answer: Answer) -> None:
        """Take an OffsetCommit of one partition."""
        error = self._refusal(member_id, ask.instance_id, generation)
        if not error and self.state == COMPLETING:
            error = 27
        if not error:
            self._session(self.members[member_id])
            self.store_commit(offset)
        self.world.answered(
            CommitsAnswered(
                group=GROUP,
                member_id=member_id,
                generation=generation,
                error_code=error,
                times=(self.world.now_ms,),
                client=ask.client,
                instance_id=ask.instance_id,
            )
        )
        answer(error, {})

    def store_commit(self, offset: int) -> None:
        """Append a commit."""
        self.commits.add(("t", 0))
        commit = Commit("t", 0, offset, self.world.now_ms)
        self.world.record(OffsetsCommitted(group=GROUP, commits=(commit,)))

    @after_the_commit
    def leave(self, member_id: str, ask: Ask, reason: str | None) -> None:
        """Take a LeaveGroup of one member."""
        known = member_id in self.members
        error = 16 if self.loading else 0 if known or member_id in self.pending else 25
        kind = "poll_timeout" if (reason or "").startswith("consumer poll timeout") else "member_left"
        if not error:
            self.world.line(
                MemberLeft(group=GROUP, member_id=member_id, client_reason=reason, pending=not known)
            )
            self.pending.discard(member_id)
            self.timers.pop(f"hb {member_id}", None)
            if known:
                self._remove(member_id)
            if self.state in {STABLE, COMPLETING}:
                self._prepare(kind, "explicit leave", (member_id,))
            else:
                self._maybe_complete()
        self.world.answered(
            LeaveAnswered(
                group=GROUP, member_id=member_id, error_code=error, reason=reason, client=ask.client
            )
        )

    def _remove(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self.pending_sync.discard(member_id)
        self.timers.pop(f"hb {member_id}", None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    # --- timers ---

    @after_the_commit
    def _expire(self, member: Member) -> None:
        if self.members.get(member.member_id) is not member:
            return
        if not member.is_new and (member.join or member.sync):
            return
        self.world.line(MemberFailed(group=GROUP, member_id=member.member_id))
        self._answer_join(member, 25)
        self._remove(member.member_id)
        if self.state in {STABLE, COMPLETING}:
            self._prepare("session_timeout", "heartbeat expiration", (member.member_id,))
        elif self.state == PREPARING and self._all_joined():
            self._complete()

    @after_the_commit
    def _expire_pending(self, member_id: str) -> None:
        if member_id in self.pending:
            self.pending.discard(member_id)
            self.world.line(PendingMemberExpired(group=GROUP, member_id=member_id))
            if self.state == PREPARING and self._all_joined():
                self._complete()

    @after_the_commit
    def _expire_sync(self) -> None:
        late = [member_id for member_id in self.members if member_id in self.pending_sync]
        if self.state not in {STABLE, COMPLETING} or not late:
            return
        for member_id in late:
            self._remove(member_id)
        self.pending_sync = set()
        self._prepare("sync_timeout", "pending sync request expiration", tuple(late))

    # --- what operators and brokers do ---

    @after_the_commit
    def delete(self) -> None:
        """Delete the group if it is empty."""
        if self.state != EMPTY or self.loading:
            return
        self.world.line(GroupsDeleted(names=GROUP))
        self._bury("group_deleted")
        self.world.answered(DeleteAnswered(group=GROUP, error_code=0))

    @after_the_commit
    def expire_offsets(self) -> None:
        """Run the cleanup: an empty group without offsets goes."""
        if self.state == EMPTY and not self.loading:
            self._bury("offsets_expired")

    def _bury(self, kind: str) -> None:
        for topic, partition in sorted(self.commits):
            gone = Commit(topic, partition, None, self.world.now_ms)
            self.world.record(OffsetsCommitted(group=GROUP, commits=(gone,)))
        self.commits.clear()
        self._move(DEAD, kind)
        self.world.record(GroupTombstone(group=GROUP))
        self.stored = None
        self._forget()

    @after_the_commit
    def fail_over(self) -> None:
        """Let another broker load the group from its last record; all else is lost."""
        if self.loading:
            return
        world = self.world
        world.line(GroupUnloaded(group=GROUP, generation=self.generation))
        before = self.state, self.generation
        self.loading = True
        for member in list(self.members.values()):
            self._answer_join(member, 16)
            self._answer_sync(member, 16)
        stored, saved, commits = self.stored, self.saved, self.commits
        self._forget()
        world.after(world.chance.choice((20, 400)), lambda: self._load(before, stored, saved, commits))

    def _load(
        self,
        before: tuple[str, int],
        stored: GroupRecorded | None,
        saved: dict[str, Member],
        commits: set[tuple[str, int]],
    ) -> None:
        world = self.world
        world.broker = 3 - world.broker
        self.loading = False
        self.commits = commits
        if stored is None:
            return
        self.generation, self.protocol_type = stored.generation, stored.protocol_type
        self.leader = stored.leader_id
        self.members = {name: Member(name, one.ask, is_new=False) for name, one in saved.items()}
        self.state = STABLE if self.members else EMPTY
        self.since_ms = stored.state_since_ms
        world.line(GroupLoaded(group=GROUP, group_type="classic", member_count=len(self.members)))
        if before != (self.state, self.generation):
            told = Truth(world.now_ms, before[0], self.state, self.generation, "coordinator_moved")
            world.truth.append(told)
        for member in self.members.values():
            self._session(member)
