"""Decides when coalesced runs may stay coalesced: if their effect is the same in any order and any cut."""

from typing import NamedTuple

from coordinator_model import observations as on
from coordinator_model.kafka import GroupState
from coordinator_model.ordering import Run, cut
from coordinator_model.state import Group, Member

WAKE_GAP = 0.4
"""A heartbeat after a pause of this share of the session timeout is shown to the rules."""


FirstBeat = tuple[Member, int]
"""A member that was never heard before, and when (epoch ms) it first was."""


def are_quiet(group: Group, runs: list[Run], firsts: list[FirstBeat] | None = None) -> bool:
    """Return whether runs, in the order of ``in_time``, only restart timers in a Stable group.

    Args:
        group: as it is before them.
        runs: of its members.
        firsts: takes the first heartbeats of members, at which the rules must look some time later; None:
            those are not quiet.
    """
    if group.state is not GroupState.STABLE:
        return False
    if group.coordinator < 0 and len({run.seen.broker for run in runs}) > 1:
        return False  # which of them coordinates it is news
    earlier = _Earlier({}, set(), firsts)
    return all(_moves_timers(group, run, earlier) for run in runs)


class _Earlier(NamedTuple):
    """What the earlier ones of some runs have shown."""

    last: dict[str, int]
    """Member -> its newest heartbeat in them."""
    committed: set[str]
    """Members that have committed in them, and that nobody had heard before."""
    firsts: list[FirstBeat] | None


def _moves_timers(group: Group, run: Run, earlier: _Earlier) -> bool:
    """Return whether a run only restarts timers."""
    what = run.seen.what
    if type(what) is on.GroupHeard:
        return _move_timers(group, run, what, earlier)
    assert isinstance(what, on.Heartbeats | on.CommitsAnswered)  # noqa: S101 - runs hold nothing else
    member = group.members.get(what.member_id)
    if member is None or not _is_of_coordinator(group, run):
        return False
    if what.error_code or what.generation != group.generation:
        return False
    if type(what) is on.CommitsAnswered:
        return _keep_session(member, what.times, earlier)
    return _beat_steadily(member, what.times, earlier)


def _is_of_coordinator(group: Group, run: Run) -> bool:
    """Return whether the group's coordinator answered: the known one, or the first that any source shows.

    Another broker than before shows that the group has another coordinator.  What is older than this life of
    the group, or than its coordinator's load, counts for nothing, and is counted.
    """
    if run.since_ms <= group.ended_ms or run.since_ms < group.loaded_ms:
        return False
    if group.coordinator >= 0:
        return run.seen.broker == group.coordinator
    return run.seen.broker >= 0 and group.loaded_ms < 0 and group.taken is None


def _move_timers(group: Group, run: Run, what: on.GroupHeard, earlier: _Earlier) -> bool:
    """Return the same for a run of several members."""
    if what.generation != group.generation or not _is_of_coordinator(group, run):
        return False
    members = group.members
    for heard in what.members:  # a plain loop: it runs over every member that a request log shows
        member = members.get(heard.member_id)
        if member is None or (heard.commits and not _keep_session(member, heard.commits, earlier)):
            return False
        if heard.beats and not _beat_steadily(member, heard.beats, earlier):
            return False
    return True


def _beat_steadily(member: Member, times: tuple[int, ...], earlier: _Earlier) -> bool:
    """Return whether heartbeats of a member only restart its timer."""
    member_id, is_new = member.member_id, member.last_heartbeat_ms < 0
    first_ms, last_ms = times[0], earlier.last.get(member_id, member.last_heartbeat_ms)
    # A commit restarts the session by which a first heartbeat after it may show a pause; and a run of several
    # members may have the second heartbeat of one of them before this, the first.
    if is_new and (member_id in earlier.committed or first_ms < last_ms):
        return False
    gap_ms = member.session_timeout_ms * WAKE_GAP
    if last_ms < 0 < gap_ms and earlier.firsts is not None and first_ms >= member.session_base_ms:
        earlier.firsts.append((member, first_ms))
        # It shows a pause only within the session that began when the group was last known to be whole.
        since_ms = first_ms - member.session_base_ms
        last_ms = member.session_base_ms if since_ms < member.session_timeout_ms else first_ms
    earlier.last[member_id] = max(last_ms, times[-1])
    return gap_ms <= 0 or _is_steady(last_ms, times, gap_ms)


def _is_steady(last_ms: int, times: tuple[int, ...], gap_ms: float) -> bool:
    """Return whether heartbeats follow the last one, and one another, without a pause of ``gap_ms``."""
    return last_ms >= 0 and _has_no_gap(last_ms, times, gap_ms)


def _keep_session(member: Member, commits: tuple[int, ...], earlier: _Earlier) -> bool:
    """Return whether commits come in a running session: rules foretell the end of one that begins anew."""
    if member.last_heartbeat_ms < 0:
        earlier.committed.add(member.member_id)
        return member.member_id not in earlier.last
    return member.session_timeout_ms <= 0 or _has_no_gap(
        member.session_base_ms, commits, member.session_timeout_ms
    )


def _has_no_gap(last_ms: int, times: tuple[int, ...], gap_ms: float) -> bool:
    if times[-1] - last_ms < gap_ms:
        return True
    return all(after - before < gap_ms for before, after in zip((last_ms, *times), times, strict=False))


def in_time(runs: list[Run]) -> list[Run]:
    """Return runs in the order in which they begin to take effect: late ones after what came in time."""
    return sorted(runs, key=_begin) if len(runs) > 1 else runs


def _begin(run: Run) -> tuple[int, tuple[str, str, int, int, int]]:
    return run.first_ms(), run_key(run)


def first_times(runs: list[Run], count: int) -> int:
    """Return a time before which at least one, and about ``count``, of the runs' times take effect."""
    times = sorted(max(run.floor_ms, time) for run in runs for time in run.first_times(count))
    return times[min(count, len(times)) - 1] + 1


def split(runs: list[Run], limit_ms: int) -> tuple[list[Run], list[Run]]:
    """Return the parts of ``runs`` before ``limit_ms``, and the rest."""
    for run in runs:  # a plain loop: it runs over every line of a request log
        if run.floor_ms >= limit_ms or run.seen.at_ms >= limit_ms:
            break
    else:
        return runs, []
    heads: list[Run] = []
    tails: list[Run] = []
    for run in runs:
        head, tail = cut(run, limit_ms)
        if head is not None:
            heads.append(head)
        if tail is not None:
            tails.append(tail)
    return heads, tails


def run_key(run: Run) -> tuple[str, str, int, int, int]:
    """Return the order of runs at one millisecond; their offsets depend on how they were coalesced."""
    what = run.seen.what
    if type(what) is on.GroupHeard:
        return type(what).__name__, "", what.generation, 0, run.seen.broker
    assert isinstance(what, on.Heartbeats | on.CommitsAnswered)  # noqa: S101 - runs hold nothing else
    return type(what).__name__, what.member_id, what.generation, what.error_code, run.seen.broker


def refusal_key(run: Run) -> tuple[object, ...]:
    """Return the order of refused commits that differ only in their senders and offsets."""
    what = run.seen.what
    if type(what) is not on.CommitsAnswered or not what.error_code:
        return ()
    return what.client.connection, what.client.client_id, what.claims
