"""Passes commits and end offsets to a group's tracks (``tracks.py``)."""

from collections.abc import Iterable, Iterator, Mapping

from coordinator_model import state
from coordinator_model.groups.offsets.open_transactions import note_stable
from coordinator_model.groups.offsets.tracking import committed, ended
from coordinator_model.observations import Commit, EndOffsetsReported
from coordinator_model.state import Group, Track, Tracks

_ROOM_MS = 60_000
"""The base of a group's tracks lies this much before their first observation, since two clocks meet."""


def note_commits(group: Group, commits: Iterable[Commit]) -> bool:
    """Add commits to the tracks before the group stores them; True if the rules must look."""
    went_back = False
    for one in commits:
        if one.offset is not None:
            went_back |= _note_commit(group, one, one.offset)
        elif group.tracks is not None:
            group.tracks.forget(one.topic, one.partition)
    return went_back


def _note_commit(group: Group, commit: Commit, offset: int) -> bool:
    known = _tracks(group, commit.committed_at_ms)
    at = known.since_base(commit.committed_at_ms)
    is_other = known.renew(commit.topic, commit.topic_id, at)
    track = known.track(commit.topic, commit.partition)
    if track is None:
        return False
    earlier = None if is_other else group.commits.get(commit.topic, {}).get(commit.partition)
    return committed(
        known,
        track,
        offset=offset,
        at=at,
        before=None if earlier is None else (earlier[0], known.since_base(earlier[1])),
        steady=known.since_base(group.state_since_ms),
        may_abort=group.claims is not None,
    )


def _tracks(group: Group, at_ms: int) -> Tracks:
    if group.tracks is None:
        group.tracks = Tracks(base_ms=at_ms - _ROOM_MS)
    return group.tracks


def note_ends(group: Group, what: EndOffsetsReported, at_ms: int) -> None:
    """Add end offsets asked for at ``at_ms`` to the tracks of partitions that the group commits to."""
    known = _tracks(group, at_ms)
    at = known.since_base(at_ms if what.asked_ms < 0 else what.asked_ms)
    known.asked = known.since_base(what.since_ms) if what.since_ms >= 0 else state.UNKNOWN
    known.transaction_ms = what.transaction_ms
    for end, track, commit in _followed(group, known, what.ends):
        ended(track, end=end, at=at, commit=(commit[0], known.since_base(commit[1])))
    for stable, track, commit in _followed(group, known, what.stable):
        note_stable(track, stable=stable, at=at, offset=commit[0])


def _followed(
    group: Group, known: Tracks, told: Mapping[str, Mapping[int, int]]
) -> Iterator[tuple[int, Track, tuple[int, int]]]:
    """Yield for each partition that the group commits to: its end offsets, its track, the newest commit."""
    for topic, offsets in told.items():
        committed = group.commits.get(topic, {})
        for partition, offset in offsets.items():
            commit = committed.get(partition)
            track = known.track(topic, partition) if commit is not None else None
            if commit is not None and track is not None:
                yield offset, track, commit
