"""Observations from the request log: requests with their answers."""

from collections.abc import Iterator

import msgspec

from coordinator_model.observations.base import GroupObservation, Observation


class Client(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The sender of a request, as the broker saw it."""

    client_id: str = ""
    host: str = ""
    """Spelled "/10.0.0.7", as in GroupMetadata records."""
    connection: str = ""
    principal: str = ""
    software: str = ""
    """clientInformation.softwareName, e.g. apache-kafka-java, librdkafka, "unknown"."""


class Heartbeats(GroupObservation, tag="hb", frozen=True, kw_only=True):
    """Heartbeats of one member with one generation and one answer, coalesced; ``times`` ascend."""

    member_id: str
    generation: int
    error_code: int
    times: tuple[int, ...]
    client: Client = Client()
    instance_id: str | None = None
    protocol: str = "classic"
    """The protocol of the request; for others than classic ``generation`` is the member's epoch."""


class JoinAnswered(GroupObservation, tag="jr", frozen=True, kw_only=True):
    """A JoinGroup got its answer; a success is logged only when the join phase ends.

    ``member_id`` is the response's (the handed-out id for error 79); ``arrived_at_ms`` is line time
    minus totalTimeMs. ``member_ids`` is filled in the leader's answer only.
    """

    member_id: str
    error_code: int
    generation: int
    leader_id: str
    arrived_at_ms: int
    requested_member_id: str = ""
    instance_id: str | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    protocol_type: str = ""
    protocol: str | None = None
    reason: str | None = None
    member_ids: tuple[str, ...] = ()
    client: Client = Client()
    protocols: tuple[str, ...] = ()
    """The assignors that the client offers, by name, its favourite first."""


class SyncAnswered(GroupObservation, tag="sr", frozen=True, kw_only=True):
    """A SyncGroup got its answer; ``by_leader`` if the request carried assignments."""

    member_id: str
    error_code: int
    generation: int
    arrived_at_ms: int
    by_leader: bool = False
    instance_id: str | None = None
    client: Client = Client()


class LeaveAnswered(GroupObservation, tag="lr", frozen=True, kw_only=True):
    """One member's part of a LeaveGroup and its answer."""

    member_id: str
    error_code: int
    instance_id: str | None = None
    reason: str | None = None
    client: Client = Client()


class CommitsAnswered(GroupObservation, tag="cr", frozen=True, kw_only=True):
    """OffsetCommits of one member and generation with one answer, coalesced; ``times`` ascend."""

    member_id: str
    generation: int
    error_code: int
    times: tuple[int, ...]
    client: Client = Client()
    instance_id: str | None = None
    claims: tuple[tuple[str, int, int], ...] = ()
    """(topic or its id, partition, offset) of the last one, at most ``CLAIMS_MAX``, if it was refused."""


class MemberHeard(msgspec.Struct, frozen=True, array_like=True):
    """What one member of a group was heard to do: accepted heartbeats and accepted commits."""

    member_id: str
    client: Client
    beats: tuple[int, ...] = ()
    """Times of its heartbeats, ascending."""
    commits: tuple[int, ...] = ()
    """Times of its commits, ascending."""
    instance_id: str | None = None


class GroupHeard(GroupObservation, tag="gh", frozen=True, kw_only=True):
    """The accepted classic heartbeats and accepted commits of several members of one group, coalesced.

    It says what ``Heartbeats`` and ``CommitsAnswered`` of each member would, and handlers never see it:
    unless all of it says nothing new, the mirror takes it apart (``ordering``).
    """

    generation: int
    since_ms: int
    """The earliest of all times."""
    members: tuple[MemberHeard, ...]

    def one_by_one(self) -> Iterator[Heartbeats | CommitsAnswered]:
        """Yield what each member was heard to do, by itself."""
        for one in self.members:
            for kind, times in ((Heartbeats, one.beats), (CommitsAnswered, one.commits)):
                if times:
                    yield kind(
                        group=self.group,
                        member_id=one.member_id,
                        generation=self.generation,
                        error_code=0,
                        times=times,
                        client=one.client,
                        instance_id=one.instance_id,
                    )


CLAIMS_MAX = 10
"""Partitions of a refused commit that are stored."""


class TransactionalCommit(GroupObservation, tag="claim", frozen=True, kw_only=True):
    """A TxnOffsetCommit got its answer: its offsets count once the producer's transaction commits."""

    member_id: str
    generation: int
    error_code: int
    producer_id: int
    offsets: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, offset) of those that were accepted."""
    client: Client = Client()
    instance_id: str | None = None


class TransactionEnded(Observation, tag="txend", frozen=True, kw_only=True):
    """A transaction's marker was written to this offsets partition (WriteTxnMarkers); it names no group."""

    producer_id: int
    committed: bool
    partition: int
    """Of ``__consumer_offsets``."""


class DeleteAnswered(GroupObservation, tag="dr", frozen=True, kw_only=True):
    """DeleteGroups answered for this group."""

    error_code: int


class EpochAnswered(GroupObservation, tag="epoch", frozen=True, kw_only=True):
    """A heartbeat of a consumer, share or streams group that was more than a sign of life.

    ``asked`` is the member's epoch in the request: 0 joins, -1 leaves, -2 is a static member that leaves for
    a while; ``epoch`` is the one in the answer.
    """

    protocol: str
    member_id: str
    asked: int
    epoch: int
    error_code: int
    arrived_at_ms: int
    interval_ms: int = -1
    """The heartbeat interval that the coordinator asks for; -1 unknown."""
    instance_id: str | None = None
    client: Client = Client()
