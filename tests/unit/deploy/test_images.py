"""The images: what is in them, by their Dockerfile; and its build, played in an empty folder."""

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from streaming.devkit.kafka import free_ports
from tests.unit.deploy.dockerfile import DOCKERFILE, ROOT, Container, context, stage, stages
from tests.unit.deploy.started import first_answer

DEVELOPERS = ("pytest", "hypothesis", "coverage", "ruff", "mypy", "importlinter", "confluent_kafka", "psutil")
NETWORK = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT", "JAVA_HOME", "GROUPWATCH_IVY_SETTINGS")
"""Variables of this machine by which pip, Ivy and Java work here; an image is built without them."""


def test_bases_are_pinned() -> None:
    """By tag, for readers, and by digest."""
    arguments, _ = stages()

    assert all(
        re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}", one) for one in arguments.values()
    )
    assert {one.base for one in stages()[1]} <= {"${PYTHON}", "${SPARK}", "build"}


@pytest.mark.parametrize("name", ["process", "spark"])
def test_images_end_as_a_user_without_rights(name: str) -> None:
    """By number, as Kubernetes asks for it; and with what the build made, not with what it needed."""
    final = stage(name)

    assert int(final.last("USER").split(":")[0]) > 0
    assert not [
        one for one in final.instructions if one.word == "COPY" and not one.text.startswith("--from=")
    ]
    assert not [one for one in final.instructions if "pip" in one.text.split()]


def test_the_image_without_a_target_is_that_of_one_process() -> None:
    """The last stage is what ``docker build`` makes by itself."""
    assert stages()[1][-1].name == "process"


def test_compose_builds_the_image_of_one_process() -> None:
    """From the root of the checkout, as the Dockerfile wants it."""
    compose = ROOT / "deploy" / "compose" / "compose.yaml"
    build = yaml.safe_load(compose.read_text())["services"]["groupwatch"]["build"]

    assert (compose.parent / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == DOCKERFILE


def test_sparks_entry_point_is_its_own() -> None:
    """Spark on Kubernetes calls it with its own words."""
    copied = [one.text for one in stage("spark").instructions if "entrypoint.sh" in one.text]

    assert copied == [
        "--from=spark-files /opt/entrypoint.sh /opt/decom.sh /opt/",
        '["/opt/entrypoint.sh"]',
    ]


def test_the_build_sees_only_what_it_copies() -> None:
    """No test, no cache and no file that somebody left in the checkout."""
    tops = {file.parts[0] for file in context()}

    assert tops == {
        "LICENSE", "NOTICE", "README.md", "alerts", "coordinator_model", "deploy", "pyproject.toml",
        "requirements-build.lock", "requirements-run.lock", "streaming",
    }  # fmt: skip
    assert [str(file) for file in context() if file.parts[0] == "deploy"] == ["deploy/images/submitted.py"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder that does not outlive its test: the build fills it with 2 GB."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.spark
def test_the_build_makes_a_groupwatch_that_runs(folder: Path) -> None:
    """Its pip steps, the jars and the entry point as written, in an empty folder and environment."""
    inherited = {name: value for name, value in os.environ.items() if name.startswith(NETWORK)}
    container = Container(folder, Path(os.path.realpath(sys.executable)), inherited)

    container.play(stage("build"))
    version = container.entry(stage("process"), "--version")
    example = container.entry(stage("process"), "check-config", str(ROOT / "deploy" / "groupwatch.yaml"))
    jars = container.entry(stage("process"), "jars")

    config = folder / "etc" / "groupwatch" / "groupwatch.yaml"
    (port,) = free_ports(1)
    config.parent.mkdir(parents=True)
    config.write_text(
        f"clusters: [{{name: prod-eu, bootstrap_servers: ['127.0.0.1:9']}}]\n"
        f"checkpoint: {folder}/checkpoint\nhttp: {{port: {port}}}\n"
    )
    process = container.start(stage("process"), folder / "log")
    try:
        healthy = first_answer(f"http://127.0.0.1:{port}/healthz", process)
        process.terminate()
        code = process.wait(timeout=100)
    finally:
        process.kill()
        process.wait()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (version.returncode, version.stdout) == (0, f"groupwatch {project['version']}\n"), version.stderr
    assert "is fine: prod-eu" in example.stdout, example.stdout + example.stderr
    baked = {Path(line) for line in jars.stdout.splitlines()}
    assert (len(baked), jars.stderr) == (4, "")  # nothing was fetched again
    assert {file for file in (folder / "opt").rglob("*.jar") if "kafka" in file.name} <= baked
    assert (healthy.status_code, code) == (200, 0), (folder / "log").read_text()
    packages = {file.name.lower() for file in folder.glob("opt/groupwatch/lib/python*/site-packages/*")}
    assert {"streaming", "alerts", "coordinator_model", "pyspark", "mcp"} <= packages
    assert packages & {*DEVELOPERS, "pip", "setuptools"} == set()
