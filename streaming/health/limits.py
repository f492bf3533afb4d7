"""Reports to the operator that a limit on outside names was reached, until that is over."""

import time
from collections.abc import Callable, Iterable

import msgspec

from streaming.health.query_progress import Progress

QUIET_S = 600.0
"""How long after the last time the report ends."""
_TOPIC = "limits"
_MARK = b'"kind":"too_many'
_SENTENCES = {
    "too_many_brokers": "log lines name far more brokers than a cluster has; the oldest are forgotten",
    "too_many_strangers": "brokers describe far more groups than the mirror has; the oldest are forgotten",
    "too_many_groups": "a shard has more groups than it can keep; new ones in it are not watched",
    "too_many_topics": "a group commits to more partitions than are kept; the others are not watched",
}

Row = tuple[str, str, bytes]


class _Kind(msgspec.Struct):
    kind: str
    detail: str = ""


class Limits:
    """Watches one cluster's divergences for limits that were reached."""

    def __init__(self, progress: Progress, now: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._now = now
        self._last_s: dict[str, float] = {}

    def take(self, rows: Iterable[Row]) -> None:
        """Take a batch's rows."""
        for row_kind, _, value in rows:
            if row_kind == "divergence" and _MARK in value:
                self._last_s[msgspec.json.decode(value, type=_Kind).kind] = self._now()
        if not self._last_s:
            return
        over = [kind for kind, last_s in self._last_s.items() if self._now() - last_s > QUIET_S]
        for kind in over:
            del self._last_s[kind]
        said = [_SENTENCES.get(kind, kind) for kind in sorted(self._last_s)]
        self._progress.notice(_TOPIC, "; ".join(said))
