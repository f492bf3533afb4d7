"""The JSON answers of the HTTP API, as types; the published schemas are generated from them."""

from typing import Any

import msgspec

from alerts.alert import Alert
from alerts.delivery import Silenced
from alerts.story import Explanation, RebalanceSpan, StateSpan
from coordinator_model.shard import GroupReport
from coordinator_model.state import Transition
from streaming.silences import SilenceList


class TopicLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group is behind in one topic; topics whose lag is unknown are left out."""

    topic: str
    records: int
    """Not committed yet, over all partitions."""
    seconds: float
    """How long the oldest of them has waited."""


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour of a group, point by point, oldest first; the last point is now."""

    step_ms: int
    """Time between two points."""
    lag: list[int | None]
    """Records behind, all topics together; null: unknown."""
    rebalances: list[int]
    """How many rebalances began between the point before and this one."""


class GroupSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One group in a list."""

    cluster: str
    group: str
    group_type: str
    state: str
    state_since_ms: int
    """-1: unknown."""
    members: int
    generation: int
    rebalances: int
    """Rebalances that started while the group was watched."""
    lag: list[TopicLag]
    alerts: list[str]
    """Names of its open alerts."""
    assignment_epoch: int = -1
    """For a consumer, share or streams group: the epoch (``generation``) of its target assignment."""
    held_up_by: list[str] = []
    """The members that such a group waits for, with their partitions."""
    owner: str = ""
    """Who owns the group, as ``owners`` of the configuration says; "": nobody is named."""
    spark: Spark | None = None
    """With ``spark=1h``; null also where no history is kept."""


class GroupList(msgspec.Struct, frozen=True, kw_only=True):
    """One page of groups, troubled groups first."""

    total: int
    """How many groups match the filters."""
    offset: int
    limit: int
    at_ms: int
    groups: list[GroupSummary]


class GroupDetail(msgspec.Struct, frozen=True, kw_only=True):
    """All known facts about one group."""

    cluster: str
    report: GroupReport
    lag: list[TopicLag]
    alerts: list[Alert]
    transitions: list[Transition]
    """The last transitions since this process started, newest last."""


class LagPoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group was behind at one moment, all topics together; null: unknown."""

    at_ms: int
    records: int | None
    seconds: float | None
    commits_per_s: float | None
    """Offsets committed a second since the point before, over all partitions."""


class MemberLane(msgspec.Struct, frozen=True, kw_only=True):
    """One life of a member; texts are "" and numbers -1 where no source shows them."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    joined_at_ms: int
    """-1: before it was watched."""
    left_at_ms: int
    """-1: it is still there."""
    end_cause: str
    """member_left, session_timeout, …; "": it is still there, or nobody saw why it went."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """The poll interval of a Java consumer."""
    heartbeats: list[tuple[int, int]]
    """Stretches (from, to in epoch ms) in which each heartbeat came within the session timeout."""
    heartbeats_known: bool
    """Whether any source shows its heartbeats."""


class Owners(msgspec.Struct, frozen=True, kw_only=True):
    """Who had which partitions at the end of a rebalance."""

    at_ms: int
    generation: int
    assignment: dict[str, dict[str, list[int]]]
    """Member id -> topic -> partitions."""


class GroupHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One group over a window of time.  Times are epoch milliseconds of the brokers' clocks."""

    cluster: str
    group: str
    from_ms: int
    to_ms: int
    at_ms: int
    """The server's time."""
    step_ms: int
    """Time between two points of ``lag`` where something was written."""
    lag: list[LagPoint]
    """A point holds until the next one, unless a gap lies between."""
    gaps: list[tuple[int, int]]
    """Times (from, to) in which nobody watched, so that lag and members are not known."""
    states: list[StateSpan]
    rebalances: list[RebalanceSpan]
    members: list[MemberLane]
    owners: list[Owners]
    alerts: list[Alert]
    """The newest revision of each alert that was open in the window, oldest first."""
    notes: list[str] = []
    """What is missing here, and why."""
    problem: str = ""
    """A sentence: why no history is kept now; "": it is kept."""


class LogSource(msgspec.Struct, frozen=True, kw_only=True):
    """One log of one broker."""

    broker: int
    log: str
    """coordinator_log or request_log."""
    heard: bool
    """It had a line within the last minute; the coordinator log, which may be silent, ever."""
    newest_ms: int
    """Second of its newest line; -1: none."""
    late_s: float | None
    """How old that is."""
    note: str
    """What that means, as a sentence; ""."""


