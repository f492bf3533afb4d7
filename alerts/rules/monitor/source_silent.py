"""SourceSilent: a broker's log that verdicts depend on loses lines, or has fallen silent.

There are two proofs.  Either the topic showed something that the broker's log should have shown before
(contradiction).  Or the request log had lines regularly and now has none, while clients still commit to
partitions of the offsets topic that the broker leads, and the broker did not say that this log is off.
Silence alone proves nothing: a healthy quiet cluster writes no INFO line for hours, and a broker whose last
consumers have ended or were killed logs no request, whatever its neighbours log.

Records are also lost if they were deleted before they were read, or if the topic was recreated; the driver
finds that at its start.
"""

from typing import Annotated

import msgspec

from alerts.alert import clock, some, span, times
from alerts.rules.engine import (
    EVIDENCE_MAX,
    MINUTE_MS,
    NOTHING,
    Closing,
    ClusterMemory,
    ClusterRule,
    DurationMs,
    Finding,
    RuleOptions,
    Sees,
    Stops,
    Thresholds,
    Verdict,
    Watch,
)
from alerts.rules.monitor.cluster_unreachable import CLUSTER_UNREACHABLE
from coordinator_model.observations import BROKERS_MAX, Source
from coordinator_model.shard import ClusterState, LostRecords

NAME = "SourceSilent"

CONTRADICTED_MS = 10 * 60_000
"""How long a contradiction counts after it was last seen."""

GIVE_UP_MS = 60 * 60_000
"""A request log that has been silent for this long counts as switched off on purpose."""

_SAMPLE_SHARE = 2
"""The request logs are checked twice per ``after``."""

_REGULAR_SHARE = 2
"""A request log was regular if it had lines for twice ``after`` without a gap of ``after``."""


_ADVICE = (
    "Look at the log appender or shipper of that broker: does it run, are its buffers full, does it get "
    "errors from the events topic, is a line larger than max.request.size? Check also whether somebody "
    "changed "
    "the level of the logger."
)
_ADVICE_FOR_GAPS = (
    "Raise the retention of the topic (retention.ms, retention.bytes) above the longest time for which "
    "groupwatch may be down, and let nobody delete the topic. groupwatch asks the brokers about all groups "
    "again; what happened meanwhile stays unknown."
)
_GAP_COSTS = {
    "offsets": "groupwatch may show old states of groups until the brokers answer or the groups change; what "
    "the groups did meanwhile is not known.",
    "events": "Rebalances and departures of that time have no cause, or are not known at all.",
    "control": "Some answers of the brokers and some settings are lost; new ones come at once.",
}


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long a formerly regular request log may be silent while the cluster lives."""

    after_ms: Annotated[DurationMs, "silence where there should be none"] = MINUTE_MS


class _Gap(msgspec.Struct, frozen=True):
    """Records of one topic that were lost unread."""

    topic: str
    feed: str
    since_ms: int
    sentence: str


class _Loss(msgspec.Struct, frozen=True):
    """One broker's log that cannot be relied on."""

    broker: int
    source: Source
    since_ms: int
    sentence: str


