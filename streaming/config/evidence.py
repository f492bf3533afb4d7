"""The ``clusters[].evidence`` block: when and how far request logs may be raised."""

import difflib
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streaming.config.rules import ALERTS_ABOUT_GROUPS
from streaming.config.types import DurationMs, Options, one_or_many, shown

FOR_MIN_MS, FOR_MAX_MS = 5_000, 3_600_000


def _alert_about_a_group(value: str) -> str:
    if value not in ALERTS_ABOUT_GROUPS:
        close = difflib.get_close_matches(value, ALERTS_ABOUT_GROUPS, n=1, cutoff=0.6)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no alert {shown(value)} about a group{hint}")
    return value


def _bounded(value: int) -> int:
    if not FOR_MIN_MS <= value <= FOR_MAX_MS:
        raise ValueError("must be between 5s and 1h")
    return value


class EvidenceConfig(Options):
    """When ``kafka.request.logger`` is raised to DEBUG on a troubled group's coordinator, and how far.

    It needs the probe, which reports to the stream that a request log is off: SourceSilent depends on that.
    """

    enabled: bool = False
    alerts: Annotated[
        list[Annotated[str, AfterValidator(_alert_about_a_group)]],
        BeforeValidator(one_or_many),
        Field(min_length=1),
    ] = Field(
        default_factory=lambda: [
            "StuckCompletingRebalance",
            "StuckPreparingRebalance",
            "SessionTimeout",
            "RebalanceStorm",
        ]
    )
    """The alerts for which it is raised."""
    for_ms: Annotated[DurationMs, AfterValidator(_bounded)] = Field(default=120_000, alias="for")
    """Longest time; it ends sooner when no group of that broker is in trouble any more."""
    every_ms: DurationMs = Field(default=1_800_000, alias="every")
    """Shortest time from one raise of a broker to its next."""
    brokers: int = Field(default=1, ge=1, le=1_000)
    """Most brokers of the cluster that are raised at once."""

    @model_validator(mode="after")
    def _rests(self) -> "EvidenceConfig":
        if self.every_ms < self.for_ms:
            raise ValueError("every must not be shorter than for, or a broker would stay at DEBUG")
        return self
