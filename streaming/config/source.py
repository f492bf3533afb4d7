"""Parses a YAML file into plain values, with the place of every key, and inserts environment variables.

It does not know what the keys mean; ``config.py`` does.  A mistake is a value (path, message), so that a
reader sees all of them at once.  No message repeats the file's text: any of it may be part of a password,
even where an alias, a tag or a variable is expected.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

Path = tuple[str | int, ...]
"""The place of a value: keys and list positions from the top of the file."""

_KEY = re.compile(r"[^\s:/@=\\]{0,64}")
"""Without a space after its colon YAML takes a value as part of the key: an address, a token in a header."""
_SECRET_LENGTH_MIN = 4
"""Shorter values are numbers or our own words; redaction would cut them out of every sentence."""
_VARIABLE = re.compile(r"\$(\$)?\{([^}]*)(\})?")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


_BYTES_MAX = 1024 * 1024
_VALUES_MAX = 50_000
"""Most keys and values of a file; an alias counts as everything it stands for."""

_TOKENS = re.compile(r"expected ',' or '[\]}]', but got '(<[a-z ]+>|[^']{1,2})'")
"""The one problem whose quoted words are YAML's own."""
_QUOTED = re.compile(r"['\"].*['\"]", re.DOTALL)
"""The parts of the file that PyYAML's messages repeat: an alias, a tag, a character."""


class _TooManyValuesError(ValueError):
    """Aliases make more values than any configuration has."""


class Mistake(NamedTuple):
    """One mistake in a configuration file; ``path`` is "" for the file as a whole."""

    path: str
    message: str


class Source(NamedTuple):
    """A parsed file: its values, the line of each path (from 1), and the mistakes found so far."""

    values: Any
    lines: Mapping[Path, int]
    mistakes: list[Mistake]
    from_environment: frozenset[str] = frozenset()
    """The values of inserted variables: mostly secrets."""

    def placed(self, mistake: Mistake) -> Mistake:
        """Return a mistake with the line of its path, unless its message names a line already."""
        lines = (line for path, line in self.lines.items() if path_text(path) == mistake.path)
        line = None if "(line" in mistake.message else next(lines, None)
        return mistake if line is None else Mistake(mistake.path, f"{mistake.message} (line {line})")

    def redacted(self, mistake: Mistake) -> Mistake:
        """Return a mistake without values from the environment."""
        path, message = mistake
        for secret in sorted(self.from_environment, key=len, reverse=True):
            for written in (secret, repr(secret)[1:-1]):
                path, message = path.replace(written, "…"), message.replace(written, "…")
        return Mistake(path, message)


