"""One line for each observation: whom it concerns, and how it is treated before anything handles it.

``groups/table.py`` names the handlers of groups, ``shard/boundaries.py`` those of a shard and
``shard/cluster.py`` those of the cluster's own shard.  The README shows all of them as one table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto

from coordinator_model.kafka import GroupState
from coordinator_model.observations import observations as on


class Concerns(Flag):
    """Who takes in an observation."""

    GROUP = auto()
    """The group that it names."""
    GROUPS = auto()
    """Groups that its shard finds by the members, producers or names in it."""
    SHARD = auto()
    """All groups of a shard, or the shard itself."""
    WATERMARK = auto()
    """Only how far a shard's time may go; the buffer keeps it to itself."""
    CLUSTER = auto()
    """The shard of the whole cluster."""


class AfterRecord(Enum):
    """What of an observation still counts if the group's newest record is younger."""

    ALL = "all of it"
    NOTHING = "nothing: the record tells more"
    ARRIVAL = "nothing: the record tells who is a member"
    PLACE = "a correction of an inferred transition"
    DEPARTURE = "how a member went whose going was seen"
    ASSIGNMENT = "the assignment that this record stores"
    MEMBERSHIP = "all but who is no member (error 25)"
    HANDED_OUT = "all but who is no member yet (errors 25, 79)"
    LEAVE = "how a member went; not who is no member (error 25)"


@dataclass(frozen=True, slots=True)
class Traits:
    """How one type of observation is treated."""

    concerns: Concerns
    from_driver: bool = False
    """The driver writes it, in band; it is dated by the control partition."""
    cuts_time: bool = False
    """Concerns several groups at once: no group runs past it before the others have reached it."""
    coalesces: bool = False
    """Many become one that carries their times."""
    joins_write: bool = False
    """A record that the coordinator may write together with others as one."""
    shows_life: bool = True
    """An unknown group begins with it; if False, it tells an end, or only records make such a group known."""
    shows_classic_life: bool = False
    """After the end of a newer group, the group of that name is a classic one."""
    ends_life: bool = False
    """A line that tells an end: it is void if it is older than the group's present life."""
    tells_generation: bool = False
    """It names a generation, which shows by itself whether it is stale."""
    place: GroupState | None = None
    """The state that the group enters by it, in the generation that it names."""
    after_record: AfterRecord = AfterRecord.ALL
    time_fields: tuple[str, ...] = ()
    """Fields of one time in epoch ms, where -1 is unknown."""


_GROUP, _GROUPS, _SHARD, _CLUSTER = Concerns.GROUP, Concerns.GROUPS, Concerns.SHARD, Concerns.CLUSTER
_A = AfterRecord
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

