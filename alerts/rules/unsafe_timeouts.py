"""UnsafeTimeouts: see below."""

from alerts.rules.situation import NOTHING, Situation, Verdict

NAME = "UnsafeTimeouts"


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    return NOTHING
