"""What the documents say exists, exists, and nothing committed speaks of one machine or one registry."""

import importlib
import itertools
import pkgutil
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import alerts.rules
from alerts.rules.engine import Rule
from alerts.rules.registry import ALL_RULES
from streaming.cli import application
from streaming.config.config import load_config, parse_config
from tests.metric_names import METRIC, known_metrics

ROOT = Path(__file__).parent.parent
PARTS = ("alerts", "coordinator_model", "deploy", "docs", "streaming")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(file for part in PARTS for file in (ROOT / part).rglob("*.md"))])
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)|<img\b([^>]*)>")
PICTURE_BYTES_MAX = 250_000
WORDS_MIN = 4
"""Of a text that stands for a picture: a file's name tells nobody what is on it."""
ROW = re.compile(r"^\| `groupwatch ([^`]+)` \|", re.MULTILINE)
FOREIGN = re.compile(
    rb"[a-z0-9.-]*(maven|pypi|pythonhosted|npmjs|golang|crates)[a-z0-9-]*\.(org|com|io)"
    rb"|(^|[^A-Za-z0-9_.])/(work|root|farm)/",
    re.MULTILINE,
)


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub and others make of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def _anchors(document: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    return {_anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    """To a file or folder that is there, and to a heading in it."""
    dead = []
    for link in LINK.findall(document.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            dead.append(link)

    assert dead == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_every_picture_is_there_and_told_in_words(document: Path) -> None:
    """Who cannot see it reads what is on it."""
    wrong = []
    for text, path, tag in PICTURE.findall(document.read_text()):
        told = text or "".join(re.findall(r'alt="([^"]*)"', tag))
        source = path or "".join(re.findall(r'src="([^"]*)"', tag))
        if len(told.split()) < WORDS_MIN or not (document.parent / source).is_file():
            wrong.append(source)

    assert wrong == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*")), ids=lambda one: one.name)
def test_every_picture_is_small_and_shown(picture: Path) -> None:
    """A clone stays quick, and none is left behind when its document changes."""
    links = [
        (document.parent / link.partition("#")[0]).resolve()
        for document in DOCUMENTS
        for link in LINK.findall(document.read_text())
    ]

    assert picture.stat().st_size < PICTURE_BYTES_MAX
    assert picture in links


def _documented() -> list[list[str]]:
    """The rows of README's table of commands; `a|b|c` is three commands, words in capitals are the user's."""
    commands = []
    for words in ROW.findall((ROOT / "README.md").read_text()):
        plain = [word for word in words.split() if re.fullmatch(r"[a-z|\\-]+", word) and word[0] != "-"]
        choices = itertools.product(*(word.split("\\|") for word in plain))
        options = re.findall(r"--[a-z-]+", words)
        commands += [[*names, *options] for names in choices]
    return commands


def _options(command: typer.core.TyperCommand) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("words", _documented(), ids=" ".join)
def test_commands_and_options_of_the_readme_exist(words: list[str]) -> None:
    """What a reader types is understood."""
    command = get_command(application(words))
    names = [word for word in words if not word.startswith("--")]
    for name in names:
        command = command.commands[name]  # type: ignore[attr-defined]  # a group of commands

    assert set(words) - set(names) - _options(command) == set()  # type: ignore[arg-type]


def test_the_readme_names_every_command() -> None:
    """Nothing that can be typed is a secret."""
    commands = get_command(application([])).commands  # type: ignore[attr-defined]  # a group of commands

    assert {words[0] for words in _documented()} == set(commands)


def test_every_rule_that_can_fire_has_a_runbook() -> None:
    """And no runbook is about an alert that nobody can get."""
    runbooks = {file.stem for file in (ROOT / "alerts" / "runbooks").glob("*.md")}

    assert runbooks == {rule.name for rule in ALL_RULES}


def test_every_rule_that_is_declared_is_in_the_registry() -> None:
    """A rule that nobody asks would never fire, and nobody would notice."""
    found = [
        value for module in _rule_modules() for value in vars(module).values() if isinstance(value, Rule)
    ]

    assert {rule.name for rule in found} == {rule.name for rule in ALL_RULES}


def _rule_modules() -> Iterator[object]:
    for found in pkgutil.walk_packages(alerts.rules.__path__, "alerts.rules."):
        yield importlib.import_module(found.name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_metrics_named_in_documents_exist(document: Path) -> None:
    """A query copied from a page finds something."""
    known = known_metrics()
    families = {name.removesuffix("_bucket") for name in known}

    assert set(METRIC.findall(document.read_text())) - known - families == set()


@pytest.mark.parametrize("file", ["deploy/groupwatch.yaml", "deploy/compose/groupwatch.yaml"])
def test_configurations_to_copy_load(file: str) -> None:
    """Without any environment variable set."""
    assert load_config(ROOT / file, environment={}).clusters


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_configurations_shown_in_documents_load(document: Path) -> None:
    """A block of YAML that begins with the clusters is a whole configuration."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```", document.read_text(), re.MULTILINE | re.DOTALL)
    for indent, block in blocks:
        text = re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        if text.startswith("clusters:"):
            assert parse_config(text, environment={}).clusters


def test_nothing_committed_names_a_registry_or_a_path_of_one_machine() -> None:
    """Mirrors and folders differ from place to place."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout: nobody says which files are ours")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        file = ROOT / name
        content = file.read_bytes() if file.is_file() else b""
        if b"\0" not in content:
            found += [(name, match.group().decode()) for match in FOREIGN.finditer(content)]

    assert found == []


def test_every_room_is_on_the_map() -> None:
    """A room that nobody can find is entered past its door."""
    known = set(re.findall(r"`(\w+)/`", (ROOT / "docs" / "house.md").read_text()))
    rooms = {
        door.parent.name
        for top in ("coordinator_model", "alerts", "streaming")
        for door in (ROOT / top).glob("*/__init__.py")
    }

    assert rooms - known == set()
