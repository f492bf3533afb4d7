"""What goes wrong with consumers, each fault in a group of its own, and what must be said of it.

``python -m tests.live.support.faults --mode quiet`` plays the faults, then what is no fault at all, on one
cluster, and compares the alerts: each expected one with its culprits, and no other.  ``--parts`` plays
some of it: faults, peace, progress (also two faults in one group), odd (groups that are odd and well),
and of coordinators, with three brokers and one a run, restart, failure and moves.  All alerts in full are in
``alerts.json`` of the folder.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka.structs import OffsetAndMetadata, TopicPartition

from streaming.devkit.kafka import free_ports
from streaming.devkit.kafka.versions import RELEASES
from streaming.jars.jars import DEFAULT_VERSIONS
from tests.live.support.conformance import say
from tests.live.support.faults_in_pairs import PAIRS
from tests.live.support.faults_of_moves import FAILURE, MOVES, OFFSETS_PARTITIONS, RESTART
from tests.live.support.faults_of_progress import ODD, PROGRESS, TOPICS, always, rates
from tests.live.support.faults_of_progress import RULES as RULES_OF_PROGRESS
from tests.live.support.members import Member
from tests.live.support.scene import Case, Expected, Play, Scene, opened, play_all, tell
from tests.live.support.schedule import MODES
from tests.live.support.stage import alerts_of, await_that, records_of

__all__ = ["Scene", "main"]

WINDOW_S = 60.0
"""A window that opens after a deployment, so that a restart can be played within minutes."""
RULES: Mapping[str, Any] = {
    **RULES_OF_PROGRESS,
    "rebalance_storm": {"window": f"{WINDOW_S:.0f}s"},
    "stuck_preparing_rebalance": {"after": "8s"},
    "stuck_completing_rebalance": {"after": "8s"},
}

# --- faults -------------------------------------------------------------------------------------------


def _three(scene: Scene, group: str, **options: Any) -> list[Member]:
    return [scene.member(group, f"{group}-{number}", **options) for number in range(3)]


def _killed(scene: Scene, group: str) -> Play:
    members = _three(scene, group)
    yield scene.is_stable(group, 3)
    yield 3.0
    members[1].crash()
    yield scene.is_stable(group, 2)


def _killed_alone(scene: Scene, group: str) -> Play:
    member = scene.member(group, f"{group}-0")
    yield scene.is_stable(group, 1)
    yield 3.0
    member.crash()
    yield scene.is_in(group, "Empty")


def _frozen(scene: Scene, group: str) -> Play:
    members = _three(scene, group, client="confluent")
    yield scene.is_stable(group, 3)
    yield 3.0
    members[2].freeze()
    yield scene.is_stable(group, 2)
    yield 3.0
    members[2].thaw()
    yield scene.is_stable(group, 3)


def _leader_alone(scene: Scene, group: str) -> Play:
    scene.silent_leader(group, f"{group}-leader")
    yield scene.is_told(group, "StuckCompletingRebalance")


def _leader_of_three(scene: Scene, group: str) -> Play:
    scene.silent_leader(group, f"{group}-leader")
    yield scene.is_in(group, "CompletingRebalance")
    scene.member(group, f"{group}-1", session_timeout_ms=30_000, max_poll_interval_ms=300_000)
    scene.member(group, f"{group}-2", session_timeout_ms=30_000, max_poll_interval_ms=300_000)
    yield scene.is_told(group, "StuckCompletingRebalance")


def _never_rejoins(scene: Scene, group: str) -> Play:
    options: dict[str, Any] = {"max_poll_interval_ms": 300_000, "heartbeat_interval_ms": 1_000}
    members = [scene.member(group, f"{group}-{number}", **options) for number in range(2)]
    yield scene.is_stable(group, 2)
    members[1].stall()
    yield 2.0
    scene.member(group, f"{group}-2", **options)
    yield scene.is_told(group, "StuckPreparingRebalance")


def _too_slow(client: str) -> Callable[[Scene, str], Play]:
    def play(scene: Scene, group: str) -> Play:
        options: dict[str, Any] = {"client": client, "max_poll_interval_ms": 8_000, "stall_s": 14.0}
        members = [scene.member(group, f"{group}-{number}", **options) for number in range(2)]
        yield scene.is_stable(group, 2)
        yield 2.0
        members[1].stall()
        yield scene.is_stable(group, 1)
        yield scene.is_stable(group, 2)

    return play


def _crash_loop(scene: Scene, group: str) -> Play:
    scene.member(group, f"{group}-0")
    bad = scene.member(group, f"{group}-bad")
    yield scene.is_stable(group, 2)
    for _ in range(6):
        bad.crash()
        yield scene.is_stable(group, 1)
        bad.start()
        yield scene.is_stable(group, 2)
        yield 1.0


def _crash_loop_alone(scene: Scene, group: str) -> Play:
    bad = scene.member(group, f"{group}-bad")
    yield scene.is_stable(group, 1)
    for _ in range(6):
        bad.crash()
        yield scene.is_in(group, "Empty")
        bad.start()
        yield scene.is_stable(group, 1)
        yield 1.0


# --- no faults ----------------------------------------------------------------------------------------


def _rolling(members: int = 6, **options: Any) -> Callable[[Scene, str], Play]:
    def play(scene: Scene, group: str) -> Play:
        extra = dict(options)
        if is_static := extra.pop("static", False):
            extra |= {"session_timeout_ms": 45_000, "max_poll_interval_ms": 60_000}
        cast = []
        for number in range(members):
            name = f"{group}-{number}"
            cast.append(scene.member(group, name, **extra, **({"instance_id": name} if is_static else {})))
        yield scene.is_stable(group, members)
        yield WINDOW_S + 10.0  # a storm counts members that come and go within the window
        for member in cast:
            member.close()
            yield 1.0
            member.start()
            yield scene.is_stable(group, members)
            yield 1.5
        yield 3.0

    return play


def _staggered(scene: Scene, group: str) -> Play:
    for number in range(8):
        scene.member(group, f"{group}-{number}")
        yield 4.0
    yield scene.is_stable(group, 8)


def _scaled(scene: Scene, group: str) -> Play:
    members = _three(scene, group)
    yield scene.is_stable(group, 3)
    for member in members:
        member.close()
    yield scene.is_in(group, "Empty")
    yield 2.0
    for member in members:
        member.start()
    yield scene.is_stable(group, 3)


def _closes(scene: Scene, group: str) -> Play:
    member = scene.member(group, f"{group}-0", client="confluent")
    yield scene.is_stable(group, 1)
    yield 2.0
    member.close()
    yield scene.is_in(group, "Empty")


def _deleted(scene: Scene, group: str) -> Play:
    yield from _closes(scene, group)
    yield 1.0
    scene.admin.delete_groups([group])
    yield lambda: _deaths(scene, group) == ["group_deleted"]


def _deaths(scene: Scene, group: str) -> list[str]:
    told = [one for _, one in records_of(scene.kafka.address, "groupwatch-transitions")]
    replaced = {one["replaces"] for one in told}
    return [
        one["cause"]["kind"]
        for one in told
        if (one["group"], one["to"]) == (group, "Dead") and one["id"] not in replaced
    ]


def _simple(scene: Scene, group: str) -> Play:
    for offset in (5, 9, 2, 2):
        where = {TopicPartition("orders", 0): OffsetAndMetadata(offset, "", -1)}
        scene.admin.alter_group_offsets(group, where)
        yield 2.0


# --- the catalogue ------------------------------------------------------------------------------------


_NOTHING = always()
_IMMINENT = frozenset({"SessionTimeoutImminent"})


def _unless(mode: str, **expected: set[str] | None) -> Callable[[str], Expected]:
    return lambda played: {} if played == mode else expected


FAULTS = (
    Case("killed", _killed, always(SessionTimeout={"killed-1"}), _IMMINENT),
    Case("killed-alone", _killed_alone, always(SessionTimeout={"killed-alone-0"}), _IMMINENT),
    Case("frozen", _frozen, always(SessionTimeout={"frozen-2"}), _IMMINENT),
    Case("leader", _leader_alone, always(StuckCompletingRebalance={"leader-leader"})),
    Case("leader-of-3", _leader_of_three, always(StuckCompletingRebalance={"leader-of-3-leader"})),
    Case(
        "follower",
        _never_rejoins,
        # Without heartbeats all that have not rejoined are candidates.
        lambda mode: {
            "StuckPreparingRebalance": {"follower-0", "follower-1"} if mode == "quiet" else {"follower-1"}
        },
    ),
    # Only the request log shows that a client which left without a word came back over its connection.
    Case("slow-k", _too_slow("kafka-python"), _unless("quiet", PollIntervalExceeded={"slow-k-1"})),
    Case("slow-c", _too_slow("confluent"), _unless("quiet", PollIntervalExceeded={"slow-c-1"})),
    Case(
        "crash-loop",
        _crash_loop,
        always(RebalanceStorm={"crash-loop-bad"}, SessionTimeout={"crash-loop-bad"}),
        _IMMINENT,
    ),
    Case(
        "crash-alone",
        _crash_loop_alone,
        always(RebalanceStorm={"crash-alone-bad"}, SessionTimeout={"crash-alone-bad"}),
        _IMMINENT,
    ),
)
PEACE = (
    Case("rolling-k", _rolling(), _NOTHING),
    Case("rolling-c", _rolling(client="confluent"), _NOTHING),
    Case("rolling-s", _rolling(client="confluent", assignor="cooperative-sticky"), _NOTHING),
    Case("rolling-i", _rolling(client="confluent", static=True), _NOTHING),
    Case("staggered", _staggered, _NOTHING),
    Case("scaled", _scaled, _NOTHING),
    Case("closes", _closes, _NOTHING),
    Case("deleted", _deleted, _NOTHING),
    Case("simple", _simple, _NOTHING),
)

CASES: Mapping[str, tuple[Case, ...]] = {
    "faults": FAULTS,
    "peace": PEACE,
    "progress": (*PROGRESS, *PAIRS),
    "odd": ODD,
    "restart": RESTART,
    "failure": FAILURE,
    "moves": MOVES,
}
"""Those of one part are played side by side, one part after the other."""
OF_THREE_BROKERS = frozenset({"restart", "failure", "moves"})


# --- judging ------------------------------------------------------------------------------------------


def mistakes(case: Case, alerts: list[dict[str, Any]], mode: str) -> list[str]:
    """Compare a case with all alerts of the run; return what is wrong."""
    expected = case.expected(mode)
    ours = [one for one in alerts if one["group"] == case.name]
    found: dict[str, set[str]] = {}
    for one in ours:
        blamed = [culprit["client_id"] for culprit in one["culprits"]]
        # kafka-python's leaders join again on their own, and honestly get a smaller share of a storm.
        blamed = blamed[:1] if one["name"] == "RebalanceStorm" else blamed
        found.setdefault(one["name"], set()).update(blamed)
    wrong = [f"{case.name}: no {name}" for name in expected if name not in found]
    for name, culprits in found.items():
        wanted = expected.get(name)
        if name not in expected and name not in case.tolerated:
            summaries = [one["summary"] for one in ours if one["name"] == name]
            wrong.append(f"{case.name}: {name} is too much: {summaries}")
        elif wanted is not None and culprits != wanted:
            wrong.append(f"{case.name}: {name} blames {culprits}, not {wanted}")
    last = {one["name"]: one["summary"] for one in ours if one["status"] == "firing"}
    for name, pattern in case.summaries.items():
        if name in last and not re.fullmatch(pattern, last[name]):
            wrong.append(f"{case.name}: {name} says {last[name]!r}, not {pattern!r}")
    return wrong


def is_complete(scene: Scene, cases: list[Case]) -> bool:
    """Say whether every expected alert has been written."""
    alerts = alerts_of(scene.kafka.address)
    return not any("no " in text for case in cases for text in mistakes(case, alerts, scene.mode))


def main(arguments: list[str] | None = None) -> int:
    """Play the catalogue and print the mistakes; 0 if there are none."""
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("--mode", choices=MODES, default="full")
    parser.add_argument("--only", default=".*", help="pattern of the cases to play")
    parser.add_argument(
        "--parts", nargs="*", choices=list(CASES), help="of the catalogue; all that need one broker"
    )
    parser.add_argument("--brokers", type=int, choices=[1, 3], default=1)
    parser.add_argument("--version", choices=sorted(RELEASES), default=DEFAULT_VERSIONS["broker"])
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args(arguments)
    parts = options.parts or [part for part in CASES if part not in OF_THREE_BROKERS]
    of_three = OF_THREE_BROKERS.intersection(parts)
    if len(of_three) > 1:
        parser.error(f"{', '.join(sorted(of_three))}: one a run, each has its own CoordinatorMoved")
    if of_three and options.brokers != 3:
        parser.error(f"{', '.join(of_three)} needs --brokers 3")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="groupwatch-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"material: {folder}, port {free_ports(1)[0]}")
    wanted = [[case for case in CASES[part] if re.fullmatch(options.only, case.name)] for part in parts]
    cases = [case for group in wanted for case in group]
    with opened(
        folder,
        options.mode,
        topics={"orders": (8, {}), **TOPICS},
        rates=rates(),
        rules=RULES,
        brokers=options.brokers,
        version=options.version,
        offsets_partitions=OFFSETS_PARTITIONS,
        rebalance_delay_ms=1000,
    ) as scene:
        wrong = [failure for group in wanted for failure in play_all(scene, group)]
        try:
            await_that(lambda: is_complete(scene, cases), "all alerts are written", 60)
        except AssertionError as error:
            say(str(error))
        alerts = alerts_of(scene.kafka.address)
    wrong += [text for case in cases for text in mistakes(case, alerts, options.mode)]
    return tell(folder, alerts, wrong)


if __name__ == "__main__":
    sys.exit(main())
