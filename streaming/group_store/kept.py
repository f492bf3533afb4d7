"""The store's records of clusters and groups, and the parts of a report that it decodes for them."""

from collections import Counter, deque
from typing import Any

import msgspec
import pyarrow as pa

from coordinator_model.kafka import GroupState
from coordinator_model.state import Transition
from streaming.group_store.lag import ClusterEnds, Commits

TRANSITIONS_KEPT_MAX = 20
HELD_MAX = 5
"""Most members that a list names as holding a group up, and most partitions of each."""
DIVERGENCES_KEPT_MAX = 50
AGREEMENT_MINUTES = 15


_LZ4 = pa.Codec("lz4_raw")
"""Transitions of a group shrink to a quarter in microseconds."""


class _Committed(msgspec.Struct, frozen=True):
    commits: dict[str, dict[int, tuple[int, int]]]


class BriefHoldUp(msgspec.Struct, frozen=True, kw_only=True):
    """A member that a group waits for."""

    member_id: str
    client_id: str
    why: str
    partitions: dict[str, list[int]]

    def sentence(self) -> str:
        """Return who does what to which partitions."""
        named = [f"{topic}-{one}" for topic, numbers in self.partitions.items() for one in numbers]
        more = f" and {len(named) - HELD_MAX} more" if len(named) > HELD_MAX else ""
        return f"{self.client_id or self.member_id} {self.why} {', '.join(named[:HELD_MAX])}{more}".strip()


class BriefProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a consumer, share or streams group that a list shows."""

    assignment_epoch: int
    held_up_by: list[BriefHoldUp]

    def sentences(self) -> tuple[str, ...]:
        """Return who holds the group up, without members that only wait for those."""
        holding = [one for one in self.held_up_by if one.why != "waiting"] or self.held_up_by
        return tuple(one.sentence() for one in holding[:HELD_MAX])


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a report that is kept decoded."""

    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    generation: int
    members: list[msgspec.Raw]
    rebalances: dict[str, int]
    commits: dict[str, dict[int, tuple[int, int]]] = {}
    removed: bool = False
    progress: BriefProgress | None = None

    @property
    def assignment_epoch(self) -> int:
        """Return the epoch of the target assignment, -1 for a classic group."""
        return -1 if self.progress is None else self.progress.assignment_epoch

    @property
    def held_up_by(self) -> tuple[str, ...]:
        """Return the members that have not reached the target assignment."""
        return () if self.progress is None else self.progress.sentences()


class KeptGroup(msgspec.Struct, frozen=True):
    """One group; the next report makes a new object, so a reader may keep it."""

    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    generation: int
    members: int
    rebalances: dict[str, int]
    commits: Commits
    report: bytes
    assignment_epoch: int = -1
    held_up_by: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that it commits to."""
        return tuple([one.topic for one in self.commits])

    @property
    def committed(self) -> int:
        """Return the sum of all committed offsets; -1: there are none."""
        return sum(sum(one.offsets) for one in self.commits) if self.commits else -1


class ClusterReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of the cluster's own shard."""

    events: list[tuple[str, str, int]] = []
    undecodable: list[tuple[str, str, int]] = []
    samples: list[dict[str, Any]] = []
    divergences: dict[str, int] = {}
    newest_ms: dict[str, int] = {}
    heard: list[tuple[int, str, int]] = []
    """Broker, log, and the newest second (epoch ms) in which it had a line."""
    leaders: dict[int, tuple[int, int]] = {}
    moves: list[dict[str, Any]] = []
    """The last lines about loading or unloading shards, newest last."""
    brokers: dict[int, dict[str, str]] = {}
    partitions: dict[str, int] = {}
    quarantined: list[dict[str, Any]] = []


class DivergenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A divergence, for counting and for people."""

    kind: str
    count: int = 1
    group: str = ""
    broker: int = -1
    at_ms: int = -1
    detail: str = ""


class RebuildingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A shard lost its saved state and starts anew."""

    shard: int
    shard_count: int
    since_ms: int


