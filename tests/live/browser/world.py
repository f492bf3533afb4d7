"""A running page over the real application, with groups and incidents that a test feeds."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from alerts.alert.alert import Alert
from alerts.delivery.silences import LiveQuiet
from coordinator_model.kafka.states import GroupState
from coordinator_model.shard.report import MemberReport
from streaming.config.server import HttpConfig
from streaming.history.past import Past
from streaming.serving.events import Hub
from streaming.serving.history import History
from streaming.serving.http import HttpServer
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.made_alerts import an_alert
from tests.unit.streaming.conftest import Row, Rows
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.memory_silences import MemorySilences

MINUTE = 60_000
HOSTILE = {
    "turned": "pay\u202etnem\u2066s",
    "markup": '<img src=x onerror="window.broken=1">',
    "long": "a-very-long-name." * 14 + "end-of-249",
    "quotes": 'it\'s "quoted" `and` ${more}',
    "lines": "first\nsecond\r\nthird\ttab",
    "slashes": "team/a//b%2F?x=1#y",
    "emoji": "büro-\U0001f680-日本語",
}


def now_ms() -> int:
    """The server's clock."""
    return int(time.time() * 1000)


class World:
    """What the page shows, and the server that shows it."""

    def __init__(self, clusters: Mapping[str, bool], *, config: HttpConfig | None = None) -> None:
        """Prepare; ``clusters`` says of each whether it is ready."""
        self.rows = Rows()
        self.topics = MemorySilences()
        follower = Follower([self.topics], quiet := LiveQuiet())
        self.view = FedView(clusters, clock_ms=now_ms, quiet=quiet, recent=Hour())
        self._hub = self._new_hub()
        self.desk = SilenceDesk(follower, clusters=list(clusters), alert_of=self.view.shown.known)
        self._clusters = clusters
        self._config = config or HttpConfig(host="127.0.0.1", port=0)
        self._server: HttpServer | None = None
        self.pasts: dict[str, Callable[[int], Past]] = {}
        """Group -> what its history was, told the time."""
        self.url = ""

    def clusters(self) -> list[dict[str, Any]]:
        """Return the readiness of each cluster, as ``Health`` does."""
        return [{"cluster": name, "ready": ready} for name, ready in self._clusters.items()]

    def problems(self) -> list[str]:
        """Return nothing: this process is well."""
        return []

    def start(self, port: int = 0) -> "World":
        """Listen; with ``port`` where it listened before."""
        self._hub = self._new_hub()
        self._server = HttpServer(
            self._config.model_copy(update={"port": port}),
            self.view,
            self,
            CollectorRegistry(),
            self._history,
            silencing=self.desk,
            past=self._past,
            hub=self._hub,
        )
        self.url = f"http://127.0.0.1:{self._server.start()}/"
        return self

    def apply(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take the rows of one batch."""
        kept = list(rows)
        self.view.apply(cluster, kept)
        self._hub.apply(cluster, kept)

    def _new_hub(self) -> Hub:
        return Hub(self.view.store, clock_ms=now_ms, flush_s=0.2, beat_s=1.0)

    def _history(self, cluster: str, group: str, _since_ms: int) -> History:
        return History(
            list(self._past(cluster, group, 0, 0).transitions), self.view.shown.of(cluster, group), []
        )

    def _past(self, _cluster: str, group: str, _from_ms: int, _to_ms: int) -> Past:
        told = self.pasts.get(group)
        return Past() if told is None else told(now_ms())

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.stop()

    def group(
        self, name: str, state: GroupState = GroupState.STABLE, *, cluster: str = "prod-eu", **changes: Any
    ) -> None:
        """Report a group."""
        at = now_ms()
        told = {
            "state_since_ms": at - 42 * MINUTE,
            "at_ms": at,
            "last_seen_ms": at,
            "members": members(3),
        } | changes
        self.apply(cluster, [self.rows.report(name, state, **told)])

    def hears(self, cluster: str, logs: list[tuple[int, str, int]], **changes: Any) -> None:
        """Report a cluster: (broker, log, how long ago in ms its newest line was)."""
        at = now_ms()
        report = {
            "heard": [(broker, log, at - ago) for broker, log, ago in logs],
            "newest_ms": {"offsets": at - 900, "coordinator_log": at - 1_400},
            "events": [("offsets", "group", 81_244), ("coordinator_log", "joined", 5_310)],
            "brokers": {broker: {} for broker, _, _ in logs},
        } | changes
        self.apply(cluster, [("cluster", "", json.dumps(report).encode())])

    def alert(self, name: str, group: str, **changes: Any) -> Alert:
        """Fire an alert."""
        told = {
            "id": f"{name}-{group}",
            "cluster": "prod-eu",
            "starts_at_ms": now_ms() - 4 * MINUTE,
            "detected_at_ms": now_ms() - 4 * MINUTE,
        } | changes
        alert = an_alert(name=name, group=group, **told)
        self.apply(alert.cluster, [("alert", alert.id, msgspec.json.encode(alert))])
        return alert


class Hour:
    """A last hour that looks like the group's name, with the storm of payments."""

    def lag(self, _cluster: str, _group: str) -> int | None:
        """Return nothing: the offsets tell."""
        return None

    def spark(self, _cluster: str, group: str) -> tuple[int, list[int | None], list[int]]:
        """Return step, lag and starts of rebalances."""
        seed, is_lost = sum(group.encode()), group in ("payments", "invoices")
        lag: list[int | None] = [
            round(80 + 60 * math.sin(seed + n / 5) + (max(0, n - 50) * 1_900 if is_lost else 0))
            for n in range(60)
        ]
        return MINUTE, lag, [2 if group == "payments" and n > 50 else 0 for n in range(60)]


def members(count: int, client: str = "app") -> tuple[MemberReport, ...]:
    """Return members of a classic group with two partitions each."""
    return tuple(
        MemberReport(
            member_id=f"{client}-{n}-0c23b2f2-c71e-40eb-9886-7293bf2cf3e{n}",
            client_id=f"{client}-{n}",
            client_host=f"/10.0.0.{n}",
            instance_id=None,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            last_heartbeat_ms=now_ms(),
            assigned={"orders": (2 * n, 2 * n + 1)},
        )
        for n in range(count)
    )
