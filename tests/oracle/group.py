"""A classic group and its members as the coordinator keeps them in memory.

Data and its bookkeeping only (Kafka: ``ClassicGroup``, ``ClassicGroupMember``); what happens when is
decided by the modules of the requests, and ``Shard.move`` alone changes ``Group.state``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coordinator_model.decoding.records import subscribed_topics
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.java_order import JavaMap, put_in_order
from coordinator_model.kafka.states import GroupState
from tests.oracle.values.errors import Errors, IllegalStateError, RefusedError
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.requests import JoinGroup, Protocol
from tests.oracle.values.responses import JoinedMember
from tests.oracle.values.stored import GroupMember

CONSUMER = "consumer"
"""The protocol type whose subscriptions the coordinator can read."""

_REBALANCES_FROM = frozenset({GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE})


@dataclass(kw_only=True, eq=False)
class Member:
    """One member; ``parked_join`` and ``parked_sync`` are requests that wait for an answer."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    parked_join: Ticket | None = None
    parked_sync: Ticket | None = None
    is_new: bool = False
    """In its first join: it can expire although it waits."""

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Who waits for the coordinator owes it no heartbeat, except in a first join."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the subscription for one strategy.

        Raises:
            IllegalStateError: the member does not offer it.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise IllegalStateError(f"{self.member_id} does not support protocol {protocol_name}")

    def vote(self, candidates: set[str]) -> str:
        """Return the strategy it likes best among those that all support."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise IllegalStateError(f"{self.member_id} supports none of the candidates")

    def recorded(self, protocol_name: str | None, assignment: bytes) -> GroupMember:
        """Return it as the group's record holds it."""
        return GroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=assignment,
        )

    def __str__(self) -> str:
        names = ", ".join(protocol.name for protocol in self.protocols)
        return (
            f"ClassicGroupMember(memberId='{self.member_id}', "
            f"groupInstanceId='{self.group_instance_id or ''}', "
            f"clientId='{self.client_id}', clientHost='{self.client_host}', "
            f"rebalanceTimeoutMs={self.rebalance_timeout_ms}, sessionTimeoutMs={self.session_timeout_ms}, "
            f"protocolType='{self.protocol_type}', supportedProtocols=[{names}])"
        )


@dataclass(kw_only=True, eq=False)
class Group:
    """One classic group; times are the coordinator's, -1 where a record had none."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_since_ms: int = -1
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: JavaMap[Member] = field(default_factory=JavaMap)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, None] = field(default_factory=dict)
    """Ids that were handed out and have not come back."""
    pending_syncs: JavaMap[None] = field(default_factory=JavaMap)
    """Who has not sent SyncGroup in this generation."""
    votes: dict[str, int] = field(default_factory=dict)
    """How many members support a strategy."""
    subscribed_topics: frozenset[str] | None = None
    """None: not known, which for consumers means that every topic may be one of theirs."""
    new_member_added: bool = False
    last_gone: CauseKind = CauseKind.ALL_MEMBERS_LEFT
    """How the latest member went; it tells why a group is empty (Kafka does not keep it)."""

    # --- what it is ---

    def is_in(self, *states: GroupState) -> bool:
        """Say whether it is in one of these states."""
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can start from its state."""
        return self.state in _REBALANCES_FROM

    @property
    def awaiting_join_count(self) -> int:
        """How many members have a parked join."""
        return sum(member.parked_join is not None for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Whether nobody is missing, not even one who only got an id."""
        return not self.pending_joins and self.awaiting_join_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers."""
        return self.protocol_type == CONSUMER

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether a topic's offsets may be in use; of unreadable consumers every topic is."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Sequence[Protocol]) -> bool:
        """Say whether somebody with these strategies can join."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.votes.get(protocol.name, 0) == count for protocol in protocols
        )

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Check who speaks; the caller logs a fenced one.

        Raises:
            RefusedError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
        """
        if group_instance_id is not None:
            mapped = self.static_members.get(group_instance_id)
            if mapped is None:
                raise RefusedError(Errors.UNKNOWN_MEMBER_ID)
            if mapped != member_id:
                raise RefusedError(Errors.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise RefusedError(Errors.UNKNOWN_MEMBER_ID)

    # --- who is in it ---

    def add(self, member: Member) -> None:
        """Let a member in; the first one decides the protocol type and leads."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not len(self.members):
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type:
            raise IllegalStateError("the protocol types of group and member differ")
        if not self.supports(member.protocol_type, member.protocols):
            raise IllegalStateError("none of the member's protocols can be supported")
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_votes(member.protocols, 1)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Let a member or a pending id go; some other member leads then."""
        removed = self.members.pop(member_id)
        if removed is not None:
            self._count_votes(removed.protocols, -1)
            if removed.group_instance_id is not None:
                self.static_members.pop(removed.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id)

    def replace_static(self, old: Member, new_member_id: str) -> Member:
        """Give a static member another id and return it; it keeps assignment, votes and lead."""
        instance_id = old.group_instance_id
        if instance_id is None:
            raise IllegalStateError(f"{old.member_id} is not static")
        self.members.pop(old.member_id)
        new = Member(
            member_id=new_member_id,
            group_instance_id=instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_member_id] = new
        if self.leader_id == old.member_id:
            self.leader_id = new_member_id
        self.static_members[instance_id] = new_member_id
        return new

    def update(
        self,
        member: Member,
        *,
        protocols: tuple[Protocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        parked_join: Ticket | None,
    ) -> None:
        """Take over what a member says of itself; an earlier parked join is forgotten, as in Kafka."""
        self._count_votes(member.protocols, -1)
        member.protocols = protocols
        self._count_votes(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        member.parked_join = parked_join

    def update_from(self, member: Member, request: JoinGroup, ticket: Ticket) -> None:
        """Take over what a join says of its member, and park it."""
        self.update(
            member,
            protocols=request.protocols,
            rebalance_timeout_ms=request.effective_rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            parked_join=ticket,
        )

    def not_rejoined(self) -> list[Member]:
        """Return who has no parked join, in the order of Java's copy of them."""
        missing = [member.member_id for member in self.members.values() if member.parked_join is None]
        return [self.members[member_id] for member_id in put_in_order(missing)]

    # --- what it agrees on ---

    def select_protocol(self) -> str:
        """Return the strategy with the most votes among those that all support; a tie is Java's choice."""
        if not len(self.members):
            raise IllegalStateError("an empty group has no protocol to select")
        candidates = {name for name, count in self.votes.items() if count == len(self.members)}
        counts: JavaMap[int] = JavaMap()
        for member in self.members.values():
            choice = member.vote(candidates)
            counts[choice] = (counts.get(choice) or 0) + 1
        return max(counts.keys(), key=lambda name: counts[name])

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Return what its consumers subscribe to; None if one of them cannot be read."""
        if not self.uses_consumer_protocol:
            return None
        if not len(self.members):
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            read = subscribed_topics(member.metadata(self.protocol_name))
            if read is None:
                return None
            topics.update(read)
        return frozenset(topics)

    def for_leader(self) -> tuple[JoinedMember, ...]:
        """Return the members as the leader's answer lists them."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        )

    def _count_votes(self, protocols: Iterable[Protocol], weight: int) -> None:
        for protocol in protocols:
            self.votes[protocol.name] = self.votes.get(protocol.name, 0) + weight
