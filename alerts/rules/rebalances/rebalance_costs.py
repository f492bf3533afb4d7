"""Collects the cost of rebalances for the rules, and puts it into words."""

from collections.abc import Sequence

from alerts.alert import span, times
from alerts.rules.engine import CostEntry, CostMemory, GroupMemory, Situation
from coordinator_model.groups.core import is_eager, mark, rate_since
from coordinator_model.state import Group, RebalanceCost

KEPT_MS = 3_600_000
KEPT_MAX = 32


def note(situation: Situation) -> None:
    """Remember the costs that a step reports, before any rule asks."""
    told, memory = situation.step.cost, situation.memory
    if told is None:
        _forget(memory, situation.now_ms)
        return
    memory.costs = memory.costs or CostMemory()
    entries = memory.costs.entries
    if told.finished is not None:
        if told.finished.second_step and entries:
            _go_on(entries[-1], told.finished)
        else:
            entries.append(_entry(told.finished))
    if told.reread and entries:
        entries[-1].reread += told.reread
    _forget(memory, situation.now_ms)


def _forget(memory: GroupMemory, now_ms: int) -> None:
    if memory.costs is None:
        return
    kept = [entry for entry in memory.costs.entries if entry.ended_ms > now_ms - KEPT_MS]
    memory.costs = CostMemory(entries=kept[-KEPT_MAX:]) if kept else None


def since(memory: GroupMemory, at_ms: int) -> list[CostEntry]:
    """Return the costs of rebalances that ended after ``at_ms``."""
    return [entry for entry in memory.costs.entries if entry.ended_ms > at_ms] if memory.costs else []


def sentences(entries: Sequence[CostEntry], group: Group, now_ms: int) -> str:
    """Return the known costs of rebalances, each sentence with a leading blank; "" if nothing is known."""
    told = _told(entries, noun_of(group.group_type))
    told.append(_throughput(entries, group, now_ms))
    return "".join(f" {sentence}" for sentence in told if sentence)


def _told(entries: Sequence[CostEntry], noun: str) -> list[str]:
    return [_phases(entries), _unowned(entries, noun), _moves(entries, noun), _reread(entries)]


def in_all(entries: Sequence[CostEntry], group: Group, now_ms: int) -> str:
    """Return the cost of finished rebalances, and the throughput since; "" if nothing is known."""
    if not entries:
        return ""
    parts = _told(entries, noun_of(group.group_type))
    before = next((entry.rate_before for entry in entries if entry.rate_before > 0), None)
    after = rate_since(group.costs.stable, mark(group, now_ms)) if group.costs else None
    if before is not None and after is not None:
        parts.append(f"Offsets committed: {rate(before)} before, {rate(after)} after.")
    return " ".join([f"{times(len(entries), 'rebalance')} ended.", *(part for part in parts if part)])


def running(group: Group, lasted_ms: int) -> str:
    """Return the cost so far of a rebalance that does not end, with a leading blank; "" if unknown."""
    partitions = sum(
        len(numbers) for one in group.members.values() for numbers in (one.assigned or {}).values()
    )
    if not partitions or not is_eager(group.protocol):
        return ""
    # A member that has not rejoined may still read its own partitions.
    return (
        f" Up to {times(partitions, 'partition')} without an owner: {partition_time(partitions * lasted_ms)}."
    )


def partition_time(partition_ms: float, noun: str = "partition") -> str:
    """Return milliseconds summed over partitions: ``90 partition-seconds``, ``2.5 partition-hours``."""
    if partition_ms >= 3_600_000:
        return f"{partition_ms / 3_600_000:,.1f} {noun}-hours"
    seconds = f"{partition_ms / 1_000:.3g}" if partition_ms < 1e6 else f"{round(partition_ms / 1_000):,}"
    return f"{seconds} {noun}-seconds"


def noun_of(group_type: str) -> str:
    """Return what members of such a group share, in the singular (partition, task)."""
    return "task" if group_type == "streams" else "partition"


