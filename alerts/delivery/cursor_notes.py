"""Packs what a receiver was told of open alerts into a text short enough for the metadata of a commit.

The alerts topic is compacted: after a long absence it may no longer hold the revision that a receiver was
told.  So the cursor's metadata lists the open alerts that the receiver knows, and cursor and memory cannot
disagree.  A severity is listed before it is sent: after a kill nobody could say whether it was.
"""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from alerts.alert import Severity

_VERSION = "gw1"
_CHARACTERS_MAX = 3_600
"""Longest text; below Kafka's ``offset.metadata.max.bytes`` (4,096 by default)."""
_LETTER = {Severity.INFO: "i", Severity.WARNING: "w", Severity.CRITICAL: "c"}
_SEVERITY = {letter: severity for severity, letter in _LETTER.items()}
MARK_LENGTH = 8
_WORD_LENGTH = MARK_LENGTH + 1 + 4
ROOM = _CHARACTERS_MAX // _WORD_LENGTH
"""Most words in one text."""
_MINUTE_MS = 60_000
_MINUTES_MAX = 2**24 - 1
_EPOCH_MS = 1_577_836_800_000
"""The year 2020: minutes since then fit four characters until 2051."""


class LastDelivery(NamedTuple):
    """The severity that a receiver sees firing for an alert, and when it was last told."""

    severity: Severity
    at_ms: int


@dataclass
class CursorNotes:
    """The contents of one partition's cursor metadata; keys are marks."""

    told: dict[str, LastDelivery] = field(default_factory=dict)
    maybe: dict[str, frozenset[Severity]] = field(default_factory=dict)
    """Severities that were about to be sent when the cursor was committed."""
    is_complete: bool = True
    """False: some alerts did not fit."""

    def add(self, alert_id: str, told: LastDelivery | None, maybe: frozenset[Severity]) -> None:
        """Add one alert."""
        if told is not None:
            self.told[mark(alert_id)] = told
        if maybe:
            self.maybe[mark(alert_id)] = maybe


def mark(alert_id: str) -> str:
    """Return eight characters that identify an alert id."""
    digest = hashlib.sha256(alert_id.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest[:6]).decode()


def pack_notes(memory: CursorNotes) -> str:
    """Return ``memory`` as text, times to the minute; "+" says that some alerts did not fit."""
    doubtful, certain = words_of(memory)
    # Doubtful ones come first: they are few, and what was surely told can mostly be read in the topic.
    return text_of([*doubtful, *certain])


def words_of(memory: CursorNotes) -> tuple[list[str], list[str]]:
    """Return the words for what may have been told, and for what surely was."""
    doubtful = [(name, one) for name, severities in memory.maybe.items() for one in severities]
    certain = (name + _LETTER[one.severity] + _minutes(one.at_ms) for name, one in memory.told.items())
    return sorted(name + _LETTER[one].upper() + _minutes(0) for name, one in doubtful), sorted(certain)


def text_of(words: list[str]) -> str:
    """Return these words as one text, as many as fit."""
    return f"{_VERSION}{'=' if len(words) <= ROOM else '+'}{''.join(words[:ROOM])}"


def unpack_notes(text: str) -> CursorNotes | None:
    """Return what ``pack_notes`` packed; None if the text is not ours."""
    head, words = text[: len(_VERSION) + 1], text[len(_VERSION) + 1 :]
    if head not in {f"{_VERSION}=", f"{_VERSION}+"} or len(words) % _WORD_LENGTH:
        return None
    memory = CursorNotes(is_complete=head.endswith("="))
    for start in range(0, len(words), _WORD_LENGTH):
        word = words[start : start + _WORD_LENGTH]
        name, letter = word[:MARK_LENGTH], word[MARK_LENGTH]
        severity = _SEVERITY.get(letter.lower())
        if severity is None:
            return None
        if letter.isupper():
            memory.maybe[name] = memory.maybe.get(name, frozenset()) | {severity}
        else:
            memory.told[name] = LastDelivery(severity, _time_ms(word[MARK_LENGTH + 1 :]))
    return memory


def _minutes(at_ms: int) -> str:
    minutes = min(max(0, at_ms - _EPOCH_MS) // _MINUTE_MS, _MINUTES_MAX)
    return base64.urlsafe_b64encode(minutes.to_bytes(3, "big")).decode()


def _time_ms(text: str) -> int:
    return _EPOCH_MS + int.from_bytes(base64.urlsafe_b64decode(text), "big") * _MINUTE_MS
