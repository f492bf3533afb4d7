"""The mixin comes to what the plain files say, with the names that somebody chose."""

import json
from pathlib import Path
from typing import Any

import pytest
import rjsonnet
import yaml

from deploy.generator.dashboards import dashboard_files
from deploy.generator.rules import rule_files

MIXIN = Path(__file__).parents[3] / "deploy" / "mixin"


def evaluated(config: str) -> Any:
    """Return all that the mixin offers, with a configuration of one's own."""
    whole = f"""
        local m = (import 'mixin.libsonnet') + {{ _config+:: {config} }};
        {{ alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }}
    """
    return json.loads(rjsonnet.evaluate_snippet("whole.jsonnet", whole, jpathdir=[str(MIXIN)]))


@pytest.mark.parametrize(("label", "job"), [("cluster", "groupwatch"), ("kafka_env", "kafka/gw")])
def test_it_comes_to_the_plain_files(label: str, job: str) -> None:
    """Under the default names and under others."""
    told = evaluated(f"{{ clusterLabel: '{label}', job: '{job}' }}")
    files = rule_files(label, job)
    groups = yaml.safe_load(files["prometheus/groupwatch-rules.yml"])["groups"]
    itself = yaml.safe_load(files["prometheus/groupwatch-self-rules.yml"])["groups"]
    assert told["alerts"]["groups"] + told["rules"]["groups"] == [groups[0], *itself, groups[1]]
    boards = {Path(path).name: json.loads(text) for path, text in dashboard_files(label).items()}
    assert told["dashboards"] == boards


def test_the_alerts_about_groups_can_be_left_out() -> None:
    """Beside the Alertmanager receiver; those about groupwatch itself stay."""
    (only,) = evaluated("{ groupAlerts: false }")["alerts"]["groups"]
    assert only["name"] == "groupwatch-itself"
