"""What goes wrong with reading and committing, and groups that are odd and well.

Played by ``tests.live.support.faults`` against topics that are written to all the time.
"""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Producer
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.live.support.readers import Transformer
from tests.live.support.scene import Case, Expected, Play, Scene, Topics


def _after(seconds: int, held_s: int) -> Mapping[str, Any]:
    """Return a rule's bound; of groups that wait for transactions, the brokers tell so after 20 s or more."""
    return {"after": f"{seconds}s", "overrides": [{"groups": ["held.*"], "after": f"{held_s}s"}]}


RULES: Mapping[str, Mapping[str, Any]] = {
    "commits_stopped": _after(15, 40),
    "commits_stalled": _after(10, 40),
    "lag_growing": {"window": "40s"},
}
TOPICS: Topics = {
    "busy": (4, {}),
    "quiet": (2, {}),
    "compacted": (
        2,
        {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"},
    ),
    "copies": (2, {}),
    "anew": (2, {}),
    "seen-0": (2, {}),
    "held": (2, {}),
    "held-new": (2, {}),
}
"""Partitions and configuration."""
COMMITS = 12
"""More than a window, so that what is usual is known."""


def rates() -> dict[str, float]:
    """Return how many records a second are written to which topic."""
    return {"busy": 40.0, "compacted": 10.0, "anew": 10.0, "quiet": 0.2, "held": 10.0, "held-new": 10.0}


def always(**expected: set[str] | None) -> Callable[[str], Expected]:
    """Expect the same in every mode."""
    return lambda _mode: expected


# --- faults -------------------------------------------------------------------------------------------


def _falls_behind(scene: Scene, group: str) -> Play:
    # From the end: of what had been written before, it would read one partition after the other for minutes.
    scene.reader(group, rate=5.0, auto_offset_reset="latest")
    yield scene.is_told(group, "LagGrowing")


def _turns(mode: str, name: str, members: int = 1) -> Callable[[Scene, str], Play]:
    """Play a group whose last member turns bad once it has got used to its pace."""

    def play(scene: Scene, group: str) -> Play:
        cast = [scene.reader(group, number) for number in range(members)]
        yield scene.is_stable(group, members)
        yield lambda: cast[-1].commits >= COMMITS
        cast[-1].mode = mode
        yield scene.is_told(group, name)

    return play


def _hangs(scene: Scene, group: str) -> Play:
    """One of two never comes back from a record; its poll interval is long, as people set it."""
    cast = [scene.reader(group, number, max_poll_interval_ms=600_000) for number in range(2)]
    yield scene.is_stable(group, 2)
    yield lambda: cast[1].commits >= COMMITS
    cast[1].hang()
    yield scene.is_told(group, "CommitsStopped")


def _reset(scene: Scene, group: str) -> Play:
    """Somebody sets the offsets of an empty group to the beginning."""
    yield from _read_and_leave(scene, group)
    where = {TopicPartition("busy", number): OffsetAndMetadata(0, "", -1) for number in range(4)}
    scene.admin.alter_group_offsets(group, where)
    yield scene.is_told(group, "OffsetRewind")


def _manual_goes_back(scene: Scene, group: str) -> Play:
    """A consumer that takes its partitions by itself goes back."""
    reader = scene.reader(group, topics=("busy:0",))
    yield lambda: reader.commits >= COMMITS
    reader.mode = "back"
    yield scene.is_told(group, "OffsetRewind")


# --- no faults ----------------------------------------------------------------------------------------


def _read_and_leave(scene: Scene, group: str) -> Play:
    reader = scene.reader(group)
    yield lambda: reader.commits >= COMMITS
    reader.stop()
    yield scene.is_in(group, "Empty")


def _reset_forward(scene: Scene, group: str) -> Play:
    yield from _read_and_leave(scene, group)
    where = {TopicPartition("busy", number): OffsetAndMetadata(100_000, "", -1) for number in range(4)}
    scene.admin.alter_group_offsets(group, where)
    yield 10.0


def _reads(seconds: float = 60.0, **options: Any) -> Callable[[Scene, str], Play]:
    """Play a consumer that goes on for a while."""

    def play(scene: Scene, group: str) -> Play:
        scene.reader(group, **options)
        yield seconds

    return play


def _batch(scene: Scene, group: str) -> Play:
    """A job that starts every now and then, reads what has come, and ends."""
    reader = scene.reader(group)
    for _ in range(4):
        yield lambda: reader.commits >= 3
        reader.stop()
        yield 14.0
        reader.commits = 0
        reader.start()
    reader.stop()
    yield 5.0


def _grows(scene: Scene, group: str) -> Play:
    """One member becomes four at once, and one again."""
    first = scene.reader(group)
    yield scene.is_stable(group, 1)
    yield 5.0
    more = [scene.reader(group, number) for number in range(1, 4)]
    yield scene.is_stable(group, 4)
    yield 10.0
    for reader in more:
        reader.ask_to_stop()
    yield scene.is_stable(group, 1)
    yield lambda: first.commits >= COMMITS


def _made_anew(scene: Scene, group: str) -> Play:
    """The topic is deleted and made again while the group reads it."""
    reader = scene.reader(group, topics=("anew",))
    yield lambda: reader.commits >= COMMITS
    scene.admin.delete_topics(["anew"])
    yield 4.0
    scene.kafka.create_topic("anew", partitions=2)
    yield 30.0


def _by_pattern(scene: Scene, group: str) -> Play:
    """Topics that fit the subscription appear."""
    scene.reader(group, topics=("^seen-.*",))
    scene.reader(group, 1, topics=("^seen-.*",))
    yield scene.is_stable(group, 2)
    for number in range(1, 4):
        scene.kafka.create_topic(f"seen-{number}", partitions=2)
        yield 8.0
    yield scene.is_stable(group, 2)


def _transactions(scene: Scene, group: str) -> Play:
    service = Transformer(scene.kafka.bootstrap_servers, group, f"{group}-0", "busy", "copies")
    yield lambda: service.commits >= 3 * COMMITS
    yield 20.0
    service.stop()


def _behind_a_transaction(**options: Any) -> Callable[[Scene, str], Play]:
    """Play a consumer of committed records while a producer takes minutes over a transaction."""

    def play(scene: Scene, group: str) -> Play:
        scene.reader(group, topics=(group,), isolation_level="read_committed", **options)
        yield scene.is_stable(group, 1)
        yield 20.0
        config = {"transactional.id": f"{group}-tx", "transaction.timeout.ms": 600_000}
        producer = Producer({"bootstrap.servers": scene.kafka.bootstrap_servers, **config})
        producer.init_transactions(30)
        for _ in range(2):
            producer.begin_transaction()
            for number in range(2):
                producer.produce(group, b"x", partition=number)
            producer.flush(10)
            yield 60.0
            producer.commit_transaction(10)
            yield 5.0

    return play


def _slow_start(scene: Scene, group: str) -> Play:
    """The first records take longer than all that come later: a cache is filled."""
    for number in range(2):
        scene.reader(group, number, first_s=25.0, session_timeout_ms=45_000, max_poll_interval_ms=60_000)
    yield 60.0


def _shares_with_manual(scene: Scene, group: str) -> Play:
    """Two consumers with partitions of their own choice, under one id."""
    scene.reader(group, 0, topics=("busy:0",))
    scene.reader(group, 1, topics=("busy:1",))
    yield 60.0


PROGRESS = (
    Case("lags", _falls_behind, always(LagGrowing={"lags-0"})),
    Case("stops", _turns("silent", "CommitsStopped"), always(CommitsStopped={"stops-0"})),
    Case("stops-1-of-2", _turns("silent", "CommitsStopped", 2), always(CommitsStopped={"stops-1-of-2-1"})),
    Case("hangs", _hangs, always(CommitsStopped={"hangs-1"})),
    Case("stalls", _turns("stuck", "CommitsStalled", 2), always(CommitsStalled={"stalls-1"})),
    Case("rewinds", _turns("back", "OffsetRewind"), always(OffsetRewind={"rewinds-0"})),
    Case("reset", _reset, always(OffsetRewind=set())),
    Case("goes-back", _manual_goes_back, always(OffsetRewind=set())),
)
_NOTHING = always()
ODD = (
    Case("manual", _reads(topics=("busy:0",)), _NOTHING),
    Case("manual-2", _shares_with_manual, _NOTHING),
    Case("never", _reads(mode="silent"), _NOTHING),
    Case("rarely", _reads(every_s=25.0), _NOTHING),
    Case("idle", _reads(topics=("quiet",)), _NOTHING),
    Case("compacted", _reads(topics=("compacted",)), _NOTHING),
    Case("reset-forward", _reset_forward, _NOTHING),
    Case("batch", _batch, _NOTHING),
    Case("grows", _grows, _NOTHING),
    Case("made-anew", _made_anew, _NOTHING),
    Case("pattern", _by_pattern, _NOTHING),
    Case("transactions", _transactions, _NOTHING),
    Case("slow-start", _slow_start, _NOTHING),
    Case("held", _behind_a_transaction(), _NOTHING),
    # It commits what is new, and nothing a second time.
    Case(
        "held-new",
        _behind_a_transaction(mode="silent", enable_auto_commit=True, auto_commit_interval_ms=1_000),
        _NOTHING,
    ),
)
