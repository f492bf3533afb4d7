"""What is installed is ours, and only ours."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

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


def test_the_released_version_is_kept_and_told() -> None:
    """Each release leaves a world for later ones, a row of upgrade notes and a heading of the changelog."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert (ROOT / "tests" / "golden" / "checkpoints" / f"v{version}.tar.xz").exists()
    assert f"\n| {version} |" in (ROOT / "deploy" / "upgrading.md").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_the_project_never_reaches_a_package_index() -> None:
    """The classifier makes an upload fail."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert "Private :: Do Not Upload" in project["classifiers"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Our wheel, built as the documents say, with the locked builders."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q", "-w", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("groupwatch-*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_has_every_file_of_ours_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """The page, the lock of the jars and the message schemas are no Python, and needed all the same."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *OURS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git checkout: nobody says which files are ours")
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert inside >= {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    assert {name.split("/")[0] for name in inside} == set(OURS)


def test_the_wheel_brings_its_command_and_its_license(wheel: zipfile.ZipFile) -> None:
    """And asks for what the project names, which are no tools of developers."""
    metadata = {
        name.split("/", 1)[1]: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name
    }
    asked = {
        one.split(":", 1)[1].strip()
        for one in metadata["METADATA"].splitlines()
        if one.startswith("Requires-Dist")
    }

    assert "groupwatch = streaming.cli:main" in metadata["entry_points.txt"]
    assert metadata["licenses/LICENSE"] == (ROOT / "LICENSE").read_text()
    assert metadata["licenses/NOTICE"] == (ROOT / "NOTICE").read_text()
    optional, needed = {one for one in asked if "; extra ==" in one}, _project()["dependencies"]
    assert {_distribution(one) for one in asked - optional} == {_distribution(one) for one in needed}
    assert {_distribution(one) for one in optional} == {"mcp"}


def test_the_lock_for_running_is_a_part_of_the_one_that_is_tested() -> None:
    """The same versions and files, with what assistants need, and none of what only developers need."""
    tested, run = (_locked(name) for name in ("requirements.lock", "requirements-run.lock"))
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]

    assert run.items() <= tested.items()
    (extra,) = _project()["optional-dependencies"].values()
    assert run.keys() >= {_distribution(one) for one in [*_project()["dependencies"], *extra]}
    assert run.keys() & {_distribution(one) for one in group} == set()


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _distribution(requirement: str) -> str:
    """Return the name in a requirement as locks spell it."""
    return re.split(r"[ <>=!~;\[]", requirement)[0].lower().replace("_", "-")


def _locked(name: str) -> dict[str, str]:
    """Return each distribution of a lock with its version and hashes, as one text."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    return {entry.split("==")[0]: " ".join(entry.split()) for entry in entries}
