"""Decides when coalesced runs may stay coalesced: if their effect is the same in any order and any cut."""

from coordinator_model import observations as on
from coordinator_model.kafka import GroupState
from coordinator_model.observations import NEVER
from coordinator_model.ordering import Run, cut
from coordinator_model.state import Group, Member

WAKE_GAP = 0.4
"""A heartbeat after a pause of this share of the session timeout is shown to the rules."""


FIRST_LOOK = 0.7
"""The rules may look at a member that was heard for the first time after this share of its session timeout:
after a single heartbeat they allow more silence than that."""


def is_quiet(group: Group, run: Run, asked_ms: int) -> bool:
    """Return whether a run only restarts one member's timers in a Stable group."""
    return are_quiet(group, [run], asked_ms)


def are_quiet(group: Group, runs: list[Run], asked_ms: int = NEVER) -> bool:
    """Return whether runs, in the order of ``in_time``, only restart timers in a Stable group.

    Args:
        group: as it is before them.
        runs: of its members.
        asked_ms: when the rules look at the group anyway; a first heartbeat needs no look soon before that.
    """
    if group.state is not GroupState.STABLE:
        return False
    last: dict[str, int] = {}
    return all(_moves_timers(group, run, last, asked_ms) for run in runs)


def _moves_timers(group: Group, run: Run, last: dict[str, int], asked_ms: int) -> bool:
    """Return whether a run only restarts timers; ``last``: the members' newest heartbeats in earlier runs."""
    what = run.seen.what
    if type(what) is on.GroupHeard:
        return _move_timers(group, run, what, last)
    assert isinstance(what, on.Heartbeats | on.CommitsAnswered)  # noqa: S101 - runs hold nothing else
    member = group.members.get(what.member_id)
    # Another broker than before shows that the group has another coordinator.
    if member is None or run.seen.broker != group.coordinator:
        return False
    if what.error_code or what.generation != group.generation:
        return False
    if type(what) is on.CommitsAnswered:
        return _keep_session(member, what.times)
    gap_ms = member.session_timeout_ms * WAKE_GAP
    if gap_ms <= 0:
        return True
    last_ms = last.get(what.member_id, member.last_heartbeat_ms)
    if last_ms < 0 and asked_ms <= what.times[0] + member.session_timeout_ms * FIRST_LOOK:
        # It shows a pause only within the session that began when the group was last known to be whole.
        base_ms = member.session_base_ms
        last_ms = base_ms if 0 <= what.times[0] - base_ms < member.session_timeout_ms else what.times[0]
    last[what.member_id] = max(last_ms, what.times[-1])
    return _is_steady(last_ms, what.times, gap_ms)


def _move_timers(group: Group, run: Run, what: on.GroupHeard, last: dict[str, int]) -> bool:
    """Return the same for a run of several members, none of whom is heard for the first time."""
    if run.seen.broker != group.coordinator or what.generation != group.generation:
        return False
    members = group.members
    for heard in what.members:  # a plain loop: it runs over every member that a request log shows
        member_id, times = heard.member_id, heard.beats
        member = members.get(member_id)
        if member is None or (heard.commits and not _keep_session(member, heard.commits)):
            return False
        gap_ms = member.session_timeout_ms * WAKE_GAP
        if not times or gap_ms <= 0:
            continue
        last_ms = last.get(member_id, member.last_heartbeat_ms)
        last[member_id] = max(last_ms, times[-1])
        if not _is_steady(last_ms, times, gap_ms):
            return False
    return True


def _is_steady(last_ms: int, times: tuple[int, ...], gap_ms: float) -> bool:
    """Return whether heartbeats follow the last one, and one another, without a pause of ``gap_ms``."""
    return last_ms >= 0 and _has_no_gap(last_ms, times, gap_ms)


def _keep_session(member: Member, commits: tuple[int, ...]) -> bool:
    """Return whether commits come in a running session: rules foretell the end of one that begins anew."""
    timeout_ms = member.session_timeout_ms
    is_watched = timeout_ms > 0 and member.last_heartbeat_ms >= 0
    return not is_watched or _has_no_gap(member.session_base_ms, commits, timeout_ms)


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
    times = sorted(max(run.floor_ms, time) for run in runs for time in run.times[:count])
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
