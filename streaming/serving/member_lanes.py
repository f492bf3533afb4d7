"""The lanes of members: lives from reports, with times and causes that transitions tell.  Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coordinator_model.kafka import DEPARTURES, CauseKind
from coordinator_model.shard import GroupReport
from coordinator_model.state import Cause, Transition
from streaming.history import Lane
from streaming.serving.api import MemberLane

LANES_MAX = 2_000


class _Told(NamedTuple):
    """What transitions say of one member."""

    cause: Cause
    joined_ms: int
    left_ms: int
    how: str


def member_lanes(
    lanes: Sequence[Lane],
    transitions: Iterable[Transition],
    report: GroupReport | None,
    *,
    from_ms: int,
    to_ms: int,
) -> list[MemberLane]:
    """Return the lives that touch a window, oldest first.

    Reports are looked at every few seconds, so a life between two looks stands in transitions alone.

    Args:
        lanes: the lives that were kept.
        transitions: of the group, by time.
        report: the group as it is now; None: it is gone.
        from_ms: the window's beginning …
        to_ms: … and end.
    """
    told = _told(transitions)
    present = _present(report) if report else {}
    known = {one.member_id for one in lanes}
    lives = [*lanes, *(one for name, (one, _) in present.items() if name not in known)]
    beats = {name: last_ms for name, (_, last_ms) in present.items()}
    kept = [_lane(one, told.get(one.member_id), beats.get(one.member_id, -1)) for one in lives]
    kept += [_passing(one) for name, one in told.items() if name not in known and name not in present]
    touching = [
        one for one in kept if one.joined_at_ms <= to_ms and (one.left_at_ms < 0 or one.left_at_ms >= from_ms)
    ]
    return sorted(touching, key=lambda one: (one.joined_at_ms, one.member_id))[-LANES_MAX:]


def _told(transitions: Iterable[Transition]) -> dict[str, _Told]:
    found: dict[str, _Told] = {}
    for one in sorted(transitions, key=lambda one: one.at_ms):
        cause, name = one.cause, one.cause.member_id
        before = found.get(name, _Told(cause, -1, -1, ""))
        if not name:
            continue
        if cause.kind is CauseKind.MEMBER_JOINED:
            found[name] = _Told(cause, one.at_ms, -1, "")
        elif cause.kind is CauseKind.ALL_MEMBERS_LEFT and before.left_ms >= 0:
            continue  # the group is Empty because of the departure that is known already
        elif cause.kind in DEPARTURES:
            found[name] = _Told(cause, before.joined_ms, one.at_ms, str(cause.kind))
    return found


def _lane(lane: Lane, told: _Told | None, last_beat_ms: int) -> MemberLane:
    is_over = lane.gone_at_ms >= 0
    left_ms = told.left_ms if told is not None and is_over and told.left_ms >= 0 else lane.gone_at_ms
    beats = list(lane.beats) if is_over else _grown(list(lane.beats), last_beat_ms)
    return MemberLane(
        member_id=lane.member_id,
        client_id=lane.client_id,
        client_host=lane.client_host,
        instance_id=lane.instance_id,
        joined_at_ms=told.joined_ms if told and told.joined_ms >= 0 else lane.seen_at_ms,
        left_at_ms=left_ms,
        end_cause=told.how if told is not None and is_over else "",
        session_timeout_ms=lane.session_timeout_ms,
        rebalance_timeout_ms=lane.rebalance_timeout_ms,
        heartbeats=beats,
        heartbeats_known=bool(beats),
    )


def _grown(beats: list[tuple[int, int]], last_ms: int) -> list[tuple[int, int]]:
    """Return the stretches with the newest heartbeat; the store writes a stretch down when it breaks."""
    if last_ms < 0 or (beats and last_ms <= beats[-1][1]):
        return beats
    return [*beats[:-1], (beats[-1][0], last_ms)] if beats else [(last_ms, last_ms)]


def _present(report: GroupReport) -> dict[str, tuple[Lane, int]]:
    """Return, by their ids, the members that are there, with the newest heartbeat of each."""
    return {
        one.member_id: (
            Lane(
                member_id=one.member_id,
                client_id=one.client_id,
                client_host=one.client_host,
                instance_id=one.instance_id,
                seen_at_ms=-1,
                gone_at_ms=-1,
                session_timeout_ms=one.session_timeout_ms,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                beats=(),
            ),
            one.last_heartbeat_ms,
        )
        for one in report.members
    }


def _passing(told: _Told) -> MemberLane:
    """Return the lane of a member that no report has: its end is known, or it is only named."""
    return MemberLane(
        member_id=told.cause.member_id,
        client_id=told.cause.client_id,
        client_host=told.cause.client_host,
        instance_id=None,
        joined_at_ms=told.joined_ms,
        left_at_ms=max(told.left_ms, told.joined_ms),
        end_cause=told.how,
        session_timeout_ms=-1,
        rebalance_timeout_ms=-1,
        heartbeats=[],
        heartbeats_known=False,
    )
