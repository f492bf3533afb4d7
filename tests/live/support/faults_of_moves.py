"""Coordinators that move, on three brokers: a restart, a failure, and rebalances that are lost with one."""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_model.kafka.hashing import shard_of
from tests.live.support.faults_of_progress import COMMITS, always
from tests.live.support.readers import Reader
from tests.live.support.scene import Case, Play, Scene

OFFSETS_PARTITIONS = 8
"""Of the cluster on which this is played."""
STOPPED, KILLED = ([f"{what}-{number}" for number in range(6)] for what in ("stopped", "killed"))
"""Groups that read while a broker is restarted, and while one is killed."""
CANDIDATES = [f"waiting-{number}" for number in range(24)]
"""Those whose coordinator is the broker that fails take part."""
LOST = 4
_PATIENT: Mapping[str, Any] = {"topics": ("busy",), "session_timeout_ms": 30_000}


def _broker_goes(broker: int, groups: list[str], *, hard: bool) -> Callable[[Scene, str], Play]:
    """Play a broker that stops, or is killed, and comes back, while groups read as ever."""

    def play(scene: Scene, _: str) -> Play:
        short: dict[str, Any] = {"session_timeout_ms": 10_000}  # some give theirs up while nobody coordinates
        readers = [scene.reader(group, number, **short) for group in groups for number in range(2)]
        yield lambda: all(reader.commits >= COMMITS for reader in readers)
        scene.kafka.stop_broker(broker, hard=hard)
        yield from _all_commit(readers)
        scene.kafka.start_broker(broker)
        yield from _all_commit(readers)
        yield 20.0  # whoever seems silent is told within 10 s, a move 5 s after the last rebalance
        if not hard:
            yield lambda: not scene.is_told("", "CoordinatorMoved")()
        for reader in readers:
            reader.stop()

    return play


def _all_commit(readers: list[Reader]) -> Play:
    for reader in readers:
        reader.commits = 0
    yield lambda: all(reader.commits >= COMMITS for reader in readers)


def _rebalances_are_lost(broker: int) -> Callable[[Scene, str], Play]:
    """Play groups that wait for a member which does not join again when their coordinator is killed."""

    def play(scene: Scene, _: str) -> Play:
        yield lambda: scene.led_by(broker)
        led = scene.led_by(broker)
        groups = [one for one in CANDIDATES if shard_of(one, OFFSETS_PARTITIONS) in led][:LOST]
        hanging = [scene.reader(group, first_s=3_600.0, **_PATIENT) for group in groups]
        yield lambda: all(reader.is_hanging for reader in hanging)
        joining = [scene.reader(group, 1, **_PATIENT) for group in groups]
        for group in groups:
            yield scene.is_in(group, "PreparingRebalance")
        scene.kafka.stop_broker(broker, hard=True)
        yield scene.is_told("", "CoordinatorMoved")
        for reader in hanging:
            reader.stop()
        yield from _all_commit(joining)
        scene.kafka.start_broker(broker)
        yield from _all_commit(joining)

    return play


def _stays(_scene: Scene, _group: str) -> Play:
    """Play nothing: what happens to the brokers is enough."""
    yield 0.0


_NOTHING = always()
_LATE = frozenset({"CommitsStopped", "StuckPreparingRebalance"})
"""Until the controller gives a dead broker up nobody coordinates, and clients may give up their sessions:
that lasts nearly as long as these rules wait here, and so does the join phase that follows."""
_MOVED = frozenset({"CoordinatorMoved"})
RESTART = (
    Case("", _broker_goes(2, STOPPED, hard=False), _NOTHING, _MOVED),
    *(Case(name, _stays, _NOTHING) for name in STOPPED),
)
FAILURE = (
    Case("", _broker_goes(3, KILLED, hard=True), _NOTHING, _MOVED),
    *(Case(name, _stays, _NOTHING, _LATE) for name in KILLED),
)
"""Whoever has to rebalance is told with the broker, and never as a member that timed out."""
MOVES = (
    Case(
        "",
        _rebalances_are_lost(1),
        always(CoordinatorMoved=set()),
        summaries={
            "CoordinatorMoved": rf"Coordinators moved from broker 1 at .*, and {LOST} groups rebalanced .*"
        },
    ),
    # A join phase that lasts longer than the rule's 8 s is one.
    *(Case(name, _stays, _NOTHING, frozenset({"StuckPreparingRebalance"})) for name in CANDIDATES),
)
"""One alert for the cluster, with the broker and the number of groups; the groups themselves say nothing."""
