"""The ``silences`` and ``maintenance`` blocks: when receivers get no alerts, and about what."""

import difflib
import re
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from alerts.delivery import (
    DAYS,
    FOREVER_MS,
    KeptSilence,
    Maintenance,
    Match,
    PatternError,
    Quiet,
    Silence,
    check_pattern,
)
from streaming.config.mistakes import mistakes_in
from streaming.config.rules import ALERTS
from streaming.config.source import Mistake, Source
from streaming.config.types import Many, Options, Patterns, Timezone, one_or_many, parse_duration_ms, shown

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)|24:00")
_LONG_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _alert(value: str) -> str:
    if value not in ALERTS:
        close = difflib.get_close_matches(value, ALERTS, n=1, cutoff=0.6)
        raise ValueError(
            f"there is no alert {shown(value)}{f'; did you mean {close[0]!r}?' if close else ''}"
        )
    return value


def _day(value: Any) -> str:
    day = str(value).lower()
    if day in _LONG_DAYS:
        day = day[:3]
    if day not in DAYS:
        raise ValueError(f"{shown(value)} is not a day of the week; write {', '.join(DAYS)}")
    return day


def _minute(value: Any) -> int:
    """Return the minute of the day of ``22:30``; unquoted, YAML reads that as a number of minutes."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_440:
        return value
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'{shown(value)} is not a time of day; write for example "22:30"')
    hour, minute = value.split(":")
    return int(hour) * 60 + int(minute)


def _moment(value: Any) -> datetime:
    """Return a moment; a day alone means its beginning, and a moment without a zone stays without."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f'{shown(value)} is not a time; write for example "2026-11-21T22:00"') from None


Alerts = Annotated[list[Annotated[str, AfterValidator(_alert)]], BeforeValidator(one_or_many)]
Days = Annotated[list[Annotated[str, BeforeValidator(_day)]], BeforeValidator(one_or_many)]
Minute = Annotated[int, BeforeValidator(_minute)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class _QuietConfig(Options):
    """Selects the alerts to silence; a missing key matches all."""

    groups: Patterns = Field(default_factory=list)
    """Patterns for whole names; with groups given, alerts about a whole cluster are still sent."""
    alerts: Alerts = Field(default_factory=list)
    clusters: Many = Field(default_factory=list)
    comment: str = ""
    """Who asked for it and why, for the next reader of the file."""

    @property
    def match(self) -> Match:
        """Return the filter for the notifier."""
        return Match(groups=tuple(self.groups), alerts=tuple(self.alerts), clusters=tuple(self.clusters))


class SilenceConfig(_QuietConfig):
    """Quiet from one moment to another; times without a zone are in ``timezone``."""

    from_: Moment | None = Field(default=None, alias="from")
    until: Moment | None = None
    timezone: Timezone = "UTC"

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "SilenceConfig":
        silence = self.silence()
        if silence.until_ms <= silence.from_ms:
            raise ValueError("until must be later than from")
        if not (self.groups or self.alerts or self.clusters or self.until):
            raise ValueError("would silence every alert for ever; add groups, alerts, clusters or until")
        return self

    def silence(self) -> Silence:
        """Return the silence for the notifier."""
        return Silence(
            match=self.match,
            from_ms=0 if self.from_ is None else self._ms(self.from_),
            until_ms=FOREVER_MS if self.until is None else self._ms(self.until),
            comment=self.comment,
        )

    def _ms(self, moment: datetime) -> int:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(self.timezone))
        try:
            return round(aware.astimezone(UTC).timestamp() * 1_000)
        except OverflowError:
            raise ValueError("from and until must lie between the years 1 and 9999 in UTC") from None


