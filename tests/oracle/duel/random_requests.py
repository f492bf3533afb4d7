"""What the random clients of a duel do next, from what the broker has told them."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests import oracle as ora
from tests.oracle.values import responses as res

TOPIC = "orders"
_INSTANCES = ("i1", "i2", "i3")
_SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x00"
_OFFERS = (
    (ora.Protocol(name="range", metadata=_SUBSCRIPTION),),
    (
        ora.Protocol(name="roundrobin", metadata=_SUBSCRIPTION),
        ora.Protocol(name="range", metadata=_SUBSCRIPTION),
    ),
    (
        ora.Protocol(name="range", metadata=_SUBSCRIPTION),
        ora.Protocol(name="sticky", metadata=_SUBSCRIPTION + b"more"),
    ),
)


@dataclass
class _Client:
    """One member, as it knows itself."""

    member_id: str
    instance_id: str | None
    offer: tuple[ora.Protocol, ...]
    session_ms: int
    rebalance_ms: int
    generation: int = -1
    protocol: str | None = None
    leads: tuple[str, ...] = ()
    has_synced: bool = False


class Moves:
    """The clients of one group."""

    def __init__(self, group: str, dice: random.Random) -> None:
        """Nobody has joined."""
        self._group = group
        self._dice = dice
        self._clients: dict[str, _Client] = {}
        self._gone: list[str] = ["nobody-00000000-0000-0000-0000-000000000000"]
        # A calm group is mostly left alone and becomes Stable; a wild one seldom does.
        self._calm = dice.random()

    def pause_ms(self) -> int:
        """Return how long to wait before the next request; now and then until timers run out."""
        if self._dice.random() < 0.06:
            return self._dice.randint(700, 3_500)
        return self._dice.randint(15, 160)

    def next(self) -> ora.Request:
        """Return the next request."""
        unsynced = [one for one in self._clients.values() if one.generation >= 0 and not one.has_synced]
        if unsynced and self._dice.random() < 0.35 + 0.5 * self._calm:
            return self._sync(self._dice.choice(unsynced))
        if self._clients and self._dice.random() < 0.3 * self._calm:
            return self._heartbeat()
        weights: dict[Callable[[], ora.Request], int] = {
            self._join: 20,
            self._rejoin: 14,
            self._heartbeat: 16,
            self._leave: 7,
            self._commit: 9,
            self._describe: 8,
            self._sync_anyhow: 5,
            self._administer: 3,
        }
        return self._dice.choices(list(weights), list(weights.values()))[0]()

    # --- requests ---

    def _join(self) -> ora.Request:
        dice = self._dice
        instance = dice.choice(_INSTANCES) if dice.random() < 0.35 else None
        version = dice.choice((9, 9, 9, 8, 5)) if instance or dice.random() < 0.8 else 3
        return ora.JoinGroup(
            group_id=self._group,
            group_instance_id=instance and f"{self._group}-{instance}",
            protocol_type="consumer" if dice.random() < 0.96 else "connect",
            protocols=dice.choice(_OFFERS),
            session_timeout_ms=dice.choice((730, 1_490, 3_010, 6_030)) if dice.random() < 0.97 else 100,
            rebalance_timeout_ms=dice.choice((650, 1_310, 2_970)),
            reason=dice.choice((None, "", "a reason")) if version >= 8 else None,
            client_id=f"{self._group}-c{dice.randint(1, 9)}",
            api_version=version,
        )

    def _rejoin(self) -> ora.Request:
        client = self._somebody()
        if client is None:
            return self._join()
        offer = client.offer if self._dice.random() < 0.75 else self._dice.choice(_OFFERS)
        return ora.JoinGroup(
            group_id=self._group,
            member_id=client.member_id,
            group_instance_id=self._instance_of(client),
            protocols=offer,
            session_timeout_ms=client.session_ms,
            rebalance_timeout_ms=client.rebalance_ms,
            client_id=f"{self._group}-again",
        )

    def _instance_of(self, client: _Client) -> str | None:
        """A pending member with an instance id is an error of a kind that only makes noise."""
        if client.generation >= 0 and self._dice.random() < 0.05:
            return f"{self._group}-{self._dice.choice(_INSTANCES)}"
        return client.instance_id

    def _sync(self, client: _Client) -> ora.Request:
        dice = self._dice
        members = [one for one in client.leads if dice.random() < 0.95]
        says_protocol = dice.random() < 0.5
        return ora.SyncGroup(
            group_id=self._group,
            generation_id=client.generation if dice.random() < 0.96 else client.generation + 1,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer" if says_protocol else None,
            protocol_name=("other" if dice.random() < 0.05 else client.protocol) if says_protocol else None,
            assignments=tuple(
                ora.Assignment(member_id=one, assignment=f"{client.generation}:{one[-5:]}".encode())
                for one in members
            ),
            api_version=5 if says_protocol else 4,
        )

    def _sync_anyhow(self) -> ora.Request:
        client = self._somebody()
        return self._heartbeat() if client is None else self._sync(client)

    def _heartbeat(self) -> ora.Request:
        client = self._somebody()
        if client is None or self._dice.random() < 0.05:
            return ora.Heartbeat(
                group_id=self._group, generation_id=1, member_id=self._dice.choice(self._gone)
            )
        return ora.Heartbeat(
            group_id=self._group,
            generation_id=client.generation - (self._dice.random() < 0.05),
            member_id=client.member_id,
            group_instance_id=self._instance_of(client),
        )

    def _leave(self) -> ora.Request:
        client, dice = self._somebody(), self._dice
        if client is None:
            return self._describe()
        if dice.random() < 0.3:
            return ora.LeaveGroup(
                group_id=self._group, member_id=client.member_id, api_version=dice.choice((0, 1, 2))
            )
        members = [
            ora.MemberIdentity(
                member_id=client.member_id,
                group_instance_id=self._instance_of(client),
                reason=dice.choice((None, "closing")),
            )
        ]
        if client.instance_id is not None and dice.random() < 0.5:
            members = [ora.MemberIdentity(group_instance_id=client.instance_id)]
        if dice.random() < 0.3:
            members.append(ora.MemberIdentity(member_id=dice.choice([*self._clients, *self._gone])))
        return ora.LeaveGroup(group_id=self._group, members=tuple(members))

    def _commit(self) -> ora.Request:
        dice, client = self._dice, self._somebody()
        one = ora.PartitionOffset(partition_index=dice.randint(0, 2), committed_offset=dice.randint(0, 999))
        topics = (ora.TopicOffsets(name=TOPIC, partitions=(one,)),)
        version = dice.choice((9, 8))
        if client is None or dice.random() < 0.2:
            generation = dice.choice((-1, -1, 3))
            return ora.OffsetCommit(
                group_id=self._group,
                topics=topics,
                generation_id_or_member_epoch=generation,
                api_version=version,
            )
        return ora.OffsetCommit(
            group_id=self._group,
            topics=topics,
            generation_id_or_member_epoch=client.generation - (dice.random() < 0.1),
            member_id=client.member_id,
            group_instance_id=self._instance_of(client),
            api_version=version,
        )

    def _describe(self) -> ora.Request:
        return ora.DescribeGroups(groups=(self._group,), api_version=5)

    def _administer(self) -> ora.Request:
        if self._dice.random() < 0.5:
            return ora.DeleteGroups(groups_names=(self._group,))
        places = (ora.TopicPartitions(name=self._dice.choice((TOPIC, "other")), partition_indexes=(0, 1)),)
        return ora.OffsetDelete(group_id=self._group, topics=places)

    def _somebody(self) -> _Client | None:
        return self._dice.choice(list(self._clients.values())) if self._clients else None

    # --- answers ---

    def learn(self, request: ora.Request, answer: object) -> None:
        """Take in an answer."""
        if isinstance(request, ora.JoinGroup) and isinstance(answer, res.JoinGroupResponse):
            self._learn_join(request, answer)
        elif isinstance(request, ora.SyncGroup) and isinstance(answer, res.SyncGroupResponse):
            self._learn_sync(request, answer)
        elif isinstance(request, ora.Heartbeat | ora.LeaveGroup):
            self._learn_departure(request, answer)

    def _learn_join(self, request: ora.JoinGroup, answer: res.JoinGroupResponse) -> None:
        if answer.error_code not in (ora.Errors.NONE, ora.Errors.MEMBER_ID_REQUIRED):
            self._forget(request.member_id)
            return
        self._clients[answer.member_id] = _Client(
            member_id=answer.member_id,
            instance_id=request.group_instance_id,
            offer=request.protocols,
            session_ms=request.session_timeout_ms,
            rebalance_ms=request.rebalance_timeout_ms,
            generation=answer.generation_id,
            protocol=answer.protocol_name,
            leads=tuple(one.member_id for one in answer.members),
        )

    def _learn_sync(self, request: ora.SyncGroup, answer: res.SyncGroupResponse) -> None:
        client = self._clients.get(request.member_id)
        if client is not None and client.generation == request.generation_id:
            client.has_synced = True
        if answer.error_code is ora.Errors.UNKNOWN_MEMBER_ID:
            self._forget(request.member_id)

    def _learn_departure(self, request: ora.Heartbeat | ora.LeaveGroup, answer: object) -> None:
        if isinstance(request, ora.LeaveGroup):
            for one in request.members or (request,):
                self._forget(one.member_id)
        elif isinstance(answer, res.HeartbeatResponse) and answer.error_code in (25, 82):
            self._forget(request.member_id)

    def _forget(self, member_id: str) -> None:
        """Let a client know that it is out; now and then it does not care."""
        if self._dice.random() < 0.85 and self._clients.pop(member_id, None) is not None:
            self._gone.append(member_id)
