"""Keeps secrets out of what is said about deliveries: a receiver's answer may repeat what it was sent."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

_STARS = "***"
_PASSWORD_MIN = 4
_PART_MIN = 8
"""Shorter parts of a path are words like ``hook``; many services have their token there."""


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
    return frozenset({*found, *map(unquote, found), *basic})


def secrets_of_headers(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the values, and what follows their first word: ``Bearer TOKEN``."""
    return frozenset(_long_enough(text for value in headers.values() for text in (value, *value.split()[1:])))


def _long_enough(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if len(text) >= _PASSWORD_MIN)


def concealed(text: str, secrets: frozenset[str]) -> str:
    """Return ``text`` with stars in place of each secret, the longest first."""
    if not secrets or not text:
        return text
    longest_first = sorted(secrets, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), _STARS, text)
