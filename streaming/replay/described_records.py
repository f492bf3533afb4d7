"""``groupwatch decode``: takes records of ``__consumer_offsets`` as hex, writes their contents.

It answers each line at once with one JSON object, so that it works in a pipe behind a running source.
"""

import json
from typing import Any, BinaryIO, TextIO

from coordinator_model.decoding import describe


def describe_lines(lines: BinaryIO, out: TextIO) -> None:
    """Write one JSON object per line; an unreadable line becomes an ``error``, and the next follows."""
    for line in lines:
        if not line.strip():
            continue
        try:
            key, value = _captured(line)
        except ValueError as error:
            told: Any = {"error": str(error)}
        else:
            told = describe(key, value)
        out.write(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
        out.flush()  # whoever pipes a running source into us waits for the answers


def _captured(line: bytes) -> tuple[bytes | None, bytes | None]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(row, dict) or "key" not in row:
        raise ValueError('expected {"key": hex, "value": hex or null}')
    return _bytes_of(row, "key"), _bytes_of(row, "value")


def _bytes_of(row: dict[str, Any], name: str) -> bytes | None:
    text = row.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{name} is neither hex nor null")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"{name} is not hex") from None
