"""What a receiver has been told and not yet been told the end of, in words short enough for a commit.

The alerts topic is compacted: after a long absence the revision that a receiver was told may be gone.
So the open alerts it knows travel as the metadata of its cursor, and cursor and memory cannot disagree.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from alerts.alert import Severity

_VERSION = "gw1"
_CHARACTERS_MAX = 3_600
"""Below Kafka's ``offset.metadata.max.bytes`` (4,096 by default)."""
_LETTER = {Severity.INFO: "i", Severity.WARNING: "w", Severity.CRITICAL: "c"}
_SEVERITY = {letter: severity for severity, letter in _LETTER.items()}
_MARK_LENGTH = 8
_WORD_LENGTH = _MARK_LENGTH + 1 + 4
_MINUTE_MS = 60_000
_MINUTES_MAX = 2**24 - 1
_EPOCH_MS = 1_577_836_800_000
"""2020: minutes since then fit four characters until 2051."""


class Told(NamedTuple):
    """Under which severity a receiver holds an alert for firing, and when it was told last."""

    severity: Severity
    at_ms: int


def mark(alert_id: str) -> str:
    """Return eight characters that stand for an alert id."""
    digest = hashlib.sha256(alert_id.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest[:6]).decode()


def pack_told(told: Mapping[str, Told]) -> str:
    """Return ``told`` (by alert id) as text, times to the minute; "+": not all had room."""
    words = sorted(
        mark(alert_id) + _LETTER[one.severity] + _minutes(one.at_ms) for alert_id, one in told.items()
    )
    room = _CHARACTERS_MAX // _WORD_LENGTH
    return f"{_VERSION}{'=' if len(words) <= room else '+'}{''.join(words[:room])}"


def unpack_told(text: str) -> tuple[dict[str, Told], bool] | None:
    """Return (mark → told, whether that is all), or None if the text is not ours."""
    head, words = text[: len(_VERSION) + 1], text[len(_VERSION) + 1 :]
    if head not in {f"{_VERSION}=", f"{_VERSION}+"} or len(words) % _WORD_LENGTH:
        return None
    told: dict[str, Told] = {}
    for start in range(0, len(words), _WORD_LENGTH):
        word = words[start : start + _WORD_LENGTH]
        severity = _SEVERITY.get(word[_MARK_LENGTH])
        if severity is None:
            return None
        told[word[:_MARK_LENGTH]] = Told(severity, _time_ms(word[_MARK_LENGTH + 1 :]))
    return told, head.endswith("=")


def _minutes(at_ms: int) -> str:
    minutes = min(max(0, at_ms - _EPOCH_MS) // _MINUTE_MS, _MINUTES_MAX)
    return base64.urlsafe_b64encode(minutes.to_bytes(3, "big")).decode()


def _time_ms(text: str) -> int:
    return _EPOCH_MS + int.from_bytes(base64.urlsafe_b64decode(text), "big") * _MINUTE_MS
