"""Silences (with a beginning and an end) and recurring maintenance, during which receivers get no alerts.

Only sending stops: the rules still judge, and a silenced alert stands in the topic and on the page.  What
still fires when the silence ends is sent then.  Pure; the caller gives the time.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from alerts.alert import Alert

FOREVER_MS = 253_402_300_799_000
"""The end of the year 9999, for a silence without an end."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_LINKS_MAX = 20
"""How many windows that meet or overlap are followed to find the end of the quiet."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Selects alerts; an empty tuple matches everything.  ``groups`` holds patterns for whole names.

    If groups are named, alerts about a whole cluster do not match.
    """

    groups: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    def is_of(self, alert: Alert) -> bool:
        """Say whether ``alert`` matches."""
        if (self.alerts and alert.name not in self.alerts) or (
            self.clusters and alert.cluster not in self.clusters
        ):
            return False
        if not self.groups:
            return True
        return bool(alert.group) and any(re.fullmatch(pattern, alert.group) for pattern in self.groups)


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """One period of quiet."""

    match: Match
    from_ms: int = 0
    until_ms: int = FOREVER_MS

    def until(self, now_ms: int) -> int | None:
        """Return when the quiet in force at ``now_ms`` ends; None if none is."""
        return self.until_ms if self.from_ms <= now_ms < self.until_ms else None


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """Quiet at the same time of certain days; a window whose end is before its beginning passes midnight."""

    match: Match
    days: tuple[int, ...] = tuple(range(7))
    """The days on which it begins; Monday is 0."""
    from_minute: int = 0
    """Minute of the day, in ``timezone``."""
    to_minute: int = _DAY_MINUTES
    timezone: str = "UTC"

    def until(self, now_ms: int) -> int | None:
        """Return when the quiet in force at ``now_ms`` ends; None if none is."""
        zone = ZoneInfo(self.timezone)
        today = datetime.fromtimestamp(now_ms / 1_000, zone).date()
        for back in (0, 1):
            day = today - timedelta(days=back)
            if day.weekday() not in self.days:
                continue
            begins = datetime.combine(day, time(), zone)
            long_minutes = (self.to_minute - self.from_minute) % _DAY_MINUTES or _DAY_MINUTES
            from_ms = _moment_ms(begins, self.from_minute)
            until_ms = _moment_ms(begins, self.from_minute + long_minutes)
            if from_ms <= now_ms < until_ms:
                return until_ms
        return None


def _moment_ms(midnight: datetime, minute: int) -> int:
    """Return the moment at which local clocks show a minute of a day; summer time may shift it."""
    # Arithmetic on an aware datetime is wall-clock arithmetic, which is what a person means.
    return round((midnight + timedelta(minutes=minute)).astimezone(UTC).timestamp() * 1_000)


class Quiet:
    """All silences and maintenance of the configuration."""

    def __init__(self, silences: Sequence[Silence] = (), maintenance: Sequence[Maintenance] = ()) -> None:
        self._windows: tuple[Silence | Maintenance, ...] = (*silences, *maintenance)

    def until_ms(self, alert: Alert, now_ms: int) -> int | None:
        """Return when the silence of ``alert`` ends, across windows that meet; None: it is not silenced."""
        mine = [window for window in self._windows if window.match.is_of(alert)]
        ends_ms = None
        for _ in range(_LINKS_MAX):
            found = [end for window in mine if (end := window.until(ends_ms or now_ms)) is not None]
            if not found:
                break
            ends_ms = max(found)
        return ends_ms


NO_QUIET = Quiet()
