"""StaticMemberFenced: see below."""

from alerts.rules.situation import NOTHING, Situation, Verdict

NAME = "StaticMemberFenced"


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    return NOTHING
