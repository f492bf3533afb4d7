"""Shifts an observation in time, with all its times: the clock that dated them was wrong."""

from typing import Any

import msgspec

from coordinator_model.observations.base import Source
from coordinator_model.observations.control import LogSeconds
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.observations.requests import (
    CommitsAnswered,
    Heartbeats,
)
from coordinator_model.observations.seen import AnyObservation, Seen
from coordinator_model.observations.traits import TRAITS


def shifted(seen: Seen, by_ms: int) -> Seen:
    """Return ``seen`` as if every clock that dated it had shown ``by_ms`` more.

    A record's append time is its broker's as well; a line's append time is that of the leader of the events
    topic's partition.
    """
    recorded_ms = seen.recorded_at_ms
    if seen.source is Source.OFFSETS and recorded_ms >= 0:
        recorded_ms = max(0, recorded_ms + by_ms)
    what = _shifted(seen.what, by_ms)
    return msgspec.structs.replace(
        seen, at_ms=max(0, seen.at_ms + by_ms), recorded_at_ms=recorded_ms, what=what
    )


def _shifted(what: AnyObservation, by_ms: int) -> AnyObservation:
    changes: dict[str, Any] = {}
    if isinstance(what, Heartbeats | CommitsAnswered):
        changes["times"] = tuple(max(0, one + by_ms) for one in what.times)
    elif isinstance(what, LogSeconds):
        changes["seconds"] = tuple(max(0, one + round(by_ms / 1000)) for one in what.seconds)
    elif isinstance(what, OffsetsCommitted):
        changes["commits"] = tuple(_commit(one, by_ms) for one in what.commits)
    for name in TRAITS[type(what)].time_fields:
        at_ms = getattr(what, name)
        if at_ms >= 0:
            changes[name] = max(0, at_ms + by_ms)
    return msgspec.structs.replace(what, **changes) if changes else what


def _commit(one: Commit, by_ms: int) -> Commit:
    if one.committed_at_ms < 0:
        return one
    return msgspec.structs.replace(one, committed_at_ms=max(0, one.committed_at_ms + by_ms))
