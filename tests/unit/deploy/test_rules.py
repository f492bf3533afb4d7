"""The rules for Prometheus: as generated, one for each alert, and every part of each is tested."""

import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from alerts.rules.registry import ALL_RULES
from deploy.generator.__main__ import files
from deploy.generator.rules import rule_files
from tests.unit.deploy.rule_cases import GROUP_RULES, RECORDED, SELF_RULES, cases_of, rules_of, which_pass

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = [*rules_of(GROUP_RULES), *rules_of(SELF_RULES)]


def name_of(rule: dict[str, Any]) -> str:
    return str(rule.get("alert") or rule["record"])


def test_the_files_are_as_their_generator_writes_them() -> None:
    """``make monitoring`` changes nothing."""
    assert {path: (DEPLOY / path).read_text() for path in files()} == files()


def test_each_alert_of_ours_has_its_rule() -> None:
    """Under its own name; what is about groupwatch itself is in the other file."""
    alerts = [rule["alert"] for rule in rules_of(GROUP_RULES) if "alert" in rule]
    assert alerts == [rule.name for rule in ALL_RULES]
    assert all(rule["alert"].startswith("Groupwatch") for rule in rules_of(SELF_RULES))
    assert {rule["record"] for rule in RULES if "record" in rule} == set(RECORDED)


def test_another_name_for_the_cluster_is_everywhere() -> None:
    """As ``http.cluster_label`` has it; nothing but the label is changed."""
    for path, text in rule_files("kafka_env").items():
        code = re.sub(r"(?m)^#.*$|description:.*$", "", text)
        assert re.search(r"\bcluster\b(?=[,)} ])", code) is None, path
        assert "kafka_env" in text


@pytest.mark.promtool
@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_no_part_of_a_rule_can_change_unnoticed(rule: dict[str, Any], tmp_path: Path) -> None:
    """Its cases pass, and fail for each mutant: labels, matchers, operators, thresholds, times, words."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing (Debian package: prometheus)")
    cases = cases_of(name_of(rule))
    changes, changed = zip(*mutants(rule), strict=True)
    as_it_is, *survives = which_pass(tmp_path, [rule, *changed], cases)
    assert as_it_is
    alive = [what for what, is_alive in zip(changes, survives, strict=True) if is_alive]
    equal = [pattern for name, pattern in _EQUAL if name == name_of(rule)]
    assert [what for what in alive if not any(re.search(one, what) for one in equal)] == []


_SWAPS = [
    (r" > ", [" >= ", " < "]),
    (r" == 1", [" == 0", " != 1", ""]),
    (r" == 0", [" == 1", " != 0"]),
    (r"\bmax by", ["min by", "sum by"]),
    (r"\bmin by", ["max by"]),
    (r"\bsum by", ["max by", "min by"]),
    (r"\bincrease\(", ["rate("]),
    (r"\brate\(", ["increase("]),
    (r" or ", [" and ", " unless "]),
    (r" unless ", [" or ", " and "]),
    (r" and on ", [" unless on "]),
    (r'="', ['!="']),
    (r'=~"', ['!~"']),
    (r"\|expired", [""]),
    (r"rejected\|", [""]),
    (r"time\(\) - ", [""]),
    (r"absent\(", ["count("]),
]
"""A part of an expression -> what it may be mistaken for."""


_EQUAL = (
    ("GroupwatchNotReady", r"max by -> sum by"),  # 0 and 1 only: the sum is 0 where the largest is
    ("GroupwatchNoLeader", r"sum by -> max by"),
    # The sum is above 0 where the largest is, and where the rate is.
    ("GroupwatchCannotNotify", r"(sum by|incr.*) -> sum by .*retry.*or (max by .*incr|sum by .*rate)"),
    ("GroupwatchUndecodable", r"-> (max|sum) by .* \((rate|increase)\(.*or (sum|max) by .* 10m$"),
    ("GroupwatchMissedRecords", r">= 0\)$"),  # what was 0 an hour ago has an increase
    ("cluster:groupwatch_rebalance_duration_seconds:p90_1h", r"rate\( ->"),  # a quantile knows no unit
    ("job:groupwatch_detection_seconds:p99_1h", r"rate\( ->"),
)
"""Mutants that say the same in other words."""


def mutants(rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what was changed, and the rule with that change."""

    def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
        mutant = deepcopy(rule)
        inner = mutant
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return mutant

    for what, expr in _expressions(rule["expr"]):
        yield f"expr {what} -> {expr}", changed(("expr",), expr)
    if "record" in rule:
        yield "record", changed(("record",), f"{rule['record']}x")
        return
    if "for" in rule:
        yield "no for", changed(("for",), "0s")
        yield "longer for", changed(("for",), f"{3 * int(rule['for'][:-1])}{rule['for'][-1]}")
    else:
        yield "with for", changed(("for",), "2h")
    yield "severity", changed(("labels", "severity"), "page")
    yield "one label more", changed(("labels", "team"), "x")
    for key, text in rule["annotations"].items():
        yield f"annotation {key}", changed(("annotations", key), f"{text}.")


def _expressions(expr: str) -> Iterator[tuple[str, str]]:
    for pattern, others in _SWAPS:
        for found in re.finditer(pattern, expr):
            for other in others:
                yield found[0], expr[: found.start()] + other + expr[found.end() :]
    for found in re.finditer(_NUMBER, expr):
        yield found[0], expr[: found.start()] + _more(found[0]) + expr[found.end() :]
    yield from _without(expr, r"by \(([^)]*)\)")
    yield from _without(expr, r"\{([^}]*)\}")


_NUMBER = r"(?<= [<>] )(\d+)|(?<=quantile\()0\.\d+|(?<=\[)\d+(?=[mh]\])|(?<=offset )\d+"


def _without(expr: str, lists: str) -> Iterator[tuple[str, str]]:
    """Yield the expression without one label or matcher of a list."""
    for found in re.finditer(lists, expr):
        parts = found[1].split(", ")
        for part in parts:
            rest = ", ".join(one for one in parts if one != part)
            yield f"without {part}", expr[: found.start(1)] + rest + expr[found.end(1) :]


def _more(number: str) -> str:
    return "0.5" if "." in number else str(2 * int(number) + 1 if int(number) else 5)
