"""What stands in a file: the API's answers about some groups, and where they come from."""

from collections.abc import Sequence

import msgspec

from alerts.alert import Alert
from alerts.story import Explanation
from streaming.serving import AlertList, GroupDetail, GroupHistory, loudness


class CapturedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answers about one group."""

    cluster: str
    group: str
    detail: GroupDetail | None
    """None: nobody knows the group now."""
    alerts: AlertList
    """Open alerts and those that ended in the time of ``history``, open ones first."""
    history: GroupHistory
    story: Explanation


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file; ``page/captured/api.js`` reads it."""

    made_at_ms: int
    until_ms: int
    """The newest time that is known: "now" on the page."""
    source: str
    """Where it comes from, as it follows "from"."""
    groups: list[CapturedGroup]
    """At least one."""
    left_out: int = 0
    """How many groups more there were."""
    notes: list[str] = []
    """What is missing, as sentences."""


def listed(alerts: Sequence[Alert], at_ms: int) -> AlertList:
    """Return alerts as the API lists them: open ones first, then the loudest."""
    ordered = sorted(alerts, key=loudness)
    return AlertList(total=len(ordered), offset=0, limit=len(ordered), at_ms=at_ms, alerts=ordered)
