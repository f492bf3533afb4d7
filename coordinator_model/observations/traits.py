"""One line for each observation: whom it concerns, and how it is treated before a handler applies it.

``groups/table.py`` names the handlers of groups, ``shard/boundaries.py`` those of a shard and
``shard/cluster.py`` those of the cluster's own shard.  ``coordinator_model`` documents them as one table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto

from coordinator_model.kafka import GroupState
from coordinator_model.observations import answers, base, control, log, records, requests


class Concerns(Flag):
    """Whom an observation concerns."""

    GROUP = auto()
    """The group that it names."""
    GROUPS = auto()
    """Groups that its shard finds by the members, producers or names in it."""
    SHARD = auto()
    """All groups of a shard, or the shard itself."""
    WATERMARK = auto()
    """Only how far a shard's watermark may go; the buffer handles it alone."""
    CLUSTER = auto()
    """The shard of the whole cluster."""


class AfterRecord(Enum):
    """The part of an observation that still counts if the group's newest record is younger."""

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
    """Whether it concerns several groups at once: no group runs past it before all others have reached it."""
    coalesces: bool = False
    """Whether many become one that has all their times."""
    is_taken_apart: bool = False
    """Whether it stands for several coalesced ones, which alone reach handlers."""
    joins_write: bool = False
    """Whether it is a record that the coordinator may write together with others as one."""
    shows_life: bool = True
    """Whether an unknown group begins with it; False: it ends a group, or only records create one."""
    shows_classic_life: bool = False
    """Whether, after the end of a modern group, it shows that the group of that name is a classic one."""
    ends_life: bool = False
    """Whether it is a line that ends a group: it is void if older than the group's present life."""
    tells_generation: bool = False
    """Whether it has a generation, which shows by itself whether it is stale."""
    place: GroupState | None = None
    """The state that the group enters by it, in the generation that it names."""
    after_record: AfterRecord = AfterRecord.ALL
    time_fields: tuple[str, ...] = ()
    """Fields with one time each in epoch ms, where -1 is unknown."""


_GROUP, _GROUPS, _SHARD, _CLUSTER = Concerns.GROUP, Concerns.GROUPS, Concerns.SHARD, Concerns.CLUSTER
_A = AfterRecord
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