class MaintenanceConfig(_QuietConfig):
    """Quiet at the same time of certain days; ``to`` before ``from`` is on the next day."""

    days: Days = Field(default_factory=lambda: list(DAYS))
    from_: Minute = Field(alias="from")
    to: Minute
    timezone: Timezone = "UTC"

    @model_validator(mode="after")
    def _has_a_length(self) -> "MaintenanceConfig":
        if self.from_ == self.to:
            raise ValueError("from and to are the same time; a whole day is 00:00 to 24:00")
        if not self.days:
            raise ValueError("days must not be empty")
        return self

    def maintenance(self) -> Maintenance:
        """Return the maintenance for the notifier."""
        return Maintenance(
            match=self.match,
            days=tuple(DAYS.index(day) for day in self.days),
            from_minute=self.from_ % 1_440,
            to_minute=self.to,
            timezone=self.timezone,
            comment=self.comment,
        )


class SilenceRequestError(ValueError):
    """A silence that somebody wants to add makes no sense; the message is for them."""


class SilenceRequest(_QuietConfig):
    """A silence that is added at run time; ``end`` may be missing if ``alert_id`` acknowledges one alert."""

    alert_id: str = ""
    author: str = ""
    start: str | None = None
    """A time, or a span from now."""
    end: str | None = None
    """A time, or a span from the start."""

    @model_validator(mode="after")
    def _patterns_are_bounded(self) -> "SilenceRequest":
        for pattern in self.groups:
            try:
                check_pattern(pattern)
            except PatternError as error:
                raise ValueError(f"groups: {shown(pattern)}: {error}") from None
        return self


def kept_of_request(request: Any, silence_id: str, now_ms: int) -> KeptSilence:
    """Return the silence that ``request`` (plain values) asks for; its bounds are still to be checked.

    Raises:
        SilenceRequestError: with every mistake in it.
    """
    if not isinstance(request, dict):
        raise SilenceRequestError("expected an object with keys and values")
    try:
        asked = SilenceRequest.model_validate(request)
        starts_at_ms = now_ms if asked.start is None else _time_or_span(asked.start, now_ms)
        ends_at_ms = None if asked.end is None else _time_or_span(asked.end, starts_at_ms)
    except ValidationError as error:
        found = mistakes_in(error, Source(request, {}, []), SilenceRequest)
        raise SilenceRequestError("; ".join(f"{p}: {m}" if p else m for p, m in found)[:1_000]) from None
    except ValueError as error:
        raise SilenceRequestError(str(error)) from None
    if ends_at_ms is not None and ends_at_ms <= max(starts_at_ms, now_ms):
        raise SilenceRequestError("end: must be later than start, and later than now")
    return KeptSilence(
        id=silence_id,
        author=asked.author,
        comment=asked.comment,
        groups=tuple(asked.groups),
        alerts=tuple(asked.alerts),
        clusters=tuple(asked.clusters),
        alert_id=asked.alert_id,
        starts_at_ms=starts_at_ms,
        ends_at_ms=ends_at_ms,
        updated_at_ms=now_ms,
    )


def _time_or_span(text: str, from_ms: int) -> int:
    with suppress(ValueError):
        return from_ms + parse_duration_ms(text)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
    raise ValueError(f'{shown(text)} is neither a span nor a time; write "2h" or "2026-11-21T03:00" (UTC)')


def quiet_of(silences: Sequence[SilenceConfig], maintenance: Sequence[MaintenanceConfig]) -> Quiet:
    """Return all periods in which receivers get no alerts."""
    return Quiet([one.silence() for one in silences], [one.maintenance() for one in maintenance])


def unknown_clusters(
    key: str, entries: Sequence[tuple[int, dict[str, Any]]], clusters: Set[Any]
) -> Iterator[Mistake]:
    """Yield mistakes that name a cluster which does not exist; works on raw values."""
    for position, entry in entries:
        named = entry.get("clusters")
        for name in named if isinstance(named, list) else [named]:
            if isinstance(name, str) and name not in clusters:
                yield Mistake(f"{key}[{position}].clusters", f"there is no cluster {name!r}")
