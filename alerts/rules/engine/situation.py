"""What a rule gets to see of one group, what it may remember, and what it answers."""

import msgspec

from alerts.alert import Alert, Culprit
from alerts.rules.engine.lifecycle import Closing, Finding, OpenAlert
from alerts.rules.engine.options import Thresholds
from alerts.rules.engine.sightings import HygieneMemory
from coordinator_model.kafka import CauseKind
from coordinator_model.shard import Evidence
from coordinator_model.state import Basis, Departure, Group, Member, Step, Track

CULPRITS_MAX = 20
"""Culprits told in one alert; a group of a thousand members must not make a page of a thousand lines."""

EVIDENCE_MAX = 10

ENDS_TOLD_LATE_MS = 15_000
"""Who keeps up is behind for less: ends are told every 10 s, and some just before a commit."""


class Actor(msgspec.Struct, array_like=True, kw_only=True):
    """One client on one host, whatever member ids it has had; ``member_id`` is its newest."""

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
    """Index in ``StormMemory.actors``; -1 where no source tells who it was."""
    member: int = 0
    """CRC-32 of the member id (of a replaced static member: of its instance id); 0 unknown."""
    fresh: bool = False
    """An arrival into a group that was empty or unknown when the window opened."""
    gone: bool = False
    """An arrival whose member has gone again."""
    initial: bool = False
    """The group was Empty or unknown."""
    observed: bool = True
    lasted_ms: int = -1
    """Until Stable, Empty, or the next start; -1: it is running."""
    transition: str = ""
    """First digits of an inferred transition's id, so that an observation can replace it."""
    size: int = -1
    """Members when it ended, or while it runs, when it began; -1: not known."""


class Leave(msgspec.Struct, array_like=True, kw_only=True):
    """One voluntary departure."""

    at_ms: int
    joined_at_ms: int
    member: int
    """CRC-32 of the member id."""
    done: bool = False
    """It ended a run that had read all there was (``storm_runs``)."""


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
    """It came back over the same connection: it was paused or cut off, not started anew."""


class StormMemory(msgspec.Struct, array_like=True, kw_only=True):
    """The rebalances of the last window, and the departures that may explain them."""

    triggers: list[Trigger] = []
    leaves: list[Leave] = []
    actors: list[Actor] = []
    stable_at_ms: int = -1
    """When the group was last seen to become Stable."""
    members_max: int = 0
    """Most members seen at once since this history began."""
    settled_ms: int = -1
    """When the first deployment of a group that began empty was complete; -1: not, or long ago."""
    losses: list[Loss] = []
    """Members whose session timed out within the window, oldest first."""


class Occurrence(msgspec.Struct, array_like=True, kw_only=True):
    """One member that an event alert names, with the sentence that tells what happened."""

    culprit: Culprit
    sentence: str


class EventMemory(msgspec.Struct, array_like=True, kw_only=True):
    """What an event alert has gathered since it fired."""

    first_ms: int
    last_ms: int
    count: int = 0
    occurrences: list[Occurrence] = []
    in_turn: int = 0
    """Occurrences that came clearly after the one before, so that they may be one client's."""


class CostEntry(msgspec.Struct, array_like=True, kw_only=True):
    """What one rebalance cost; -1: no source tells."""

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
    """Sum of the group's committed offsets when it began, of ``committed_of`` partitions."""
    committed_of: int = 0
    rate_before: float = -1
    churns: bool = False
    """Nothing explains it (a restart, a first start), and somebody was there before."""
    assigning_ms: int = -1
    """Newer protocols: until target assignments were computed …"""
    reconciling_ms: int = -1
    """… and until every member had its own."""


class CostMemory(msgspec.Struct, array_like=True, kw_only=True):
    """What the rebalances of the last hour cost, oldest first."""

    entries: list[CostEntry] = []


class EndingMemory(msgspec.Struct, array_like=True, kw_only=True):
    """A group that has ended, while it is told or about to be."""

    at_ms: int
    how: CauseKind
    detail: str = ""
    last_use_ms: int = -1
    partitions: int = 0
    settled_ms: int = -1
    """When nothing better can be told any more."""


class Whole(msgspec.Struct, array_like=True, kw_only=True):
    """All partitions of a topic that a group reads, as if they were one."""

    base_ms: int
    """Of the group's tracks, which its times are since."""
    partitions: int
    """How many; with fewer than before it begins anew."""
    track: Track = msgspec.field(default_factory=Track)
    """Sums of ends and of commits."""
    known: list[int] = []
    """Which; empty: an older version took them, and did not say."""
    lag: int = 0
    """Records behind in all of them when they were looked at last."""


class GroupMemory(msgspec.Struct, array_like=True, kw_only=True):
    """What the rules remember of one group: bounded, and nothing at all for a group without news.

    Saved with the group: new fields go to the end, with a default.
    """

    open: dict[str, OpenAlert] = {}
    used: dict[str, int] = {}
    """Alert name -> start of the last one resolved: an id must never be used twice."""
    surplus: list[Alert] = []
    """Adopted beside an open alert of the same name; resolved at the next judgement."""
    storm: StormMemory | None = None
    events: dict[str, EventMemory] = {}
    hygiene: HygieneMemory | None = None
    rewound: dict[str, int] = {}
    """Partition -> when it was set back, of rewinds that have been told; at most 100."""
    costs: CostMemory | None = None
    ending: EndingMemory | None = None
    ends: dict[str, list[int]] = {}
    """Alert name -> when its condition ended lately, so that flapping is noticed; the last four."""
    wholes: dict[str, Whole] = {}
    """Topic -> how it is read as a whole, of topics on which the group is behind."""
    graces: dict[str, tuple[int, int]] = {}
    """Alert name -> since when its condition holds, and until when it waits, for that was learnt late."""


class Situation(msgspec.Struct, kw_only=True):
    """One group at one moment; the rules read it, and change nothing but ``memory``."""

    group: Group
    step: Step
    now_ms: int
    evidence: Evidence
    thresholds: Thresholds
    memory: GroupMemory

    def opened(self, name: str) -> OpenAlert | None:
        """Return the open alert of that name; one that is only kept open as it flaps counts as ended."""
        found = self.memory.open.get(name)
        return None if found is None or found.ended_ms >= 0 else found


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's answer: a finding fires or updates, a closing resolves, neither leaves all as it is."""

    finding: Finding | None = None
    closing: Closing | None = None
    due_ms: int | None = None
    """When the answer may change without news."""


NOTHING = Verdict()


def culprit(member: Member | Departure, *, share: float, basis: Basis) -> Culprit:
    """Return a member, here or gone, as a culprit; ``share`` of the blame is 0..1."""
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
    """Return the group's rebalance timeout, the largest of its members'; -1 where no source told it."""
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)


def over(situation: Situation, why: str) -> Closing:
    """Return the end, now, of an alert about the group; ``why`` finishes "Group g: …"."""
    return Closing(ends_at_ms=situation.now_ms, summary=f"Group {situation.group.group}: {why}.")
