"""A rule's input about one group, its memory, and its answer."""

from typing import Any

import msgspec

from alerts.alert import Alert, Culprit
from alerts.rules.engine.lifecycle import Closing, Finding, OpenAlert
from alerts.rules.engine.options import Thresholds
from alerts.rules.engine.sightings import HygieneMemory
from coordinator_model.kafka import CauseKind
from coordinator_model.shard import LiveSources
from coordinator_model.state import Basis, Departure, Group, Member, Step, Track

CULPRITS_MAX = 20
"""Most culprits in one alert, so that a group of a thousand members does not fill a page."""

EVIDENCE_MAX = 10

ENDS_TOLD_LATE_MS = 15_000
"""A group that keeps up lags by less: end offsets come every 10 s, some just before a commit."""


class Actor(msgspec.Struct, array_like=True, kw_only=True):
    """One client on one host, across all its member ids; ``member_id`` is the newest."""

    client_id: str
    client_host: str
    member_id: str
    instance_id: str | None = None


class Trigger(msgspec.Struct, array_like=True, kw_only=True):
    """One start of a rebalance."""

    at_ms: int
    kind: CauseKind
    role: int
    """See ``rebalance_storm.Role``."""
    actor: int = -1
    """Index in ``StormMemory.actors``; -1 if no source says who it was."""
    member: int = 0
    """CRC-32 of the member id (of the instance id, for a replaced static member); 0 unknown."""
    fresh: bool = False
    """A member joined a group that was empty or unknown when the window opened."""
    gone: bool = False
    """A member joined and has left again."""
    initial: bool = False
    """The group was Empty or unknown."""
    observed: bool = True
    lasted_ms: int = -1
    """Until Stable, Empty, or the next start; -1: the rebalance is running."""
    transition: str = ""
    """First digits of an inferred transition's id, so that an observed one can replace it."""
    size: int = -1
    """Members at its end, or at its start while it runs; -1: unknown."""


class Leave(msgspec.Struct, array_like=True, kw_only=True):
    """One voluntary departure."""

    at_ms: int
    joined_at_ms: int
    member: int
    """CRC-32 of the member id."""
    done: bool = False
    """It ended a run that had read all records (``storm_runs``)."""


class Loss(msgspec.Struct, array_like=True, kw_only=True):
    """One member whose session timed out."""

    at_ms: int
    joined_at_ms: int
    member: int
    """CRC-32 of the member id."""
    client_host: str = ""
    connection: int = 0
    """CRC-32 of its connection; 0 unknown."""
    same_process: bool = False
    """It came back over the same connection: it was paused or cut off, not restarted."""


class StormMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The rebalances of the last window, and the departures that may explain them."""

    triggers: list[Trigger] = []
    leaves: list[Leave] = []
    actors: list[Actor] = []
    stable_at_ms: int = -1
    """When the group last became Stable."""
    members_max: int = 0
    """Most members at one time since this history began."""
    settled_ms: int = -1
    """When the first deployment of a group that began empty was complete; -1: not yet, or long ago."""
    losses: list[Loss] = []
    """Members whose session timed out within the window, oldest first."""


class Occurrence(msgspec.Struct, array_like=True, kw_only=True):
    """One member that an event alert names, with the sentence about what happened."""

    culprit: Culprit
    sentence: str


class EventMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The occurrences that an event alert has collected since it fired."""

    first_ms: int
    last_ms: int
    count: int = 0
    occurrences: list[Occurrence] = []
    in_turn: int = 0
    """Occurrences clearly apart from the one before, so that one client may have caused all of them."""


class CostEntry(msgspec.Struct, array_like=True, kw_only=True):
    """The cost of one rebalance; -1: no source gives it."""

    started_ms: int
    ended_ms: int
    join_ms: int = -1
    sync_ms: int = -1
    eager: int = -1
    """1 eager, 0 cooperative."""
    partitions: int = -1
    partition_ms: int = -1
    moved: int = -1
    least: int = -1
    reread: int = 0
    committed: int = -1
    """Sum of the group's committed offsets at its start, over ``committed_of`` partitions."""
    committed_of: int = 0
    rate_before: float = -1
    churns: bool = False
    """No restart or first start explains it, and the group had members before."""
    assigning_ms: int = -1
    """Newer protocols: time until target assignments were computed …"""
    reconciling_ms: int = -1
    """… and until every member had its own."""


class CostMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The cost of the last hour's rebalances, oldest first."""

    entries: list[CostEntry] = []


class EndingMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The end of a group, while an alert about it fires or is about to."""

    at_ms: int
    how: CauseKind
    detail: str = ""
    last_use_ms: int = -1
    partitions: int = 0
    settled_ms: int = -1
    """From then on no better explanation can come."""


class Whole(msgspec.Struct, array_like=True, kw_only=True):
    """All partitions of a topic that a group reads, taken together."""

    base_ms: int
    """The base of the group's tracks; the times here are relative to it."""
    partitions: int
    """Number of partitions; if it falls, the sums start anew."""
    track: Track = msgspec.field(default_factory=Track)
    """Sums of end offsets and of commits."""
    known: list[int] = []
    """Which partitions; empty: an older version summed them without saying which."""
    lag: int = 0
    """Records behind in all of them at the last look."""


class GroupMemory(msgspec.Struct, array_like=True, kw_only=True):
    """What the rules remember of one group: bounded; a group without news has no memory.

    Saved with the group: new fields go to the end, with a default.
    """

    open: dict[str, OpenAlert] = {}
    used: dict[str, int] = {}
    """Alert name -> start of the last one resolved: an id must never be used twice."""
    surplus: list[Alert] = []
    """Alerts adopted beside an open one of the same name; resolved at the next judgement."""
    storm: StormMemory | None = None
    events: dict[str, EventMemory] = {}
    hygiene: HygieneMemory | None = None
    rewound: dict[str, int] = {}
    """Partition -> time of its rewind, for rewinds already in an alert; at most 100."""
    costs: CostMemory | None = None
    ending: EndingMemory | None = None
    ends: dict[str, list[int]] = {}
    """Alert name -> the last four ends of its condition, by which flapping is noticed."""
    wholes: dict[str, Whole] = {}
    """Topic -> its partitions taken together, for topics on which the group is behind."""
    graces: dict[str, tuple[int, int]] = {}
    """Alert name -> since when a condition that became known late holds, and until when its alert waits."""


class Situation(msgspec.Struct, kw_only=True):
    """One group at one moment; rules read it, and change only ``memory``."""

    group: Group
    step: Step
    now_ms: int
    evidence: LiveSources
    thresholds: Thresholds
    memory: GroupMemory
    shared: dict[str, Any] = {}
    """What several rules look at, as the first of them has computed it; by name."""

    def opened(self, name: str) -> OpenAlert | None:
        """Return the open alert of that name; an alert that only damping keeps open counts as ended."""
        found = self.memory.open.get(name)
        return None if found is None or found.ended_ms >= 0 else found


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's answer: a finding fires or revises, a closing resolves, neither changes nothing."""

    finding: Finding | None = None
    closing: Closing | None = None
    due_ms: int | None = None
    """When the answer may change without news."""


NOTHING = Verdict()


def culprit(member: Member | Departure, *, share: float, basis: Basis) -> Culprit:
    """Return a member, present or departed, as a culprit; ``share`` of the blame is 0..1."""
    return Culprit(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.instance_id,
        share=round(float(share), 4),
        basis=basis,
    )


def culprits_equally(members: list[Member], basis: Basis) -> tuple[Culprit, ...]:
    """Return members as culprits with equal shares, at most ``CULPRITS_MAX`` of them."""
    share = 1 / len(members) if members else 0
    return tuple(culprit(member, share=share, basis=basis) for member in members[:CULPRITS_MAX])


def rebalance_timeout_ms(group: Group) -> int:
    """Return the largest rebalance timeout of the group's members; -1 if no source gave it."""
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)


def over(situation: Situation, why: str) -> Closing:
    """Return the closing, at this time, of an alert about the group; ``why`` finishes "Group g: …"."""
    return Closing(ends_at_ms=situation.now_ms, summary=f"Group {situation.group.group}: {why}.")