class InputSource(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of input of a cluster."""

    source: str
    """As in ``groupwatch_events_total``."""
    events: int
    """Observations since the checkpoint began."""
    newest_ms: int
    """-1: none."""
    late_s: float | None
    undecodable: int
    """Records and lines that were not understood …"""
    undecodable_by_reason: dict[str, int]
    last_undecodable: "UndecodableSample | None"
    """… and the last of them."""


class ClusterSources(msgspec.Struct, frozen=True, kw_only=True):
    """What one cluster's job hears, and what it misses."""

    cluster: str
    mode: str
    """full, quiet, requests, offsets or nothing: what was heard lately."""
    ready: bool
    watermark_behind_s: float
    sources: list[InputSource]
    logs: list[LogSource]
    missing: list[str]
    """What cannot be told without the rest, as sentences."""
    notices: list[str]
    """As in ``/ready``."""


class SourceList(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of all clusters."""

    at_ms: int
    clusters: list[ClusterSources]


class AlertList(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts: by severity, by how much stands still, by how many members are blamed, newest first.

    Silenced ones come after the others, and those that have ended last.
    """

    total: int
    offset: int
    limit: int
    at_ms: int
    alerts: list[Alert]
    silenced: dict[str, int] = {}
    """Alert id -> until when (epoch ms) it is silenced."""
    silenced_by: dict[str, Silenced] = {}
    """Alert id -> the silence: id, author and comment; without id it stands in the configuration."""
    held_back: dict[str, dict[str, str]] = {}
    """Id -> receiver -> why it is not sent there now: not_routed, silenced, effect_of_cause, job_catching_up,
    grouping, not_announced or receiver_failing.  Receivers that were told are left out; empty where another
    process delivers."""


class UndecodableSample(msgspec.Struct, frozen=True, kw_only=True):
    """One of the last records or lines that could not be read."""

    cluster: str
    at_ms: int
    source: str
    reason: str
    detail: str
    sample: str
    """Its first bytes, base64."""


class UndecodableCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many could not be read for one reason."""

    cluster: str
    source: str
    reason: str
    count: int


class Undecodable(msgspec.Struct, frozen=True, kw_only=True):
    """Records and lines that could not be read."""

    counts: list[UndecodableCount]
    samples: list[UndecodableSample]


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """One disagreement between the mirror and its sources, or the brokers' own answers."""

    kind: str
    group: str
    broker: int
    """The broker that disagreed; -1: unknown."""
    at_ms: int
    detail: str
    """Both sides, if there are two."""


class ClusterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster as a whole: its brokers' own facts, and how well their answers agree with the mirror."""

    cluster: str
    groups: int
    agreement: float | None
    """Share of the last 15 minutes' answers that agreed with the mirror; null: none could be compared."""
    answers_compared: int
    """Since this process started."""
    answers_agreeing: int
    probe_requests: dict[str, int]
    """Kafka request -> how many were sent about groups since this process started."""
    brokers: dict[int, dict[str, str]]
    """Broker -> its settings that groups depend on."""
    offsets_leaders: dict[int, int]
    """Partition of the offsets topic -> broker that coordinates its groups."""
    partitions: dict[str, int]
    """Topic that groups read -> its number of partitions."""
    divergences: list[Divergence]
    """The last ones, newest first."""


class ClusterList(msgspec.Struct, frozen=True, kw_only=True):
    """All clusters."""

    at_ms: int
    clusters: list[ClusterDetail]


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of a stream."""

    at_ms: int
    version: str


class GroupsChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of one cluster are not as they were: state, generation, members or rebalances."""

    at_ms: int
    cluster: str
    changed: list[str]
    truncated: bool = False
    """There are more than can be named."""


class AlertsChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Some alert was raised, changed or ended."""

    at_ms: int


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life, with the server's time."""

    at_ms: int


EVENTS: dict[str, type[msgspec.Struct]] = {
    "hello": Hello,
    "groups": GroupsChanged,
    "alerts": AlertsChanged,
    "beat": Beat,
}
"""Server-sent event of ``/api/v1/events`` -> its data."""


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and whether they may silence alerts."""

    user: str
    """"" without logins."""
    may_change: bool
    why_not: str
    """Why silences of theirs are refused; "" if they are not."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Whether what is shown is whole and of now."""

    ready: bool
    clusters: list[dict[str, Any]]
    """What stands in the way, for each cluster; docs/data-path.md has the fields."""


class Healthy(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something in this process is broken."""

    healthy: bool
    problems: list[str]
    deliveries: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """The state of each receiver, where this process delivers."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused."""

    error: str


ENDPOINTS: dict[str, type[msgspec.Struct]] = {
    "/api/v1/groups": GroupList,
    "/api/v1/groups/{cluster}/{group}": GroupDetail,
    "/api/v1/groups/{cluster}/{group}/explain": Explanation,
    "/api/v1/groups/{cluster}/{group}/history": GroupHistory,
    "/api/v1/group": GroupDetail,
    "/api/v1/group/explain": Explanation,
    "/api/v1/group/history": GroupHistory,
    "/api/v1/alerts": AlertList,
    "/api/v1/silences": SilenceList,
    "/api/v1/me": Me,
    "/api/v1/undecodable": Undecodable,
    "/api/v1/clusters": ClusterList,
    "/api/v1/sources": SourceList,
}


def schema() -> dict[str, Any]:
    """Return JSON Schema (2020-12) for each endpoint and for the records of our topics."""
    topics: dict[str, type[msgspec.Struct]] = {"transitions": Transition, "alerts": Alert}
    types = [*ENDPOINTS.values(), *topics.values(), Problem]
    refs, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    count = len(ENDPOINTS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "endpoints": dict(zip(ENDPOINTS, refs[:count], strict=True)),
        "topics": dict(zip(topics, refs[count : count + len(topics)], strict=True)),
        "problem": refs[-1],
        "$defs": components,
    }
