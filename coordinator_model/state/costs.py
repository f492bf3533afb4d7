"""What a rebalance cost, and what is kept of a group to find it out."""

import msgspec

Owned = dict[str, dict[str, tuple[int, ...]]]
"""Member -> topic -> partitions."""


class Mark(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How far a group's commits were at one moment."""

    at_ms: int
    committed: int
    """Sum of its committed offsets."""
    partitions: int
    """How many partitions that sum is of; sums of different partitions cannot be compared."""
    last_commit_ms: int


class CostState(msgspec.Struct, array_like=True, kw_only=True):
    """What a group keeps between rebalances; saved, so new fields go to the end with a default."""

    generation: int = -1
    """The last one whose cost was told."""
    stable: Mark | None = None
    """When it became Stable."""
    started: Mark | None = None
    """When the running rebalance began."""
    withheld: int = 0
    """Cooperative: partitions that one member gave up and no other has got yet."""
    unowned: int = 0
    """No longer used: ``gaps`` has them one by one."""
    unowned_since_ms: int = -1
    """No longer used."""
    partition_ms: int = 0
    """Newer protocols: what has been lost in the running rebalance so far."""
    recent: Mark | None = None
    """A moment of the last minutes, and one before that: throughput before a rebalance is counted from it."""
    older: Mark | None = None
    last: "LastCost | None" = None
    """Of the rebalance that made ``generation``."""
    had: Owned | None = None
    """Newer protocols: member -> topic id -> partitions when the running rebalance began; None: not known,
    or none runs."""
    gaps: dict[str, dict[int, int]] = {}
    """Newer protocols: topic id -> partition that nobody has -> since when."""
    since_ms: int = -1
    """Newer protocols: when the running rebalance began; -1: nobody saw it, or none runs."""
    assigning_ms: int = 0
    """Newer protocols: how long it has been Assigning …"""
    reconciling_ms: int = 0
    """… and Reconciling, so far."""
    again: int = 0
    """Records read again that no transition has told of."""
    untold: "ToldCost | None" = None
    """Of a rebalance whose end was inferred, and told, before its record was read."""


class LastCost(msgspec.Struct, array_like=True, kw_only=True):
    """What the last rebalance cost, for people; -1: no source tells."""

    partitions: int = -1
    partition_ms: int = -1
    moved: int = -1
    least: int = -1
    reread: int = 0
    assigning_ms: int = -1
    reconciling_ms: int = -1


class RebalanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one finished rebalance cost; None: no source tells.

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
    """Every member gives up everything before it joins."""
    partitions: int | None = None
    """Partitions that the group reads."""
    partition_ms: int | None = None
    """Milliseconds without an owner, summed over partitions."""
    moved: int | None = None
    """Partitions that are not with the member that had them before."""
    least: int | None = None
    """How many had to be, for an assignment as even as Kafka's sticky one."""
    second_step: bool = False
    """The second half of a cooperative rebalance: what it adds to the one before."""
    rate_before: float | None = None
    rate_during: float | None = None
    start: Mark | None = None
    before: Owned = {}
    """What the members that are still there had before."""
    initial: bool = False
    """The group was empty: nobody lost anything."""
    assigning_ms: int | None = None
    """Newer protocols: until a target assignment was computed."""
    reconciling_ms: int | None = None
    """Newer protocols: until every member had its own."""


class ToldCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebalance cost, as the transition that ends it tells; null: no source tells.

    Lengths are milliseconds, rates committed offsets per second.  Of a streams group partitions are tasks.
    """

    started_ms: int
    """Since when the group was not Stable (epoch ms): a loop of rebalances counts as one."""
    join_ms: int | None
    """Length of the last join phase (classic)."""
    sync_ms: int | None
    """From its end to the stored assignment (classic)."""
    assigning_ms: int | None
    """Until target assignments were computed (newer protocols)."""
    reconciling_ms: int | None
    """Until every member had its own (newer protocols)."""
    eager: bool | None
    """Every member gave up everything before it joined."""
    partitions: int | None
    """Partitions that the group reads."""
    partition_ms: int | None
    """Time without an owner, summed over partitions."""
    moved: int | None
    """Partitions that are not with the member that had them before."""
    least: int | None
    """How many had to be, for an even assignment."""
    initial: bool
    """The group was empty before: nobody was stopped."""
    second_step: bool
    """The second half of a cooperative rebalance: it adds to the one before, with which it is one."""
    rate_before: float | None
    rate_during: float | None


def told(cost: RebalanceCost) -> ToldCost:
    """Return what a transition tells of a cost."""
    return ToldCost(**{name: getattr(cost, name) for name in ToldCost.__struct_fields__})


class StepCost(msgspec.Struct, kw_only=True):
    """What a step tells of costs."""

    finished: RebalanceCost | None = None
    reread: int = 0
    """Records that are read again, as the first commit after a rebalance lay before the last one."""
