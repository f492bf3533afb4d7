"""The stack to try groupwatch with, as far as it can be judged without a container."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.config import load_config
from streaming.devkit.demo import plan
from tests.unit.deploy.dockerfile import ROOT

FOLDER = ROOT / "deploy" / "compose"
STACK: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = STACK["services"]
OURS = "groupwatch-compose"
"""The image that the stack builds."""


def test_it_is_a_compose_file() -> None:
    """By the schema of the Compose specification."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", str(FOLDER / "compose.yaml")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_pinned_healthy_and_for_this_machine_only(name: str) -> None:
    """An image of one version, a health check, and ports on the loopback address."""
    service = SERVICES[name]
    assert service["image"] == OURS or re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])
    assert service["healthcheck"]["test"]
    assert all(one.startswith("127.0.0.1:") for one in service.get("ports", []))
    assert {one["condition"] for one in service.get("depends_on", {}).values()} <= {"service_healthy"}
    for one in service.get("volumes", []):
        source = one.split(":")[0]
        assert source in STACK["volumes"] or (FOLDER / source).resolve().exists(), one


def test_only_one_service_builds_our_image() -> None:
    """The other waits for it, and never looks for it elsewhere."""
    assert [name for name, one in SERVICES.items() if "build" in one] == ["groupwatch"]
    others = [one for name, one in SERVICES.items() if one["image"] == OURS and name != "groupwatch"]
    assert [one["pull_policy"] for one in others] == ["never"]
    assert all("groupwatch" in one["depends_on"] for one in others)


def test_names_in_the_configurations_are_services() -> None:
    """With the ports that they listen on."""
    texts = [
        (FOLDER / name).read_text() for name in ("groupwatch.yaml", "prometheus.yml", "alertmanager.yml")
    ]
    found = dict(re.findall(r"\b([a-z]+):(\d{4,5})\b", "\n".join(texts)))
    assert found.pop("localhost") == "9464"
    assert found == {
        "kafka": "19092",
        "alertmanager": "9093",
        "groupwatch": "9464",
        "mailbox": "1025",
    }
    assert found.keys() <= SERVICES.keys()


def test_groupwatch_takes_its_configuration() -> None:
    """And tells Alertmanager, with links that people can follow."""
    config = load_config(FOLDER / "groupwatch.yaml")
    assert [one.kind for one in config.receivers] == ["alertmanager"]
    assert config.http.external_url == "http://localhost:9464"
    assert "127.0.0.1:9464:9464" in SERVICES["groupwatch"]["ports"]


@pytest.mark.promtool
def test_prometheus_and_alertmanager_take_theirs(tmp_path: Path) -> None:
    """With both files of rules beside it, as they are mounted."""
    for tool in ("promtool", "amtool"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    mounted = [one.split(":")[:2] for one in SERVICES["prometheus"]["volumes"]]
    for source, target in mounted:
        shutil.copy(FOLDER / source, tmp_path / Path(target).name)
    config = str(tmp_path / "prometheus.yml")
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
    subprocess.run(
        ["amtool", "check-config", str(FOLDER / "alertmanager.yml")], check=True, capture_output=True
    )


def test_nobody_is_told_twice_of_an_alert() -> None:
    """Alerts about groups come to Alertmanager from groupwatch, those about groupwatch from Prometheus."""
    prometheus = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (relabelling,) = prometheus["alerting"]["alert_relabel_configs"]
    assert relabelling == {"source_labels": ["alertname"], "regex": "Groupwatch.*", "action": "keep"}
    rules = {
        name: [
            rule["alert"]
            for group in yaml.safe_load((ROOT / "deploy/prometheus" / name).read_text())["groups"]
            for rule in group["rules"]
            if "alert" in rule
        ]
        for name in prometheus["rule_files"]
    }
    assert not any(one.startswith("Groupwatch") for one in rules["groupwatch-rules.yml"])
    assert all(one.startswith("Groupwatch") for one in rules["groupwatch-self-rules.yml"])


def test_the_page_that_explains_it_names_what_there_is() -> None:
    """Every address that is published, and every client that gets into trouble."""
    text = (FOLDER / "README.md").read_text()
    published = {one.split(":")[1] for service in SERVICES.values() for one in service.get("ports", [])}
    assert published - set(re.findall(r"\b\d{4}\b", text)) == set()
    for incident in plan.INCIDENTS:
        assert incident.culprit in text
        assert incident.alert in text
