"""Faults of the new protocol, and two faults in one group."""

from typing import Any

from tests.live.support.faults_of_progress import COMMITS, always
from tests.live.support.scene import Case, Play, Scene


def _loop_of_new_protocol(scene: Scene, group: str) -> Play:
    """A member of a consumer group starts and ends, over and over."""
    options: dict[str, Any] = {"client": "confluent", "protocol": "consumer"}
    scene.member(group, f"{group}-0", **options)
    bad = scene.member(group, f"{group}-bad", **options)
    yield 10.0
    for _ in range(6):
        bad.close()
        yield 2.0
        bad.start()
        yield 4.0


def _slow_and_crashing(scene: Scene, group: str) -> Play:
    """One member exceeds its poll interval while another one crashes again and again."""
    options: dict[str, Any] = {"client": "confluent", "max_poll_interval_ms": 8_000, "stall_s": 14.0}
    scene.member(group, f"{group}-0")
    slow = scene.member(group, f"{group}-slow", **options)
    bad = scene.member(group, f"{group}-bad")
    yield scene.is_stable(group, 3)
    yield 2.0
    slow.stall()
    for _ in range(6):
        bad.crash()
        yield 9.0
        bad.start()
        yield 5.0
    yield scene.is_stable(group, 3)


def _stops_and_crashes(scene: Scene, group: str) -> Play:
    """One member commits no more; later another one, in good health, is killed."""
    cast = [scene.reader(group, number) for number in range(2)]
    other = scene.member(group, f"{group}-victim", topic="busy")
    yield scene.is_stable(group, 3)
    yield lambda: cast[1].commits >= COMMITS
    cast[1].mode = "silent"
    yield scene.is_told(group, "CommitsStopped")
    other.crash()
    yield scene.is_told(group, "SessionTimeout")


_IMMINENT = frozenset({"SessionTimeoutImminent"})
PAIRS = (
    Case("loop-848", _loop_of_new_protocol, always(RebalanceStorm={"loop-848-bad"})),
    Case(
        "slow-crash",
        _slow_and_crashing,
        lambda mode: {
            "RebalanceStorm": {"slow-crash-bad"},
            "SessionTimeout": {"slow-crash-bad"},
            **({} if mode == "quiet" else {"PollIntervalExceeded": {"slow-crash-slow"}}),
        },
        _IMMINENT,
    ),
    Case(
        "stop-crash",
        _stops_and_crashes,
        always(CommitsStopped={"stop-crash-1"}, SessionTimeout={"stop-crash-victim"}),
        _IMMINENT,
    ),
)