class AgreementRow(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the brokers' answers could be compared with the mirror, and how many agreed."""

    compared: int
    agreeing: int


class Agreement:
    """The same, summed since the start and, by minutes, for the last quarter of an hour."""

    def __init__(self) -> None:
        self.compared = 0
        self.agreeing = 0
        self._minutes: deque[tuple[int, int, int]] = deque(maxlen=AGREEMENT_MINUTES)

    def add(self, row: AgreementRow, now_ms: int) -> None:
        """Add the counts of one batch of one shard."""
        self.compared += row.compared
        self.agreeing += row.agreeing
        minute, compared, agreeing = now_ms // 60_000, 0, 0
        if self._minutes and self._minutes[-1][0] >= minute:
            minute, compared, agreeing = self._minutes.pop()
        self._minutes.append((minute, compared + row.compared, agreeing + row.agreeing))

    def ratio(self, now_ms: int) -> float | None:
        """Return the share of recent answers that agreed; None if nothing could be compared."""
        oldest = now_ms // 60_000 - AGREEMENT_MINUTES
        lately = [one for one in self._minutes if one[0] > oldest]
        compared = sum(one[1] for one in lately)
        return sum(one[2] for one in lately) / compared if compared else None


class KeptCluster:
    """The known facts of one cluster."""

    def __init__(self) -> None:
        self.groups: dict[str, KeptGroup] = {}
        self.topics: Counter[str] = Counter()
        """Topic → number of groups that commit to it."""
        self.report = ClusterReport()
        self.divergences: dict[str, int] = {}
        self.last_divergences: deque[DivergenceRow] = deque(maxlen=DIVERGENCES_KEPT_MAX)
        self.agreement = Agreement()
        self.probe_requests: dict[str, int] = {}
        self.ends = ClusterEnds()
        self._transitions: dict[str, tuple[bytes, int]] = {}
        """Group → its last transitions, compressed lines of JSON, and their size before."""
        self.rebalancing_since_ms: dict[str, int] = {}
        self.rebuilding: dict[int, int] = {}
        """Shard that lost its saved state → since when it starts anew, by its last report."""

    def forget(self, group: str) -> None:
        """Drop a group that is gone or no longer known."""
        before = self.groups.pop(group, None)
        if before is not None:
            self.count_topics(gone=before.topics, come=())
        self._transitions.pop(group, None)
        self.rebalancing_since_ms.pop(group, None)

    def transitions(self, group: str) -> list[Transition]:
        """Return the last transitions of a group, newest last."""
        return [msgspec.json.decode(line, type=Transition) for line in self._lines(group)]

    def add_transition(self, transition: Transition, told: bytes) -> None:
        """Add a transition and its JSON; one that it replaces goes."""
        lines = self._lines(transition.group)
        if transition.replaces is not None:
            lines = [one for one in lines if _id_of(one) != transition.replaces]
        joined = b"\n".join([*lines, told][-TRANSITIONS_KEPT_MAX:])
        self._transitions[transition.group] = pack(joined), len(joined)

    def _lines(self, group: str) -> list[bytes]:
        packed, size = self._transitions.get(group, (b"", 0))
        return unpack(packed, size).split(b"\n") if size else []

    def count_topics(self, *, gone: tuple[str, ...], come: tuple[str, ...]) -> None:
        """Update the topics that a group commits to; drop the ends of topics without any such group."""
        self.topics.subtract(gone)
        self.topics.update(come)
        left = {topic for topic in gone if self.topics[topic] <= 0}
        for topic in left:
            del self.topics[topic]
        if left:
            self.ends.keep_only(set(self.topics))


def commits_of(report: bytes) -> dict[str, dict[int, tuple[int, int]]]:
    """Return topic → partition → (offset, epoch ms) in a report."""
    return msgspec.json.decode(report, type=_Committed).commits


def pack(raw: bytes) -> bytes:
    """Return bytes compressed."""
    packed: bytes = _LZ4.compress(raw, asbytes=True)
    return packed


def unpack(packed: bytes, size: int) -> bytes:
    """Return the ``size`` bytes that were compressed."""
    raw: bytes = _LZ4.decompress(packed, size, asbytes=True)
    return raw


class _TransitionId(msgspec.Struct, frozen=True):
    id: str


def _id_of(transition: bytes) -> str:
    return msgspec.json.decode(transition, type=_TransitionId).id


class _Id(msgspec.Struct, frozen=True):
    member_id: str


class _Members(msgspec.Struct, frozen=True):
    members: list[_Id]


def members_of(report: bytes) -> frozenset[str]:
    """Return the member ids in a report."""
    return frozenset(member.member_id for member in msgspec.json.decode(report, type=_Members).members)
