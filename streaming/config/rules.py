"""The ``rules`` block: every rule of the product with its thresholds and their defaults, as a table.

Adding a rule is adding a row; the YAML options, the overrides and what the executors get follow from it.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model

from alerts.alert import Severity
from streaming.config.types import DurationMs, Options, Patterns


class Threshold(NamedTuple):
    """One number of a rule: its kind, default and meaning.  Durations end in ``_ms`` inside."""

    kind: Any
    default: float
    meaning: str


class RuleSpec(NamedTuple):
    """One rule: its default severity and its thresholds by option name."""

    severity: Severity
    thresholds: dict[str, Threshold]


def _duration(default_ms: int, meaning: str) -> Threshold:
    return Threshold(DurationMs, default_ms, meaning)


_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
_SHARE = Annotated[float, Field(gt=0, lt=1)]
_COUNT = Annotated[int, Field(ge=2, le=1_000_000)]

RULES: dict[str, RuleSpec] = {
    "rebalance_storm": RuleSpec(
        _WARNING,
        {
            "rebalances": Threshold(_COUNT, 5, "rebalances within the window that make a storm"),
            "window": _duration(600_000, "how far back rebalances are counted"),
        },
    ),
    "stuck_preparing_rebalance": RuleSpec(
        _WARNING, {"after": _duration(60_000, "time in the join phase before it is stuck")}
    ),
    "stuck_completing_rebalance": RuleSpec(
        _WARNING, {"after": _duration(30_000, "time in the sync phase before it is stuck")}
    ),
    "session_timeout_imminent": RuleSpec(
        _WARNING, {"at": Threshold(_SHARE, 0.7, "share of the session timeout without a heartbeat")}
    ),
    "session_timeout": RuleSpec(_WARNING, {}),
    "poll_interval_exceeded": RuleSpec(_WARNING, {}),
    "source_silent": RuleSpec(_WARNING, {"after": _duration(60_000, "silence where there should be none")}),
    "groups_quarantined": RuleSpec(_WARNING, {}),
    "cluster_unreachable": RuleSpec(
        _CRITICAL, {"after": _duration(60_000, "time without any answer from the cluster")}
    ),
    "monitor_stalled": RuleSpec(
        _CRITICAL, {"after": _duration(120_000, "time without a finished batch while Kafka answers")}
    ),
    "zombie_commit": RuleSpec(_WARNING, {}),
    "static_member_fenced": RuleSpec(
        _WARNING,
        {
            "replacements": Threshold(_COUNT, 3, "replacements of one instance id within the window"),
            "window": _duration(600_000, "how far back replacements are counted"),
        },
    ),
    "offset_rewind": RuleSpec(_WARNING, {}),
    "commits_stopped": RuleSpec(
        _WARNING, {"after": _duration(90_000, "time without a commit while records wait, whatever is usual")}
    ),
    "commits_stalled": RuleSpec(
        _WARNING, {"after": _duration(60_000, "time at one offset while records wait, whatever is usual")}
    ),
    "lag_growing": RuleSpec(
        _WARNING, {"window": _duration(240_000, "time in which the lag grows without a break")}
    ),
    "group_id_collision": RuleSpec(
        _WARNING, {"after": _duration(600_000, "time in which members have no topic in common")}
    ),
    "idle_members": RuleSpec(_INFO, {"after": _duration(900_000, "time without a partition")}),
    "unsafe_timeouts": RuleSpec(
        _INFO, {"after": _duration(900_000, "time in which timeouts within a group differ")}
    ),
    "assignment_churn": RuleSpec(
        _INFO,
        {
            "rebalances": Threshold(_COUNT, 3, "rebalances within the window that moved too much"),
            "partitions": Threshold(_COUNT, 10, "partitions that they moved for nothing"),
            "window": _duration(3_600_000, "how far back they are counted, an hour at most"),
        },
    ),
    "coordinator_moved": RuleSpec(
        _INFO, {"affected": Threshold(_COUNT, 3, "groups that rebalanced because of one move")}
    ),
    "group_deleted": RuleSpec(
        _INFO, {"within": _duration(86_400_000, "how long before its end a group was in use")}
    ),
    "offsets_expiring": RuleSpec(
        _WARNING, {"left": _duration(86_400_000, "time left, or a third of the retention if that is less")}
    ),
}
"""Option name -> rule.  The alert's name is the same in CamelCase."""


def alert_name(rule: str) -> str:
    """Return the alert's name: ``rebalance_storm`` → ``RebalanceStorm``."""
    return "".join(part.capitalize() for part in rule.split("_"))


def _field_name(option: str, threshold: Threshold) -> str:
    return f"{option}_ms" if threshold.kind is DurationMs else option


def _optional(spec: RuleSpec) -> dict[str, Any]:
    return {
        _field_name(option, threshold): (threshold.kind | None, Field(None, alias=option))
        for option, threshold in spec.thresholds.items()
    }


def _rule_model(name: str, spec: RuleSpec) -> type[Options]:
    title = alert_name(name)
    override = create_model(
        f"{title}Override",
        __base__=Options,
        groups=(Annotated[Patterns, Field(min_length=1)], ...),
        enabled=(bool | None, None),
        severity=(Severity | None, None),
        **_optional(spec),
    )
    thresholds: dict[str, Any] = {
        _field_name(option, threshold): (
            threshold.kind,
            Field(threshold.default, alias=option, description=threshold.meaning),
        )
        for option, threshold in spec.thresholds.items()
    }
    return create_model(
        title,
        __base__=Options,
        enabled=(bool, True),
        severity=(Severity, spec.severity),
        overrides=(list[override], Field(default_factory=list)),  # type: ignore[valid-type]
        **thresholds,
    )


def _rules_model() -> type[Options]:
    fields: dict[str, Any] = {}
    for name, spec in RULES.items():
        model = _rule_model(name, spec)
        fields[name] = (model, Field(default_factory=model))
    return create_model("Rules", __base__=Options, **fields)


Rules = _rules_model()
"""The model of the whole block; one field for each row of ``RULES``."""


def rules_settings(rules: Options) -> dict[str, Any]:
    """Return the rules as the executors read them: plain values, durations in ``…_ms``."""
    return rules.model_dump(mode="json", exclude_none=True)
