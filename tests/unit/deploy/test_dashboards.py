"""The dashboards for Grafana: present schema, explained, linked, over expressions that Prometheus takes."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from coordinator_model.kafka.states import GroupState
from deploy.generator.dashboards import dashboard_files
from deploy.generator.dashboards.parts import STATES
from tests.unit.deploy.boards import boards, expressions

SCHEMA = 42
"""Of Grafana 12."""
NAMES = ["groupwatch-fleet", "groupwatch-group", "groupwatch-self"]


def test_there_are_three_with_names_that_stay() -> None:
    """Links lead to their uids."""
    found = boards()
    assert sorted(found) == NAMES
    assert [board["uid"] for board in found.values()] == NAMES
    assert {board["schemaVersion"] for board in found.values()} == {SCHEMA}


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_says_what_it_shows_and_has_its_number(name: str) -> None:
    """A dashboard is read by people who have not built it."""
    panels = boards()[name]["panels"]
    assert [panel["title"] for panel in panels if not panel.get("description")] == []
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert {panel["type"] for panel in panels} <= {"stat", "table", "state-timeline", "timeseries"}
    assert not [panel["title"] for panel in panels if panel["type"] == "stat" and not _thresholds(panel)]


def _thresholds(panel: dict[str, Any]) -> Any:
    return panel["fieldConfig"]["defaults"]["thresholds"]["steps"]


@pytest.mark.parametrize("name", NAMES)
def test_the_data_source_is_always_the_chosen_one(name: str) -> None:
    """No panel, query or variable names one of ours."""
    text = json.dumps(boards()[name])
    assert text.count('"uid": ') == text.count('"uid": "${datasource}"') + 1  # and the dashboard's own


@pytest.mark.parametrize("name", NAMES)
def test_it_leads_to_the_others_the_page_and_the_runbooks(name: str) -> None:
    """With the chosen time, source and cluster."""
    board = boards()[name]
    urls = [link["url"] for link in board["links"]]
    others = [f"/d/{one}" for one in NAMES if one != name]
    assert [url.partition("?")[0] for url in urls] == [*others, "${page}/", "${page}/runbooks/"]
    variables = [variable["name"] for variable in board["templating"]["list"]]
    group = ["group"] if name == "groupwatch-group" else []
    assert variables == ["datasource", "job", "cluster", *group, "page"]


def test_every_state_has_a_colour() -> None:
    """Also those of KIP-848, share and streams groups."""
    assert set(STATES) == {str(state) for state in GroupState}


def test_another_name_for_the_cluster_is_everywhere() -> None:
    """In expressions and legends; the variable keeps its name."""
    for path, text in dashboard_files("kafka_env").items():
        assert re.search(r"\bcluster\b *(=~|,|\)|\}\})", text.replace("$cluster", "")) is None, path
        assert "kafka_env" in text


@pytest.mark.promtool
def test_prometheus_takes_every_expression(tmp_path: Path) -> None:
    """As a recording rule each, checked by promtool."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing (Debian package: prometheus)")
    rules = [{"record": f"r{n}", "expr": expr} for n, expr in enumerate(expressions().values())]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", "--lint=none", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
