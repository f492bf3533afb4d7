"""Adds options that the reference configuration does not show yet, from their declarations."""

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel

from streaming.config.config import Config
from tests.tables.tables import written

_COMMENT_COLUMN = 40
_APART = ("rules",)
"""Blocks that have a writer of their own."""


class _Missing(NamedTuple):
    after: int
    """The line before it, from 0."""
    text: str


def with_options(reference: str) -> str:
    """Return the reference configuration with every option, each behind the one declared before it."""
    lines = reference.splitlines()
    found = list(_missing(Config, yaml.compose(reference, Loader=yaml.SafeLoader)))
    for one in sorted(found, key=lambda one: one.after, reverse=True):
        lines.insert(_behind_comment(lines, one.after) + 1, one.text)
    return "\n".join(lines) + "\n"


def _missing(model: type[BaseModel], node: yaml.Node | None) -> Iterator[_Missing]:
    while isinstance(node, yaml.SequenceNode) and node.value:
        node = node.value[0]
    if not isinstance(node, yaml.MappingNode) or not node.value:
        return
    shown = {key.value: value for key, value in node.value}
    last = node.start_mark.line
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in shown:
            last = _last_line(shown[key])
            inner = _model_in(field.annotation)
            if inner is not None and key not in _APART:
                yield from _missing(inner, shown[key])
        elif field.get_default(call_default_factory=True) is not None and not field.is_required():
            default = written(name, field.get_default(call_default_factory=True))
            text = " " * node.start_mark.column + f"{key}: {default}"
            yield _Missing(last, f"{text:<{_COMMENT_COLUMN}}# {_meanings(model).get(name, '')}".rstrip("# "))


def _last_line(node: yaml.Node) -> int:
    children = (
        [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    )
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not children:
        return int(node.end_mark.line)
    return _last_line(children[-1])


def _behind_comment(lines: list[str], line: int) -> int:
    """Return the last line of the comment that goes on behind an option."""
    while line + 1 < len(lines) and lines[line + 1].startswith(" " * _COMMENT_COLUMN + "#"):
        line += 1
    return line


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return the first line of each field's docstring."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(declared, ast.ClassDef)
    pairs = zip(declared.body, declared.body[1:], strict=False)
    return {
        field.target.id: _begun(str(text.value.value))
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _begun(meaning: str) -> str:
    first = meaning.partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]
