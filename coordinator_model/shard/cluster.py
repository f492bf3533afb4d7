"""The state of the whole cluster: counts, undecodable rows, which brokers were heard, failovers.

Stored in the shard ``CLUSTER_SHARD``.  Totals only grow; everything else is bounded.
"""

import base64
from collections.abc import Callable

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import BROKERS_MAX, drop_oldest

SAMPLES_MAX = 100
SAMPLE_BYTES_MAX = 512
CONTRADICTIONS_MAX = 100
MOVES_MAX = 200
UPSETS_MAX = 500
TOPICS_MAX = 10_000
QUARANTINED_MAX = 1_000
LOSSES_MAX = 20
HEARD_MAX = 2 * BROKERS_MAX
"""Each broker has two logs."""
SETTINGS_MAX = 64
KINDS_MAX = 1_000
"""Limit of kinds of rows, and of reasons why rows cannot be read: a fixed vocabulary of ours."""
REQUEST_LOGGER = "kafka.request.logger"
"""Its level can be changed at run time; DescribeConfigs lists it under this name."""
_ON = ("DEBUG", "TRACE", "ALL")
"""Levels at which Kafka logs requests."""


class Sample(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One record that could not be read."""

    at_ms: int
    source: str
    reason: str
    detail: str
    sample: bytes


class Contradiction(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The topic showed something that a broker's log should have reported before."""

    at_ms: int
    broker: int
    lost: on.Source
    group: str


class Move(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A broker began to load, loaded, or unloaded one offsets partition, or gained more of them."""

    at_ms: int
    broker: int
    kind: str
    """loading, loaded or unloaded: from the broker's log; led: from the metadata."""
    epoch: int = -1


class FailoverRebalance(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A rebalance of a group that a failover of its coordinator caused."""

    group: str
    rebalanced_ms: int
    partition: int
    moved_ms: int
    came_from: int
    went_to: int
    told_ms: int = -1
    """When its shard reported it: shards do so in different batches."""
    stood: bool = False
    """Whether there was no failover: the coordinator's writes stalled."""


class Quarantine(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A group that our own code failed on, as its shard reported it."""

    since_ms: int
    last_ms: int
    count: int
    error: str
    lost: bool
    told_ms: int
    """When its shard last reported it, which a shard repeats whenever it is asked for a full report."""


class LostRecords(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Records of an input that were deleted before they were read."""

    at_ms: int
    """When the loss was found."""
    topic: str
    feed: str
    partitions: tuple[int, ...]
    records: int
    is_anew: bool


class ClusterState(msgspec.Struct, array_like=True, kw_only=True):
    """The state of one cluster as a whole; each dictionary names the parts of its key."""

    events: dict[tuple[str, str], int] = {}
    """(source, kind) -> how many."""
    undecodable: dict[tuple[str, str], int] = {}
    """(source, reason) -> how many."""
    samples: list[Sample] = []
    heard: dict[tuple[int, int], int] = {}
    """(broker, source) -> newest second, in epoch ms, in which that log had a line."""
    contradictions: list[Contradiction] = []
    divergences: dict[str, int] = {}
    newest_ms: dict[str, int] = {}
    """Source -> newest event time."""
    moves: list[Move] = []
    leaders: dict[int, tuple[int, int]] = {}
    """Offsets partition -> (leader, leader epoch)."""
    brokers: dict[int, dict[str, str]] = {}
    """Broker -> its settings that matter to groups, in Kafka's spelling."""
    partitions: dict[str, int] = {}
    """Topic that groups read -> number of its partitions."""
    upsets: list[FailoverRebalance] = []
    committed_ms: dict[int, int] = {}
    """Offsets partition -> newest time at which a client committed to it, so that its leader was needed."""
    logging_since_ms: dict[int, int] = {}
    """Broker -> since when its request log is on, if it had been off."""
    quarantined: dict[tuple[int, str], Quarantine] = {}
    """(Shard, group) -> what our own code failed on there; group "" stands for the shard itself."""
    losses: list[LostRecords] = []
    """The newest last."""

    def is_request_log_off(self, broker: int) -> bool:
        """Return whether the broker reported that its request log is switched off."""
        return self.brokers.get(broker, {}).get(REQUEST_LOGGER, _ON[0]) not in _ON

    def count(self, kind: str, number: int) -> None:
        """Count divergences of the cluster itself."""
        self.divergences[kind] = self.divergences.get(kind, 0) + number

    def note_quarantined(self, what: on.GroupQuarantined, told_ms: int) -> None:
        """Apply a shard's report of a group that our own code failed on, or that works again."""
        key = (what.partition, what.group)
        if what.over:
            self.quarantined.pop(key, None)
        elif key in self.quarantined or len(self.quarantined) < QUARANTINED_MAX:
            self.quarantined[key] = Quarantine(
                since_ms=what.since_ms,
                last_ms=what.last_ms,
                count=what.count,
                error=what.error,
                lost=what.lost,
                told_ms=told_ms,
            )

    def apply(self, seen: on.Seen) -> bool:
        """Apply one observation; True if a rule may react at once."""
        handler = HANDLERS.get(type(seen.what))
        return handler(self, seen) if handler else False

    def report(self, *, now_ms: int) -> bytes:
        """Return the cluster's state as JSON for /metrics and the page."""
        return msgspec.json.encode(
            {
                "at_ms": now_ms,
                "events": [[*key, count] for key, count in sorted(self.events.items())],
                "undecodable": [[*key, count] for key, count in sorted(self.undecodable.items())],
                "samples": [
                    {**_fields(s), "sample": base64.b64encode(s.sample).decode()} for s in self.samples
                ],
                "heard": [
                    [broker, on.Source(source).name.lower(), at_ms]
                    for (broker, source), at_ms in sorted(self.heard.items())
                ],
                "contradictions": [{**_fields(c), "lost": c.lost.name.lower()} for c in self.contradictions],
                "divergences": self.divergences,
                "newest_ms": self.newest_ms,
                "moves": [_fields(move) for move in self.moves],
                "leaders": {str(partition): told for partition, told in sorted(self.leaders.items())},
                "brokers": {str(broker): told for broker, told in sorted(self.brokers.items())},
                "partitions": self.partitions,
                "quarantined": [
                    {"partition": partition, "group": group, **_fields(one)}
                    for (partition, group), one in sorted(self.quarantined.items())
                ],
                "losses": [_fields(loss) for loss in self.losses],
            }
        )


def _fields(struct: msgspec.Struct) -> dict[str, object]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _counted(state: ClusterState, seen: on.Seen) -> bool:
    assert isinstance(seen.what, on.Counted)  # noqa: S101 - the table's type
    for source, kind, count in seen.what.counts:
        if (source, kind) not in state.events and len(state.events) >= KINDS_MAX:
            kind = "other"  # noqa: PLW2901 - our decoders have a few dozen
        state.events[source, kind] = state.events.get((source, kind), 0) + count
        state.newest_ms[source] = max(state.newest_ms.get(source, -1), seen.at_ms)
    for partition, at_ms in seen.what.committed:
        state.committed_ms[partition] = max(state.committed_ms.get(partition, -1), at_ms)
    return False


def _undecodable(state: ClusterState, seen: on.Seen) -> bool:
    bad = seen.what
    assert isinstance(bad, on.Undecodable)  # noqa: S101 - the table's type
    key = (bad.origin, bad.reason)
    if key not in state.undecodable and len(state.undecodable) >= KINDS_MAX:
        key = (bad.origin, "other")
    state.undecodable[key] = state.undecodable.get(key, 0) + bad.count
    sample = Sample(
        at_ms=seen.at_ms,
        source=bad.origin,
        reason=bad.reason,
        detail=bad.detail[:200],
        sample=bad.sample[:SAMPLE_BYTES_MAX],
    )
    state.samples = [*state.samples, sample][-SAMPLES_MAX:]
    return False


def _heard(state: ClusterState, seen: on.Seen) -> bool:
    what = seen.what
    assert isinstance(what, on.LogSeconds)  # noqa: S101 - the table's type
    key = (what.broker, int(what.heard))
    state.heard[key] = max(state.heard.get(key, -1), max(what.seconds, default=-1) * 1000)
    if len(state.heard) > HEARD_MAX:
        told = {*state.brokers, *(leader for leader, _ in state.leaders.values())}
        kept = [one for one in state.heard if one[0] in told]
        state.count("too_many_brokers", drop_oldest(state.heard, HEARD_MAX, int, frozenset(kept)))
    return False


def _contradicted(state: ClusterState, seen: on.Seen) -> bool:
    what = seen.what
    assert isinstance(what, on.Contradicted)  # noqa: S101 - the table's type
    one = Contradiction(at_ms=seen.at_ms, broker=what.broker, lost=what.lost, group=what.group)
    state.contradictions = [*state.contradictions, one][-CONTRADICTIONS_MAX:]
    state.divergences["log_line_missing"] = state.divergences.get("log_line_missing", 0) + 1
    return True


def _moved(state: ClusterState, seen: on.Seen) -> bool:
    what = seen.what
    kind = {on.ShardLoading: "loading", on.ShardLoaded: "loaded"}.get(type(what), "unloaded")
    move = Move(at_ms=seen.at_ms, broker=seen.broker, kind=kind, epoch=getattr(what, "epoch", -1))
    state.moves = [*state.moves, move][-MOVES_MAX:]
    return True


def _upset(state: ClusterState, seen: on.Seen) -> bool:
    what = seen.what
    assert isinstance(what, on.GroupRebalancedByFailover)  # noqa: S101 - the table's type
    told = {name: getattr(what, name) for name in on.GroupRebalancedByFailover.__struct_fields__}
    one = FailoverRebalance(**told, told_ms=seen.at_ms)
    # A batch that is repeated after a crash reports it again.
    if not any(msgspec.structs.replace(known, told_ms=one.told_ms) == one for known in state.upsets):
        state.upsets = [*state.upsets, one][-UPSETS_MAX:]
    return True


def _leaders(state: ClusterState, seen: on.Seen) -> bool:
    assert isinstance(seen.what, on.LeadersDescribed)  # noqa: S101 - the table's type
    told = seen.what.leaders
    # Without the INFO log only the metadata show a failover; one entry for all partitions that one broker
    # gained.
    gained = {now[0] for partition, now in told.items() if state.leaders.get(partition, now)[0] != now[0]}
    led = [Move(at_ms=seen.at_ms, broker=broker, kind="led") for broker in sorted(gained)]
    state.moves = [*state.moves, *led][-MOVES_MAX:]
    state.leaders |= told
    return True


def _broker(state: ClusterState, seen: on.Seen) -> bool:
    assert isinstance(seen.what, on.BrokerDescribed)  # noqa: S101 - the table's type
    broker, was_off = seen.what.broker, state.is_request_log_off(seen.what.broker)
    if broker not in state.brokers and len(state.brokers) >= BROKERS_MAX:
        state.count("too_many_brokers", 1)
        return False
    state.brokers[broker] = dict(list(seen.what.settings.items())[:SETTINGS_MAX])
    if was_off and not state.is_request_log_off(broker):
        state.logging_since_ms[broker] = seen.at_ms
    return True


def _topics(state: ClusterState, seen: on.Seen) -> bool:
    assert isinstance(seen.what, on.TopicsDescribed)  # noqa: S101 - the table's type
    for topic, count in seen.what.partitions.items():
        if count > 0 and (topic in state.partitions or len(state.partitions) < TOPICS_MAX):
            state.partitions[topic] = count
        elif count <= 0:
            state.partitions.pop(topic, None)
    return True


def _quarantined(state: ClusterState, seen: on.Seen) -> bool:
    assert isinstance(seen.what, on.GroupQuarantined)  # noqa: S101 - the table's type
    state.note_quarantined(seen.what, seen.at_ms)
    return True


def _lost(state: ClusterState, seen: on.Seen) -> bool:
    what = seen.what
    assert isinstance(what, on.RecordsLost)  # noqa: S101 - the table's type
    told = {name: getattr(what, name) for name in on.RecordsLost.__struct_fields__}
    state.losses = [*state.losses, LostRecords(at_ms=seen.at_ms, **told)][-LOSSES_MAX:]
    return True


HANDLERS: dict[type, Callable[[ClusterState, on.Seen], bool]] = {
    on.Counted: _counted,
    on.Undecodable: _undecodable,
    on.LogSeconds: _heard,
    on.Contradicted: _contradicted,
    on.ShardLoading: _moved,
    on.ShardLoaded: _moved,
    on.ShardUnloaded: _moved,
    on.LeadersDescribed: _leaders,
    on.BrokerDescribed: _broker,
    on.TopicsDescribed: _topics,
    on.GroupRebalancedByFailover: _upset,
    on.GroupQuarantined: _quarantined,
    on.RecordsLost: _lost,
}
