"""What is taken out of a group's report, and how two reports of one group differ in their members.  Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from coordinator_model.kafka import GroupState

LOOK_MS = 10_000
"""Reports are looked at so often: a heartbeat may have come in between unseen."""
_SESSION_DEFAULT_MS = 45_000


class Seen(msgspec.Struct, frozen=True, gc=False):
    """One member in a report."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    last_heartbeat_ms: int
    assigned: dict[str, list[int]] | None


class Sample(msgspec.Struct, frozen=True):
    """One report."""

    state: GroupState
    state_since_ms: int
    generation: int
    members: list[Seen]
    at_ms: int

    @property
    def owners(self) -> dict[str, dict[str, list[int]]] | None:
        """Return member -> topic -> partitions of a Stable group; None: no source shows it."""
        if self.state is not GroupState.STABLE or not self.members:
            return None
        told = {one.member_id: one.assigned for one in self.members}
        known = {name: one for name, one in told.items() if one is not None}
        return known if len(known) == len(told) else None


def sample_of(report: bytes) -> Sample:
    """Return what is taken out of a report."""
    return msgspec.json.decode(report, type=Sample)


def members_part(report: bytes) -> bytes:
    """Return the part of a report from its members on: equal parts need not be read."""
    begin = report.find(b'"members":')
    return report[begin : report.rfind(b'"commits":')]


def is_as_before(before: bytes, report: bytes) -> bool:
    """Return whether a report repeats members, rebalances and commits: then it need not be read."""
    return bool(before) and _told(before) == _told(report)


def _told(report: bytes) -> bytes:
    return report[report.find(b'"members":') : report.rfind(b'"last_commit_ms":')]


class Came(NamedTuple):
    """A member is there that was not."""

    member: Seen
    at_ms: int
    is_new: bool
    """False: nobody looked before, so nobody knows since when it is there."""


class Went(NamedTuple):
    """A member is there no more."""

    member_id: str
    at_ms: int
    last_beat_ms: int
    """Its last heartbeat that was seen; -1: none."""


class Beat(NamedTuple):
    """A stretch of heartbeats begins; the one before ended at ``before_ms``."""

    member_id: str
    before_ms: int
    """-1: there was none."""
    from_ms: int


Change = Came | Went | Beat


def changes(before: Sample, now: Sample) -> Iterable[Change]:
    """Yield how members differ between two reports of a group."""
    known = {one.member_id: one for one in before.members}
    for one in now.members:
        had = known.pop(one.member_id, None)
        if had is None:
            yield Came(one, now.at_ms, True)
        elif _is_broken(had, one):
            yield Beat(one.member_id, had.last_heartbeat_ms, one.last_heartbeat_ms)
    for gone in known.values():
        yield Went(gone.member_id, now.at_ms, gone.last_heartbeat_ms)


def first_changes(known: Mapping[str, int], watched_ms: int, now: Sample) -> Iterable[Change]:
    """Yield the same when nobody has looked for a while.

    Args:
        known: member that was there then -> its last heartbeat that was written.
        watched_ms: until when somebody looked.
        now: the first report since.
    """
    there = set()
    for one in now.members:
        there.add(one.member_id)
        if one.member_id not in known:
            yield Came(one, now.at_ms, False)
        elif known[one.member_id] >= 0 and is_pause(watched_ms, one):
            yield Beat(one.member_id, watched_ms, one.last_heartbeat_ms)
    for name in known:
        if name not in there:
            yield Went(name, max(watched_ms, 0), -1)


def _is_broken(had: Seen, now: Seen) -> bool:
    """Return whether a new stretch of heartbeats begins.

    Reports between two looks are not seen, so that a pause shows only if it is longer than a session.
    """
    if now.last_heartbeat_ms < 0 or now.last_heartbeat_ms == had.last_heartbeat_ms:
        return False
    return had.last_heartbeat_ms < 0 or is_pause(had.last_heartbeat_ms, now)


def is_pause(before_ms: int, now: Seen) -> bool:
    """Return whether a member was silent for longer than its session before its newest heartbeat."""
    session_ms = now.session_timeout_ms if now.session_timeout_ms > 0 else _SESSION_DEFAULT_MS
    return now.last_heartbeat_ms - before_ms > session_ms + LOOK_MS