TRAITS: Mapping[type[base.Observation], Traits] = {
    # --- lines of the coordinator's log
    log.MemberIdHandedOut: Traits(_GROUP, shows_classic_life=True, after_record=_A.ARRIVAL),
    log.MemberJoined: Traits(_GROUP, shows_classic_life=True, after_record=_A.ARRIVAL),
    log.StaticMemberReplaced: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    log.RebalanceStarted: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=_PREPARING, after_record=_A.PLACE
    ),
    log.JoinPhaseEnded: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=_COMPLETING, after_record=_A.PLACE
    ),
    log.AssignmentReceived: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, after_record=_A.ASSIGNMENT
    ),
    log.GroupEmptied: Traits(
        _GROUP, shows_classic_life=True, tells_generation=True, place=GroupState.EMPTY, after_record=_A.PLACE
    ),
    log.MembersKicked: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    log.MemberFailed: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    log.PendingMemberExpired: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    log.MemberLeft: Traits(_GROUP, shows_classic_life=True, after_record=_A.DEPARTURE),
    log.NobodyRejoined: Traits(_GROUP),
    log.SimpleGroupCreated: Traits(_GROUP, shows_classic_life=True, after_record=_A.NOTHING),
    log.GroupLoaded: Traits(_GROUP, after_record=_A.NOTHING),
    log.GroupUnloaded: Traits(_GROUP, shows_life=False),
    log.GroupDied: Traits(_GROUP, ends_life=True, after_record=_A.NOTHING),
    log.GroupConverted: Traits(_GROUP, ends_life=True, after_record=_A.NOTHING),
    log.GroupsDeleted: Traits(
        _GROUPS, cuts_time=True, shows_life=False, ends_life=True, after_record=_A.NOTHING
    ),
    log.ModernMemberGone: Traits(_GROUP, shows_life=False),
    log.LeaderReplaced: Traits(_GROUPS, cuts_time=True, after_record=_A.NOTHING),
    log.InstanceFenced: Traits(_GROUPS, cuts_time=True),
    log.InstanceRefused: Traits(_GROUP, shows_life=False),
    log.ShardLoading: Traits(_SHARD | _CLUSTER, cuts_time=True),
    log.ShardLoaded: Traits(_SHARD | _CLUSTER, cuts_time=True),
    log.ShardUnloaded: Traits(_SHARD | _CLUSTER, cuts_time=True),
    log.LogNoted: Traits(_SHARD),
    # --- records of __consumer_offsets
    records.OffsetsCommitted: Traits(_GROUP, shows_classic_life=True),
    records.GroupRecorded: Traits(
        _GROUP, joins_write=True, shows_classic_life=True, time_fields=("state_since_ms",)
    ),
    records.GroupTombstone: Traits(_GROUP, joins_write=True, shows_life=False),
    records.ModernRecord: Traits(_GROUP, joins_write=True),
    records.ModernWrite: Traits(_GROUP),
    # --- answers in the request log
    requests.Heartbeats: Traits(_GROUP, coalesces=True, after_record=_A.MEMBERSHIP),
    requests.JoinAnswered: Traits(
        _GROUP, shows_classic_life=True, after_record=_A.HANDED_OUT, time_fields=("arrived_at_ms",)
    ),
    requests.SyncAnswered: Traits(_GROUP, after_record=_A.MEMBERSHIP, time_fields=("arrived_at_ms",)),
    requests.LeaveAnswered: Traits(_GROUP, after_record=_A.LEAVE),
    requests.CommitsAnswered: Traits(_GROUP, coalesces=True),
    requests.GroupHeard: Traits(_GROUP, is_taken_apart=True),
    requests.TransactionalCommit: Traits(_GROUP),
    requests.TransactionEnded: Traits(_GROUPS, shows_life=False),
    requests.DeleteAnswered: Traits(_GROUP, shows_life=False, ends_life=True),
    requests.EpochAnswered: Traits(_GROUP, shows_life=False, time_fields=("arrived_at_ms",)),
    log.ShardStalled: Traits(_SHARD, cuts_time=True, time_fields=("since_ms",)),
    # --- from the decoders, about the logs themselves
    control.LogSeconds: Traits(_SHARD | _CLUSTER),
    control.Counted: Traits(_CLUSTER),
    control.Undecodable: Traits(_CLUSTER),
    # --- in band, from the driver
    control.Clock: Traits(Concerns.WATERMARK, from_driver=True),
    control.EventsClock: Traits(Concerns.WATERMARK),
    control.PartitionAnew: Traits(Concerns.WATERMARK | _SHARD, from_driver=True, cuts_time=True),
    control.Settings: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    control.Adopted: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    answers.GroupDescribed: Traits(_GROUP, from_driver=True),
    answers.EndOffsetsReported: Traits(_GROUP, from_driver=True),
    answers.ShardLed: Traits(_SHARD, from_driver=True, cuts_time=True),
    answers.ReplicaMissed: Traits(_SHARD, from_driver=True, cuts_time=True),
    answers.RetentionReported: Traits(_SHARD, from_driver=True, cuts_time=True),
    control.ShardRefilled: Traits(_SHARD | _CLUSTER, from_driver=True, cuts_time=True),
    control.Contradicted: Traits(_CLUSTER, from_driver=True),
    answers.LeadersDescribed: Traits(_CLUSTER, from_driver=True),
    answers.BrokerDescribed: Traits(_CLUSTER, from_driver=True),
    answers.TopicsDescribed: Traits(_CLUSTER, from_driver=True),
    control.GroupRebalancedByFailover: Traits(_CLUSTER, from_driver=True),
    control.GroupQuarantined: Traits(_CLUSTER, from_driver=True),
    control.RecordsLost: Traits(_CLUSTER, from_driver=True),
}


def types_that(holds: Callable[[Traits], object]) -> frozenset[type]:
    """Return the types of observations whose traits fulfil a condition."""
    return frozenset(one for one, traits in TRAITS.items() if holds(traits))


COALESCED = types_that(lambda one: one.coalesces)
