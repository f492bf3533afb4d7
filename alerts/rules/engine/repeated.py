"""The life of an alert about events: it fires or is revised at news, and ends some time after the last event.

Rules keep events in one of two memories.  They share the life above, and no class: their saved forms differ.
``EventMemory`` lists each member in the order in which they left, and counts gaps between them;
``HygieneMemory`` counts sightings by kind and key, each with its own times, and serves many rules at once.
One class for both would change the bytes of saved shards.
"""

from collections.abc import Callable

from alerts.rules.engine.lifecycle import Closing, Finding, OpenAlert
from alerts.rules.engine.situation import Situation, Verdict

QUIET_MS = 10 * 60_000
"""How long after the last occurrence an event alert is resolved."""


def quiet_at_ms(last_ms: int, opened: OpenAlert | None) -> int:
    """Return when an event alert ends; ``last_ms`` is the last occurrence, -1 if none is known.

    For an adopted alert the last occurrence is unknown: its quiet time starts at the adoption.
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
        name: the name of the rule's alert.
        last_ms: the last occurrence, -1 if unknown.
        finding: the finding if there is news, else None.
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