def _phases(entries: Sequence[CostEntry]) -> str:
    joins = [entry.join_ms for entry in entries if entry.join_ms >= 0]
    syncs = [entry.sync_ms for entry in entries if entry.sync_ms >= 0]
    if joins and syncs:
        return f"Join phases: {span(sum(joins))}, sync phases: {span(sum(syncs))}."
    known = [entry for entry in entries if entry.assigning_ms >= 0 and entry.reconciling_ms >= 0]
    if not known:
        return ""
    computing, handing = sum(one.assigning_ms for one in known), sum(one.reconciling_ms for one in known)
    return f"Computing assignments: {span(computing)}, handing partitions over: {span(handing)}."


def _unowned(entries: Sequence[CostEntry], noun: str) -> str:
    known = [entry for entry in entries if entry.partition_ms >= 0]
    lost_ms = sum(entry.partition_ms for entry in known)
    if not lost_ms:
        return ""
    most = max(entry.partitions for entry in known)
    how = " (eager: all of them stop each time)" if all(entry.eager == 1 for entry in known) else ""
    return f"Without an owner: {partition_time(lost_ms, noun)} over {times(most, noun)}{how}."


def _moves(entries: Sequence[CostEntry], noun: str) -> str:
    known = [entry for entry in entries if entry.moved >= 0 and entry.least >= 0]
    moved, least = sum(entry.moved for entry in known), sum(entry.least for entry in known)
    return f"Moved {times(moved, noun)}; {least} would have been enough." if moved > least else ""


def _reread(entries: Sequence[CostEntry]) -> str:
    again = sum(entry.reread for entry in entries)
    return f"{times(again, 'record')} read again afterwards." if again else ""


def _throughput(entries: Sequence[CostEntry], group: Group, now_ms: int) -> str:
    """Return committed offsets per second before and after, if both are known."""
    first = next((entry for entry in entries if entry.rate_before > 0), None)
    if first is None or first.committed < 0 or now_ms - first.started_ms <= 0:
        return ""
    now = mark(group, now_ms)
    grown = now.committed - first.committed
    if now.partitions != first.committed_of or grown < 0:
        return ""
    during = grown * 1_000 / (now_ms - first.started_ms)
    return f"Offsets committed: {rate(first.rate_before)} before, {rate(during)} since."


def rate(per_second: float) -> str:
    """Return a rate: ``1,250/s``, ``0.4/s``."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.2g}/s"


def _entry(cost: RebalanceCost) -> CostEntry:
    return CostEntry(
        started_ms=cost.started_ms,
        ended_ms=cost.ended_ms,
        join_ms=_known(cost.join_ms),
        sync_ms=_known(cost.sync_ms),
        eager=-1 if cost.eager is None else int(cost.eager),
        partitions=_known(cost.partitions),
        partition_ms=_known(cost.partition_ms),
        moved=_known(cost.moved),
        least=_known(cost.least),
        committed=-1 if cost.start is None else cost.start.committed,
        committed_of=0 if cost.start is None else cost.start.partitions,
        rate_before=-1 if cost.rate_before is None else cost.rate_before,
        assigning_ms=_known(cost.assigning_ms),
        reconciling_ms=_known(cost.reconciling_ms),
    )


def _go_on(entry: CostEntry, second: RebalanceCost) -> None:
    """Add the second step of a cooperative rebalance; both steps are one rebalance."""
    entry.ended_ms = second.ended_ms
    entry.join_ms = _sum(entry.join_ms, second.join_ms)
    entry.sync_ms = _sum(entry.sync_ms, second.sync_ms)
    entry.partition_ms = _sum(entry.partition_ms, second.partition_ms)
    entry.moved = _sum(entry.moved, second.moved)
    entry.least = _sum(entry.least, second.least)


def _known(value: int | None) -> int:
    return -1 if value is None else value


def _sum(first: int, second: int | None) -> int:
    return -1 if first < 0 or second is None else first + second
