"""Which alerts are effects of which: while a cause fires, its effects are not told beside it.

The judge holds back the effects of what fires in the same group; alerts about the whole cluster are not
known there, so the notifier holds back what they cause (``wide_causes``).
"""

from collections.abc import Mapping
from typing import Any

from alerts.rules.engine.rule import Rule

GRACE_MS = 60_000
"""After a cause has ended its effects have so long to end as well, before they are told."""

FIRING = -1
"""Held back for as long as a cause fires: its end is news, and asks again."""


def held_back_until_ms(
    rule: Rule[Any], *, is_firing: Mapping[str, object], ended: Mapping[str, int]
) -> int | None:
    """Return until when an alert of this rule must wait for what causes it; None: it need not.

    Args:
        rule: whose alert would fire.
        is_firing: the names of the group's open alerts.
        ended: name -> when its last alert of the group ended.
    """
    causes = [cause.name for cause in rule.effect_of]
    if any(cause in is_firing for cause in causes):
        return FIRING
    return max((ended[cause] + GRACE_MS for cause in causes if cause in ended), default=None)
