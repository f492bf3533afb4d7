"""What the store gives back about one group, as plain values."""

from typing import NamedTuple

from alerts.alert import Alert
from coordinator_model.state import Transition


class Point(NamedTuple):
    """Lag and commit rate at one moment, over all topics of a group; None: unknown."""

    at_ms: int
    records: int | None
    seconds: float | None
    commits_per_s: float | None


class Lane(NamedTuple):
    """One life of a member; unknown numbers are -1, unknown texts ""."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    seen_at_ms: int
    """When a report first had it; -1: the first report after a gap had it already."""
    gone_at_ms: int
    """When a report had it no more; -1: it is there."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    beats: tuple[tuple[int, int], ...]
    """Stretches (from, to) of heartbeats that came in time."""


class Owned(NamedTuple):
    """Who had which partitions when a group was Stable at a generation."""

    at_ms: int
    generation: int
    assignment: dict[str, dict[str, list[int]]]


class Past(NamedTuple):
    """One group over a window of time."""

    step_ms: int = 10_000
    points: tuple[Point, ...] = ()
    gaps: tuple[tuple[int, int], ...] = ()
    lanes: tuple[Lane, ...] = ()
    owners: tuple[Owned, ...] = ()
    transitions: tuple[Transition, ...] = ()
    alerts: tuple[Alert, ...] = ()
    problem: str = ""
