"""``run --no-notify`` and ``notify`` as two processes: who tells that nobody watches."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streaming.devkit.kafka import free_ports
from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.stage import Job, Page, Pager, await_that, need_jars

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RULES = {"cluster_unreachable": {"after": "6s"}, "monitor_stalled": {"after": "40s"}}


@dataclass
class Story:
    """What was told, in acts."""

    dead_job: list[Page] = field(default_factory=list)
    outage: list[Page] = field(default_factory=list)
    health: dict[str, Any] = field(default_factory=dict)
    metrics: str = ""
    both: dict[str, Any] = field(default_factory=dict)


class Acts:
    """The two processes, and the cluster that they watch."""

    def __init__(self, kafka: EmbeddedKafka, pager: Pager, folder: Path) -> None:
        self.kafka, self.pager = kafka, pager
        (port,) = free_ports(1)
        more = {"notify_http": {"port": port}}
        self.job = Job(kafka.bootstrap_servers, folder, pager, RULES, more)
        beside = folder / "notify"
        beside.mkdir()
        same = more | {"checkpoint": str(self.job.checkpoint)}
        self.notify = Job(kafka.bootstrap_servers, beside, pager, RULES, same)
        self.notify.port = port

    def await_page(self, name: str, status: str) -> None:
        """Wait until somebody is paged so."""
        await_that(
            lambda: (name, status) in [(p.labels["alertname"], p.status) for p in list(self.pager.pages)],
            f"{name} is {status}",
        )

    def dead_job(self) -> list[Page]:
        """The job is killed, and comes back."""
        self.job.start("--no-notify")
        self.job.await_ready()
        self.notify.start(command="notify")
        self.notify.await_ready()
        self.job.kill()
        self.await_page("MonitorStalled", "firing")
        self.job.start("--no-notify")
        self.await_page("MonitorStalled", "resolved")
        return list(self.pager.pages)

    def outage(self) -> list[Page]:
        """The only broker stops; the notifier is killed and comes back, and then the broker does."""
        before = len(self.pager.pages)
        self.kafka.stop_broker(1)
        self.await_page("ClusterUnreachable", "firing")
        await_that(self._told_is_remembered, "who was told is written down")
        self.notify.kill()
        self.notify.start(command="notify")
        await_that(self._speaks, "the notifier is back")
        self.kafka.start_broker(1)
        self.await_page("ClusterUnreachable", "resolved")
        return self.pager.pages[before:]

    def _told_is_remembered(self) -> bool:
        return '"pager"' in (self.job.checkpoint / "open-alerts-notify.json").read_text()

    def _speaks(self) -> bool:
        answer = self.notify.get("/healthz")
        return answer is not None and bool(answer.json()["deliveries"])

    def look(self, story: Story) -> None:
        """Ask the notifier how it is."""
        self.notify.await_ready()
        answer = self.notify.get("/healthz")
        story.health = {} if answer is None else answer.json()
        story.metrics = self.notify.metrics()

    def both_speak(self) -> dict[str, Any]:
        """The job is started anew and delivers by itself."""
        self.job.stop()
        self.job.start()
        self.job.await_ready()

        def is_left() -> dict[str, Any] | None:
            answer = self.notify.get("/ready")
            found = answer.json()["clusters"][0] if answer is not None else {}
            return found if found.get("job_speaks") else None

        found: dict[str, Any] = await_that(is_left, "the notifier leaves it to the job")
        await_that(lambda: not self._speaks(), "the notifier is silent")
        return found

    def end(self) -> None:
        """Stop both."""
        self.notify.stop()
        self.job.stop()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("apart")
    with EmbeddedKafka(folder / "kafka", offsets_partitions=4, heap="512m") as kafka, Pager() as pager:
        acts, seen = Acts(kafka, pager, folder), Story()
        try:
            seen.dead_job = acts.dead_job()
            seen.outage = acts.outage()
            acts.look(seen)
            seen.both = acts.both_speak()
            yield seen
        finally:
            acts.end()


def told(pages: list[Page]) -> list[tuple[str, str]]:
    return [(page.labels["alertname"], page.status) for page in pages]


def test_a_job_that_was_killed_is_told_by_the_notifier(story: Story) -> None:
    """And that it is back, under one id."""
    assert told(story.dead_job) == [("MonitorStalled", "firing"), ("MonitorStalled", "resolved")]
    assert [key.split("/")[1] for key in (page.key for page in story.dead_job)] == ["0", "1"]
    assert len({page.key.split("/")[0] for page in story.dead_job}) == 1


def test_an_outage_is_told_once_and_ended_under_its_id_over_a_restart(story: Story) -> None:
    """The notifier that is killed meanwhile goes on where it was."""
    assert told(story.outage) == [("ClusterUnreachable", "firing"), ("ClusterUnreachable", "resolved")]
    assert len({page.key.split("/")[0] for page in story.outage}) == 1


def test_the_notifier_says_how_it_is(story: Story) -> None:
    """Health, and metrics of deliveries and of the job."""
    assert story.health["healthy"]
    assert [one["receiver"] for one in story.health["deliveries"]] == ["pager"]
    for name in (
        'groupwatch_notifications_total{outcome="delivered",receiver="pager"}',
        'groupwatch_oldest_undelivered_seconds{receiver="pager"} 0.0',
        'groupwatch_job_silent_seconds{cluster="live"}',
    ):
        assert name in story.metrics


def test_a_job_that_delivers_by_itself_is_left_to_it(story: Story) -> None:
    """One speaker, and it says which."""
    assert "delivers alerts itself" in " ".join(story.both["notices"])
