"""GroupsQuarantined: groupwatch's own code failed on groups, so it knows them less well than others.

Each shard reports its own groups (``shard/quarantine.py``): an observation was skipped, a rule failed, or the
saved state could not be read and is being rebuilt.  The cluster gets one alert.
"""

from alerts.alert import clock, some, times
from alerts.rules.engine import (
    EVIDENCE_MAX,
    NOTHING,
    Closing,
    ClusterMemory,
    ClusterRule,
    Finding,
    RuleOptions,
    Sees,
    Stops,
    Thresholds,
    Verdict,
)
from coordinator_model.shard import ClusterState, Quarantine

NAME = "GroupsQuarantined"

UNTOLD_MS = 2 * 3_600_000
"""Shards report quarantines at each full report, and their end; one not reported for so long has ended."""
_NAMED_MAX = 20


class Options(RuleOptions, frozen=True, kw_only=True):
    """No threshold: the rule reports our own failures."""


def evaluate(state: ClusterState, memory: ClusterMemory, thresholds: Thresholds, now_ms: int) -> Verdict:
    """Return the verdict on groups that our own code failed on."""
    found = {key: one for key, one in state.quarantined.items() if now_ms < one.told_ms + UNTOLD_MS}
    if not found:
        if NAME not in memory.open:
            return NOTHING
        summary = "groupwatch fails on no group any more, and has rebuilt the state that was lost."
        return Verdict(closing=Closing(ends_at_ms=now_ms, summary=summary))
    due_ms = min(one.told_ms for one in found.values()) + UNTOLD_MS
    return Verdict(finding=_finding(found, thresholds), due_ms=due_ms)


def _finding(found: dict[tuple[int, str], Quarantine], thresholds: Thresholds) -> Finding:
    names = sorted(_name(partition, group) for partition, group in found)
    newest = max(found.values(), key=lambda one: (one.last_ms, one.error))
    lost = sum(one.lost for one in found.values())
    return Finding(
        starts_at_ms=max(0, min(one.since_ms for one in found.values())),
        severity=thresholds.of(Options).severity,
        summary=f"groupwatch itself failed on {some(names, at_most=_NAMED_MAX)}.",
        cause=f"A bug of groupwatch, or damaged state. The last error: {newest.error}",
        evidence=tuple(_line(key, one) for key, one in sorted(found.items())[:EVIDENCE_MAX]),
        cost=_cost(lost),
        advice="Watch these groups with Kafka's own tools until this alert ends (kafka-consumer-groups.sh "
        "--describe). Report the error with the job's log of that time. If the checkpoint is damaged, "
        "look at "
        "its disk.",
        # More groups are news, but not each one of hundreds.
        aspect=f"{len(found).bit_length()}/{lost.bit_length()}",
        culprit_keys=frozenset(names[:_NAMED_MAX]),
    )


def _name(partition: int, group: str) -> str:
    if group:
        return group
    return f"partition {partition} as a whole" if partition >= 0 else "the data of the whole cluster"


def _cost(lost: int) -> str:
    said = "groupwatch missed observations of these groups: a state, a cause or an alert may be wrong."
    if lost:
        entries = times(lost, "entry") if lost == 1 else f"{lost} entries"
        said += f" The saved state of {entries} was lost: groupwatch does not watch them until it is rebuilt."
    return said


def _line(key: tuple[int, str], one: Quarantine) -> str:
    what = "state lost" if one.lost else times(one.count, "failure")
    return f"{clock(max(0, one.last_ms))}: {_name(*key)}: {what}, last {one.error}"


GROUPS_QUARANTINED = ClusterRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.NOTHING,
    stops=Stops.NOTHING,
    blames_nobody="no member: groupwatch itself",
)
