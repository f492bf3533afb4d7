"""What the evidence of a finding lacks, said in it; what is only half known is told a step more quietly.

When the gap closes, the alert gets as loud as it should have been.
"""

import msgspec

from alerts.alert import Severity, clock, span
from alerts.rules.engine import Finding, Situation, Verdict
from alerts.rules.rebalances import STUCK_COMPLETING_REBALANCE, STUCK_PREPARING_REBALANCE
from coordinator_model.state import Group

WATCHED_MS = 60_000
"""Of what began before groupwatch did, this much must have been watched."""

_BY_LOG = frozenset({STUCK_PREPARING_REBALANCE.name, STUCK_COMPLETING_REBALANCE.name})
"""Alerts about a phase, whose end only a log tells at once."""

_QUIETER = {
    Severity.CRITICAL: Severity.WARNING,
    Severity.WARNING: Severity.INFO,
    Severity.INFO: Severity.INFO,
}


def judged(name: str, verdict: Verdict, situation: Situation) -> Verdict:
    """Return ``verdict`` with what its evidence lacks."""
    finding = verdict.finding
    if finding is None:
        return verdict
    gaps, again_ms = _gaps(name, finding, situation)
    if not gaps:
        return verdict
    lacking = msgspec.structs.replace(
        finding, severity=_QUIETER[finding.severity], evidence=(*finding.evidence, *gaps)
    )
    dues = [due for due in (verdict.due_ms, again_ms) if due is not None]
    return Verdict(finding=lacking, due_ms=min(dues, default=None))


def _gaps(name: str, finding: Finding, situation: Situation) -> tuple[list[str], int | None]:
    """Return what is lacking, in sentences, and when to look again."""
    evidence, now_ms = situation.evidence, situation.now_ms
    gaps, again_ms = [], None
    if finding.starts_at_ms < evidence.live_since_ms and now_ms < evidence.live_since_ms + WATCHED_MS:
        again_ms = evidence.live_since_ms + WATCHED_MS
        watched = span(now_ms - evidence.live_since_ms)
        gaps.append(
            f"Incomplete: groupwatch has watched this cluster for {watched} only; how this began, at "
            f"{clock(finding.starts_at_ms)}, it has only read."
        )
    is_heard = evidence.info_live or evidence.requests_live
    if name in _BY_LOG and not is_heard and _was_observed(situation.group):
        gaps.append("Incomplete: the coordinator's log has lost lines, so that this may have ended unseen.")
    return gaps, again_ms


def _was_observed(group: Group) -> bool:
    """Say whether a log told the phase; where only requests are read, it is inferred from the first."""
    guessed = any(to is group.state and at_ms == group.state_since_ms for _, to, _, at_ms in group.guesses)
    return group.coordinator >= 0 and not guessed
