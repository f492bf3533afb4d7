"""Silences that people add at run time, as records of a compacted topic: key = id, value = JSON.

Anybody may write to that topic, so each record is checked, and a broken one is counted and skipped.  Several
topics (one on each output cluster) may hold the same silence: the copy that was changed last is valid.
Pure; the caller gives the time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from pydantic_core import SchemaError, SchemaValidator, core_schema

from alerts.alert import AHEAD_MAX_MS, OUT_OF_RANGE, TOO_MANY, WRONG_KEY, Refused
from alerts.delivery.silences.quiet import FOREVER_MS, Match, Silence

NOT_A_SILENCE = "not_a_silence"
SILENCE_REASONS = (NOT_A_SILENCE, OUT_OF_RANGE, TOO_MANY, WRONG_KEY)
"""Why a record of the topic is refused."""
SILENCE_STATES = ("pending", "active", "expired")
SILENCES_MAX = 1_000
"""Most silences of one topic, ended ones included."""
KEPT_MS = 5 * 86_400_000
"""How long an ended silence stays in the topic."""
LENGTH_MAX_MS = 366 * 86_400_000
PATTERN_MAX = 500
COMMENT_MAX = 1_000
NAME_MAX = 200
MANY_MAX = 50
"""Most patterns, alerts or clusters of one silence."""
_VALUE_MAX = 256 * 1024
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class PatternError(ValueError):
    """A pattern cannot be used; the text says why."""


def _compiled(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


@lru_cache(maxsize=4 * SILENCES_MAX)
def _whole_name(pattern: str) -> SchemaValidator:
    """Return a matcher for whole names whose time grows with the name's length and no faster.

    Python's own ``re`` may need hours for a short pattern, and whoever can add a silence could stop
    delivery by one.
    """
    try:
        _compiled(pattern)  # alone: ``a)|(b`` must not reach beyond the brackets below
        return _compiled(rf"\A(?:{pattern})\z")
    except SchemaError as error:
        raise PatternError(str(error).strip().rpartition("\n")[2].strip().removeprefix("error: ")) from None


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that cannot be matched in bounded time.

    Raises:
        PatternError: it is too long, is no regular expression, or needs look-around or a back reference.
    """
    if len(pattern) > PATTERN_MAX:
        raise PatternError(f"longer than {PATTERN_MAX} characters")
    _whole_name(pattern)


class _BoundedMatch(Match, frozen=True, kw_only=True):
    """A ``Match`` whose patterns come from outside the configuration."""

    def _is_of_group(self, group: str) -> bool:
        return any(_whole_name(pattern).isinstance_python(group) for pattern in self.groups)


class KeptSilence(msgspec.Struct, frozen=True, kw_only=True):
    """One silence as the topic and the API have it."""

    id: str
    author: str
    comment: str = ""
    groups: tuple[str, ...] = ()
    """Patterns for whole names; a silence with groups leaves alerts about a whole cluster alone."""
    alerts: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    alert_id: str = ""
    """The one alert that somebody acknowledged; "" if the silence is about more."""
    starts_at_ms: int
    ends_at_ms: int | None = None
    """null: when the acknowledged alert is resolved."""
    updated_at_ms: int
    """When it was added or ended; the newest copy is valid."""

    def silence(self) -> Silence:
        """Return the silence for the outboxes."""
        return Silence(
            match=_BoundedMatch(
                groups=self.groups, alerts=self.alerts, clusters=self.clusters, alert_id=self.alert_id
            ),
            from_ms=self.starts_at_ms,
            until_ms=FOREVER_MS if self.ends_at_ms is None else self.ends_at_ms,
            id=self.id,
            author=self.author,
            comment=self.comment,
        )

    def state_at(self, now_ms: int) -> str:
        """Return ``pending``, ``active`` or ``expired``."""
        if self.ends_at_ms is not None and self.ends_at_ms <= now_ms:
            return "expired"
        return "active" if self.starts_at_ms <= now_ms else "pending"

    def ended(self, now_ms: int) -> "KeptSilence":
        """Return the silence as it is once somebody has ended it; newer than every earlier copy."""
        return msgspec.structs.replace(
            self,
            starts_at_ms=min(self.starts_at_ms, now_ms),
            ends_at_ms=now_ms,
            updated_at_ms=max(now_ms, self.updated_at_ms + 1),
        )

    def record(self) -> tuple[bytes, bytes]:
        """Return key and value for the topic."""
        return self.id.encode(), msgspec.json.encode(self)


def read_silence(key: bytes | None, value: bytes, now_ms: int) -> KeptSilence | Refused:
    """Return the silence in a record, or the reason for refusing it."""
    if len(value) > _VALUE_MAX:
        return Refused(OUT_OF_RANGE, f"{len(value)} bytes")
    try:
        found = msgspec.json.decode(value, type=KeptSilence)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refused(NOT_A_SILENCE, str(error)[:NAME_MAX])
    if (key or b"") != found.id.encode("utf-8", "surrogatepass"):
        return Refused(WRONG_KEY, f"key {(key or b'')[:50]!r} of silence {found.id[:50]!r}")
    wrong = wrong_in(found, now_ms)
    return Refused(OUT_OF_RANGE, wrong) if wrong else found


