"""A real job of a cluster where nothing is wrong, under a real Prometheus: nobody is about to be told."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.live.support import hours
from tests.live.support.prometheus import watched
from tests.live.support.scene import play_all
from tests.live.support.stage import alerts_of, need_jars

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.promtool]

CALM_S = 180.0
LIVES = ("plain", "sticky", "kip-848", "each-90-s", "idle", "manual")


@dataclass
class Story:
    """What was seen of it."""

    failures: list[str] = field(default_factory=list)
    """Groups that did not live as they should."""
    pending: list[str] = field(default_factory=list)
    """Prometheus' alerts that were pending or firing at any time."""
    scrapes: list[dict[str, str]] = field(default_factory=list)
    groups: list[dict[str, str]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    need_jars()
    folder: Path = tmp_path_factory.mktemp("calm")
    with hours.stage(folder, "full") as scene, watched(folder / "prometheus", scene.job.port) as prometheus:
        chosen = [case for case in hours.cases(time.monotonic() + CALM_S) if case.name in LIVES]
        failures = play_all(scene, chosen)
        yield Story(
            failures=failures,
            pending=prometheus.ever(),
            scrapes=prometheus.values("up == 1"),
            groups=prometheus.values("groupwatch_group_members > 0"),
            alerts=alerts_of(scene.kafka.address),
        )


def test_nothing_is_pending_or_firing(story: Story) -> None:
    """Neither about a group nor about groupwatch itself, for three minutes from the job's first scrape on."""
    assert story.failures == []
    assert story.alerts == []
    assert story.pending == []


def test_prometheus_saw_it(story: Story) -> None:
    """The job and its groups: it is not calm because nobody looked."""
    assert len(story.scrapes) == 1
    assert {one["group"] for one in story.groups} >= set(LIVES) - {"manual"}