def evaluate(state: ClusterState, memory: ClusterMemory, thresholds: Thresholds, now_ms: int) -> Verdict:
    """Return the verdict on the cluster's sources."""
    rule = thresholds.of(Options)
    if len(memory.watches) > BROKERS_MAX:
        memory.watches = {one: watch for one, watch in memory.watches.items() if _is_kept(state, one)}
    _watch(state, memory, rule.after_ms, now_ms)
    losses = _contradicted(state, now_ms) + _silent(state, memory, rule.after_ms, now_ms)
    gaps = _gaps(state, now_ms)
    due_ms = _due_ms(state, memory, rule.after_ms, now_ms)
    opened = memory.open.get(NAME)
    if not (losses or gaps):
        if opened is None:
            return NOTHING if due_ms is None else Verdict(due_ms=due_ms)
        summary = "groupwatch reads all logs again, or takes the silent ones for switched off."
        return Verdict(closing=Closing(ends_at_ms=now_ms, summary=summary), due_ms=due_ms)
    both: list[_Loss | _Gap] = [*losses, *gaps]
    sentences = [one.sentence for one in both]
    finding = Finding(
        starts_at_ms=min(one.since_ms for one in both),
        severity=rule.severity,
        summary=" ".join(filter(None, (_summary(losses), _summary_of_gaps(gaps)))),
        cause=sentences[-1],
        evidence=tuple(sentences[:EVIDENCE_MAX]),
        cost=" ".join(filter(None, (_cost(losses), _cost_of_gaps(gaps)))),
        advice=" ".join(filter(None, (_ADVICE * bool(losses), _ADVICE_FOR_GAPS * bool(gaps)))),
        culprit_keys=frozenset(f"{one.broker}/{one.source.name}" for one in losses)
        | frozenset(f"lost/{one.topic}/{one.since_ms}" for one in gaps),
    )
    return Verdict(finding=finding, due_ms=due_ms)


def _summary(losses: list[_Loss]) -> str:
    if not losses:
        return ""
    names = ", ".join(f"{_log(one.source)} of broker {one.broker}" for one in losses[:3])
    more = f" and {len(losses) - 3} more" if len(losses) > 3 else ""
    return f"The {names}{more} is incomplete: lines are missing."


def _summary_of_gaps(gaps: list[_Gap]) -> str:
    topics = ", ".join(dict.fromkeys(one.topic for one in gaps))
    return f"Records of {topics} were lost before they were read." if gaps else ""


def _gaps(state: ClusterState, now_ms: int) -> list[_Gap]:
    return [
        _Gap(one.topic, one.feed, one.at_ms, _gap_sentence(one))
        for one in state.losses
        if now_ms < one.at_ms + CONTRADICTED_MS
    ]


def _gap_sentence(loss: LostRecords) -> str:
    found = f"Found at {clock(loss.at_ms)}:"
    if loss.is_anew:
        return (
            f"{found} the topic {loss.topic} was deleted and created again. The records of the old "
            "topic that "
            "groupwatch had not read are lost; nobody knows how many."
        )
    where = some(list(map(str, loss.partitions)), at_most=10)
    return (
        f"{found} {loss.records} offsets of the topic {loss.topic} (partitions {where}) were deleted "
        "before groupwatch read them: the retention of the topic is shorter than the time in which nobody "
        "read it."
    )


def _cost_of_gaps(gaps: list[_Gap]) -> str:
    feeds = {one.feed for one in gaps}
    costs = (text for feed, text in _GAP_COSTS.items() if feed in feeds)
    return " ".join(costs)


def _log(source: Source) -> str:
    return "request log" if source is Source.REQUEST_LOG else "coordinator's INFO log"


def _cost(losses: list[_Loss]) -> str:
    sources = {one.source for one in losses}
    texts = []
    if Source.COORDINATOR_LOG in sources:
        texts.append(
            "groupwatch sees rebalances of groups on that broker late and without cause, and may miss storms "
            "and stuck rebalances."
        )
    if Source.REQUEST_LOG in sources:
        texts.append(
            "groupwatch does not warn before session timeouts there, and names only candidates for "
            "stuck rebalances."
        )
    return " ".join(texts)


def _watch(state: ClusterState, memory: ClusterMemory, after_ms: int, now_ms: int) -> None:
    for (broker, source), heard_ms in state.heard.items():
        if source != Source.REQUEST_LOG:
            continue
        known = memory.watches.get(broker)
        if known is None:
            memory.watches[broker] = Watch(heard_ms=heard_ms, regular_since_ms=heard_ms)
        elif heard_ms > known.heard_ms:
            if heard_ms - known.heard_ms >= after_ms:
                known.regular_since_ms = heard_ms
            known.heard_ms = heard_ms
    for watch in memory.watches.values():
        if now_ms - watch.heard_ms >= GIVE_UP_MS:
            watch.regular_since_ms = watch.heard_ms


