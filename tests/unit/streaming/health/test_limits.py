"""Bounds that strangers reached are said in /ready, and no longer than they are reached."""

import msgspec

from streaming.health.limits import QUIET_S, Limits
from streaming.health.query_progress import Progress


def _row(kind: str) -> tuple[str, str, bytes]:
    told = {"kind": kind, "group": "", "broker": -1, "at_ms": 1, "detail": "", "count": 3}
    return "divergence", "", msgspec.json.encode(told)


def test_a_bound_that_was_reached_is_said_until_it_is_quiet() -> None:
    """One sentence a bound; other divergences are none of them."""
    now_s = [5.0]
    progress = Progress("eu")
    limits = Limits(progress, now=lambda: now_s[0])
    limits.take([_row("inferred_wrong")])
    assert progress.notices == []
    limits.take([_row("too_many_groups"), _row("too_many_brokers")])
    assert "not watched" in progress.notices[0]
    assert "brokers" in progress.notices[0]

    now_s[0] += QUIET_S + 1
    limits.take([_row("too_many_groups")])
    assert progress.notices == ["a shard has more groups than it can keep; new ones in it are not watched"]
    now_s[0] += QUIET_S + 1
    limits.take([])
    assert progress.notices == []
