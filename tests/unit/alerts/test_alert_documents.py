"""The table of alerts and the runbooks keep up with the rules."""

import re
from pathlib import Path

import pytest

from alerts.rules.engine import Sees
from alerts.rules.registry import ALL_RULES, DeclaredRule
from tests.alert_names import ALERT_NAMES
from tests.tables.tables import (
    ALERTS,
    FIRST_ACTIONS,
    REFERENCE,
    documents,
    head_of,
    options_of,
    with_rules,
    with_tables,
)

ROOT = Path(__file__).parents[3]
HEAD = (
    "fires",
    "default",
    "resolves",
    "full",
    "quiet",
    "requests",
    "offsets",
    "means",
    "usual cause",
    "costs",
    "first action",
)
SECTIONS = [
    "What it means",
    "Likely cause",
    "What it costs",
    "First action",
    "Confirm with Kafka's own tools",
    "Fix",
    "When it resolves",
]


def test_every_alert_of_the_contract_is_declared() -> None:
    """Whoever routes by these names goes on getting them; more may come."""
    assert set(ALERT_NAMES) <= {rule.name for rule in ALL_RULES}


@pytest.mark.parametrize("document", documents(), ids=lambda file: str(file.relative_to(ROOT)))
def test_tables_of_alerts_follow_from_rules_and_runbooks(document: Path) -> None:
    """A rule stands in them as it is declared (else: ``make tables``)."""
    assert document.read_text() == with_tables(document)


def test_both_tables_are_in_some_document() -> None:
    """A heading that somebody rewords would leave its table behind."""
    texts = [document.read_text() for document in documents()]

    assert all(any(f"\n{heading}\n" in text for text in texts) for heading in (ALERTS, FIRST_ACTIONS))


def test_the_reference_configuration_follows_from_the_rules() -> None:
    """Each rule with its options and their defaults (else: ``make tables``)."""
    assert REFERENCE.read_text() == with_rules(REFERENCE.read_text())


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_runbook_begins_with_the_rule_at_a_glance(rule: DeclaredRule) -> None:
    """With nothing left out, and with the defaults that are declared."""
    head = head_of(rule)

    assert tuple(head) == HEAD
    assert head["default"].startswith(rule.options().severity)
    assert re.findall(r"`(\w+): ([^`]+)`", head["default"]) == options_of(rule)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_rule_fires_where_what_it_needs_is_read(rule: DeclaredRule) -> None:
    """And is said to be blind elsewhere: quiet has no request log, offsets has neither log."""
    head = head_of(rule)
    blind = {mode for mode in ("full", "quiet", "requests", "offsets") if head[mode] == "\N{EN DASH}"}

    assert blind == {Sees.REQUESTS: {"quiet", "offsets"}, Sees.A_LOG: {"offsets"}}.get(rule.needs, set())


@pytest.mark.parametrize("name", [rule.name for rule in ALL_RULES])
def test_every_built_alert_has_a_runbook(name: str) -> None:
    """With all its sections, in the order in which they are needed."""
    text = (ROOT / "alerts" / "runbooks" / f"{name}.md").read_text()

    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("name", [rule.name for rule in ALL_RULES])
def test_a_runbooks_commands_can_be_pasted(name: str) -> None:
    """They say which cluster, and ask Kafka's tools for one view at a time, as these insist on."""
    text = (ROOT / "alerts" / "runbooks" / f"{name}.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^(?:`?|.*[`(])(kafka-[a-z-]+\.sh --[^`#|\n]*)", text, re.MULTILINE)

    assert [one for one in commands if "--bootstrap-server $B" not in one] == []
    views = re.compile(r"--(?:members|offsets|state)\b")
    assert [one for one in commands if len(views.findall(one)) > 1] == []
