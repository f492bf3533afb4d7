"""Silences (with a beginning and an end) and recurring maintenance, during which receivers get no alerts.

Only sending stops: the rules still judge, and a silenced alert stands in the topic and on the page.  What
still fires when the silence ends is sent then.  ``Quiet`` never changes and is pure; the caller gives the
time.  ``LiveQuiet`` holds the one that is valid now.
"""

import re
import threading
from collections.abc import Iterable, Sequence
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
    alert_id: str = ""
    """Selects one alert; "" selects all."""

    def is_of(self, alert: Alert) -> bool:
        """Say whether ``alert`` matches."""
        if (
            (self.alert_id and alert.id != self.alert_id)
            or (self.alerts and alert.name not in self.alerts)
            or (self.clusters and alert.cluster not in self.clusters)
        ):
            return False
        return not self.groups or (bool(alert.group) and self._is_of_group(alert.group))

    def _is_of_group(self, group: str) -> bool:
        return any(re.fullmatch(pattern, group) for pattern in self.groups)


class Silenced(msgspec.Struct, frozen=True, kw_only=True):
    """Why an alert is silenced, and for how long."""

    until_ms: int
    """When all silences that meet have ended."""
    id: str = ""
    """The silence's id; "" for silences and maintenance of the configuration."""
    author: str = ""
    comment: str = ""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One silence, or one time of a maintenance, that holds now or soon."""

    match: Match
    from_ms: int
    until_ms: int
    id: str = ""
    author: str = ""
    comment: str = ""


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """One period of quiet."""

    match: Match
    from_ms: int = 0
    until_ms: int = FOREVER_MS
    id: str = ""
    author: str = ""
    comment: str = ""

    def until(self, now_ms: int) -> int | None:
        """Return when the quiet in force at ``now_ms`` ends; None if none is."""
        found = self.times(now_ms)
        return None if found is None else found[1]

    def times(self, now_ms: int) -> tuple[int, int] | None:
        """Return when the quiet in force at ``now_ms`` began and ends; None if none is."""
        return (self.from_ms, self.until_ms) if self.from_ms <= now_ms < self.until_ms else None


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """Quiet at the same time of certain days; a window whose end is before its beginning passes midnight."""

    match: Match
    days: tuple[int, ...] = tuple(range(7))
    """The days on which it begins; Monday is 0."""
    from_minute: int = 0
    """Minute of the day, in ``timezone``."""
    to_minute: int = _DAY_MINUTES
    timezone: str = "UTC"
    id: str = ""
    author: str = ""
    comment: str = ""

    def until(self, now_ms: int) -> int | None:
        """Return when the quiet in force at ``now_ms`` ends; None if none is."""
        found = self.times(now_ms)
        return None if found is None else found[1]

    def times(self, now_ms: int) -> tuple[int, int] | None:
        """Return when the quiet in force at ``now_ms`` began and ends; None if none is."""
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
                return from_ms, until_ms
        return None


def _moment_ms(midnight: datetime, minute: int) -> int:
    """Return the moment at which local clocks show a minute of a day; summer time may shift it."""
    # Arithmetic on an aware datetime is wall-clock arithmetic, which is what a person means.
    return round((midnight + timedelta(minutes=minute)).astimezone(UTC).timestamp() * 1_000)


class Quiet:
    """All silences and maintenance that are valid at one time; it never changes."""

    def __init__(self, silences: Sequence[Silence] = (), maintenance: Sequence[Maintenance] = ()) -> None:
        windows: tuple[Silence | Maintenance, ...] = (*silences, *maintenance)
        self._windows = tuple(window for window in windows if not window.match.alert_id)
        self._of_one: dict[str, list[Silence | Maintenance]] = {}
        for window in windows:
            if window.match.alert_id:
                self._of_one.setdefault(window.match.alert_id, []).append(window)

    @property
    def now(self) -> "Quiet":
        """Itself; ``LiveQuiet`` returns what is valid now."""
        return self

    def and_also(self, silences: Iterable[Silence]) -> "Quiet":
        """Return this quiet with more silences."""
        more = Quiet(tuple(silences))
        more._windows = (*self._windows, *more._windows)
        for alert_id, windows in self._of_one.items():
            more._of_one.setdefault(alert_id, []).extend(windows)
        return more

    def until_ms(self, alert: Alert, now_ms: int) -> int | None:
        """Return when the silence of ``alert`` ends, across windows that meet; None: it is not silenced."""
        found = self.silenced(alert, now_ms)
        return None if found is None else found.until_ms

    def windows(self, now_ms: int, ahead_ms: int, alert: Alert | None = None) -> list[Window]:
        """Return what holds at ``now_ms`` or ``ahead_ms`` later.

        Args:
            now_ms: the current time.
            ahead_ms: how far to look ahead.
            alert: only what silences this alert; None: everything.
        """
        if alert is None:
            mine = [*self._windows, *(one for windows in self._of_one.values() for one in windows)]
        else:
            both = (*self._of_one.get(alert.id, ()), *self._windows)
            mine = [one for one in both if one.match.is_of(alert)]
        found: dict[Window, None] = {}
        for one in mine:
            for at_ms in (now_ms, now_ms + ahead_ms):
                if (times := one.times(at_ms)) is not None:
                    window = Window(
                        match=one.match,
                        from_ms=times[0],
                        until_ms=times[1],
                        id=one.id,
                        author=one.author,
                        comment=one.comment,
                    )
                    found[window] = None
        return list(found)

    def silenced(self, alert: Alert, now_ms: int) -> Silenced | None:
        """Return the silence of ``alert`` that ends last, until all that meet it end; None: there is none."""
        windows = (*self._of_one.get(alert.id, ()), *self._windows)
        mine = [window for window in windows if window.match.is_of(alert)]
        in_force = [(end, window) for window in mine if (end := window.until(now_ms)) is not None]
        if not in_force:
            return None
        ends_ms, why = max(in_force, key=lambda one: one[0])
        for _ in range(_LINKS_MAX - 1):
            found = [end for window in mine if (end := window.until(ends_ms)) is not None]
            if not found:
                break
            ends_ms = max(found)
        return Silenced(until_ms=ends_ms, id=why.id, author=why.author, comment=why.comment)


NO_QUIET = Quiet()


class LiveQuiet:
    """The quiet that is valid now: the configuration's, and silences that were added at run time.

    ``now`` is replaced as a whole, so a reader needs no lock and sees each change by comparing it.
    """

    def __init__(self, configured: Quiet = NO_QUIET) -> None:
        self._lock = threading.Lock()
        self._configured = configured
        self._added: tuple[Silence, ...] = ()
        self.now = configured

    def configure(self, configured: Quiet) -> None:
        """Replace the silences and maintenance of the configuration."""
        with self._lock:
            self._configured = configured
            self.now = configured.and_also(self._added)

    def add_all(self, silences: Iterable[Silence]) -> None:
        """Replace the silences that were added at run time."""
        with self._lock:
            added = tuple(silences)
            if added != self._added:
                self._added = added
                self.now = self._configured.and_also(added)

    def until_ms(self, alert: Alert, now_ms: int) -> int | None:
        """Return when the silence of ``alert`` ends; None: it is not silenced."""
        return self.now.until_ms(alert, now_ms)

    def silenced(self, alert: Alert, now_ms: int) -> Silenced | None:
        """Return why and until when ``alert`` is silenced; None: it is not."""
        return self.now.silenced(alert, now_ms)
