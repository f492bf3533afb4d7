"""The options of rules: what operators can set, and all options in force for one group."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec

from alerts.alert import Severity

MINUTE_MS: Final = 60_000

DurationMs = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A field that ends in ``_ms``; the option in the YAML file drops the suffix and takes ``30s`` or ``10m``."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class RuleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of every rule: whether it runs, and the severity its alert begins with.

    A rule adds its thresholds: ``after_ms: Annotated[DurationMs, "time until it fires"] = MINUTE_MS``.
    """

    enabled: bool = True
    severity: Severity = Severity.WARNING


_OptionsT = TypeVar("_OptionsT", bound=RuleOptions)


class Thresholds(msgspec.Struct, frozen=True):
    """All rules' options in force for one group."""

    given: Mapping[type[RuleOptions], Any] = {}
    """A rule's class of options -> its options; a class that is missing has its defaults."""

    def of(self, kind: type[_OptionsT]) -> _OptionsT:
        """Return the options of the rule that declares this class."""
        found: _OptionsT | None = self.given.get(kind)
        return _default(kind) if found is None else found


@cache
def _default(kind: type[_OptionsT]) -> _OptionsT:
    return kind()
