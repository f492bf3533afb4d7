"""Parses times in log lines and envelopes to epoch milliseconds.

A time in a line is often local, and in many layouts has whole seconds only.  Then its milliseconds are those
of another time of the same line (the shipper's, the record's) if that lies in the same second; otherwise the
end of the second that is closer to it.  So lines of one second keep the order of their records without any
state between lines.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coordinator_model.observations import TIME_MS_MAX

_SECOND_MS = 1_000
_LAST_MS = TIME_MS_MAX - 86_400_000
"""Offsets and milliseconds are still to be added."""
_STEPS = (-1, 0, 1)


class Moment(NamedTuple):
    """A time that was read."""

    at_ms: int
    """-1: none."""
    is_whole: bool = False
    """It was written in whole seconds."""


NO_MOMENT = Moment(-1)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # The configuration refuses unknown names; a host without time zone data must not stop the query.
        return UTC


@lru_cache(maxsize=8192)
def local_second_ms(second: str, timezone: str) -> tuple[int, int]:
    """Return both readings, in epoch ms, of a local ``2026-11-20 23:51:50``.

    They differ in the hour that a zone repeats when summer time ends (and in the one it skips).
    (-1, -1): no such date.
    """
    try:
        naive = datetime.fromisoformat(second)
    except ValueError:
        return -1, -1
    zone = _zone(timezone)
    try:
        readings = [int(naive.replace(tzinfo=zone, fold=fold).timestamp()) * 1000 for fold in (0, 1)]
    except (OverflowError, OSError, ValueError):
        return -1, -1
    return (readings[0], readings[1]) if 0 <= min(readings) <= max(readings) < _LAST_MS else (-1, -1)


def local_ms(second: str, milliseconds: int, timezone: str, near_ms: int = -1) -> int:
    """Return epoch ms of a local time; of two readings the one nearer to ``near_ms``; -1: no such date."""
    first, second_reading = local_second_ms(second, timezone)
    if first < 0:
        return -1
    near_second = near_ms >= 0 and abs(second_reading - near_ms) < abs(first - near_ms)
    return (second_reading if near_second else first) + milliseconds


def refined_ms(moment: Moment, others_ms: Iterable[int]) -> int:
    """Return a time; one in whole seconds gets its milliseconds from another time of the same line.

    Args:
        moment: the time as written.
        others_ms: other known times of the line, the closest to the event first; -1: unknown.
    """
    if not moment.is_whole or moment.at_ms < 0:
        return moment.at_ms
    last_ms = moment.at_ms + _SECOND_MS - 1
    known = [one for one in others_ms if one >= 0 and one != moment.at_ms]
    for one in known:
        if moment.at_ms < one <= last_ms:
            return one
    return min(max(known[0], moment.at_ms), last_ms) if known else moment.at_ms


# --- as text -----------------------------------------------------------------------------------------

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK = r"(?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<fraction>\d{1,9}))?"
_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?![\w:.]))?"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?"
_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        # 2026-11-20 23:51:50,925 and ISO 8601
        rf"{_WEEKDAY}(?P<year>\d{{4}})[-/.](?P<number>\d\d)[-/.](?P<day>\d\d)(?:[T_]|  ?){_CLOCK}{_ZONE}",
        # 20 Nov 2026 23:51:50,925 and 20/Nov/2026:23:51:50 +0000
        rf"{_WEEKDAY}(?P<day>\d\d?)[- /]{_MONTH}[- /](?P<year>\d{{4}})[ :]{_CLOCK}{_ZONE}",
        # Nov 20 23:51:50 (syslog), Fri Nov 20 23:51:50.925 2026 without its year
        rf"{_WEEKDAY}{_MONTH} (?P<day>[ \d]?\d)(?:,? (?P<year>\d{{4}}))? {_CLOCK}{_ZONE}",
        # 20261120T235150,925 and 20261120235150925
        r"(?P<year>20\d\d)(?P<number>\d\d)(?P<day>\d\d)[T ]?(?P<hour>\d\d)(?P<minute>\d\d)(?P<rest>\d\d)"
        rf"(?:[.,]?(?P<fraction>\d{{3,9}}))?(?![\d]){_ZONE}",
        # 23:51:50,925
        rf"{_CLOCK}{_ZONE}",
    )
)
_EPOCH = re.compile(r"(?P<epoch>\d{10}(?:[.,]\d{1,9})?|\d{13}|\d{16}|\d{19})(?![\w.,:-])")
_MAY_BEGIN = frozenset("0123456789JFMASONDTW")


def read_time(text: str, place: int, timezone: str, near_ms: int) -> tuple[Moment, int]:
    """Read the time that begins at ``place``, and return it with the place after it.

    Args:
        text: a line.
        place: where in it.
        timezone: of a time that names none.
        near_ms: a time close to it, for parts that it lacks: the year, the day, or which of two
            readings of a local time is meant; -1: none.

    The place is returned unchanged where no time begins.
    """
    if text[place : place + 1] not in _MAY_BEGIN:
        return NO_MOMENT, place
    for shape in _SHAPES:
        found = shape.match(text, place)
        if found:
            return _moment_of(found.groupdict(), timezone, near_ms), found.end()
    found = _EPOCH.match(text, place)
    if found:
        return _epoch_moment(float(found["epoch"].replace(",", "."))), found.end()
    return NO_MOMENT, place


def _moment_of(words: Mapping[str, str | None], timezone: str, near_ms: int) -> Moment:
    fraction = words.get("fraction")
    millis = int(f"{fraction}00"[:3]) if fraction else 0
    clock = words.get("clock") or f"{words['hour']}:{words['minute']}:{words['rest']}"
    zone = words.get("zone")
    seconds = _dated(words, clock, timezone, near_ms)
    readings = (
        zoned_second_ms(second, zone) + millis if zone else local_ms(second, millis, timezone, near_ms)
        for second in seconds
    )
    possible = [reading for reading in readings if reading >= millis]
    if not possible:
        return NO_MOMENT
    return Moment(min(possible, key=lambda reading: abs(reading - near_ms)), is_whole=fraction is None)


def _dated(words: Mapping[str, str | None], clock: str, timezone: str, near_ms: int) -> list[str]:
    """Return the possible local times, as ``2026-11-20 23:51:50``."""
    year, day = words.get("year"), words.get("day")
    if day is None:
        return [f"{date} {clock}" for date in _days_near(near_ms, timezone)]
    month = words.get("number") or f"{_MONTHS[words['month'] or 'Jan']:02d}"
    years = [year] if year else sorted({date[:4] for date in _days_near(near_ms, timezone, step_days=365)})
    return [f"{one}-{month}-{int(day):02d} {clock}" for one in years]


def _days_near(near_ms: int, timezone: str, step_days: int = 1) -> list[str]:
    """Return the day of ``near_ms`` and those a step before and after it; none if there is no such time."""
    days: list[str] = []
    if near_ms < 0:
        return days
    for step in _STEPS:
        try:
            near = datetime.fromtimestamp(near_ms / 1000, _zone(timezone)) + timedelta(days=step * step_days)
        except (OverflowError, OSError, ValueError):
            continue
        days.append(near.strftime("%Y-%m-%d"))
    return days


def zoned_second_ms(second: str, zone: str) -> int:
    """Return epoch ms of a ``2026-11-20 23:51:50`` in a zone such as Z, UTC or +01:00; -1: no such date."""
    first, _ = local_second_ms(second, "UTC")
    if first < 0 or zone in ("Z", "UTC", "GMT"):
        return first
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset_ms = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
    return first + (offset_ms if zone[0] == "-" else -offset_ms)


# --- in envelopes ------------------------------------------------------------------------------------


def moment_of(found: Any, timezone: str, near_ms: int = -1) -> Moment:
    """Return the time of an envelope: ISO 8601, epoch s, ms, us or ns, log4j2's or Google's pairs."""
    if isinstance(found, bool):
        return NO_MOMENT
    if isinstance(found, int | float):
        return _epoch_moment(found)
    if isinstance(found, str):
        return _text_moment(found.strip(), timezone, near_ms)
    if isinstance(found, dict):
        return Moment(_instant_ms(found))
    return NO_MOMENT


def time_ms(found: Any, timezone: str) -> int:
    """Return epoch ms of an envelope's time; -1: it is none."""
    return moment_of(found, timezone).at_ms


