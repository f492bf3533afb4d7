"""What is installed is ours, and only ours."""

import importlib.metadata
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = ("coordinator_model", "alerts", "streaming")


def test_nobody_else_owns_our_plain_package_names() -> None:
    """Another distribution that ships ``streaming/`` would overwrite ours without a word."""
    owners = importlib.metadata.packages_distributions()

    for name in OURS:
        assert set(owners.get(name, ["groupwatch"])) == {"groupwatch"}


def test_installed_version_is_the_projects() -> None:
    """An environment that was set up for another version says so here, not at three in the morning."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert importlib.metadata.version("groupwatch") == project["version"]


def test_the_project_never_reaches_a_package_index() -> None:
    """The classifier makes an upload fail."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert "Private :: Do Not Upload" in project["classifiers"]
