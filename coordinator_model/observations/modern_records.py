"""The fields of a record of a consumer, share or streams group that the model needs.

``decoding/schemas.py`` reads the bytes.  Parts travel inside ``ModernRecord``: small arrays with a tag, so
**new fields go to the end with a default**.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

Assignment: TypeAlias = dict[str, tuple[int, ...]]
"""Topic id -> partitions.  Of a streams group: subtopology -> partitions for active tasks,
``"<subtopology> standby"`` and ``"<subtopology> warmup"`` for the others."""


class MemberState(StrEnum):
    """The state of a member on its way to its target assignment.

    Consumer and share groups number them 0, 1, 2, streams groups 1, 2, 3.
    """

    STABLE = "stable"
    """It has everything that it may have at its epoch."""
    UNREVOKED = "unrevoked"
    """It has to give partitions (tasks) up and has not confirmed that yet."""
    UNRELEASED = "unreleased"
    """It waits for partitions (tasks) that other members still own."""
    UNKNOWN = "unknown"


class Part(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Base of the parts of records."""


class GroupEpoch(Part, tag="epoch", frozen=True, kw_only=True):
    """Types 3, 11, 17: the group's epoch, which grows with each reason for a new assignment."""

    epoch: int
    metadata_hash: int = 0
    """Of the subscribed topics and their partitions (4.1 and later; 0: no topics, or 4.0)."""
    topology_epoch: int = -1
    """Streams: the topology that was found valid; -1 none."""


class TargetEpoch(Part, tag="tepoch", frozen=True, kw_only=True):
    """Types 6, 12, 20: the group epoch for which the target assignment was computed."""

    epoch: int


class MemberMetadata(Part, tag="member", frozen=True, kw_only=True):
    """Types 5, 10, 19: a member's identity and subscription."""

    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str = ""
    classic_session_ms: int = -1
    """Session timeout of a member that speaks the classic protocol; -1: it speaks the group's own."""
    topology_epoch: int = -1
    process_id: str = ""


class Target(Part, tag="target", frozen=True, kw_only=True):
    """Types 7, 13, 21: a member's target assignment."""

    assigned: Assignment


class Current(Part, tag="current", frozen=True, kw_only=True):
    """Types 8, 14, 22: a member's current assignment.

    ``epoch`` -2 is a static member that left for a while.
    """

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Assignment
    revoking: Assignment = {}
    """The partitions that it has to give up."""


class Regex(Part, tag="regex", frozen=True, kw_only=True):
    """Type 16: the topics that match a subscribed expression."""

    expression: str
    topics: tuple[str, ...] = ()


class TopicNames(Part, tag="names", frozen=True, kw_only=True):
    """Types 4 and 15: ids of topics with their names, and other signs that partitions changed."""

    names: dict[str, str]
    initializing: Assignment = {}
    """Share groups: partitions whose start offset is not set yet."""


class Topology(Part, tag="topology", frozen=True, kw_only=True):
    """Type 23: a streams group's topology."""

    epoch: int
    topics: tuple[str, ...] = ()
    """Source topics, named or made by repartitioning, over all subtopologies."""


AnyPart: TypeAlias = (
    GroupEpoch | TargetEpoch | MemberMetadata | Target | Current | Regex | TopicNames | Topology
)
