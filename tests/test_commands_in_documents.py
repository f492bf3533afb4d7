"""What documents name to type or to open is there: commands, options, make targets, programs, files."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from streaming.cli import application
from streaming.devkit.bench import command as bench
from streaming.devkit.consumers import play

ROOT = Path(__file__).parent.parent
PARTS = (".ci", "alerts", "coordinator_model", "deploy", "docs", "streaming", "tests")
DOCUMENTS = sorted(
    one
    for one in [*ROOT.glob("*.md"), *(file for part in PARTS for file in (ROOT / part).rglob("*.md"))]
    if one.name != "CHANGELOG.md"  # tells of what was
)
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
SHELLS = {"", "sh", "bash", "console"}
BREAKS = re.compile(r"[;|&()]+")
STARTS = ("groupwatch", "make", "python", "python3")
BEFORE = {"{", "do", "then", "exec"}
"""Words of a shell that stand before a command."""
FILE = re.compile(r"[\w.-]+(?:/[\w.*<>-]+)+\.(?:py|md|ya?ml|json|js|sh|toml|java)|[\w-]+\.py")
"""A path of ours, or a module: other names may be files of the reader's."""
READERS = "tutorial/"
"""Where a reader of the tutorial writes."""
SKIPPED = {".git", ".venv", ".cache", "__pycache__"}


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _lines(text: str) -> Iterator[str]:
    """Yield what may be a line for a shell: those of blocks, and spans of code."""
    for language, block in BLOCK.findall(text):
        if language in SHELLS:
            yield from (line.strip().removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines())
    for span in SPAN.findall(BLOCK.sub("", text)):
        if _program(span.split(" ", 1)[0]) in STARTS:
            yield span


def commands(text: str) -> Iterator[list[str]]:
    """Yield each command of ours in a document as its words; the program is named without its folder."""
    for line in _lines(text):
        lexer = shlex.shlex(line.replace("\\|", "|"), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # a quote that a sentence leaves open: no line for a shell
            continue
        yield from _ours(words)


def _ours(words: Sequence[str]) -> Iterator[list[str]]:
    begun: list[str] = []
    for word in [*words, ";"]:
        if not BREAKS.fullmatch(word):
            begun.append(word)
            continue
        if begun[:2] == ["docker", "compose"] and "groupwatch" in begun:
            begun = begun[begun.index("groupwatch") + 1 :]  # behind the service of that name
        while begun and ("=" in begun[0] or begun[0] in BEFORE):
            begun.pop(0)
        if begun[:1] == ["timeout"]:
            begun = begun[next((n for n, one in enumerate(begun) if _program(one) in STARTS), 0) :]
        if len(begun) > 1 and _program(begun[0]) in STARTS:
            yield [_program(begun[0]), *begun[1:]]
        begun = []


def _program(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def misunderstood(words: Sequence[str]) -> list[str]:
    """Return the words of a command that mean nothing; the others are names and values of the reader's."""
    program, *rest = words
    if program == "groupwatch":
        return _of_groupwatch([word.strip("[]") for word in rest])
    if program == "make":
        return [word for word in rest if re.fullmatch(r"[a-z-]+", word) and word not in _targets()]
    if rest[0] == "-m":
        return _of_module(rest[1], rest[2:])
    is_ours = rest[0].endswith(".py") and "/" in rest[0]
    return [rest[0]] if is_ours and not (ROOT / rest[0]).exists() else []


@cache
def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _of_groupwatch(words: Sequence[str]) -> list[str]:
    if words[:1] == ["bench"]:
        return _refused(bench._parser().parse_args, words[1:])
    command: Any = get_command(application(words))
    everywhere = _options(command)
    wrong: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word.startswith("--"):
            name, has_value, _ = word.partition("=")
            takes = (everywhere | _options(command)).get(name)
            wrong += [word] if takes is None else []
            del left[: 1 if takes and not has_value else 0]
        elif isinstance(command, TyperGroup) and re.fullmatch(r"[a-z-]+", word):
            if word not in command.commands:
                return [*wrong, word]
            command = command.commands[word]
    return wrong


def _options(command: Any) -> dict[str, bool]:
    """Option -> whether a value follows it."""
    found = {"--help": False}
    for parameter in command.params:
        found |= dict.fromkeys(parameter.opts, not getattr(parameter, "is_flag", False))
    return found


def _of_module(name: str, words: Sequence[str]) -> list[str]:
    if name == "streaming.devkit.consumers" and words:
        return _refused(play.parser().parse_args, words)
    if name.split(".", maxsplit=1)[0] not in {"streaming", "alerts", "coordinator_model", "deploy", "tests"}:
        return []
    place = ROOT.joinpath(*name.split("."))
    return [] if place.with_suffix(".py").exists() or (place / "__main__.py").exists() else [name]


def _refused(parse: Callable[[Sequence[str]], object], words: Sequence[str]) -> list[str]:
    try:
        parse(words)
    except SystemExit as end:
        return list(words) if end.code else []
    return []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_what_a_document_tells_to_type_is_understood(document: Path) -> None:
    """Commands and options of groupwatch, targets of make, our own programs."""
    wrong = {
        " ".join(words): found for words in commands(document.read_text()) if (found := misunderstood(words))
    }

    assert wrong == {}


@cache
def _files() -> str:
    """Every file, one a line, with a slash before its path."""
    found: list[str] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [one for one in folders if one not in SKIPPED]
        found += [f"/{Path(folder, name).relative_to(ROOT)}" for name in names]
    return "\n".join(found)


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_files_named_in_a_document_exist(document: Path) -> None:
    """By their path, or by its last parts where the sentence says in which folder."""
    named = {one for one in SPAN.findall(BLOCK.sub("", document.read_text())) if FILE.fullmatch(one)}
    gone = [
        one
        for one in sorted(named)
        if not one.startswith(READERS)
        and not re.search(f"/{re.sub(r'<[^>]*>|[*]', '[^/]*', one)}$", _files(), re.MULTILINE)
    ]

    assert gone == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("```\ngroupwatch run --config x\n```", [], id="a-good-one"),
        pytest.param("```sh\n.venv/bin/groupwatch run --confg x\n```", ["--confg"], id="option-in-a-block"),
        pytest.param("say `groupwatch kafka upp`", ["upp"], id="command-in-a-span"),
        pytest.param("`groupwatch --log-level debug silence add --grp x`", ["--grp"], id="behind-a-value"),
        pytest.param("```\nA=1 make demmo && true\n```", ["demmo"], id="target"),
        pytest.param("```\npython -m streaming.nobody\n```", ["streaming.nobody"], id="program"),
        pytest.param(
            "```\nwhile true; do timeout 9 python -m streaming.nobody; done &\n```",
            ["streaming.nobody"],
            id="program-in-a-loop",
        ),
        pytest.param("`groupwatch bench sleep`", ["sleep"], id="row-of-the-bench"),
        pytest.param("```yaml\ngroupwatch runn\n```", [], id="no-shell"),
    ],
)  # fmt: skip
def test_a_slip_of_the_pen_is_found(text: str, wrong: list[str]) -> None:
    """Wherever it stands."""
    assert [word for words in commands(text) for word in misunderstood(words)] == wrong
