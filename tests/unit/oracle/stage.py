"""What the tests of the oracle stand on: a coordinator, a cursor of time, short words for long requests."""

from collections.abc import Sequence
from typing import Any

from tests.oracle import (
    Appended,
    Assignment,
    Commit,
    Config,
    Coordinator,
    Errors,
    Event,
    GroupState,
    Heartbeat,
    JoinGroup,
    LastFailover,
    LeaveGroup,
    Logged,
    MemberIdentity,
    OffsetCommit,
    PartitionOffset,
    Protocol,
    Record,
    Request,
    SyncGroup,
    Ticket,
    TopicOffsets,
    TxnOffsetCommit,
)
from tests.oracle.values.responses import JoinGroupResponse

G = "g"
STATES = GroupState
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
NOBODY = "nobody"


def subscription(*topics: str) -> bytes:
    """Bytes as consumers send them, version 0."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def offers(*names: str, topics: Sequence[str] = ("orders",)) -> tuple[Protocol, ...]:
    """Strategies that a member offers, in its order of liking."""
    return tuple(Protocol(name=name, metadata=subscription(*topics)) for name in names)


def offsets(
    partition: int = 0, offset: int = 100, topic: str = "orders", **more: Any
) -> tuple[TopicOffsets, ...]:
    """One offset."""
    topic_id = more.pop("topic_id", "")
    one = PartitionOffset(partition_index=partition, committed_offset=offset, **more)
    return (TopicOffsets(name=topic, partitions=(one,), topic_id=topic_id),)


class Stage:
    """A coordinator, and the instant at which the next thing happens."""

    def __init__(self, *, loaded: bool = True, **options: Any) -> None:
        """``options`` are the broker's."""
        self.coordinator = Coordinator(Config(**options), loaded=loaded)
        self.now_ms = 0

    # --- time and requests ---

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.coordinator.advance(self.now_ms)

    def send(self, request: Request) -> Ticket:
        """Let a request arrive now."""
        return self.coordinator.request(self.now_ms, request)

    def happen(self, event: Event) -> None:
        """Let something else happen now."""
        self.coordinator.event(self.now_ms, event)

    def replicate(self) -> None:
        """Let all records be committed."""
        self.happen(Commit())

    def join(self, member_id: str = "", **fields: Any) -> Ticket:
        """A JoinGroup."""
        fields = {"group_id": G, "protocols": offers("range"), **fields}
        return self.send(JoinGroup(member_id=member_id, **fields))

    def add(self, **fields: Any) -> Ticket:
        """Both steps of a join; the second one's ticket."""
        first = self.join(**fields)
        assert error_of(first) is Errors.MEMBER_ID_REQUIRED
        return self.join(member_of(first), **fields)

    def sync(self, member_id: str, generation: int | None = None, *given: str, **fields: Any) -> Ticket:
        """A SyncGroup; the assignment of each member in ``given`` is its own id."""
        return self.send(
            SyncGroup(
                group_id=fields.pop("group_id", G),
                generation_id=self.generation() if generation is None else generation,
                member_id=member_id,
                assignments=tuple(Assignment(member_id=one, assignment=one.encode()) for one in given),
                **fields,
            )
        )

    def beat(self, member_id: str, generation: int | None = None, **fields: Any) -> Errors:
        """A heartbeat's answer."""
        generation = self.generation() if generation is None else generation
        fields = {"group_id": G, **fields}
        return error_of(self.send(Heartbeat(generation_id=generation, member_id=member_id, **fields)))

    def leave(self, *members: str | MemberIdentity, **fields: Any) -> Ticket:
        """A LeaveGroup of these members."""
        batch = tuple(MemberIdentity(member_id=one) if isinstance(one, str) else one for one in members)
        return self.send(LeaveGroup(group_id=fields.pop("group_id", G), members=batch, **fields))

    def commit(self, member_id: str = "", generation: int = -1, **fields: Any) -> Errors:
        """An OffsetCommit's answer, which is that of its first partition."""
        fields = {"group_id": G, "topics": offsets(), **fields}
        request = OffsetCommit(member_id=member_id, generation_id_or_member_epoch=generation, **fields)
        return first_error(self.send(request))

    def commit_in_transaction(self, producer_id: int = 1, **fields: Any) -> Errors:
        """A TxnOffsetCommit's answer."""
        fields = {"group_id": G, "topics": offsets(), **fields}
        return first_error(self.send(TxnOffsetCommit(producer_id=producer_id, **fields)))

    def stable(self, size: int = 1, **fields: Any) -> list[str]:
        """Make a Stable group of so many dynamic members, its leader first."""
        return self.settle([self.add(**fields) for _ in range(size)])

    def stable_static(self, *instances: str, **fields: Any) -> list[str]:
        """Make a Stable group of static members; ids in the order of the instances."""
        tickets = [self.join(group_instance_id=instance, **fields) for instance in instances]
        self.settle(tickets)
        return [member_of(ticket) for ticket in tickets]

    def settle(self, joins: Sequence[Ticket]) -> list[str]:
        """End the first join phase and let everybody sync; ids, the leader's first."""
        while not all(ticket.is_answered for ticket in joins):
            self.wait(DELAY_MS)
        return self.assign(joins)

    def assign(self, joins: Sequence[Ticket]) -> list[str]:
        """Let everybody sync whose join was answered; ids, the leader's first."""
        leader = joined(joins[0]).leader
        members = [leader, *(member_of(one) for one in joins if member_of(one) != leader)]
        for member in members[::-1]:
            self.sync(member, None, *(members if member == leader else ()))
        assert self.state() is GroupState.STABLE
        return members

    # --- what came of it ---

    def state(self, group_id: str = G) -> GroupState:
        """The group's state."""
        return self.coordinator.state(group_id)

    def generation(self, group_id: str = G) -> int:
        """The group's generation."""
        group = self.coordinator.group(group_id)
        return -1 if group is None else group.generation_id

    def members(self) -> set[str]:
        """The ids of the group's members."""
        group = self.coordinator.group(G)
        return set() if group is None else set(group.members)

    def leader(self) -> str | None:
        """The group's leader."""
        group = self.coordinator.group(G)
        return None if group is None else group.leader_id

    def moves(self) -> list[tuple[int, GroupState, int, str]]:
        """When the group moved where, with generation and cause."""
        return [
            (one.at_ms, one.to_state, one.generation, one.cause.value)
            for one in self.coordinator.outcomes
            if isinstance(one, LastFailover)
        ]

    def last_move(self) -> LastFailover:
        """The latest move."""
        return next(one for one in self.coordinator.outcomes[::-1] if isinstance(one, LastFailover))

    def kinds(self) -> list[str]:
        """The kinds of the lines in the log."""
        return [one.kind for one in self.coordinator.outcomes if isinstance(one, Logged)]

    def line(self, kind: str) -> str:
        """The latest line of a kind."""
        found = [one for one in self.coordinator.outcomes if isinstance(one, Logged) and one.kind == kind]
        return found[-1].message

    def written(self) -> list[Record]:
        """All records."""
        return [one.record for one in self.coordinator.outcomes if isinstance(one, Appended)]


def error_of(ticket: Ticket) -> Errors:
    """The error on top of an answer."""
    assert ticket.response is not None, "not answered"
    error = getattr(ticket.response, "error_code", None)
    assert isinstance(error, Errors)
    return error


def first_error(ticket: Ticket) -> Errors:
    """The error of the first partition."""
    response: Any = ticket.response
    error = response.topics[0].partitions[0].error_code
    assert isinstance(error, Errors)
    return error


def member_of(ticket: Ticket) -> str:
    """The member id of an answer."""
    return joined(ticket).member_id


def joined(ticket: Ticket) -> JoinGroupResponse:
    """A join's answer."""
    assert isinstance(ticket.response, JoinGroupResponse)
    return ticket.response


def static_pair(**fields: Any) -> tuple[Stage, str, str]:
    """Return a Stable group of two static members, its leader and its follower."""
    stage = Stage()
    ids = stage.stable_static("i1", "i2", **fields)
    leader = stage.leader()
    assert leader in ids
    return stage, leader, ids[1 - ids.index(leader)]


def instance_of(stage: Stage, member: str) -> str:
    """Return the instance id of a member."""
    group = stage.coordinator.group(G)
    assert group is not None
    return str(group.members[member].group_instance_id)
