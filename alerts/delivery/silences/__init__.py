"""When receivers are left in peace: silences and maintenance of the configuration, and those people add."""

from alerts.delivery.silences.kept_silences import (
    SILENCE_REASONS,
    SILENCE_STATES,
    SILENCES_MAX,
    KeptSilence,
    PatternError,
    SilenceBook,
    check_pattern,
    silences_in,
    wrong_in,
)
from alerts.delivery.silences.quiet import (
    DAYS,
    FOREVER_MS,
    NO_QUIET,
    LiveQuiet,
    Maintenance,
    Match,
    Quiet,
    Silence,
    Silenced,
    Window,
)

__all__ = [
    "DAYS",
    "FOREVER_MS",
    "NO_QUIET",
    "SILENCES_MAX",
    "SILENCE_REASONS",
    "SILENCE_STATES",
    "KeptSilence",
    "LiveQuiet",
    "Maintenance",
    "Match",
    "PatternError",
    "Quiet",
    "Silence",
    "SilenceBook",
    "Silenced",
    "Window",
    "check_pattern",
    "silences_in",
    "wrong_in",
]
