"""What each cluster's job hears, and what it misses, from reports and health.  Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from streaming.group_store import KeptCluster
from streaming.serving.api import ClusterSources, InputSource, LogSource, UndecodableSample

COORDINATOR_LOG, REQUEST_LOG = "coordinator_log", "request_log"
_LOGS = (COORDINATOR_LOG, REQUEST_LOG)
LIVE_MS = 60_000
"""A request log that was silent for longer is not heard: some client sends something every few seconds."""
_OFFSETS = "offsets"

_NO_CAUSES = (
    "No broker's coordinator log was heard: rebalances of classic groups are told when they have ended, "
    "and their causes are guesses."
)
_NO_HEARTBEATS = (
    "No broker's request log is heard: nobody is warned before a session ends, and refused requests are not "
    "seen."
)
_NO_OFFSETS = "Nothing of the offsets topic was read: members, owners and lag are not known."


def cluster_sources(name: str, known: KeptCluster, health: Mapping[str, Any], now_ms: int) -> ClusterSources:
    """Return the sources of one cluster.

    Args:
        name: the cluster.
        known: its facts.
        health: what ``/ready`` says of its job; empty: nothing.
        now_ms: the time.
    """
    logs = _logs(known, now_ms)
    heard = {log for log in _LOGS if any(one.heard for one in logs if one.log == log)}
    has_offsets = known.report.newest_ms.get(_OFFSETS, -1) >= 0
    return ClusterSources(
        cluster=name,
        mode=_mode(heard, has_offsets),
        ready=bool(health.get("ready", False)),
        watermark_behind_s=float(health.get("watermark_behind_s", 0.0)),
        sources=_inputs(name, known, now_ms),
        logs=logs,
        missing=_missing(heard, has_offsets, logs),
        notices=list(health.get("notices", ())),
    )


def _mode(heard: set[str], has_offsets: bool) -> str:
    if len(heard) == len(_LOGS):
        return "full"
    if COORDINATOR_LOG in heard:
        return "quiet"
    if REQUEST_LOG in heard:
        return "requests"
    return "offsets" if has_offsets else "nothing"


def _logs(known: KeptCluster, now_ms: int) -> list[LogSource]:
    """Return both logs of every broker that the cluster has, or that was heard."""
    report = known.report
    newest = {(broker, log): at_ms for broker, log, at_ms in report.heard}
    leaders = {leader for leader, _ in report.leaders.values() if leader >= 0}
    brokers = {*report.brokers, *leaders, *(broker for broker, _ in newest)}
    return [
        _log(broker, log, newest.get((broker, log), -1), now_ms)
        for broker in sorted(brokers)
        for log in _LOGS
    ]


def _log(broker: int, log: str, newest_ms: int, now_ms: int) -> LogSource:
    is_live = newest_ms >= 0 and (log == COORDINATOR_LOG or now_ms - newest_ms <= LIVE_MS)
    late_s = _late_s(newest_ms, now_ms)
    note = ""
    if newest_ms < 0:
        note = "no line was ever heard"
    elif not is_live:
        note = f"silent for {late_s:.0f} s"
    return LogSource(broker=broker, log=log, heard=is_live, newest_ms=newest_ms, late_s=late_s, note=note)


def _late_s(newest_ms: int, now_ms: int) -> float | None:
    return None if newest_ms < 0 else round(max(0, now_ms - newest_ms) / 1000, 1)


def _inputs(name: str, known: KeptCluster, now_ms: int) -> list[InputSource]:
    report = known.report
    names = {source for source, _, _ in [*report.events, *report.undecodable]} | set(report.newest_ms)
    return [_input(name, source, known, now_ms) for source in sorted(names)]


def _input(name: str, source: str, known: KeptCluster, now_ms: int) -> InputSource:
    report = known.report
    bad = {reason: count for whose, reason, count in report.undecodable if whose == source}
    samples = [one for one in report.samples if one.get("source") == source]
    last = msgspec.convert({"cluster": name, **samples[-1]}, UndecodableSample) if samples else None
    newest_ms = report.newest_ms.get(source, -1)
    return InputSource(
        source=source,
        events=sum(count for whose, _, count in report.events if whose == source),
        newest_ms=newest_ms,
        late_s=_late_s(newest_ms, now_ms),
        undecodable=sum(bad.values()),
        undecodable_by_reason=bad,
        last_undecodable=last,
    )


def _missing(heard: set[str], has_offsets: bool, logs: list[LogSource]) -> list[str]:
    told = [] if has_offsets else [_NO_OFFSETS]
    for log, sentence in ((COORDINATOR_LOG, _NO_CAUSES), (REQUEST_LOG, _NO_HEARTBEATS)):
        if log not in heard:
            told.append(sentence)
            continue
        silent = [str(one.broker) for one in logs if one.log == log and not one.heard]
        if silent:
            what = log.replace("_", " ")
            told.append(f"The {what} of {_brokers(silent)} is not heard, and that of others is.")
    return told


def _brokers(names: list[str]) -> str:
    return f"broker {names[0]}" if len(names) == 1 else f"brokers {', '.join(names)}"
