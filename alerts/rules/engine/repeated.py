"""The life of an alert about events: it is told at news, and over some time after the last one.

Rules keep what happened in one of two memories, whose saved form stays as it is: ``EventMemory`` lists
members as they went, one after the other; ``HygieneMemory`` counts what was seen about one key.
"""

from collections.abc import Callable

from alerts.rules.engine.lifecycle import Closing, Finding, OpenAlert
from alerts.rules.engine.situation import Situation, Verdict

QUIET_MS = 10 * 60_000
"""An event alert is resolved so long after the last occurrence."""


def quiet_at_ms(last_ms: int, opened: OpenAlert | None) -> int:
    """Return when an event alert is over; ``last_ms`` is the last occurrence, -1 if none is known.

    When the last one of an adopted alert happened is not known: its quiet time begins anew.
    """
    if opened is not None and opened.adopted:
        last_ms = max(last_ms, opened.touched_ms)
    return last_ms + QUIET_MS


def until_quiet(
    situation: Situation,
    name: str,
    *,
    last_ms: int,
    finding: Callable[[], Finding] | None,
    closing: str,
    again_ms: int | None = None,
) -> Verdict:
    """Return an event rule's verdict.

    Args:
        situation: what is judged.
        name: of the rule's alert.
        last_ms: when it happened last, -1 if that is not known.
        finding: tells it, if there is news; None if not.
        closing: the summary of its end.
        again_ms: when the rule wants to be asked for another reason.
    """
    ends_at_ms, now_ms = quiet_at_ms(last_ms, situation.opened(name)), situation.now_ms
    due_ms = ends_at_ms if again_ms is None else min(ends_at_ms, again_ms)
    if finding is not None:
        return Verdict(finding=finding(), due_ms=max(due_ms, now_ms))
    if now_ms < ends_at_ms:
        return Verdict(due_ms=due_ms)
    is_known = ends_at_ms >= QUIET_MS
    ended = Closing(ends_at_ms=ends_at_ms if is_known else now_ms, summary=closing)
    return Verdict(closing=ended, due_ms=again_ms)
