"""What an operator copies from deploy/ loads, and speaks only of things that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import certifi
import pytest
import yaml

from tests.metric_names import METRIC, known_metrics

BOARDS = ("fleet", "group", "self")
DEPLOY = Path(__file__).parent.parent.parent / "deploy"


@pytest.mark.parametrize(
    "file",
    [
        *(f"grafana/groupwatch-{one}.json" for one in BOARDS),
        *(f"prometheus/groupwatch-{one}.yml" for one in ("rules", "self-rules")),
    ],
)
def test_dashboards_and_rules_use_only_metrics_that_exist(file: str) -> None:
    """A panel over a metric that nobody exports is an empty panel for ever."""
    text = re.sub(r"- record: .*", "", (DEPLOY / file).read_text())
    used = set(METRIC.findall(text))

    assert used - known_metrics() == set()
    assert used


def test_every_metric_is_explained() -> None:
    """A name that a scrape has, and no page explains, is a number that nobody can read."""
    explained = set(METRIC.findall((DEPLOY / "metrics.md").read_text()))
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in known_metrics()}

    assert families - explained == set()


@pytest.mark.parametrize(
    "file", sorted(set(DEPLOY.rglob("*.y*ml")) - set(DEPLOY.rglob("templates/*"))), ids=lambda f: f.name
)
def test_every_yaml_file_loads(file: Path) -> None:
    """A file that an operator copies must at least be YAML."""
    assert yaml.safe_load(file.read_text())


@pytest.mark.promtool
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "groupwatch-rules.yml", "groupwatch-self-rules.yml"],
        ["test", "rules", "groupwatch-self-rules.test.yml"],
    ],
    ids=lambda c: "-".join(c[:2]),
)
def test_prometheus_accepts_our_rules_and_their_tests_pass(command: list[str]) -> None:
    """Each rule fires on its case and stays quiet beside it."""
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is missing (Debian package: prometheus)")

    done = subprocess.run(
        [tool, *command], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_shell_scripts_parse() -> None:
    """The shell finds the slip before the operator does."""
    for script in DEPLOY.rglob("*.sh"):
        assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


@pytest.mark.promtool
def test_prometheus_can_log_in(tmp_path: Path) -> None:
    """By the lines that the shipped configuration shows."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing (Debian package: prometheus)")
    folder = DEPLOY / "prometheus"
    text = (folder / "prometheus.yml").read_text()
    shown = re.sub(r"(?m)^    # ((?:scheme|authorization|tls_config): )", r"    \1", text)
    assert "\n    scheme: https\n" in shown
    (tmp_path / "prometheus.yml").write_text(shown)
    for file in folder.glob("*-rules.yml"):
        shutil.copy(file, tmp_path)
    (tmp_path / "groupwatch-token").write_text("scrape-me-please")
    shutil.copy(certifi.where(), tmp_path / "groupwatch-ca.crt")
    done = subprocess.run(
        ["promtool", "check", "config", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
