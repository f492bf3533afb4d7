"""What documents say of all rules, made of the rules' declarations and the heads of their runbooks."""

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from alerts.rules import ALL_RULES, DeclaredRule

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "alerts" / "runbooks"
REFERENCE = ROOT / "deploy" / "groupwatch.yaml"

ALERTS = "| alert | condition or event | default | resolves | full | quiet | requests | offsets |"
FIRST_ACTIONS = "| alert | means | usual cause | costs | first action |"
_COLUMNS = {
    ALERTS: ("fires", "default", "resolves", "full", "quiet", "requests", "offsets"),
    FIRST_ACTIONS: ("means", "usual cause", "costs", "first action"),
}
"""Heading of a table -> the lines of a runbook's head that fill its columns."""

_OF_ALL = ("enabled", "severity")
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_LINK = re.compile(r"\]\(([^)#:]*)(#[^)]*)?\)")


class Option(NamedTuple):
    """An option of a rule with its default, as the YAML file writes them."""

    name: str
    default: str


def options_of(rule: DeclaredRule) -> list[Option]:
    """Return the thresholds that a rule declares."""
    fields = msgspec.structs.fields(rule.options)
    return [_option(field.name, field.default) for field in fields if field.name not in _OF_ALL]


def _option(name: str, default: Any) -> Option:
    return Option(name.removesuffix("_ms"), written(name, default))


def written(name: str, default: Any) -> str:
    """Return a default as the YAML file writes it; a field that ends in ``_ms`` is a duration."""
    if not name.endswith("_ms"):
        return default if isinstance(default, str) and default else json.dumps(default, default=str)
    minute = _UNITS_MS["m"]
    fits = [unit for unit, ms in _UNITS_MS.items() if default % ms == 0 and not default == ms == minute]
    return f"{default // _UNITS_MS[fits[0]]}{fits[0]}"


def with_rules(reference: str) -> str:
    """Return the reference configuration with the block of rules as it has to be."""
    lines = []
    for rule in ALL_RULES:
        severity = rule.options().severity
        thresholds = "".join(f"{name}: {default}, " for name, default in options_of(rule))
        lines.append(f"  {rule.key}: {{enabled: true, severity: {severity}, {thresholds}overrides: []}}\n")
    before, start, after = reference.partition("\nrules:\n")
    return before + start + "".join(lines) + after[after.index("\n\n") + 1 :]


def head_of(rule: DeclaredRule) -> dict[str, str]:
    """Return the table at the top of a rule's runbook."""
    text = (RUNBOOKS / f"{rule.name}.md").read_text().partition("\n## ")[0]
    return dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE))


def documents() -> list[Path]:
    """Return the documents that have one of the tables."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/*.md")]
    return [file for file in files if any(f"\n{heading}\n" in file.read_text() for heading in _COLUMNS)]


def with_tables(document: Path) -> str:
    """Return a document with its tables as they have to be."""
    text = document.read_text()
    for heading, columns in _COLUMNS.items():
        before, found, after = text.partition(f"\n{heading}\n")
        if found:
            rows = "".join(_row(rule, columns, document) for rule in ALL_RULES)
            dashes = after.partition("\n")[0]
            text = f"{before}{found}{dashes}\n{rows}" + after[after.index("\n\n") + 1 :]
    return text


def _row(rule: DeclaredRule, columns: tuple[str, ...], document: Path) -> str:
    head = head_of(rule)
    cells = (f"`{rule.name}`", *(head.get(column, "") for column in columns))
    return f"| {' | '.join(_linked(cell, document) for cell in cells)} |\n"


def _linked(cell: str, document: Path) -> str:
    """Return a cell of a runbook with its links as they lead there from another document."""

    def led(link: re.Match[str]) -> str:
        target = (RUNBOOKS / link[1]).resolve()
        path = "" if target == document else os.path.relpath(target, document.parent)
        return f"]({path}{link[2] or ''})"

    return _LINK.sub(led, cell)
