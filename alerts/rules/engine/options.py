"""What an operator can set of a rule, and all rules' options as they hold for one group."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from alerts.alert import Severity

MINUTE_MS: Final = 60_000

DurationMs = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Its field ends in ``_ms``; the option in the YAML file does not, and takes ``30s`` or ``10m``."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class RuleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What every rule has: whether it runs, and how loud its alert begins.

    A rule adds its thresholds: ``after_ms: Annotated[DurationMs, "time until it fires"] = MINUTE_MS``.
    """

    enabled: bool = True
    severity: Severity = Severity.WARNING


_OptionsT = TypeVar("_OptionsT", bound=RuleOptions)


class Thresholds(msgspec.Struct, frozen=True):
    """All rules' options as they hold for one group."""

    given: Mapping[type[RuleOptions], Any] = {}
    """A rule's own class of options -> its options; one that is not here has its defaults."""

    def of(self, kind: type[_OptionsT]) -> _OptionsT:
        """Return the options of the rule that declares this class."""
        found: _OptionsT | None = self.given.get(kind)
        return kind() if found is None else found
