"""Keeps secrets out of what is said about deliveries: a receiver's answer may repeat what it was sent."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

_STARS = "***"
_PASSWORD_MIN = 4
_PART_MIN = 8
"""Shorter parts of a path are words like ``hook``; many services have their token there."""
_BEGUN_MIN = 3
"""So many characters of a secret at the end of a text may be its beginning."""
_CUT_CHARACTER = "\N{REPLACEMENT CHARACTER}"
"""What stands at the end of a text that was cut within a character."""
_WORDS = frozenset({"alertmanager", "silences"})
"""Longer parts that are no secrets: they are in most Alertmanagers' addresses."""


def secrets_of_url(url: str) -> frozenset[str]:
    """Return what may be secret in an address: its login, query, long parts of its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return frozenset({url})
    login = parts.netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    basic = [b64encode(unquote(login).encode()).decode()] if password else []
    long = [*parts.path.split("/"), user, *(value for _, value in parse_qsl(parts.query)), parts.fragment]
    found = [*(one for one in long if len(one) >= _PART_MIN), *_long_enough([password])]
    return frozenset({*found, *map(unquote, found), *basic}) - _WORDS


def secrets_of_service(url: str) -> frozenset[str]:
    """Return the same of an address of apprise, many of which have a token where others have their host."""
    try:
        where = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return frozenset({url})
    tokens = (part for part in where.split(":") if len(part) >= _PART_MIN and "." not in part)
    return secrets_of_url(url) | frozenset(tokens)


def secrets_of_headers(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the values, and what follows their first word: ``Bearer TOKEN``."""
    return frozenset(_long_enough(text for value in headers.values() for text in (value, *value.split()[1:])))


def _long_enough(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if len(text) >= _PASSWORD_MIN)


def concealed(text: str, secrets: frozenset[str]) -> str:
    """Return ``text`` with stars in place of each secret, the longest first, and of one that its end cuts."""
    if not secrets or not text:
        return text
    longest_first = sorted(secrets, key=len, reverse=True)
    shown = re.sub("|".join(map(re.escape, longest_first)), _STARS, text.rstrip(_CUT_CHARACTER))
    begun = max((_begun_at_end(shown, secret) for secret in secrets), default=0)
    return f"{shown[:-begun]}{_STARS}" if begun else shown


def _begun_at_end(text: str, secret: str) -> int:
    """Return how many characters of ``secret`` stand at the end of ``text``, if it was cut there."""
    sizes = range(min(len(secret) - 1, len(text)), _BEGUN_MIN - 1, -1)
    return next((size for size in sizes if text.endswith(secret[:size])), 0)
