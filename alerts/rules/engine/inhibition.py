"""Inhibition: an alert is not sent while its cause fires.

The judge inhibits the effects of what fires in the same group.  It does not know the alerts about the whole
cluster, so the notifier inhibits their effects (``wide_causes``).
"""

from collections.abc import Mapping
from typing import Any

from alerts.rules.engine.rule import Rule

GRACE_MS = 60_000
"""How long effects may outlast their cause before they are sent."""

FIRING = -1
"""Inhibited for as long as a cause fires; the cause's end triggers the next judgement."""


def held_back_until_ms(
    rule: Rule[Any], *, is_firing: Mapping[str, object], ended: Mapping[str, int]
) -> int | None:
    """Return until when an alert of this rule is inhibited; None if it is not.

    Args:
        rule: the rule whose alert would fire.
        is_firing: names of the group's open alerts.
        ended: name -> when the group's last alert of that name ended.
    """
    causes = [cause.name for cause in rule.effect_of]
    if any(cause in is_firing for cause in causes):
        return FIRING
    return max((ended[cause] + GRACE_MS for cause in causes if cause in ended), default=None)
