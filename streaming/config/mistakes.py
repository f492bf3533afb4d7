"""Rewords a model's errors for the author of the file, with path and line."""

import difflib
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from streaming.config.source import Mistake, Path, Source, path_text


def mistakes_in(error: ValidationError, source: Source, model: type[BaseModel]) -> Iterator[Mistake]:
    """Yield the mistakes, except those that only follow from a mistake of the source.

    Args:
        error: the errors that ``model`` found.
        source: the file that was checked.
        model: the model of the whole file; it knows the keys.
    """
    told = {mistake.path for mistake in source.mistakes}
    found = (_mistake(one, source, model) for one in error.errors())
    return (mistake for mistake in found if not _follows(mistake.path, told))


def _follows(path: str, told: set[str]) -> bool:
    """Say whether a mistake only follows from a reported one about the same value."""
    return path in told or path.split("[", 1)[0] in told or path.rsplit("[", 1)[0] in told


_IN_WORDS = {
    "missing": "is required",
    "model_type": "expected keys and values",
    "dict_type": "expected keys and values",
    "list_type": "expected a list",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "invalid_key": "expected text as the key",
}
"""Pydantic's kind of error → words for a reader without Python."""


def _mistake(error: Mapping[str, Any], source: Source, model: type[BaseModel]) -> Mistake:
    path = _file_path(error["loc"], source.values)
    if error["type"] == "extra_forbidden":
        message = _unknown_key(path, model)
    else:
        said = (
            error["msg"]
            .removeprefix("Value error, ")
            .replace("Input should be", "must be")
            .replace("String should", "must")
        )
        message = _IN_WORDS.get(error["type"], said)
    line = source.lines.get(path)
    return Mistake(path_text(path), f"{message} (line {line})" if line else message)


def _file_path(location: tuple[str | int, ...], values: Any) -> Path:
    """Return pydantic's location without the names of union branches, which are not in the file."""
    path: list[str | int] = []
    for position, part in enumerate(location):
        inside = isinstance(values, dict | list)
        last = position == len(location) - 1
        if not inside or (isinstance(values, list) and isinstance(part, str)):
            continue
        if isinstance(values, dict) and part not in values and not last:
            continue
        path.append(part)
        values = _child(values, part)
    return tuple(path)


def _child(values: Any, part: str | int) -> Any:
    if isinstance(values, dict):
        return values.get(part)
    return values[part] if isinstance(part, int) and part < len(values) else None


def _unknown_key(path: Path, model: type[BaseModel]) -> str:
    known = _known_keys(path[:-1], model)
    close = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.6)
    if close:
        return f"unknown key; did you mean {close[0]!r}?"
    return f"unknown key; known here: {', '.join(sorted(known))}"


def _known_keys(path: Path, model: Any) -> list[str]:
    for part in path:
        if isinstance(part, int):
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        model = _model_in(fields[part].annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    """Return the model inside ``list[...]``, ``... | None`` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)
