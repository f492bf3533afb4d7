"""What the rules of deploy/prometheus must say, written down apart from their generator, for promtool."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from alerts.rules.registry import ALL_RULES
from tests.tables.tables import head_of

PROMETHEUS = Path(__file__).parents[3] / "deploy" / "prometheus"
GROUP_RULES, SELF_RULES = "groupwatch-rules.yml", "groupwatch-self-rules.yml"
_URL = {"series": 'groupwatch_external_url_info{url="https://gw.example/base"}', "values": "1x20"}


def rules_of(name: str) -> list[dict[str, Any]]:
    """Return the rules of a shipped file, in order."""
    content = yaml.safe_load((PROMETHEUS / name).read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]


def cases_of(rule: str) -> list[dict[str, Any]]:
    """Return promtool's test cases about one rule, by its alert's or its record's name."""
    if rule in {known.name for known in ALL_RULES}:
        return _alert_cases(rule)
    if rule in RECORDED:
        return [_recorded_case(rule)]
    told = yaml.safe_load((PROMETHEUS / "groupwatch-self-rules.test.yml").read_text())["tests"]
    cases = []
    for case in told:
        checks = [one for one in case["alert_rule_test"] if one["alertname"] == rule]
        if checks:
            cases.append(case | {"alert_rule_test": checks})
    return cases


