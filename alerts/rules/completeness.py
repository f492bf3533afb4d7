"""Adds to a finding what its evidence lacks, and lowers the severity by one step for it.

When the gap closes, the alert gets its full severity.
"""

from typing import Any

import msgspec

from alerts.alert import Severity, clock, span
from alerts.rules.engine import Finding, GroupRule, Situation, Verdict
from coordinator_model.state import Group

WATCHED_MS = 60_000
"""How long a condition that began before groupwatch must have been watched."""

_QUIETER = {
    Severity.CRITICAL: Severity.WARNING,
    Severity.WARNING: Severity.INFO,
    Severity.INFO: Severity.INFO,
}


def judged(rule: GroupRule[Any], verdict: Verdict, situation: Situation) -> Verdict:
    """Return ``verdict`` with the gaps in its evidence."""
    finding = verdict.finding
    if finding is None:
        return verdict
    gaps, again_ms = _gaps(rule, finding, situation)
    if not gaps:
        return verdict
    lacking = msgspec.structs.replace(
        finding, severity=_QUIETER[finding.severity], evidence=(*finding.evidence, *gaps)
    )
    dues = [due for due in (verdict.due_ms, again_ms) if due is not None]
    return Verdict(finding=lacking, due_ms=min(dues, default=None))


def _gaps(rule: GroupRule[Any], finding: Finding, situation: Situation) -> tuple[list[str], int | None]:
    """Return the gaps in sentences, and when to look again."""
    evidence, now_ms = situation.evidence, situation.now_ms
    gaps, again_ms = [], None
    if finding.starts_at_ms < evidence.live_since_ms and now_ms < evidence.live_since_ms + WATCHED_MS:
        again_ms = evidence.live_since_ms + WATCHED_MS
        watched = span(now_ms - evidence.live_since_ms)
        gaps.append(
            f"Incomplete: groupwatch has watched this cluster for only {watched}; it knows the beginning, at "
            f"{clock(finding.starts_at_ms)}, from old records alone."
        )
    is_heard = evidence.info_live or evidence.requests_live
    if rule.end_is_logged and not is_heard and _was_observed(situation.group):
        gaps.append("Incomplete: lines of the coordinator's log are missing, so this may have ended already.")
    return gaps, again_ms


def _was_observed(group: Group) -> bool:
    """Say whether a log showed the state; with requests alone, it is inferred from the first request."""
    guessed = any(to is group.state and at_ms == group.state_since_ms for _, to, _, at_ms in group.guesses)
    return group.coordinator >= 0 and not guessed
