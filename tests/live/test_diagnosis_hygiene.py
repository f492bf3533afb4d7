"""Misuse of membership on a real cluster, each in a group of its own, and a static restart that is none."""

import contextlib
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from streaming.devkit.consumers.silent_leader import SilentLeader
from streaming.devkit.consumers.wire import Connection, text
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.scene import Scene
from tests.live.support.side_by_side import Act
from tests.live.support.stage import Pager, Told, await_that

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

STATIC: dict[str, Any] = {
    "client": "confluent",
    "session_timeout_ms": 30_000,
    "max_poll_interval_ms": 60_000,
}
_SYNC_GROUP, _OFFSET_COMMIT = 14, 8
_UNKNOWN_MEMBER_ID = 25


@dataclass
class Story(Told):
    """What was seen of it."""

    zombie_id: str = ""
    refused: int = -1
    """The error that the zombie's commit got."""


class Zombie(SilentLeader):
    """A consumer that joins, works, falls silent, and goes on as if nothing had happened."""

    def __init__(self, connection: Connection, group: str) -> None:
        """Nothing is sent yet."""
        super().__init__(connection, group, "orders", 6_000)

    @property
    def member_id(self) -> str:
        """Return its member id."""
        return self._member_id

    def work(self) -> None:
        """Join, assign itself nothing, and commit."""
        self.join()
        mine = text(self._group) + struct.pack(">i", self._generation) + text(self._member_id)
        assignment = struct.pack(">hii", 0, 0, -1)
        whole = struct.pack(">i", 1) + text(self._member_id) + struct.pack(">i", len(assignment)) + assignment
        self._connection.ask(_SYNC_GROUP, 1, mine + whole)
        assert self.commit(1) == 0

    def commit(self, offset: int) -> int:
        """Commit an offset; returns the error."""
        body = text(self._group) + struct.pack(">i", self._generation) + text(self._member_id)
        body += struct.pack(">qi", -1, 1) + text("orders")
        body += struct.pack(">iiq", 1, 0, offset) + text("")
        answer = self._connection.ask(_OFFSET_COMMIT, 2, body)
        (error,) = struct.unpack(">h", answer[-2:])
        return int(error)


def _twins(scene: Scene) -> None:
    scene.member("twins", "twin-1", instance_id="same", **STATIC)
    await_that(scene.is_stable("twins", 1), "twins is Stable")
    await_that(lambda: scene.job.states().get("twins") == "Stable", "the mirror knows the first twin")
    scene.member("twins", "twin-2", instance_id="same", **STATIC)


def _calm(scene: Scene) -> Iterator[None]:
    """A static member crashes and is back within its session; yields in between."""
    scene.member("calm", "calm-0", instance_id="calm-0", **STATIC)
    crashing = scene.member("calm", "calm-1", instance_id="calm-1", **STATIC)
    await_that(scene.is_stable("calm", 2), "calm is Stable")
    yield
    crashing.crash()
    time.sleep(2.0)  # the length of its absence, well below its session timeout
    crashing.start()


def _stranger(scene: Scene) -> None:
    """Somebody commits under the id of an active group, again and again."""
    for offset in range(3):
        where = {TopicPartition("orders", 0): OffsetAndMetadata(offset, "", -1)}
        with contextlib.suppress(Exception):  # it is refused
            scene.admin.alter_group_offsets("shared", where)
        time.sleep(1.5)  # again and again, not at once