def which_pass(folder: Path, rules: Sequence[dict[str, Any]], cases: list[dict[str, Any]]) -> list[bool]:
    """Say of each rule, alone in a file, whether promtool finds every case as it must be."""
    for number, rule in enumerate(rules):
        told = {"rule_files": [f"rules-{number}.yml"], "evaluation_interval": "15s", "tests": cases}
        # JSON is YAML, and is written in a hundredth of the time.
        (folder / f"rules-{number}.yml").write_text(
            json.dumps({"groups": [{"name": "one", "rules": [rule]}]})
        )
        (folder / f"{number}.yml").write_text(json.dumps(told))
    command = ["promtool", "test", "rules", *(f"{number}.yml" for number in range(len(rules)))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = {name: words for name, *words in map(str.split, done.stdout.split("Unit Testing:")[1:])}
    assert list(said) == command[3:], done.stderr
    assert (done.returncode == 0) == all("SUCCESS" in words for words in said.values())
    return ["SUCCESS" in words for words in said.values()]


def _alert_cases(name: str) -> list[dict[str, Any]]:
    """Two groups at once, one of them in two instances; one of the cluster; silenced, over, and another's."""

    def firing(values: str, **labels: str) -> dict[str, str]:
        told = {"cluster": "prod", "group": "", "alertname": name, "severity": "warning", "silenced": "false"}
        pairs = ",".join(f'{key}="{value}"' for key, value in (told | labels).items())
        return {"series": f"groupwatch_alerts_firing{{{pairs}}}", "values": values}

    other = next(one.name for one in ALL_RULES if one.name != name)
    series = [
        firing("1x20", group="or ders&1", severity="critical", instance="a"),
        firing("1x20", group="or ders&1", severity="critical", instance="b"),
        firing("0x20", group="or ders&1", severity="info"),
        firing("1x20", group="second", instance="a"),
        firing("0x20", group="second", instance="b"),
        firing("1x20", cluster="us"),
        firing("1x20", group="quiet", silenced="true"),
        firing("0x20", group="over"),
        firing("1x20", group="other", alertname=other),
    ]
    head = {key: _plain(said) for key, said in head_of(_declared(name)).items()}
    description = (
        f"{head['means'][:1].upper()}{head['means'][1:]}. Usually: {head['usual cause']}. "
        f"It costs: {head['costs']}. Cause, culprit and advice are on groupwatch's page and in its API."
    )

    def expected(labels: dict[str, str], summary: str, query: str, base: str) -> dict[str, Any]:
        return {
            "exp_labels": labels,
            "exp_annotations": {
                "summary": f"{name}: {summary}",
                "description": description,
                "runbook_url": base and f"{base}/runbooks/{name}.md",
                "page_url": base and f"{base}/?{query}",
            },
        }

    def said(base: str) -> list[dict[str, Any]]:
        prod = {"cluster": "prod"}
        return [
            expected(
                prod | {"group": "or ders&1", "severity": "critical"},
                "group or ders&1 of prod",
                "cluster=prod&q=or+ders%261",
                base,
            ),
            expected(
                prod | {"group": "second", "severity": "warning"},
                "group second of prod",
                "cluster=prod&q=second",
                base,
            ),
            expected({"cluster": "us", "severity": "warning"}, "us", "cluster=us&q=", base),
        ]

    def case(series: list[dict[str, str]], base: str) -> dict[str, Any]:
        check = {"eval_time": "0s", "alertname": name, "exp_alerts": said(base)}
        return {"interval": "15s", "input_series": series, "alert_rule_test": [check]}

    return [case([*series, _URL], "https://gw.example/base"), case(series, "")]


def _declared(name: str) -> Any:
    return next(one for one in ALL_RULES if one.name == name)


def _plain(text: str) -> str:
    """Return a cell of a runbook without its marks and links."""
    words = text.replace("`", "")
    while "](" in words:
        before, _, after = words.partition("](")
        start = before.rindex("[")
        words = before[:start] + before[start + 1 :] + after.partition(")")[2]
    return words


def _groups(metric: str, values: str, **labels: str) -> dict[str, str]:
    pairs = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{metric}{{{pairs}}}", "values": values}


_TOOK, _FOUND = "groupwatch_rebalance_duration_seconds", "groupwatch_detection_seconds"
_FIRING = "groupwatch_alerts_firing"
RECORDED: dict[str, tuple[list[dict[str, str]], dict[str, float]]] = {
    "cluster_state:groupwatch_group_state:sum": (
        [
            _groups("groupwatch_group_state", "1x120", cluster="eu", group="a", state="Stable"),
            _groups("groupwatch_group_state", "1x120", cluster="eu", group="b", state="Stable"),
            _groups("groupwatch_group_state", "0x120", cluster="eu", group="b", state="Empty"),
            _groups("groupwatch_group_state", "1x120", cluster="us", group="b", state="Stable"),
        ],
        {
            '{cluster="eu", state="Stable"}': 2,
            '{cluster="eu", state="Empty"}': 0,
            '{cluster="us", state="Stable"}': 1,
        },
    ),
    "cluster_group:groupwatch_group_rebalances:increase1h": (
        [
            _groups("groupwatch_group_rebalances_total", "0+1x120", cluster="eu", group="a", cause="x"),
            _groups("groupwatch_group_rebalances_total", "0+2x120", cluster="eu", group="a", cause="y"),
            _groups("groupwatch_group_rebalances_total", "0x120", cluster="eu", group="b", cause="y"),
        ],
        {'{cluster="eu", group="a"}': 180, '{cluster="eu", group="b"}': 0},
    ),
    "cluster_cause:groupwatch_group_rebalances:rate5m": (
        [
            _groups("groupwatch_group_rebalances_total", "0x100 6+6x20", cluster="eu", group="a", cause="x"),
            _groups("groupwatch_group_rebalances_total", "0+6x120", cluster="eu", group="b", cause="x"),
            _groups("groupwatch_group_rebalances_total", "0+3x120", cluster="us", group="b", cause="y"),
        ],
        {'{cluster="eu", cause="x"}': 0.2, '{cluster="us", cause="y"}': 0.05},
    ),
    "cluster_group:groupwatch_group_lag:sum": (
        [
            _groups("groupwatch_group_lag", "7x120", cluster="eu", group="a", topic="t"),
            _groups("groupwatch_group_lag", "3x120", cluster="eu", group="a", topic="u"),
            _groups("groupwatch_group_lag", "1x120", cluster="eu", group="b", topic="u"),
        ],
        {'{cluster="eu", group="a"}': 10, '{cluster="eu", group="b"}': 1},
    ),
    "cluster_group:groupwatch_group_lag_seconds:max": (
        [
            _groups("groupwatch_group_lag_seconds", "7x120", cluster="eu", group="a", topic="t"),
            _groups("groupwatch_group_lag_seconds", "3x120", cluster="eu", group="a", topic="u"),
            _groups("groupwatch_group_lag_seconds", "1x120", cluster="eu", group="b", topic="u"),
        ],
        {'{cluster="eu", group="a"}': 7, '{cluster="eu", group="b"}': 1},
    ),
    "cluster:groupwatch_rebalance_seconds:rate5m": (
        [
            _groups(f"{_TOOK}_sum", "0x100 30+30x20", cluster="eu", instance="a"),
            _groups(f"{_TOOK}_sum", "0x100 60+60x20", cluster="eu", instance="b"),
            _groups(f"{_TOOK}_sum", "0x120", cluster="us", instance="a"),
        ],
        {'{cluster="eu"}': 1.5, '{cluster="us"}': 0},
    ),
    "cluster:groupwatch_rebalance_duration_seconds:p90_1h": (
        [
            # Long ago all took more than a second: that is out of the window.
            _groups(f"{_TOOK}_bucket", "0x50 0+9x70", cluster="eu", instance="a", le="1"),
            _groups(f"{_TOOK}_bucket", "0+9x40 360x9 360+10x70", cluster="eu", instance="a", le="3"),
            _groups(f"{_TOOK}_bucket", "0+9x40 360x9 360+10x70", cluster="eu", instance="a", le="+Inf"),
            _groups(f"{_TOOK}_bucket", "0x120", cluster="eu", instance="b", le="1"),
            _groups(f"{_TOOK}_bucket", "0x50 0+10x70", cluster="eu", instance="b", le="3"),
            _groups(f"{_TOOK}_bucket", "0x50 0+10x70", cluster="eu", instance="b", le="+Inf"),
            _groups(f"{_TOOK}_bucket", "0x50 0+1x70", cluster="us", instance="a", le="1"),
            _groups(f"{_TOOK}_bucket", "0x50 0+10x70", cluster="us", instance="a", le="3"),
            _groups(f"{_TOOK}_bucket", "0x50 0+10x70", cluster="us", instance="a", le="+Inf"),
        ],
        {'{cluster="eu"}': 1 + 2 * 9 / 11, '{cluster="us"}': 1 + 2 * 8 / 9},
    ),
    "cluster_severity:groupwatch_alerts_firing:sum": (
        [
            _groups(
                "groupwatch_alerts_firing",
                "1x120",
                cluster="eu",
                group="a",
                severity="info",
                silenced="false",
            ),
            _groups(
                "groupwatch_alerts_firing",
                "1x120",
                cluster="eu",
                group="b",
                severity="info",
                silenced="false",
            ),
            _groups(
                "groupwatch_alerts_firing", "1x120", cluster="eu", group="c", severity="info", silenced="true"
            ),
        ],
        {'{cluster="eu", severity="info"}': 2},
    ),
    "job:groupwatch_detection_seconds:p99_1h": (
        [
            _groups(f"{_FOUND}_bucket", "0x50 0+98x70", job="gw", instance="a", le="1"),
            _groups(f"{_FOUND}_bucket", "0+9x40 360x9 360+98x70", job="gw", instance="a", le="2"),
            _groups(f"{_FOUND}_bucket", "0+9x40 360x9 360+98x70", job="gw", instance="a", le="+Inf"),
            _groups(f"{_FOUND}_bucket", "0x120", job="gw", instance="b", le="1"),
            _groups(f"{_FOUND}_bucket", "0x50 0+2x70", job="gw", instance="b", le="2"),
            _groups(f"{_FOUND}_bucket", "0x50 0+2x70", job="gw", instance="b", le="+Inf"),
        ],
        {'{job="gw"}': 1.5},
    ),
}
"""Record -> the series that it is made of, each minute, and what it comes to after 70 minutes."""


def _recorded_case(name: str) -> dict[str, Any]:
    series, values = RECORDED[name]
    samples = [{"labels": labels, "value": round(value, 3)} for labels, value in values.items()]
    check = {"expr": f"round({name}, 0.001)", "eval_time": "110m", "exp_samples": samples}
    return {"interval": "1m", "input_series": series, "promql_expr_test": [check]}
