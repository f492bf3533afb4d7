"""The stored state of a consumer, share or streams group beside what every group has.

These structs are part of ``group.Group`` and are saved with it: array-like msgpack, so **new fields go to the
end with a default**, and no field ever changes its meaning.
"""

import msgspec

from coordinator_model.kafka import GroupState
from coordinator_model.observations import Assignment, Current, MemberMetadata, MemberState

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"
FIRST_EPOCH_MAX = 1
"""The epoch of a group that has written none."""
AWAY = -2
"""The epoch of a static member that left for a while."""


class ModernMember(msgspec.Struct, array_like=True, kw_only=True):
    """One member as its records show it."""

    member_id: str
    metadata: MemberMetadata | None = None
    """None: its record was not read, which happens only after compaction."""
    current: Current | None = None
    """None: nothing assigned so far, which is epoch 0."""
    since_ms: int = -1
    """When its epoch or state last changed."""
    interval_ms: int = -1
    """How often it has to send a heartbeat; -1: the request log has not shown it."""

    @property
    def epoch(self) -> int:
        """Return the epoch it has reached."""
        return 0 if self.current is None else self.current.epoch

    @property
    def state(self) -> MemberState:
        """Return its state on the way to the target assignment."""
        return MemberState.STABLE if self.current is None else self.current.state

    @property
    def assigned(self) -> Assignment:
        """Return its partitions."""
        return {} if self.current is None else self.current.assigned

    @property
    def revoking(self) -> Assignment:
        """Return the partitions that it has to give up and still has."""
        return {} if self.current is None else self.current.revoking

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has everything that the target assignment of ``epoch`` gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch


class Hint(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a log line says of a leaving member, until the record of the departure comes."""

    at_ms: int
    kind: str
    text: str = ""
    client_reason: str = ""


class EmittedState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The last transition by a departure whose kind was unknown."""

    id: str
    from_state: GroupState
    to_state: GroupState
    generation: int
    member_id: str


class Modern(msgspec.Struct, array_like=True, kw_only=True):
    """The records of one living group, latest of each key."""

    epoch: int = -1
    """-1: no record of the group itself was read yet."""
    metadata_hash: int = 0
    assignment_epoch: int = -1
    topology_epoch: int = -1
    """Streams: of the topology that the group runs; -1 none."""
    valid_topology_epoch: int = -1
    """Streams: epoch of the topology whose topics were found valid; -1 none."""
    members: dict[str, ModernMember] = {}
    targets: dict[str, Assignment] = {}
    """Member -> its target assignment."""
    regexes: dict[str, tuple[str, ...]] = {}
    """Subscribed expression -> the topics that match it."""
    names: dict[str, str] = {}
    """Topic id -> name, as far as records show it or leave only one."""
    initializing: Assignment = {}
    """Share groups: partitions that cannot be assigned yet."""
    hints: dict[str, Hint] = {}
    """Member -> what a log line said of its departure."""
    waiting: bytes | None = None
    """Classic lines that came before the record that makes the group classic, packed observations."""
    told: EmittedState | None = None

    @property
    def epochs(self) -> tuple[int, int]:
        """Return group epoch and assignment epoch.

        Kafka: a group that has written neither begins with both at 1 (before 4.3 at 0), as its members do.
        """
        if self.epoch >= 0:
            return self.epoch, self.assignment_epoch
        first = min(max((member.epoch for member in self.members.values()), default=0), FIRST_EPOCH_MAX)
        return max(first, 0), max(first, 0)


def state_of(modern: Modern, group_type: str) -> GroupState:
    """Return the state that follows from the group's records.

    Kafka: maybeUpdateGroupState of ConsumerGroup, ShareGroup and StreamsGroup; no record holds the state.
    """
    if not modern.members:
        return GroupState.EMPTY
    if group_type == SHARE:
        return GroupState.STABLE
    if group_type == STREAMS and not _is_ready(modern):
        return GroupState.NOT_READY
    epoch, assignment_epoch = modern.epochs
    if epoch > assignment_epoch:
        return GroupState.ASSIGNING
    reached = all(one.is_reconciled_to(assignment_epoch) for one in modern.members.values())
    return GroupState.STABLE if reached else GroupState.RECONCILING


def _is_ready(modern: Modern) -> bool:
    return modern.topology_epoch >= 0 and modern.topology_epoch == modern.valid_topology_epoch
