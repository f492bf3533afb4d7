"""Reads the rules' options from the settings record, which the driver writes to the control topic.

``streaming/config/config.py`` checks what an operator wrote; this module only reads its canonical JSON.
Missing keys mean defaults and unknown keys are ignored, so that a newer driver and an older executor, or the
other way round, understand each other.
"""

import re
from typing import Any, TypeVar

import msgspec

from alerts.rules.engine import RuleOptions, Thresholds
from alerts.rules.registry import ALL_RULES

_CACHED_GROUPS_MAX = 50_000
_URL_MAX = 1_000
_PATTERN_ERRORS = (KeyError, TypeError, re.error, OverflowError, RecursionError)


class ThresholdsError(ValueError):
    """The settings cannot be read; the message names the rule."""


_Override = tuple[tuple["re.Pattern[str]", ...], dict[str, Any]]
_OptionsT = TypeVar("_OptionsT", bound=RuleOptions)


class Settings:
    """The configured options; they say what holds for a group."""

    def __init__(self, settings: bytes = b"{}") -> None:
        """Read canonical JSON.

        Raises:
            ThresholdsError: it is no JSON object, or one of its rules cannot be read.
        """
        raw = _read_object(settings)
        rules = _object(raw.get("rules"), "rules")
        self.runbook_base: str = str(raw.get("runbook_base") or "")[:_URL_MAX]
        self._plain: dict[str, dict[str, Any]] = {}
        self._overrides: dict[str, list[_Override]] = {}
        for rule in ALL_RULES:
            self._read_rule(rule.key, _object(rules.get(rule.key), f"rules.{rule.key}"))
        self.defaults = self._build({})
        self._groups: dict[str, Thresholds] = {}
        self._variants: dict[tuple[tuple[str, int], ...], Thresholds] = {}
        self._check_overrides()

    def of_group(self, group: str) -> Thresholds:
        """Return the options for ``group``: of each rule the first override whose pattern matches in full."""
        if not self._overrides:
            return self.defaults
        found = self._groups.get(group)
        if found is None:
            if len(self._groups) >= _CACHED_GROUPS_MAX:
                self._groups.clear()
            found = self._groups[group] = self._variant(self._chosen(group))
        return found

    def _read_rule(self, key: str, raw: dict[str, Any]) -> None:
        self._plain[key] = {name: value for name, value in raw.items() if name != "overrides"}
        told = raw.get("overrides") or []
        if not isinstance(told, list):
            raise ThresholdsError(f"rules.{key}.overrides: no list")
        overrides = [_read_override(key, override) for override in told]
        if overrides:
            self._overrides[key] = overrides

    def _chosen(self, group: str) -> dict[str, int]:
        chosen = {}
        for key, overrides in self._overrides.items():
            for index, (patterns, _) in enumerate(overrides):
                if any(pattern.fullmatch(group) for pattern in patterns):
                    chosen[key] = index
                    break
        return chosen

    def _variant(self, chosen: dict[str, int]) -> Thresholds:
        # Groups with the same overrides share one object, so 100,000 groups cost a dictionary entry each.
        name = tuple(chosen.items())
        if name not in self._variants:
            self._variants[name] = self._build(chosen)
        return self._variants[name]

    def _build(self, chosen: dict[str, int]) -> Thresholds:
        given: dict[type[RuleOptions], RuleOptions] = {}
        for rule in ALL_RULES:
            changed = self._overrides[rule.key][chosen[rule.key]][1] if rule.key in chosen else {}
            given[rule.options] = _convert(rule.key, {**self._plain[rule.key], **changed}, rule.options)
        return Thresholds(given)

    def _check_overrides(self) -> None:
        # Find an unreadable override now, not when the first group that needs it appears.
        for key, overrides in self._overrides.items():
            for index in range(len(overrides)):
                self._build({key: index})


def check_settings(settings: bytes) -> None:
    """Check that the rules can use these settings.

    Raises:
        ThresholdsError: they cannot.
    """
    Settings(settings)


def _read_object(settings: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(settings, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ThresholdsError(f"settings are no JSON object: {error}") from error


def _object(found: Any, where: str) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ThresholdsError(f"{where}: no object")
    return found


def _read_override(key: str, found: Any) -> _Override:
    raw = _object(found, f"rules.{key}.overrides")
    try:
        patterns = tuple(re.compile(pattern) for pattern in raw["groups"])
    except _PATTERN_ERRORS as error:
        raise ThresholdsError(f"rules.{key}.overrides: groups: {error!r}") from error
    return patterns, {name: value for name, value in raw.items() if name != "groups" and value is not None}


def _convert(key: str, raw: dict[str, Any], kind: type[_OptionsT]) -> _OptionsT:
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, TypeError, OverflowError) as error:
        raise ThresholdsError(f"rules.{key}: {error}") from error