def _play(scene: Scene, _pager: Pager) -> Story:
    story = Story()
    with Connection(scene.kafka.bootstrap_servers, "zombie-0") as connection:
        zombie = Zombie(connection, "zombie")
        zombie.work()
        story.zombie_id = zombie.member_id
        for number in range(2):
            scene.member("narrow", f"narrow-{number}", topic="narrow", session_timeout_ms=CALM_SESSION_MS)
            scene.member(
                "narrow848", f"modern-{number}", client="confluent", protocol="consumer", topic="narrow"
            )
        scene.member("shared", "shared-0", session_timeout_ms=CALM_SESSION_MS)
        for number, session_ms in enumerate((CALM_SESSION_MS, 75_000, 75_000)):
            scene.member("mixed", f"mixed-{number}", session_timeout_ms=session_ms)
        calm = _calm(scene)
        next(calm)
        _twins(scene)
        await_that(scene.is_stable("shared", 1), "shared is Stable")
        await_that(scene.is_stable("narrow", 2), "narrow is Stable")
        _stranger(scene)
        next(calm, None)
        await_that(scene.is_in("zombie", "Empty"), "the zombie was removed")
        await_that(lambda: scene.job.states().get("zombie") == "Empty", "the mirror knows that it was")
        story.refused = zombie.commit(7)
    for group, name in (
        ("twins", "StaticMemberFenced"),
        ("zombie", "ZombieCommit"),
        ("shared", "GroupIdCollision"),
        ("narrow", "IdleMembers"),
        ("narrow848", "IdleMembers"),
        ("mixed", "UnsafeTimeouts"),
    ):
        await_that(scene.is_told(group, name), f"{name} of {group} is told")
    both = scene.is_told("twins", "StaticMemberFenced", frozenset({"twin-1", "twin-2"}))
    await_that(both, "both processes of one instance id are told")
    await_that(scene.is_stable("calm", 2), "calm is Stable again")
    scene.await_judgement("hygiene-marker")  # what would be told of calm falsely has been told by then
    return story


ACT = Act(
    play=_play,
    groups=frozenset({"hygiene-marker", "twins", "zombie", "shared", "narrow", "narrow848", "calm", "mixed"}),
    topics={"orders": 4, "narrow": 1},
    rules={
        "idle_members": {"after": "5s"},
        "unsafe_timeouts": {"overrides": [{"groups": ["mixed"], "after": "5s"}]},
    },
)


@pytest.fixture(scope="module")
def story(played: Callable[[Act], Story]) -> Story:
    return played(ACT)


def test_two_processes_with_one_instance_id(story: Story) -> None:
    """Both are named, as the one that was thrown out and the one that holds the id."""
    alert = story.of("twins")["StaticMemberFenced"][-1]

    assert set(story.of("twins")) == {"StaticMemberFenced"}
    assert alert["summary"] == "Group twins: two processes use one group.instance.id: same."
    assert {one["client_id"] for one in alert["culprits"]} == {"twin-1", "twin-2"}
    assert {one["basis"] for one in alert["culprits"]} == {"observed"}


def test_a_member_that_was_removed_and_commits(story: Story) -> None:
    """With its member id, its generation, what it would have committed, and why it was removed."""
    assert story.refused == _UNKNOWN_MEMBER_ID
    found = story.of("zombie")
    (alert,) = found["ZombieCommit"]

    assert set(found) - {"SessionTimeoutImminent"} == {"ZombieCommit", "SessionTimeout"}
    assert [one["member_id"] for one in alert["culprits"]] == [story.zombie_id]
    assert f"(member {story.zombie_id}) with generation 1 (orders-0 at 7) refused" in alert["cause"]
    assert "its session timed out" in alert["cause"]


def test_commits_under_the_id_of_an_active_group(story: Story) -> None:
    """Told from the second on."""
    (alert,) = story.of("shared")["GroupIdCollision"]

    assert set(story.of("shared")) == {"GroupIdCollision"}
    assert "without being a member" in alert["summary"]


@pytest.mark.parametrize("group", ["narrow", "narrow848"])
def test_more_members_than_partitions(story: Story, group: str) -> None:
    """Under the old protocol and the new one."""
    (alert,) = story.of(group)["IdleMembers"]

    assert set(story.of(group)) == {"IdleMembers"}
    assert alert["severity"] == "info"
    assert alert["cause"] == "2 members share 1 partition."
    assert len(alert["culprits"]) == 1


def test_timeouts_that_differ_within_a_group(story: Story) -> None:
    """Who has which, and what to set; said once."""
    (alert,) = story.of("mixed")["UnsafeTimeouts"]

    assert set(story.of("mixed")) == {"UnsafeTimeouts"}
    assert (alert["severity"], alert["revision"]) == ("info", 0)
    assert [one["client_id"] for one in alert["culprits"]] == ["mixed-0"]
    assert alert["cause"].startswith("session.timeout.ms is 30000 at mixed-0 on ")
    assert alert["advice"].endswith("that most of them have: session.timeout.ms 75000.")


def test_a_static_restart_is_silent(story: Story) -> None:
    """One replacement, within the session."""
    assert story.of("calm") == {}


def test_nothing_else_is_said(story: Story) -> None:
    """Of no other group, and of the cluster neither."""
    assert {one["group"] for one in story.alerts} == {
        *("twins", "zombie", "shared", "narrow", "narrow848", "mixed"),
    }
