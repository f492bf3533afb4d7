"""How long a member has been silent, by the coordinator's own measure: its session timer."""

from coordinator_model.group import Member

TOLERANCE_MS = 1_000
"""The coordinator's timer and the lines that we measure it by are no further apart."""


GAP_MIN_MS = 5_000
"""A broker is restarted in no less; whoever speaks at all does so more often."""


def gap_max_ms(member: Member) -> int:
    """Return how long a whole request log may be silent for no other reason than that members rest.

    Longer, and its broker may have been away: coordinators start all sessions anew when they come back.
    Clients should send three heartbeats in a session, and many send two.
    """
    return max(GAP_MIN_MS, member.session_timeout_ms // 2 + 1_000)


def runs_out_at(member: Member) -> int | None:
    """Return when the member's session ends if nothing more is heard of it; None where that is not known."""
    base_ms = max(member.session_base_ms, member.last_heartbeat_ms)
    if base_ms < 0 or member.session_timeout_ms <= 0:
        return None
    return base_ms + member.session_timeout_ms


def has_run_out(member: Member, at_ms: int) -> bool:
    """Say whether, as far as we heard, the member's session was over at ``at_ms``."""
    ends_at_ms = runs_out_at(member)
    return ends_at_ms is not None and ends_at_ms - TOLERANCE_MS <= at_ms


def was_heard(member: Member) -> bool:
    """Say whether any request of the member was seen accepted, so that its silence means something."""
    return max(member.last_heartbeat_ms, member.progressed_at_ms) >= 0


def went_silent(member: Member, at_ms: int) -> bool:
    """Say whether the member was heard in the request log before, and was silent too long at ``at_ms``."""
    return was_heard(member) and has_run_out(member, at_ms)
