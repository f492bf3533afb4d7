"""Damps flapping: a condition that begins and ends again and again keeps one alert open, with a history.

The first two ends resolve the alert at once.  From the third end within half an hour on, the alert stays open
for a while: longer with each return, a quarter of an hour at most.  If the condition returns in that time,
the same alert continues.
"""

from alerts.alert import Alert, Culprit, clock, span, times
from alerts.rules.engine.lifecycle import LOUDNESS, Closing, Finding, OpenAlert, restate

WINDOW_MS = 30 * 60_000
ENDS_FREE = 2
"""How many ends within the window resolve the alert at once."""
HOLD_MS = 5 * 60_000
HOLD_MAX_MS = 15 * 60_000
_ENDS_KEPT = 4
_COMES_AND_GOES = "It comes and goes"


def hold_ms(ends: list[int], now_ms: int) -> int:
    """Return how long an alert stays open after an end at ``now_ms``, given earlier ends; 0: not at all."""
    lately = sum(now_ms - end < WINDOW_MS for end in ends)
    return min(max(0, lately - ENDS_FREE + 1) * HOLD_MS, HOLD_MAX_MS)


def note_end(ends: dict[str, list[int]], name: str, now_ms: int) -> int:
    """Remember that a condition ended; return how long its alert stays open."""
    of_name = ends.setdefault(name, [])
    held_ms = hold_ms(of_name, now_ms)
    of_name.append(now_ms)
    del of_name[:-_ENDS_KEPT]
    return held_ms


def forget(ends: dict[str, list[int]], now_ms: int) -> None:
    """Drop ends that lie before the window."""
    for name in [name for name, of_name in ends.items() if now_ms - of_name[-1] >= WINDOW_MS]:
        del ends[name]


def hold(opened: OpenAlert, closing: Closing, *, now_ms: int, held_ms: int) -> Alert | None:
    """Keep open an alert whose condition ended; return a revision that says so, unless the last one does."""
    opened.ended_ms, opened.kept_until_ms = closing.ends_at_ms, now_ms + held_ms
    opened.closing = (closing.summary, closing.cost)
    if _COMES_AND_GOES in opened.alert.summary:
        return None
    stays = (
        f"{_COMES_AND_GOES}, so this alert stays open until the condition has been away for "
        f"{span(HOLD_MS)} to "
        f"{span(HOLD_MAX_MS)}."
    )
    return restate(opened, f"{closing.summary} {stays}")


def resume(opened: OpenAlert) -> None:
    """Record that the condition holds again."""
    if opened.ended_ms >= 0:
        opened.ended_ms = opened.kept_until_ms = -1
        opened.firings += 1


def is_old_news(opened: OpenAlert, finding: Finding) -> bool:
    """Say whether a finding about a flapping condition adds nothing: no new client, no higher severity.

    A client has another member id at each return; that does not make it a new culprit here.
    """
    is_louder = LOUDNESS[finding.severity] > LOUDNESS[opened.alert.severity]
    known = {_client(culprit) for culprit in opened.alert.culprits}
    return opened.firings > 1 and not is_louder and known.issuperset(map(_client, finding.culprits))


def _client(culprit: Culprit) -> tuple[str, str]:
    return culprit.client_id or culprit.member_id, culprit.client_host


def closing_of(opened: OpenAlert) -> Closing:
    """Return the closing of an alert that was kept open, with how often its condition held."""
    summary, cost = opened.closing
    since = clock(opened.alert.starts_at_ms)
    history = (
        f" The condition held {times(opened.firings, 'time')} since {since}." if opened.firings > 1 else ""
    )
    return Closing(ends_at_ms=opened.ended_ms, summary=f"{summary}{history}", cost=cost)