def path_text(path: Path) -> str:
    """Return ``path`` as users write it: ``clusters[0].offsets.topic``, with plausible keys only."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _KEY.fullmatch(str(part)) else "…"
            text += f".{key}" if text else str(key)
    return text


def parse(text: str, environment: Mapping[str, str] | None = None) -> Source:
    """Parse YAML ``text`` and put in ``${NAME}`` and ``${NAME:-default}`` (``$${`` stands for ``${``).

    Args:
        text: the file's content.
        environment: variables; the process's own by default.
    """
    if len(text) > _BYTES_MAX:
        return Source(None, {}, [Mistake("", f"has more than {_BYTES_MAX} characters")])
    try:
        return _parsed(text, os.environ if environment is None else environment)
    except _TooManyValuesError as error:
        return Source(None, {}, [Mistake("", str(error))])
    except yaml.MarkedYAMLError as error:
        return Source(None, {}, [_syntax_mistake(error)])
    except (yaml.YAMLError, ValueError) as error:
        return Source(None, {}, [Mistake("", f"not YAML: {_what(error)}")])
    except RecursionError:
        return Source(None, {}, [Mistake("", "nested too deeply, or with an alias that contains itself")])


def _parsed(text: str, environment: Mapping[str, str]) -> Source:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is not None and _size(node, {}) > _VALUES_MAX:
        raise _TooManyValuesError(f"more than {_VALUES_MAX} keys and values, with every alias written out")
    values = yaml.safe_load(text)
    lines: dict[Path, int] = {}
    mistakes: list[Mistake] = []
    if node is not None:
        mistakes.extend(_walk(node, (), lines))
    found: set[str] = set()
    substituted = _substituted(values, (), environment, mistakes, found)
    return Source(substituted, lines, mistakes, frozenset(found))


def _syntax_mistake(error: yaml.MarkedYAMLError) -> Mistake:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    parts = [_safe(part) for part in (error.context, error.problem) if part]
    return Mistake("", f"not YAML: {where}{', '.join(dict.fromkeys(parts))}")


def _safe(problem: str) -> str:
    """Return PyYAML's message without the text that it repeats from the file."""
    if _TOKENS.fullmatch(problem):
        return problem + ' (a variable inside { } needs quotes: "${NAME}")' * problem.endswith("'{'")
    if not _QUOTED.search(problem):
        return problem
    return _QUOTED.sub("…", problem) + " (quote texts that begin with or hold special characters)"


def _what(error: Exception) -> str:
    """Return the kind of an error without a place; its text may repeat some of the file."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.position + 1} is not allowed in YAML"
    return "it has a number or date that does not exist"


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many keys and values ``node`` stands for; an alias counts as what it stands for."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = _VALUES_MAX + 1  # an alias that contains itself never ends
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_size(item, known) for item in node.value)
    elif isinstance(node, yaml.MappingNode):
        size += sum(_size(key, known) + _size(value, known) for key, value in node.value)
    known[id(node)] = size
    return size


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Iterator[Mistake]:
    """Note each path's line; yield keys given twice (YAML would silently keep the last)."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _walk(item, (*path, position), lines)
    elif isinstance(node, yaml.MappingNode):
        yield from _walk_mapping(node, path, lines)


def _walk_mapping(node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for key, value in node.value:
        name = str(key.value)
        here = (*path, name)
        line = key.start_mark.line + 1
        if name in first:
            yield Mistake(path_text(here), f"given twice (lines {first[name]} and {line})")
            continue
        first[name] = line
        yield from _walk(value, here, lines)
        lines[here] = line


def _substituted(
    value: Any, path: Path, environment: Mapping[str, str], mistakes: list[Mistake], found: set[str]
) -> Any:
    if isinstance(value, str):
        text = _text_substituted(value, path, environment, mistakes, found)
        if not _is_text(text):
            mistakes.append(Mistake(path_text(path), "has a character that is not allowed in text"))
        return text
    if isinstance(value, dict):
        return {
            key: _substituted(item, (*path, str(key)), environment, mistakes, found)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _substituted(item, (*path, position), environment, mistakes, found)
            for position, item in enumerate(value)
        ]
    return value


def _is_text(text: str) -> bool:
    """Say whether every program can take ``text``: a NUL ends it for some, and half a character is none."""
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


def _text_substituted(
    text: str, path: Path, environment: Mapping[str, str], mistakes: list[Mistake], values: set[str]
) -> str:
    def one(match: re.Match[str]) -> str:
        escaped, inner, closed = match.groups()
        if escaped:
            return match[0][1:]
        name = _NAME.fullmatch(inner) if closed else None
        if name is None:
            mistakes.append(
                Mistake(
                    path_text(path),
                    "${ is not followed by a variable: write ${NAME} or ${NAME:-default}, "
                    "or $${ for a literal ${",
                )
            )
            return match[0]
        variable, default = name.groups()
        found = environment.get(variable)
        if not found and default is not None:
            found = default
        if found is None:
            mistakes.append(Mistake(path_text(path), f"the environment variable {variable} is not set"))
            return match[0]
        if len(found) >= _SECRET_LENGTH_MIN:
            values.add(found)
        return found

    return _VARIABLE.sub(one, text)