def _epoch_moment(number: float) -> Moment:
    """Return a time whose unit its size shows: seconds until the year 5138, ms from 1973 on, and so on."""
    if not 0 <= number < 1e20:
        return NO_MOMENT
    for limit, factor in ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6)):
        if number < limit:
            # An integer in ms must not pass through a float and back.
            at_ms = int(number if factor == 1.0 else round(number * factor, 3))
            is_whole = factor == 1000.0 and number == int(number)
            return Moment(at_ms, is_whole) if at_ms <= TIME_MS_MAX else NO_MOMENT
    return NO_MOMENT


def _instant_ms(found: Mapping[str, Any]) -> int:
    seconds = found.get("epochSecond", found.get("seconds"))
    nanos = found.get("nanoOfSecond", found.get("nanos", 0))
    if type(seconds) is not int or type(nanos) is not int:
        return -1
    at_ms = seconds * 1000 + nanos // 1_000_000
    return at_ms if 0 <= at_ms <= TIME_MS_MAX else -1


_NUMBER = re.compile(r"\d{5,20}(?:\.\d{0,20})?")
_TEXT_MAX = 64


def _text_moment(text: str, timezone: str, near_ms: int) -> Moment:
    if len(text) > _TEXT_MAX:
        return NO_MOMENT
    if _NUMBER.fullmatch(text):
        return _epoch_moment(float(text))
    moment, end = read_time(text, 0, timezone, near_ms)
    if end == len(text):
        return moment
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=_zone(timezone))
        at_ms = int(at.timestamp()) * 1000 + at.microsecond // 1000
    except (ValueError, OverflowError, OSError):
        return NO_MOMENT
    return Moment(at_ms, not at.microsecond) if 0 <= at_ms <= TIME_MS_MAX else NO_MOMENT
