"""A tool as a value: its words, what it takes, what it gives.  Pure; knows neither groups nor the SDK.

What a field means stands below it in its class, as everywhere here; a model reads the same sentence in the
schema.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, get_args

import msgspec

_REFS = "#/$defs/"


class ToolError(Exception):
    """A tool cannot answer; the message is for the assistant, which may ask again otherwise."""


class Told(NamedTuple):
    """What a tool has found."""

    answer: msgspec.Struct
    """As data, of the type that the tool promises."""
    text: str = ""
    """In words; "": the data say it."""


class Tool(NamedTuple):
    """Something that assistants may call."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    """They forbid unknown fields."""
    answer: type[msgspec.Struct]
    call: Callable[[Any], Told]
    """Takes the arguments; may raise ``ToolError``."""


def answer_of(tool: Tool, given: Mapping[str, Any] | None) -> Told:
    """Return what ``tool`` says to these arguments; null and "" are as good as nothing, "5" as good as 5.

    Raises:
        ToolError: it does not take them, or has no answer.
    """
    named = {name: value for name, value in (given or {}).items() if value not in (None, "")}
    try:
        arguments = msgspec.convert(named, tool.arguments, strict=False)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise ToolError(f"{tool.name} does not take these arguments: {error}") from error
    return tool.call(arguments)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a type, in one piece: not every client follows references.

    Fields have their docstrings as descriptions, where the source is at hand.
    """
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REFS + "{name}")
    for struct in _structs(kind, {}):
        fields = parts[struct.__name__]["properties"]
        for name, meaning in _meanings(struct).items():
            fields[name] = {"description": meaning} | fields[name]
    whole: dict[str, Any] = _inlined(root, parts)
    return whole


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Replace references; types that hold themselves are not used here."""
    if isinstance(schema, list):
        return [_inlined(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = parts[schema["$ref"].removeprefix(_REFS)]
        schema = {**part, **{name: value for name, value in schema.items() if name != "$ref"}}
        return _inlined(schema, parts)
    # A type's name says nothing to a model; a field may be called title.
    return {
        name: _inlined(value, parts)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str))
    }


def _structs(kind: Any, found: dict[Any, None]) -> list[type[msgspec.Struct]]:
    """Return the types of which a type is made, itself included; ``found`` are those met before."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
        found[kind] = None
        for field in msgspec.structs.fields(kind):
            _structs(field.type, found)
    for part in get_args(kind):
        _structs(part, found)
    return list(found)


def _meanings(kind: type) -> dict[str, str]:
    """Return field -> the docstring below it."""
    try:
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except OSError:
        return {}
    found = {}
    for field, below in pairwise(declared.body if isinstance(declared, ast.ClassDef) else ()):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
