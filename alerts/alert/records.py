"""Reads records of the alerts topic.  Anybody may write to that topic, so each record is checked first.

A refused record is counted and skipped.  It pauses no receiver and mutes no alert: ``newest_record.py``
decides which revision counts, and a high revision number alone does not.
"""

from typing import Final, NamedTuple

import msgspec

from alerts.alert.alert import Alert, Culprit
from coordinator_model.observations import is_time_ms

REVISION_MAX: Final = 100_000
"""Highest credible revision: each revision has new content, and no alert has that much."""
AHEAD_MAX_MS: Final = 86_400_000
"""How far a time in a record may lie after the record's timestamp, and that after our clock."""
OPEN_MAX: Final = 200_000
"""How many open alerts one receiver remembers: twice the groups of the largest fleets."""
VALUE_MAX: Final = 1024 * 1024
"""Kafka's own default for the largest record."""
_NAME_MAX = 200
_GROUP_MAX = 32_767
_MANY_MAX = 1_000

NOT_AN_ALERT = "not_an_alert"
OUT_OF_RANGE = "out_of_range"
WRONG_KEY = "wrong_key"
REVISION_JUMP = "revision_jump"
TOO_MANY = "too_many"
REASONS = (NOT_AN_ALERT, OUT_OF_RANGE, WRONG_KEY, REVISION_JUMP, TOO_MANY)
"""The reasons for refusing a record."""


DIRECT = frozenset({"ClusterUnreachable", "MonitorStalled"})
"""Alerts that go straight to receivers; an open one holds back the other alerts of its cluster."""


class Refused(NamedTuple):
    """A record that was refused, with the reason."""

    reason: str
    """One of ``REASONS``."""
    detail: str


_DECODER = msgspec.json.Decoder(Alert)


def read_alert(key: bytes | None, value: bytes, *, timestamp_ms: int, now_ms: int) -> Alert | Refused:
    """Return the alert in a record, or the reason for refusing it.

    Args:
        key: the record's key, which is the alert's id (the topic is compacted by it).
        value: the record's value.
        timestamp_ms: the record's timestamp.
        now_ms: our clock.
    """
    if len(value) > VALUE_MAX:
        return Refused(OUT_OF_RANGE, f"{len(value)} bytes")
    try:
        alert = _DECODER.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refused(NOT_AN_ALERT, str(error)[:_NAME_MAX])
    if (key or b"") != alert.id.encode("utf-8", "surrogatepass"):
        return Refused(WRONG_KEY, f"key {(key or b'')[:50]!r} of alert {alert.id[:50]!r}")
    if alert.name in DIRECT:
        return Refused(OUT_OF_RANGE, f"{alert.name} is told to receivers directly, never by a topic")
    wrong = _out_of_range(alert, min(timestamp_ms, now_ms + AHEAD_MAX_MS) + AHEAD_MAX_MS)
    return Refused(OUT_OF_RANGE, wrong) if wrong else alert


def is_credible(alert: Alert, now_ms: int) -> bool:
    """Say whether an alert that was read without its record is believable."""
    return not _out_of_range(alert, now_ms + AHEAD_MAX_MS)


def _out_of_range(alert: Alert, latest_ms: int) -> str:
    """Return which field of ``alert`` has a value that no rule can produce; "" if none has."""
    times = (alert.starts_at_ms, alert.detected_at_ms, -1 if alert.ends_at_ms is None else alert.ends_at_ms)
    if not all(is_time_ms(one) and one <= latest_ms for one in times):
        return "a time"
    if not 0 <= alert.revision <= REVISION_MAX:
        return "the revision"
    if max(map(len, (alert.id, alert.name, alert.cluster))) > _NAME_MAX or len(alert.group) > _GROUP_MAX:
        return "a name"
    if not (alert.id and alert.name):
        return "a name that is missing"
    if max(len(alert.culprits), len(alert.evidence)) > _MANY_MAX or not all(map(_is_share, alert.culprits)):
        return "the culprits or the evidence"
    return ""


def _is_share(culprit: Culprit) -> bool:
    return 0 <= culprit.share <= 1
