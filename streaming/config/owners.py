"""Who owns which groups, as told by a file that others write, for instance from a service catalogue."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from streaming.config.receivers import OwnerConfig
from streaming.config.source import parse

_ENTRIES = TypeAdapter(list[OwnerConfig])
_MISTAKES_MAX = 5


def read_owners(path: str) -> list[OwnerConfig]:
    """Return the entries of a file: YAML or JSON, a list as ``owners`` of the configuration is.

    Variables of the environment are not put in: whoever writes the file may not learn them.

    Raises:
        ValueError: the file cannot be used; the text names every mistake.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"owners_file: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"owners_file: is not UTF-8 (byte {error.start})") from None
    source = parse(text, {})
    if source.mistakes:
        raise ValueError(f"owners_file: {'; '.join(one.message for one in source.mistakes[:_MISTAKES_MAX])}")
    try:
        return _ENTRIES.validate_python(source.values or [])
    except ValidationError as error:
        told = [
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
            for one in error.errors(include_input=False)[:_MISTAKES_MAX]
        ]
        raise ValueError(f"owners_file: {'; '.join(told)}") from None