def _is_kept(state: ClusterState, broker: int) -> bool:
    """Say whether a broker is still kept: some are dropped if log lines name far too many."""
    return (broker, int(Source.REQUEST_LOG)) in state.heard


def _contradicted(state: ClusterState, now_ms: int) -> list[_Loss]:
    recent: dict[tuple[int, Source], list[int]] = {}
    for one in state.contradictions:
        was_heard = (one.broker, int(one.lost)) in state.heard
        if was_heard and now_ms < one.at_ms + CONTRADICTED_MS:
            recent.setdefault((one.broker, one.lost), []).append(one.at_ms)
    return [
        _Loss(
            broker,
            lost,
            at[0],
            f"{times(len(at), 'time')} since {clock(at[0])} the offsets topic showed what the "
            f"{_log(lost)} of "
            f"broker {broker} "
            "should have shown first.",
        )
        for (broker, lost), at in recent.items()
    ]


def _silent(state: ClusterState, memory: ClusterMemory, after_ms: int, now_ms: int) -> list[_Loss]:
    found = []
    for broker, watch in sorted(memory.watches.items()):
        since_ms = _silent_since(state, broker, watch)
        is_regular = watch.heard_ms - watch.regular_since_ms >= _REGULAR_SHARE * after_ms
        if now_ms - since_ms < after_ms or not is_regular or state.is_request_log_off(broker):
            continue
        if _goes_on(state, memory, broker, since_ms + after_ms // 2) and not _moved(
            state, watch.heard_ms - after_ms
        ):
            sentence = (
                f"The request log of broker {broker} had lines regularly until {clock(watch.heard_ms)} and "
                f"has been silent for {span(now_ms - watch.heard_ms)}, while its groups still commit."
            )
            found.append(_Loss(broker, Source.REQUEST_LOG, watch.heard_ms, sentence))
    return found


def _silent_since(state: ClusterState, broker: int, watch: Watch) -> int:
    """Return since when lines have been missing; the time in which the log was off does not count.

    That the log is on again may be known before its first line has arrived.
    """
    return max(watch.heard_ms, state.logging_since_ms.get(broker, -1))


def _goes_on(state: ClusterState, memory: ClusterMemory, broker: int, since_ms: int) -> bool:
    """Say whether clients still commit to partitions that the broker coordinates, after ``since_ms``.

    Other records prove no request: a coordinator writes them itself when a session or an offset expires.  If
    the leader of a partition is unknown, it counts only in a cluster of one broker.
    """
    anybody = broker if len(memory.watches) == 1 else -1
    committed = [
        at_ms
        for partition, at_ms in state.committed_ms.items()
        if state.leaders.get(partition, (anybody, -1))[0] == broker
    ]
    return max(committed, default=-1) >= since_ms


def _moved(state: ClusterState, since_ms: int) -> bool:
    """Say whether coordinators moved; then a broker may be silent only because it has no groups now."""
    return any(move.at_ms >= since_ms for move in state.moves)


def _due_ms(state: ClusterState, memory: ClusterMemory, after_ms: int, now_ms: int) -> int | None:
    dues = [
        one.at_ms + CONTRADICTED_MS for one in state.contradictions if now_ms < one.at_ms + CONTRADICTED_MS
    ]
    dues += [one.at_ms + CONTRADICTED_MS for one in state.losses if now_ms < one.at_ms + CONTRADICTED_MS]
    sample_ms = now_ms + after_ms // _SAMPLE_SHARE
    for broker, watch in memory.watches.items():
        if now_ms - watch.heard_ms < GIVE_UP_MS:
            silent_ms = _silent_since(state, broker, watch) + after_ms
            dues.append(min(sample_ms, silent_ms) if silent_ms > now_ms else sample_ms)
    return min(dues, default=None)


SOURCE_SILENT = ClusterRule(
    name=NAME,
    options=Options,
    evaluate=evaluate,
    needs=Sees.A_LOG,
    stops=Stops.NOTHING,
    remembers="watches",
    effect_of=(CLUSTER_UNREACHABLE,),
    blames_nobody="no member: the brokers in the summary, or the shippers of their logs",
)
