"""The cost of a rebalance, and the stored figures that it is computed from."""

import msgspec

Owned = dict[str, dict[str, tuple[int, ...]]]
"""Member -> topic -> partitions."""


class Mark(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How far a group's commits were at one moment."""

    at_ms: int
    committed: int
    """Sum of its committed offsets."""
    partitions: int
    """Number of partitions in that sum; sums of different partitions cannot be compared."""
    last_commit_ms: int


class CostState(msgspec.Struct, array_like=True, kw_only=True):
    """What a group keeps between rebalances; saved, so new fields go to the end with a default."""

    generation: int = -1
    """The last one whose cost was reported."""
    stable: Mark | None = None
    """When it became Stable."""
    started: Mark | None = None
    """When the running rebalance began."""
    withheld: int = 0
    """Cooperative: partitions that one member gave up and no other member has got yet."""
    unowned: int = 0
    """No longer used: ``gaps`` lists them one by one."""
    unowned_since_ms: int = -1
    """No longer used."""
    partition_ms: int = 0
    """Modern protocols: time without an owner in the running rebalance so far, summed over partitions."""
    recent: Mark | None = None
    """A mark of the last minutes, and one before that: the throughput before a rebalance starts there."""
    older: Mark | None = None
    last: "LastCost | None" = None
    """Of the rebalance that made ``generation``."""
    had: Owned | None = None
    """Modern protocols: member -> topic id -> partitions when the running rebalance began; None: unknown,

    or none runs.
    """
    gaps: dict[str, dict[int, int]] = {}
    """Modern protocols: topic id -> partition without an owner -> since when."""
    since_ms: int = -1
    """Modern protocols: when the running rebalance began; -1: that was not seen, or none runs."""
    assigning_ms: int = 0
    """Modern protocols: how long it has been Assigning …"""
    reconciling_ms: int = 0
    """… and Reconciling, so far."""
    again: int = 0
    """Records read again that no transition has carried."""
    untold: "ToldCost | None" = None
    """The cost of a rebalance whose end was inferred, and emitted, before its record was read."""


class LastCost(msgspec.Struct, array_like=True, kw_only=True):
    """The cost of the last rebalance, for people; -1: no source shows it."""

    partitions: int = -1
    partition_ms: int = -1
    moved: int = -1
    least: int = -1
    reread: int = 0
    assigning_ms: int = -1
    reconciling_ms: int = -1


class RebalanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one finished rebalance; None: no source shows it.

    Times are epoch milliseconds, rates committed offsets per second.
    """

    started_ms: int
    """Since when the group was not Stable: a loop of rebalances counts as one."""
    ended_ms: int
    join_ms: int | None = None
    """Length of the last join phase."""
    sync_ms: int | None = None
    """From its end to the stored assignment."""
    eager: bool | None = None
    """Whether every member gives up everything before it joins."""
    partitions: int | None = None
    """Partitions that the group reads."""
    partition_ms: int | None = None
    """Time (ms) without an owner, summed over partitions."""
    moved: int | None = None
    """Partitions that are not with the member that had them before."""
    least: int | None = None
    """How many had to change owners for an assignment as even as that of Kafka's sticky assignor."""
    second_step: bool = False
    """Whether it is the second half of a cooperative rebalance: its figures add to the one before."""
    rate_before: float | None = None
    rate_during: float | None = None
    start: Mark | None = None
    before: Owned = {}
    """Partitions before it of the members that are still in the group."""
    initial: bool = False
    """Whether the group was empty: no member lost anything."""
    assigning_ms: int | None = None
    """Modern protocols: time (ms) until a target assignment was computed."""
    reconciling_ms: int | None = None
    """Modern protocols: time (ms) until every member had its own."""


class ToldCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a rebalance in the transition that ends it; null: no source shows it.

    Lengths are milliseconds, rates committed offsets per second.  In a streams group partitions are tasks.
    """

    started_ms: int
    """Since when the group was not Stable (epoch ms): a loop of rebalances counts as one."""
    join_ms: int | None
    """Length of the last join phase (classic)."""
    sync_ms: int | None
    """From its end to the stored assignment (classic)."""
    assigning_ms: int | None
    """Until target assignments were computed (modern protocols)."""
    reconciling_ms: int | None
    """Until every member had its own (modern protocols)."""
    eager: bool | None
    """Whether every member gave up everything before it joined."""
    partitions: int | None
    """Partitions that the group reads."""
    partition_ms: int | None
    """Time (ms) without an owner, summed over partitions."""
    moved: int | None
    """Partitions that are not with the member that had them before."""
    least: int | None
    """How many had to change owners for an even assignment."""
    initial: bool
    """Whether the group was empty before: no member was interrupted."""
    second_step: bool
    """Whether it is the second half of a cooperative rebalance: both halves together are one."""
    rate_before: float | None
    rate_during: float | None


def told(cost: RebalanceCost) -> ToldCost:
    """Return the part of a cost that a transition carries."""
    return ToldCost(**{name: getattr(cost, name) for name in ToldCost.__struct_fields__})


class StepCost(msgspec.Struct, kw_only=True):
    """The costs in a step."""

    finished: RebalanceCost | None = None
    reread: int = 0
    """Records that are read again: the first commit after a rebalance was lower than the last one before."""
