"""Consumers that do not get on, on a real cluster, and consumers that seem not to.

One reads and does not commit any more, one commits the same offset again and again, one seeks back to
the beginning; beside them a slow committer, and a group that has read all there is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from streaming.kafka_clients.clients import producer
from tests.live.support.readers import Reader, Writer
from tests.live.support.scene import Scene
from tests.live.support.side_by_side import Act
from tests.live.support.stage import Pager, Told, await_that

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COMMITS = 12
"""More than a window, so that what is usual is known."""


@dataclass
class Story(Told):
    """What was seen of it."""

    def told(self, group: str) -> list[tuple[str, str]]:
        """Return (name, status) of a group's alerts in order."""
        return [(one["name"], one["status"]) for one in self.alerts if one["group"] == group]


def _await_told(scene: Scene, group: str, name: str, *, over: bool = False) -> None:
    what = f"{name} of {group} is {'over' if over else 'told'}"
    await_that(lambda: scene.is_told(group, name)() is not over, what)


def _await_commits(reader: Reader) -> None:
    await_that(lambda: reader.commits >= COMMITS, "it commits")


def _play(scene: Scene, _pager: Pager) -> Story:
    out = producer(scene.kafka.address)
    for _ in range(20):
        out.send("quiet", b"x")
    out.close()
    writer = Writer(scene.kafka.bootstrap_servers, {"busy": 20.0})
    try:
        _turn_bad(scene)
    finally:
        writer.stop()
    return Story()


def _turn_bad(scene: Scene) -> None:
    readers = {group: scene.reader(group) for group in ("stops", "stalls", "rewinds")}
    scene.reader("slowly", every_s=4.0)
    scene.reader("idle", topics=("quiet",))
    for reader in readers.values():
        _await_commits(reader)
    readers["stops"].mode, readers["stalls"].mode, readers["rewinds"].mode = "silent", "stuck", "back"
    _await_told(scene, "rewinds", "OffsetRewind")
    for group, name in (("stops", "CommitsStopped"), ("stalls", "CommitsStalled")):
        _await_told(scene, group, name)
        readers[group].mode = "reads"
    for group, name in (("stops", "CommitsStopped"), ("stalls", "CommitsStalled")):
        _await_told(scene, group, name, over=True)


ACT = Act(
    play=_play,
    groups=frozenset({"stops", "stalls", "rewinds", "slowly", "idle"}),
    topics={"busy": 1, "quiet": 1},
    rules={"commits_stopped": {"after": "12s"}, "commits_stalled": {"after": "8s"}},
)


@pytest.fixture(scope="module")
def story(played: Callable[[Act], Story]) -> Story:
    return played(ACT)


def test_a_consumer_that_reads_on_and_commits_nothing(story: Story) -> None:
    """Its owner is named, and the alert ends with the next commit."""
    fired = next(one for one in story.alerts if one["group"] == "stops")

    assert story.told("stops") == [("CommitsStopped", "firing"), ("CommitsStopped", "resolved")]
    assert [(one["client_id"], one["basis"]) for one in fired["culprits"]] == [("stops-0", "inferred")]
    assert "busy-0" in fired["summary"]


def test_a_consumer_that_commits_the_same_offset(story: Story) -> None:
    """It is stalled, not stopped and not slow."""
    assert story.told("stalls") == [("CommitsStalled", "firing"), ("CommitsStalled", "resolved")]


def test_a_seek_to_the_beginning(story: Story) -> None:
    """However soon it has read all that again."""
    fired = next(one for one in story.alerts if one["group"] == "rewinds")

    assert story.told("rewinds") == [("OffsetRewind", "firing")]
    assert fired["severity"] == "warning"
    assert "back to 0" in fired["evidence"][0]


def test_who_is_slow_or_idle_is_left_alone(story: Story) -> None:
    """As is everybody else."""
    assert {one["group"] for one in story.alerts} == {"stops", "stalls", "rewinds"}
