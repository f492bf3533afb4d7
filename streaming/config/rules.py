"""The ``rules`` block: every rule with its options, taken from the rules' declarations.

A rule's thresholds are the fields of its own class of options (``alerts/rules``); the keys of the YAML
file, the overrides and what the executors get follow from them.
"""

from typing import Annotated, Any, get_type_hints

import msgspec
from pydantic import Field, create_model

from alerts.alert import Severity
from alerts.rules import ALL_RULES, DeclaredRule, is_about_a_group
from streaming.config.types import DurationMs, Options, Patterns

_OF_ALL = ("enabled", "severity")
_DURATION = "_ms"
"""Ends the field name of a duration; the key in the file omits it, and its value has a unit."""
_NUMBERS: dict[type, Any] = {
    int: Annotated[int, Field(ge=2, le=1_000_000)],
    float: Annotated[float, Field(gt=0, lt=1)],
}

ALERTS = frozenset(rule.name for rule in ALL_RULES)
ALERTS_ABOUT_GROUPS = frozenset(rule.name for rule in ALL_RULES if is_about_a_group(rule))


def _rule_model(rule: DeclaredRule) -> type[Options]:
    """Return the model of one rule's block."""
    override: dict[str, Any] = {}
    thresholds: dict[str, Any] = {}
    hints = get_type_hints(rule.options, include_extras=True)
    for field in msgspec.structs.fields(rule.options):
        if field.name in _OF_ALL:
            continue
        hint = hints[field.name]
        kind = DurationMs if field.name.endswith(_DURATION) else _NUMBERS[hint.__origin__]
        option = field.name.removesuffix(_DURATION)
        override[field.name] = (kind | None, Field(None, alias=option))
        thresholds[field.name] = (kind, Field(field.default, alias=option, description=hint.__metadata__[-1]))
    overrides = create_model(
        f"{rule.name}Override",
        __base__=Options,
        groups=(Annotated[Patterns, Field(min_length=1)], ...),
        enabled=(bool | None, None),
        severity=(Severity | None, None),
        **override,
    )
    return create_model(
        rule.name,
        __base__=Options,
        enabled=(bool, True),
        severity=(Severity, rule.options().severity),
        overrides=(list[overrides], Field(default_factory=list)),  # type: ignore[valid-type]
        **thresholds,
    )


def _rules_model() -> type[Options]:
    fields: dict[str, Any] = {}
    for rule in ALL_RULES:
        model = _rule_model(rule)
        fields[rule.key] = (model, Field(default_factory=model))
    return create_model("Rules", __base__=Options, **fields)


Rules = _rules_model()
"""The model of the whole block; one field for each rule."""


def rules_settings(rules: Options) -> dict[str, Any]:
    """Return the rules as the executors read them: plain values, durations in ``…_ms``."""
    return rules.model_dump(mode="json", exclude_none=True)
