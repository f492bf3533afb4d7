"""Stories that get along: played at the same time on one cluster under one job, each with its own groups.

Most of a story is waiting, and most of the time of a test is spent on starting a cluster and a job.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.scene import Scene
from tests.live.support.stage import Job, Pager, Told, alerts_of


@dataclass(frozen=True, eq=False)
class Act:
    """One of these stories: what it needs, and how it is played."""

    play: Callable[[Scene, Pager], Told]
    """Plays it to its end and returns what was seen; the alerts are added."""
    groups: frozenset[str]
    """Who takes part: alerts of these are no other story's; all that remains is everybody's."""
    topics: Mapping[str, int]
    """Name -> partitions."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    more: Callable[[], Mapping[str, Any]] = dict
    """More of the job's configuration, made when the job is."""


def play(acts: Sequence[Act], folder: Path) -> dict[Act, Future[Told]]:
    """Play all at once and end everything; each future has what its story saw, or why it failed."""
    rules = {name: rule for act in acts for name, rule in act.rules.items()}
    with (
        EmbeddedKafka(folder / "kafka", offsets_partitions=8, heap="384m", rebalance_delay_ms=500) as kafka,
        Pager() as pager,
    ):
        for name, partitions in sorted({one for act in acts for one in act.topics.items()}):
            kafka.create_topic(name, partitions=partitions)
        more = {key: value for act in acts for key, value in act.more().items()}
        job = Job(kafka.bootstrap_servers, folder, pager, rules, more)
        try:
            job.start()
            job.await_ready()
            with ThreadPoolExecutor(len(acts)) as pool:
                return {act: pool.submit(_play, act, acts, kafka, job, pager) for act in acts}
        finally:
            job.stop()


def _play(act: Act, acts: Sequence[Act], kafka: EmbeddedKafka, job: Job, pager: Pager) -> Told:
    others = {group for other in acts if other is not act for group in other.groups}
    scene = Scene(kafka, job, "full")
    try:
        story = act.play(scene, pager)
        story.alerts = [one for one in alerts_of(kafka.address) if one["group"] not in others]
        return story
    finally:
        scene.end()
