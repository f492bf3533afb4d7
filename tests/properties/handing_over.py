"""A coordinator of a consumer group that hands partitions over at random.

It is written from Kafka's rules for reconciliation alone (``CurrentAssignmentBuilder``).
"""

import random
from dataclasses import dataclass, field

from coordinator_model import observations as on
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.observations.base import Source
from coordinator_model.observations.modern_records import (
    AnyPart,
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
)
from coordinator_model.shard.report import GroupReport, report_of
from coordinator_model.state.group import Transition
from tests.unit.made_seen import seen

G = "orders"
PARTITIONS = frozenset(range(7))
Standing = tuple[int, frozenset[int], frozenset[int]]
"""A member's epoch, what it has, and what it has to give up."""


@dataclass
class Member:
    """One member as the coordinator knows it."""

    name: str
    instance: str | None = None
    epoch: int = 0
    assigned: frozenset[int] = frozenset()
    revoking: frozenset[int] = frozenset()
    target: frozenset[int] = frozenset()

    @property
    def held(self) -> frozenset[int]:
        """What nobody else may have."""
        return self.assigned | self.revoking


@dataclass
class Coordinator:
    """One group; each call writes what the coordinator writes as one."""

    chance: random.Random
    now_ms: int = 0
    epoch: int = 1
    computed: int = 1
    members: dict[str, Member] = field(default_factory=dict)
    names: int = 0
    written: list[on.ModernRecord] = field(default_factory=list)

    def record(self, kind: int, part: AnyPart | None, name: str = "") -> None:
        """Write a record, without ``part`` its tombstone."""
        self.written.append(
            on.ModernRecord(
                group=G,
                group_type="consumer",
                record_type=kind,
                name="",
                tombstone=part is None,
                member_id=name,
                part=part,
            )
        )

    def join(self) -> None:
        """Somebody comes, static or not; the target is computed at once, or at the next heartbeat."""
        self.names += 1
        name = f"m{self.names}"
        member = self.members[name] = Member(name, self.chance.choice((None, f"i{self.names}")))
        self.described(member)
        self.bump()
        if self.chance.random() < 0.5:
            self.compute()
        self.reconcile(member)

    def described(self, member: Member) -> None:
        """Write who a member is."""
        metadata = MemberMetadata(
            client_id=member.name, client_host="/h", instance_id=member.instance, topics=("t",)
        )
        self.record(5, metadata, member.name)

    def leave(self, member: Member) -> None:
        """A member goes, or is expelled."""
        self.forget(member)
        self.bump()

    def forget(self, member: Member) -> None:
        """Delete what was written of a member."""
        for kind in (8, 7, 5):
            self.record(kind, None, member.name)
        del self.members[member.name]

    def away(self, member: Member) -> None:
        """A static member goes for a while."""
        member.epoch, member.revoking = -2, frozenset()
        self.current(member, MemberState.STABLE)

    def back(self, member: Member) -> None:
        """It comes back under another id, and goes on where it was."""
        self.forget(member)
        self.names += 1
        new = Member(f"m{self.names}", member.instance, 0, member.assigned, frozenset(), member.target)
        self.members[new.name] = new
        self.described(new)
        self.record(7, Target(assigned=shown(new.target)), new.name)
        self.current(new, MemberState.STABLE)
        self.reconcile(new)

    def heartbeat(self, member: Member) -> None:
        """A member asks: the target is computed if it must be, and the member goes one step on."""
        if self.epoch > self.computed:
            self.compute()
        before = (member.epoch, member.assigned, member.revoking)
        member.revoking = frozenset() if self.chance.random() < 0.7 else member.revoking
        self.reconcile(member, before)

    def bump(self) -> None:
        """Something has changed."""
        self.epoch += 1
        self.record(3, GroupEpoch(epoch=self.epoch))

    def compute(self) -> None:
        """Give every partition to somebody, as evenly as it goes, and to anybody."""
        names = sorted(self.members)
        self.chance.shuffle(names)
        for index, name in enumerate(names):
            self.members[name].target = frozenset(sorted(PARTITIONS)[index :: len(names)])
            self.record(7, Target(assigned=shown(self.members[name].target)), name)
        self.computed = self.epoch
        self.record(6, TargetEpoch(epoch=self.epoch))

    def reconcile(
        self, member: Member, before: tuple[int, frozenset[int], frozenset[int]] | None = None
    ) -> None:
        """Bring a member as near to its target as others allow."""
        surplus = member.assigned - member.target
        if member.revoking or surplus:
            member.assigned, member.revoking = member.assigned - surplus, member.revoking | surplus
            state = MemberState.UNREVOKED
        else:
            others = frozenset().union(*(one.held for one in self.members.values() if one is not member))
            member.assigned |= member.target - others
            member.epoch = self.computed
            state = MemberState.STABLE if member.assigned == member.target else MemberState.UNRELEASED
        if before != (member.epoch, member.assigned, member.revoking):
            self.current(member, state)

    def current(self, member: Member, state: MemberState) -> None:
        """Write what a member has."""
        part = Current(
            epoch=member.epoch,
            previous_epoch=0,
            state=state,
            assigned=shown(member.assigned),
            revoking=shown(member.revoking),
        )
        self.record(8, part, member.name)

    def act(self) -> None:
        """Let anything happen; mostly somebody asks."""
        present = [one for one in self.members.values() if one.epoch >= 0]
        missing = [one for one in self.members.values() if one.epoch < 0]
        static = [one for one in present if one.instance]
        lot = self.chance.random()
        if not self.members or (lot < 0.06 and len(self.members) < 5):
            self.join()
        elif lot < 0.1 and len(self.members) > 1:
            self.leave(self.chance.choice(list(self.members.values())))
        elif lot < 0.14 and static:
            self.away(self.chance.choice(static))
        elif lot < 0.3 and missing:
            self.back(missing[0])
        elif present:
            self.heartbeat(self.chance.choice(present))


def shown(numbers: frozenset[int]) -> dict[str, tuple[int, ...]]:
    """Return partitions as a record holds them."""
    return {"T": tuple(sorted(numbers))} if numbers else {}


def play(seed: int, steps: int) -> tuple[list[Transition], list[GroupReport]]:
    """Return what the model tells of a random life, and its picture after each write."""
    coordinator = Coordinator(random.Random(seed))
    group, told, history = classic.new_group(G), [], []
    context = Context("c", info_live=False, offsets_enabled=True, backlog=False)
    for offset in range(steps):
        coordinator.now_ms += coordinator.chance.choice((1, 40, 300, 2_000))
        coordinator.act()
        if not coordinator.written:
            continue
        records, coordinator.written = tuple(coordinator.written), []
        write = seen(
            coordinator.now_ms, on.ModernWrite(group=G, records=records), Source.OFFSETS, offset=offset
        )
        told += classic.apply(group, write, context).transitions
        history.append(report_of(group, at_ms=coordinator.now_ms))
    return told, history
