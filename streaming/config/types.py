"""The kinds of value a configuration key can hold: durations, patterns, addresses, topics."""

import math
import re
import zoneinfo
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)", re.ASCII)
_SHOWN_MAX = 80
"""How much of a value a message repeats; no duration is as long."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:,/\[\]]+):(\d{1,5})")


class Options(BaseModel):
    """Base of every block of options: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _nothing_means_defaults(cls, value: Any) -> Any:
        """Accept a block whose every line is commented out, which YAML reads as null."""
        return {} if value is None else value


def shown(value: object) -> str:
    """Return a wrong value as a message may repeat it: without addresses, which may contain a secret."""
    text = repr(value)
    return "this" if len(text) > _SHOWN_MAX or "@" in text or "://" in text else text


def parse_duration_ms(value: Any) -> int:
    """Return a duration in milliseconds: ``500ms``, ``10m``, ``1h30m``, ``7d``; a bare number is seconds.

    Raises:
        ValueError: if it is no duration.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value}s"
    if not isinstance(value, str):
        raise ValueError('expected a duration such as "500ms", "30s", "10m", "4h" or "7d"')
    text = value.strip() if len(value) <= _SHOWN_MAX else "?"
    parts = _PART.findall(text)
    if not parts and text.isascii() and text.replace(".", "", 1).isdigit():
        parts, text = [(text, "s")], f"{text}s"
    if not parts or _PART.sub("", text).strip():
        raise ValueError(
            f'{shown(value)} is not a duration; write for example "500ms", "30s", "10m", "4h" or "7d"'
        )
    length_ms = sum(float(number) * _UNITS_MS[unit] for number, unit in parts)
    if not math.isfinite(length_ms):
        raise ValueError(f"{shown(value)} is too long")
    return round(length_ms)


DURATION_MAX_MS = 100 * 365 * 86_400_000
"""Larger values are mistakes, and cannot be added to a time."""


def _positive(value: int) -> int:
    if value <= 0:
        raise ValueError("must be longer than 0")
    if value > DURATION_MAX_MS:
        raise ValueError("must not be longer than a hundred years")
    return value


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{shown(value)} is not a regular expression: {error}") from None
    except (OverflowError, RecursionError):
        raise ValueError(
            f"{shown(value)} is too large or too deeply nested for a regular expression"
        ) from None
    return value


def _topic(value: str) -> str:
    if not _TOPIC.fullmatch(value) or value in {".", ".."}:
        raise ValueError(
            f"{shown(value)} is not a topic name: use at most 249 letters, digits, '.', '_' and '-'"
        )
    return value


def _address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match is None:
        raise ValueError(f'{shown(value)} is not "host:port"')
    if not 1 <= int(match[2]) <= 65535:
        raise ValueError(f"{shown(value)}: the port must be between 1 and 65535")
    return value


def parse_timezone(value: str) -> str:
    """Return the name of a time zone that exists.

    Raises:
        ValueError: if it does not.
    """
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f'{shown(value)} is not a time zone; write for example "UTC" or "Europe/Berlin"'
        ) from None
    return value


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def one_or_many(value: Any) -> Any:
    """Return a list, even for a single text."""
    return [value] if isinstance(value, str) else value


def _spelled(value: Any) -> Any:
    """Spell numbers and booleans as Java's properties do; leave the rest for the check."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


DurationMs = Annotated[int, BeforeValidator(parse_duration_ms), AfterValidator(_positive)]
"""A positive duration in milliseconds."""
Pattern = Annotated[str, AfterValidator(_pattern)]
"""A regular expression that must match the whole text."""
Topic = Annotated[str, AfterValidator(_topic)]
Address = Annotated[str, AfterValidator(_address)]
"""``host:port``."""
Addresses = Annotated[list[Address], BeforeValidator(_split)]
"""A list, or one text with commas as in Kafka's own tools."""
Timezone = Annotated[str, AfterValidator(parse_timezone)]
Many = Annotated[list[str], BeforeValidator(one_or_many)]
"""A list of texts, or one text."""
Patterns = Annotated[list[Pattern], BeforeValidator(one_or_many)]
Property = Annotated[str, BeforeValidator(_spelled)]
"""The value of a Java-style property; numbers and booleans are accepted as well."""
