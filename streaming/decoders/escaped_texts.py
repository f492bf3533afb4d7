"""Texts as they stand in a JSON string, as a shipper's envelope has them; also in one inside another."""

import re

_CONTROL = re.compile(rb"[\x00-\x1f]")


def escaped(text: bytes, depth: int = 1) -> bytes:
    """Return a text without control characters and backslashes as it stands in ``depth`` JSON strings."""
    return text.replace(b'"', _quote(depth))


def unescaped(text: bytes, depth: int = 1) -> bytes | None:
    """Return what such a text means; None if it has other escapes than those of quotes, or is none."""
    quote = _quote(depth)
    pairs = text.count(quote)
    if text.count(b"\\") != pairs * (len(quote) - 1) or text.count(b'"') != pairs or not text.isascii():
        return None
    return None if _CONTROL.search(text) else text.replace(quote, b'"')


def _quote(depth: int) -> bytes:
    return b"\\" * ((1 << depth) - 1) + b'"'
