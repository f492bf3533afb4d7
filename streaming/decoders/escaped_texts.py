"""Texts as they stand in a JSON string, as a shipper's envelope has them."""

import re

_CONTROL = re.compile(rb"[\x00-\x1f]")


def escaped(text: bytes) -> bytes:
    """Return a text without control characters and backslashes as it stands in a JSON string."""
    return text.replace(b'"', b'\\"')


def unescaped(text: bytes) -> bytes | None:
    """Return what such a text means; None if it has other escapes than those of quotes, or is none."""
    pairs = text.count(b'\\"')
    if text.count(b"\\") != pairs or text.count(b'"') != pairs or not text.isascii():
        return None
    return None if _CONTROL.search(text) else text.replace(b'\\"', b'"')
