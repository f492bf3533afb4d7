"""A process speaks once it has the leases of all its clusters."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from alerts.delivery.silences import LiveQuiet
from alerts.metrics.metrics import NotifierMetrics
from streaming.config.config import Config, parse_config
from streaming.health.query_progress import Progress
from streaming.speaker import Speaker

TWO = """
clusters:
  - {name: a, bootstrap_servers: ['127.0.0.1:1']}
  - {name: b, bootstrap_servers: ['127.0.0.1:2']}
receivers: [{name: oncall, log: {}}]
"""


class Notifier:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_speak: Any = None

    def __call__(self, _config: Config, _metrics: Any, _caught_up: Any, *, may_speak: Any, quiet: Any) -> Any:
        """Be made."""
        self.may_speak = may_speak
        return self

    def start(self) -> None:
        """Start."""
        self.asked.append("start")

    def stop(self) -> None:
        """Stop."""
        self.asked.append("stop")

    def last_deliveries(self, _alert_id: str) -> dict[str, Any]:
        """Know of none."""
        return {}

    def dead_threads(self) -> list[str]:
        """Return none."""
        return []


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return parse_config(f"{TWO}state_dir: {tmp_path}\n")


def _speaker(config: Config, speaks: dict[str, bool]) -> tuple[Speaker, Notifier]:
    notifier = Notifier()
    jobs = {
        name: SimpleNamespace(
            progress=Progress(name), lease=SimpleNamespace(may_speak=lambda name=name: speaks[name])
        )
        for name in speaks
    }
    metrics = NotifierMetrics(CollectorRegistry())
    return Speaker(
        config, cast("Any", jobs), metrics, cast("Any", notifier), remember=lambda _: None, quiet=LiveQuiet()
    ), notifier


def test_it_may_speak_when_nobody_else_watches_any_of_its_clusters(config: Config) -> None:
    """The notifier asks the same before each attempt."""
    speaks = {"a": True, "b": False}
    speaker, notifier = _speaker(config, speaks)
    assert not speaker.may_speak()
    speaks["b"] = True
    assert speaker.may_speak()
    assert notifier.may_speak()


def test_before_it_begins_nothing_runs_and_nothing_is_written(config: Config, tmp_path: Path) -> None:
    """Another process delivers, and the file of open alerts may be the same."""
    speaker, notifier = _speaker(config, {"a": True})
    speaker.stop_judging()
    speaker.stop()
    assert (notifier.asked, list(tmp_path.iterdir()), speaker.has_begun) == ([], [], False)
    assert (speaker.delivers, speaker.dead_threads()) == (True, [])


def test_once_it_has_begun_all_threads_run_until_it_stops(config: Config) -> None:
    """The supervisor and the notifier."""
    speaker, notifier = _speaker(config, {"a": True})
    speaker.begin()
    assert (speaker.has_begun, speaker.dead_threads()) == (True, [])
    speaker.stop_judging()
    speaker.stop()
    assert notifier.asked == ["start", "stop"]


def test_another_configuration_is_delivered_by_another_notifier(config: Config) -> None:
    """The old one ends its attempts first; before anybody speaks, none is started."""
    speaker, notifier = _speaker(config, {"a": True, "b": True})
    speaker.change(config)
    assert notifier.asked == []
    speaker.begin()
    speaker.change(config)
    speaker.stop_judging()
    assert notifier.asked == ["start", "stop", "start"]
