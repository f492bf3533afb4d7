"""A member's session timer: the only writer of ``session_base_ms``, and how long the member was silent."""

from coordinator_model.state import Member

TOLERANCE_MS = 1_000
"""Greatest distance between the coordinator's timer and the lines that we measure it by."""


GAP_MIN_MS = 5_000
"""A broker restart takes no less; a client that is alive sends more often."""


USUAL_SLACK = 0.05
"""Share of its session by which a member may be later than usual, as clients and hosts are."""


def restart_session(member: Member, at_ms: int, *, may_set_back: bool) -> None:
    """Restart the member's session timer.

    Args:
        member: whose timer restarts.
        at_ms: when the coordinator restarted it.
        may_set_back: True where the coordinator is known to have restarted it then, whatever was seen before
            (the join phase ended, another coordinator loaded the group); False for a sign of life, which may
            be read late: the timer then never goes back to before its present start.
    """
    member.session_base_ms = at_ms if may_set_back else max(member.session_base_ms, at_ms)


def gap_max_ms(member: Member) -> int:
    """Return how long (ms) a whole request log may be silent only because members rest.

    After a longer silence its broker may have been away: coordinators restart all session timers when they
    return. Clients should send three heartbeats in a session, and many send two.
    """
    return max(GAP_MIN_MS, member.session_timeout_ms // 2 + 1_000)


def is_rhythm_known(member: Member) -> bool:
    """Return whether two heartbeats were seen, which give one gap."""
    return member.last_heartbeat_ms > member.first_beat_ms or member.rhythm_ms >= 0


def usual_gap_ms(member: Member, since_ms: int) -> int:
    """Return the member's usual gap (ms) between heartbeats; 0 if that is a small part of its session.

    A single pause counts until as much time has passed without another one: a commit or a rebalance may come
    between two heartbeats of a member that sends them rarely.

    Args:
        member: whose heartbeats were seen.
        since_ms: its last sign of life.
    """
    is_late = since_ms - member.rhythm_until_ms > member.rhythm_ms
    return 0 if member.rhythm_ms < 0 or is_late else member.rhythm_ms


def note_gap(member: Member, since_ms: int, gap_ms: int, at_ms: int) -> None:
    """Add a long gap before a heartbeat at ``at_ms`` to the member's usual gap."""
    usual_ms = usual_gap_ms(member, since_ms)
    # The longest gap counts; one that was longer by accident raises it for a few heartbeats only.
    member.rhythm_ms = max(gap_ms, (3 * usual_ms + gap_ms) // 4)
    member.rhythm_until_ms = at_ms


def runs_out_at(member: Member) -> int | None:
    """Return when (epoch ms) the member's session ends without a further sign of life; None: unknown."""
    base_ms = max(member.session_base_ms, member.last_heartbeat_ms)
    if base_ms < 0 or member.session_timeout_ms <= 0:
        return None
    return base_ms + member.session_timeout_ms


def has_run_out(member: Member, at_ms: int) -> bool:
    """Return whether the member's session was over at ``at_ms``, by the requests that were seen."""
    ends_at_ms = runs_out_at(member)
    return ends_at_ms is not None and ends_at_ms - TOLERANCE_MS <= at_ms


def was_heard(member: Member) -> bool:
    """Return whether an accepted request of the member was seen, so that its silence proves something."""
    return max(member.last_heartbeat_ms, member.progressed_at_ms) >= 0


def last_word_ms(member: Member) -> int:
    """Return the time (epoch ms) of the member's last own request; -1: none was seen."""
    return max(member.last_heartbeat_ms, member.progressed_at_ms, member.joined_at_ms)


def went_silent(member: Member, at_ms: int) -> bool:
    """Return whether the request log showed the member before, and it was silent too long at ``at_ms``."""
    return was_heard(member) and has_run_out(member, at_ms)