TRAITS: Mapping[type[on.Observation], Traits] = {
    # --- lines of the coordinator's log
    on.MemberIdHandedOut: Traits(_GROUP, shows_classic_life=True, after_record=_A.ARRIVAL),
    on.MemberJoined: Traits(_GROUP, shows_classic_life=True, after_record=_A.ARRIVAL),
    on.StaticMemberReplaced: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    on.RebalanceStarted: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=_PREPARING, after_record=_A.PLACE
    ),
    on.JoinPhaseEnded: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=_COMPLETING, after_record=_A.PLACE
    ),
    on.AssignmentReceived: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, after_record=_A.ASSIGNMENT
    ),
    on.GroupEmptied: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=GroupState.EMPTY, after_record=_A.PLACE
    ),
    on.MembersKicked: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    on.MemberFailed: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    on.PendingMemberExpired: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    on.MemberLeft: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    on.NobodyRejoined: Traits(_GROUP),
    on.SimpleGroupCreated: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    on.GroupLoaded: Traits(_GROUP, after_record=_A.NOTHING),
    on.GroupUnloaded: Traits(_GROUP, shows_life=False),
    on.GroupDied: Traits(_GROUP, ends_life=True, after_record=_A.NOTHING),
    on.GroupConverted: Traits(_GROUP, ends_life=True, after_record=_A.NOTHING),
    on.GroupsDeleted: Traits(
        _GROUPS, cuts_time=True, shows_life=False, ends_life=True, after_record=_A.NOTHING
    ),
    on.ModernMemberGone: Traits(_GROUP, shows_life=False),
    on.LeaderReplaced: Traits(_GROUPS, cuts_time=True, after_record=_A.NOTHING),
    on.InstanceFenced: Traits(_GROUPS, cuts_time=True),
    on.InstanceRefused: Traits(_GROUP, shows_life=False),
    on.ShardLoading: Traits(_SHARD | _CLUSTER, cuts_time=True),
    on.ShardLoaded: Traits(_SHARD | _CLUSTER, cuts_time=True),
    on.ShardUnloaded: Traits(_SHARD | _CLUSTER, cuts_time=True),
    on.LogNoted: Traits(_SHARD),
    # --- records of __consumer_offsets
    on.OffsetsCommitted: Traits(_GROUP, shows_classic_life=True),
    on.GroupRecorded: Traits(
        _GROUP, joins_write=True, shows_classic_life=True, time_fields=("state_since_ms",)
    ),
    on.GroupTombstone: Traits(_GROUP, joins_write=True, shows_life=False),
    on.ModernRecord: Traits(_GROUP, joins_write=True),
    on.ModernWrite: Traits(_GROUP),
    # --- answers in the request log
    on.Heartbeats: Traits(_GROUP, coalesces=True, after_record=_A.MEMBERSHIP),
    on.JoinAnswered: Traits(
        _GROUP, shows_classic_life=True, after_record=_A.HANDED_OUT, time_fields=("arrived_at_ms",)
    ),
    on.SyncAnswered: Traits(_GROUP, after_record=_A.MEMBERSHIP, time_fields=("arrived_at_ms",)),
    on.LeaveAnswered: Traits(_GROUP, after_record=_A.LEAVE),
    on.CommitsAnswered: Traits(_GROUP, coalesces=True),
    on.OffsetsClaimed: Traits(_GROUP),
    on.TransactionEnded: Traits(_GROUPS, shows_life=False),
    on.DeleteAnswered: Traits(_GROUP, shows_life=False, ends_life=True),
    on.EpochAnswered: Traits(_GROUP, shows_life=False, time_fields=("arrived_at_ms",)),
    on.ShardStalled: Traits(_SHARD, cuts_time=True, time_fields=("since_ms",)),
    # --- what the decoders tell of the logs themselves
    on.BrokerHeard: Traits(_SHARD | _CLUSTER),
    on.Counted: Traits(_CLUSTER),
    on.Undecodable: Traits(_CLUSTER),
    # --- in band, from the driver
    on.Clock: Traits(Concerns.WATERMARK, from_driver=True),
    on.EventsClock: Traits(Concerns.WATERMARK),
    on.PartitionAnew: Traits(Concerns.WATERMARK, from_driver=True),
    on.Settings: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    on.Adopted: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    on.GroupDescribed: Traits(_GROUP, from_driver=True),
    on.EndsTold: Traits(_GROUP, from_driver=True),
    on.ShardLed: Traits(_SHARD, from_driver=True, cuts_time=True),
    on.ReplicaMissed: Traits(_SHARD, from_driver=True, cuts_time=True),
    on.RetentionTold: Traits(_SHARD, from_driver=True, cuts_time=True),
    on.ShardRefilled: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    on.Contradicted: Traits(_CLUSTER, from_driver=True),
    on.LeadersDescribed: Traits(_CLUSTER, from_driver=True),
    on.BrokerDescribed: Traits(_CLUSTER, from_driver=True),
    on.TopicsDescribed: Traits(_CLUSTER, from_driver=True),
    on.GroupUpset: Traits(_CLUSTER, from_driver=True),
    on.GroupQuarantined: Traits(_CLUSTER, from_driver=True),
    on.RecordsLost: Traits(_CLUSTER, from_driver=True),
}


def types_that(holds: Callable[[Traits], object]) -> frozenset[type]:
    """Return the types of observations whose traits fulfil a condition."""
    return frozenset(one for one, traits in TRAITS.items() if holds(traits))


COALESCED = types_that(lambda one: one.coalesces)
