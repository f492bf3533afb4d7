"""The shipped rules in a running Prometheus, over our own exporter, with a running Alertmanager behind it.

Only times are shorter here: of scrapes and evaluations, and each ``for``.  What needs hours (windows that
pass, first records after a long calm) is in ``deploy/prometheus/groupwatch-self-rules.test.yml``.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client import CollectorRegistry, Gauge

from alerts.delivery.notifier import DeliveryState
from alerts.metrics import metrics
from alerts.metrics.delivery_metrics import DeliveryCollector
from alerts.metrics.exporter import ClusterSample, Firing, SnapshotCollector
from alerts.metrics.group_lines import GroupSample
from alerts.metrics.health_metrics import HealthCollector, HealthSample
from alerts.metrics.metrics import OwnMetrics
from coordinator_model.kafka.states import GroupState
from streaming.config.server import HttpConfig
from streaming.devkit.kafka import free_ports
from streaming.serving.http import health_application
from streaming.serving.server import Server
from tests.live.support.stage import await_that, now_ms
from tests.unit.deploy.boards import expressions

pytestmark = pytest.mark.promtool

SHIPPED = Path(__file__).parents[2] / "deploy" / "prometheus"
FILES = ("groupwatch-rules", "groupwatch-self-rules")
CLUSTER, CALM = "prod", "calm"
CALM_MS = 600_000
SETTLED_S = 3.0
"""A scrape, an evaluation, the second for which it must hold, and some."""
Labels = frozenset[tuple[str, str]]


def labels(**told: str) -> Labels:
    return frozenset(told.items())


class Fleet:
    """A picture of two clusters that changes when it is told to: in one of them nothing ever happens."""

    def __init__(self) -> None:
        self.since_ms = now_ms()
        self.in_trouble = False
        self.events = 1_000
        self.trouble: dict[str, int] = {"rebalances": 0, "undecodable": 0, "divergences": 0}
        """What is counted and never falls."""

    def group_samples(self, limit: int) -> list[GroupSample]:
        """Return two groups of the one cluster and one of the other."""
        rebalances = {"session_timeout": self.trouble["rebalances"]}
        since_ms, lags = self.since_ms - CALM_MS, {"orders": (12, 3.5)}
        return [
            GroupSample(CLUSTER, "orders", "classic", GroupState.STABLE, since_ms, 3, 7, rebalances, lags),
            GroupSample(CLUSTER, "slow", "classic", GroupState.STABLE, since_ms, 3, 7, {}, {}),
            GroupSample(CALM, "orders", "classic", GroupState.STABLE, since_ms, 3, 7, {}, {}),
        ][:limit]

    def firing(self, limit: int) -> list[Firing]:
        """Return two alerts of one group, one of the cluster, and one that is silenced."""
        found = [
            Firing(CLUSTER, "orders", "RebalanceStorm", "critical", "false"),
            Firing(CLUSTER, "orders", "SessionTimeout", "warning", "false"),
            Firing(CLUSTER, "", "SourceSilent", "warning", "false"),
            Firing(CLUSTER, "slow", "RebalanceStorm", "critical", "true"),
        ]
        return found[:limit] if self.in_trouble else []

    def cluster_samples(self) -> list[ClusterSample]:
        """Return both clusters."""
        self.events += 5 if self.in_trouble else 0
        return [
            self._cluster(CLUSTER, {"coordinator_log": now_ms()}, self.events, self.trouble),
            self._cluster(CALM, {"offsets": self.since_ms - CALM_MS}, 77, dict.fromkeys(self.trouble, 3)),
        ]

    @staticmethod
    def _cluster(
        name: str, newest_ms: Mapping[str, int], events: int, counted: Mapping[str, int]
    ) -> ClusterSample:
        (source,) = newest_ms
        return ClusterSample(
            cluster=name,
            groups=2,
            events={(source, "line"): events},
            undecodable={("events", "bad_json"): counted["undecodable"]},
            divergences={"log_line_missing": counted["divergences"]},
            newest_ms=newest_ms,
            agreement=1.0,
        )


class _Well:
    """The health of a process that has no clusters."""

    def clusters(self) -> list[dict[str, Any]]:
        """Return none."""
        return []

    def problems(self) -> list[str]:
        """Return none."""
        return []


class Scraped:
    """groupwatch as far as Prometheus sees it: our exporter over the fleet, behind HTTP."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        (self.port,) = free_ports(1)
        self.behind_s = 0.4
        self.leads = True
        self._registry = CollectorRegistry()
        self._registry.register(SnapshotCollector(self.fleet, groups_max=100, clock_ms=now_ms))
        self._registry.register(DeliveryCollector(self._deliveries))
        self.own = OwnMetrics(self._registry, clusters=[CLUSTER, CALM], receivers=["oncall"])
        self.own.watermark(CLUSTER, lambda: self.behind_s)
        self._registry.register(HealthCollector(self._health))
        self.heard = Gauge(
            metrics.JOB_LAST_RECORD.name,
            metrics.JOB_LAST_RECORD.help,
            registry=self._registry,
            labelnames=["cluster"],
        ).labels(CLUSTER)
        self.heard.set_function(lambda: time.time() - (300 if self.fleet.in_trouble else 1))
        for cluster in (CLUSTER, CALM):
            self.own.leader(cluster, lambda name=cluster: self.leads or name == CALM)  # type: ignore[misc]
        self._server: Server | None = None

    def _health(self) -> list[HealthSample]:
        ill = self.fleet.in_trouble
        return [
            HealthSample(
                CLUSTER, not ill, {"events": 120.0 if ill else 0.5}, time.time() - (400 if ill else 1)
            ),
            HealthSample(CALM, True, {"offsets": 0.5}, time.time()),
        ]

    def _deliveries(self) -> list[DeliveryState]:
        waits_s = 400.0 if self.fleet.in_trouble else 0.0
        return [DeliveryState("oncall", 1, waits_s, 0, "", ""), DeliveryState("chat", 0, 0.0, 0, "", "")]

    def start(self) -> None:
        """Answer."""
        config = HttpConfig(host="127.0.0.1", port=self.port)
        self._server = Server(config, health_application(_Well(), self._registry))
        self._server.start()

    def stop(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def fall_into_trouble(self) -> None:
        """Let everything happen that one of the rules is about."""
        self.fleet.trouble = {"rebalances": 20, "undecodable": 3, "divergences": 9}
        for _ in range(8):
            self.own.notified("oncall", "retry")
        self.own.raised(CLUSTER, 1)
        self.own.missed(CLUSTER, "groupwatch-events", 40)
        self.leads = False
        self.own.reloaded(is_good=False)
        self.behind_s = 90.0
        self.fleet.in_trouble = True

    def recover(self) -> None:
        """End all that can end; counters keep what they counted."""
        self.own.raised(CLUSTER, 0)
        self.leads = True
        self.own.reloaded(is_good=True)
        self.behind_s = 0.4
        self.fleet.in_trouble = False


@dataclass
class Watched:
    """What stood in Alertmanager after each act, and what Prometheus said of its rules."""

    calm: set[Labels] = field(default_factory=set)
    trouble: set[Labels] = field(default_factory=set)
    recovered: set[Labels] = field(default_factory=set)
    down: set[Labels] = field(default_factory=set)
    up_again: set[Labels] = field(default_factory=set)
    summaries: dict[Labels, str] = field(default_factory=dict)
    empty_panels: list[str] = field(default_factory=list)
    """Queries of dashboards that return nothing while everything happens."""
    failing_rules: dict[str, str] = field(default_factory=dict)
    """Rule -> the error of its evaluation, at any time."""
    rules: set[str] = field(default_factory=set)


class Monitoring:
    """Prometheus and Alertmanager with what we ship."""

    def __init__(self, folder: Path, scraped: Scraped) -> None:
        self._folder = folder
        self._scraped = scraped
        self._prometheus, self._alertmanager = free_ports(2)
        self.watched = Watched()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start both, and end them by their own ids."""
        self._write()
        here = f"--web.listen-address=127.0.0.1:{self._alertmanager}"
        alertmanager = self._start(
            "prometheus-alertmanager", here, "--cluster.listen-address=", "--storage.path=alertmanager"
        )
        here = f"--web.listen-address=127.0.0.1:{self._prometheus}"
        prometheus = self._start("prometheus", here, "--storage.tsdb.path=prometheus")
        try:
            yield
        finally:
            for process in (prometheus, alertmanager):
                process.terminate()
                process.wait(30)

    def _start(self, program: str, *options: str) -> "subprocess.Popen[bytes]":
        config = f"--config.file={program}.yml"
        with (self._folder / f"{program}.log").open("wb") as out:
            return subprocess.Popen([program, config, *options], cwd=self._folder, stdout=out, stderr=out)

    def _write(self) -> None:
        """Write the shipped files with other addresses and shorter times."""
        config = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
        config["global"] = dict.fromkeys(config["global"], "500ms")
        (job,) = config["scrape_configs"]
        job["scrape_timeout"] = "500ms"
        job["static_configs"] = [{"targets": [f"127.0.0.1:{self._scraped.port}"]}]
        (manager,) = config["alerting"]["alertmanagers"]
        manager["static_configs"] = [{"targets": [f"127.0.0.1:{self._alertmanager}"]}]
        rules = {name: yaml.safe_load((SHIPPED / f"{name}.yml").read_text()) for name in FILES}
        for rule in (rule for file in rules.values() for group in file["groups"] for rule in group["rules"]):
            if "alert" in rule:
                rule["for"] = "1s"
        manager_config = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
        for name, content in (
            ("prometheus", config),
            *rules.items(),
            ("prometheus-alertmanager", manager_config),
        ):
            (self._folder / f"{name}.yml").write_text(yaml.safe_dump(content))

    def alerts(self) -> set[Labels]:
        """Return the labels of all that is active in Alertmanager, but where it was scraped."""
        found: set[Labels] = set()
        for one in self._get(self._alertmanager, "/api/v2/alerts") or ():
            told = {name: value for name, value in one["labels"].items() if name not in {"instance", "job"}}
            found.add(labels(**told))
            self.watched.summaries[labels(**told)] = one["annotations"]["summary"]
        return found

    def wait(self, holds: Callable[[set[Labels]], bool]) -> None:
        """Wait for what must come to stand in Alertmanager; if it does not, a test will say so."""
        with suppress(AssertionError):
            await_that(lambda: holds(self.alerts()), "Alertmanager has it")

    def settled(self) -> set[Labels]:
        """Return what stands there once all has been scraped, and judged for longer than each ``for``."""
        until = datetime.now(UTC) + timedelta(seconds=SETTLED_S)
        await_that(lambda: self._is_judged(until), "the rules are evaluated")
        return self.alerts()

    def _is_judged(self, moment: datetime) -> bool:
        """Say whether every rule was evaluated after that; note those that fail."""
        answer = self._get(self._prometheus, "/api/v1/rules")
        rules = [rule for group in answer["data"]["groups"] for rule in group["rules"]] if answer else []
        for rule in rules:
            self.watched.rules.add(rule["name"])
            if rule["health"] == "err":
                self.watched.failing_rules[rule["name"]] = rule["lastError"]
        return bool(rules) and all(datetime.fromisoformat(one["lastEvaluation"]) > moment for one in rules)

    def empty_panels(self) -> list[str]:
        """Return the queries of the dashboards that return nothing."""
        return [where for where, expr in expressions().items() if not self._values(expr)]

    def _values(self, expr: str) -> list[Any]:
        answer = self._get(self._prometheus, "/api/v1/query", query=expr)
        found: list[Any] = answer["data"]["result"] if answer else []
        return found

    @staticmethod
    def _get(port: int, path: str, **query: str) -> Any:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}{path}", params=query, timeout=60)
        except httpx.TransportError:
            return None
        return answer.json() if answer.status_code == 200 else None


WARNING = {"severity": "warning", "cluster": CLUSTER}
CRITICAL = {"severity": "critical", "cluster": CLUSTER}
ENDING = {
    labels(alertname="RebalanceStorm", group="orders", **CRITICAL),
    labels(alertname="SessionTimeout", group="orders", **WARNING),
    labels(alertname="SourceSilent", **WARNING),
    labels(alertname="GroupwatchNotReady", **CRITICAL),
    labels(alertname="GroupwatchNoBatch", **CRITICAL),
    labels(alertname="GroupwatchBehind", **CRITICAL),
    labels(alertname="GroupwatchSourceLate", source="events", **WARNING),
    labels(alertname="GroupwatchJobSilent", **CRITICAL),
    labels(alertname="GroupwatchNoLeader", **CRITICAL),
    labels(alertname="GroupwatchReloadFailed", severity="warning"),
    labels(alertname="GroupwatchUndelivered", severity="critical", receiver="oncall"),
    labels(alertname="GroupwatchEvidenceStaysRaised", **WARNING),
}
"""Alerts that end with what they are about."""
COUNTED = {
    labels(
        alertname="GroupwatchUndecodable",
        severity="info",
        cluster=CLUSTER,
        source="events",
        reason="bad_json",
    ),
    labels(alertname="GroupwatchMissedRecords", topic="groupwatch-events", **WARNING),
    labels(alertname="GroupwatchDiverges", kind="log_line_missing", **WARNING),
    labels(alertname="GroupwatchCannotNotify", severity="warning", receiver="oncall"),
}
"""Alerts about what was counted in a window of minutes, which must pass first."""
DOWN = labels(alertname="GroupwatchAbsent", severity="critical")


def play(monitoring: Monitoring, scraped: Scraped) -> Watched:
    """Nothing, everything, the end of it; then groupwatch is gone, and back."""
    watched = monitoring.watched
    monitoring.wait(lambda found: DOWN in found)
    scraped.start()
    monitoring.wait(lambda found: DOWN not in found)
    watched.calm = monitoring.settled()

    scraped.fall_into_trouble()
    monitoring.wait(lambda found: found >= ENDING | COUNTED)
    watched.trouble = monitoring.settled()
    watched.empty_panels = monitoring.empty_panels()

    scraped.recover()
    monitoring.wait(lambda found: not found & ENDING)
    watched.recovered = monitoring.settled()

    scraped.stop()
    monitoring.wait(lambda found: DOWN in found)
    watched.down = monitoring.alerts()
    scraped.start()
    monitoring.wait(lambda found: DOWN not in found)
    watched.up_again = monitoring.settled()
    return watched


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    missing = [name for name in ("prometheus", "prometheus-alertmanager") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed (Debian packages): {', '.join(missing)}")
    scraped = Scraped()
    monitoring = Monitoring(tmp_path_factory.mktemp("prometheus"), scraped)
    try:
        with monitoring.running():
            yield play(monitoring, scraped)
    finally:
        scraped.stop()


def test_no_rule_fails(watched: Watched) -> None:
    """Every shipped rule can be evaluated whatever fires, also two alerts of one group."""
    files = [yaml.safe_load((SHIPPED / f"{name}.yml").read_text()) for name in FILES]
    shipped = [rule for file in files for group in file["groups"] for rule in group["rules"]]

    assert watched.failing_rules == {}
    assert watched.rules == {rule.get("alert") or rule["record"] for rule in shipped}


def test_a_calm_cluster_is_silent(watched: Watched) -> None:
    """Nothing fires where nothing happens, however long ago the last event was."""
    assert watched.calm == set()


def test_each_trouble_arrives_in_alertmanager_under_its_labels(watched: Watched) -> None:
    """Every rule fires for its own trouble, in the right cluster, and for nothing else."""
    assert watched.trouble == ENDING | COUNTED
    about_itself = {name for name in watched.rules if name.startswith("Groupwatch")}
    not_now = {"GroupwatchAbsent", "GroupwatchDown", "GroupwatchTwoLeaders"}
    fired = {one["alertname"] for one in map(dict, watched.trouble)}
    assert {name for name in fired if name.startswith("Groupwatch")} == about_itself - not_now


def test_every_panel_shows_something(watched: Watched) -> None:
    """Each query of each dashboard returns a value while everything happens."""
    assert watched.empty_panels == []


def test_summaries_name_what_it_is_about(watched: Watched) -> None:
    """Who reads only the first line knows which alert it is, and of whom."""
    firing = {
        summary
        for told, summary in watched.summaries.items()
        if not dict(told)["alertname"].startswith("Groupwatch")
    }

    assert firing == {
        "RebalanceStorm: group orders of prod",
        "SessionTimeout: group orders of prod",
        "SourceSilent: prod",
    }


def test_what_has_ended_is_resolved(watched: Watched) -> None:
    """An alert goes from Alertmanager with its trouble; what was counted stays for its window."""
    assert watched.recovered == COUNTED


def test_a_groupwatch_that_is_gone_is_missed(watched: Watched) -> None:
    """GroupwatchAbsent comes and goes with it."""
    assert DOWN in watched.down
    assert DOWN not in watched.up_again