def wrong_in(one: KeptSilence, now_ms: int) -> str:
    """Return which field of ``one`` cannot be used, and why; "" if all can."""
    if not _ID.fullmatch(one.id):
        return "id: use at most 64 letters, digits, '.', '_' and '-'"
    return _wrong_words(one) or _wrong_times(one, now_ms) or _wrong_patterns(one.groups)


def _wrong_words(one: KeptSilence) -> str:
    if not 0 < len(one.author) <= NAME_MAX:
        return f"author: say who silences, in at most {NAME_MAX} characters"
    if len(one.comment) > COMMENT_MAX:
        return f"comment: longer than {COMMENT_MAX} characters"
    if max(len(one.groups), len(one.alerts), len(one.clusters)) > MANY_MAX:
        return f"more than {MANY_MAX} groups, alerts or clusters"
    if max(map(len, (*one.alerts, *one.clusters, one.alert_id))) > NAME_MAX:
        return f"a name is longer than {NAME_MAX} characters"
    if not (one.groups or one.alerts or one.clusters or one.alert_id):
        return "say what to silence: groups, alerts, clusters or alert_id"
    return ""


def _wrong_times(one: KeptSilence, now_ms: int) -> str:
    if not 0 <= one.starts_at_ms <= now_ms + LENGTH_MAX_MS:
        return "start: must be at most 366 days away"
    if not 0 <= one.updated_at_ms <= now_ms + AHEAD_MAX_MS:
        return "updated_at_ms: out of range"
    if one.ends_at_ms is None:
        return "" if one.alert_id else "end: only the silence of one alert_id may do without"
    if not one.starts_at_ms <= one.ends_at_ms <= one.starts_at_ms + LENGTH_MAX_MS:
        return "end: must be later than start, and at most 366 days after it"
    return ""


def _wrong_patterns(groups: Iterable[str]) -> str:
    for pattern in groups:
        try:
            check_pattern(pattern)
        except PatternError as error:
            return f"groups: {pattern[:80]!r}: {error}"
    return ""


class SilenceBook:
    """The silences of several topics; not safe to use from several threads."""

    def __init__(self) -> None:
        self._of_topic: dict[str, dict[str, KeptSilence]] = {}
        self.refused: Counter[str] = Counter()
        """Reason -> number of refused records."""

    def replace(self, topic: str, records: Iterable[tuple[bytes, bytes | None]], now_ms: int) -> None:
        """Take all records of a topic that was read from its beginning."""
        self._of_topic[topic] = {}
        for key, value in records:
            self.take(topic, key, value, now_ms)

    def take(self, topic: str, key: bytes, value: bytes | None, now_ms: int) -> Refused | None:
        """Take one record of a topic; return why it is refused, None if it is not."""
        kept = self._of_topic.setdefault(topic, {})
        if value is None:
            kept.pop(key.decode("utf-8", "replace"), None)
            return None
        found = read_silence(key, value, now_ms)
        if isinstance(found, KeptSilence) and found.id not in kept and len(kept) >= SILENCES_MAX:
            found = Refused(TOO_MANY, f"there are {SILENCES_MAX} silences already")
        if isinstance(found, Refused):
            self.refused[found.reason] += 1
            return found
        kept[found.id] = found
        return None

    def newest(self) -> dict[str, KeptSilence]:
        """Return id -> the copy that was changed last."""
        found: dict[str, KeptSilence] = {}
        for kept in self._of_topic.values():
            for one in kept.values():
                before = found.get(one.id)
                if before is None or before.updated_at_ms < one.updated_at_ms:
                    found[one.id] = one
        return found

    def due(self, topic: str, now_ms: int) -> list[tuple[bytes, bytes | None]]:
        """Return the records that ``topic`` still needs: missing or older copies, and ends of long ago."""
        kept, newest = self._of_topic.get(topic, {}), self.newest()
        removed = [i for i, one in newest.items() if _is_long_over(one, now_ms)]
        due: list[tuple[bytes, bytes | None]] = [(i.encode(), None) for i in removed if i in kept]
        return due + [one.record() for i, one in newest.items() if i not in removed and kept.get(i) != one]


def _is_long_over(one: KeptSilence, now_ms: int) -> bool:
    return one.ends_at_ms is not None and one.ends_at_ms < now_ms - KEPT_MS


def silences_in(kept: Mapping[str, KeptSilence], now_ms: int) -> list[Silence]:
    """Return the silences that hold now or later, for ``LiveQuiet``."""
    return [one.silence() for one in kept.values() if one.state_at(now_ms) != "expired"]
