"""Groups that are odd and well, for as long as one likes, under the rules as they come.

``python -m tests.live.support.hours --minutes 60`` lets some thirty groups live on one cluster as they do
in the field: rolling restarts, batch jobs, slow committers, traffic in bursts, scaling up and down,
passers-by.  Nothing is wrong with any of them, so each alert is a mistake, and so is each that a Prometheus
beside it (which must be installed) has pending.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.support.conformance import say
from tests.live.support.faults_of_progress import TOPICS, always
from tests.live.support.prometheus import watched
from tests.live.support.readers import Transformer, Writer
from tests.live.support.scene import Case, Play, Scene, Topics, opened, play_all, tell
from tests.live.support.schedule import MODES
from tests.live.support.stage import alerts_of

MORE_TOPICS = {"orders": 8, "nothing": 3, "bursts": 4, "wide": 2}
"""Topic -> partitions."""
RATES = {"busy": 20.0, "compacted": 5.0, "quiet": 0.02, "wide": 5.0, "orders": 1.0}
BURST_S, PAUSE_S, BURST_RATE = 60.0, 300.0, 40.0
LIKE_JAVA: dict[str, Any] = {
    "session_timeout_ms": 45_000,
    "heartbeat_interval_ms": 3_000,
    "max_poll_interval_ms": 300_000,
}
DEPLOYED_S = 660.0
"""Between two deployments: two within the window of ten minutes are a storm by definition."""

_Life = Callable[[Scene, str], Generator[float, None, None]]
"""What a group does, in rounds of so many seconds, until nobody asks any more."""


# --- lives ----------------------------------------------------------------------------------------------


def _stays(members: int = 1, **options: Any) -> _Life:
    """Return consumers that read on and on."""
    config = options if "group_protocol" in options else LIKE_JAVA | options

    def live(scene: Scene, group: str) -> Generator[float, None, None]:
        for number in range(members):
            scene.reader(group, number, **config)
        while True:
            yield 5.0

    return live


def _plain(scene: Scene, group: str) -> Generator[float, None, None]:
    """Two of kafka-python."""
    for number in range(2):
        scene.member(group, f"{group}-{number}", **LIKE_JAVA)
    while True:
        yield 5.0


def _rolls(members: int, *, static: bool = False, dies: bool = False, **options: Any) -> _Life:
    """Return a service whose members are restarted one after the other at each deployment."""

    def live(scene: Scene, group: str) -> Generator[float, None, None]:
        cast = []
        for number in range(members):
            name = f"{group}-{number}"
            more = {"instance_id": name} if static else {}
            cast.append(scene.member(group, name, client="confluent", **LIKE_JAVA, **options, **more))
        while True:
            yield DEPLOYED_S
            for one in cast:
                if dies:
                    one.crash()
                else:
                    one.close()
                yield 1.5
                one.start()
                yield 4.0

    return live


def _batch(every_s: float, work_s: float, topics: tuple[str, ...] = ("busy",)) -> _Life:
    """Return a job that comes, reads for a while, and goes."""

    def live(scene: Scene, group: str) -> Generator[float, None, None]:
        reader = scene.reader(group, topics=topics, **LIKE_JAVA)
        while True:
            yield work_s
            reader.stop()
            yield every_s - work_s
            reader.start()

    return live


def _scales(scene: Scene, group: str) -> Generator[float, None, None]:
    """One member becomes four, all at once, and one again."""
    scene.reader(group, **LIKE_JAVA)
    while True:
        yield 400.0
        more = [scene.reader(group, number, **LIKE_JAVA) for number in range(1, 4)]
        yield 400.0
        for one in more:
            one.ask_to_stop()


def _deploys(scene: Scene, group: str) -> Generator[float, None, None]:
    """All go at once and come back."""
    cast = [scene.reader(group, number, **LIKE_JAVA) for number in range(3)]
    while True:
        yield DEPLOYED_S
        for one in cast:
            one.ask_to_stop()
        yield 8.0
        for one in cast:
            one.start()


def _passes_by(scene: Scene, group: str) -> Generator[float, None, None]:
    """Somebody looks into a topic with a console consumer, under a group of its own each time."""
    while True:
        yield random.uniform(20.0, 60.0)
        one = scene.reader(f"{group}-{random.randrange(100_000)}", **LIKE_JAVA)
        yield 20.0
        one.ask_to_stop()


def _grows(scene: Scene, group: str) -> Generator[float, None, None]:
    """The topic gets more partitions, now and then."""
    for number in range(2):
        scene.reader(group, number, topics=("wide",), **LIKE_JAVA)
    for partitions in range(MORE_TOPICS["wide"] + 2, 1_000, 2):
        yield 500.0
        scene.admin.create_partitions({"wide": partitions})


def _transacts(scene: Scene, group: str) -> Generator[float, None, None]:
    Transformer(scene.kafka.bootstrap_servers, group, f"{group}-0", "busy", "copies")
    while True:
        yield 5.0


LIVES: dict[str, _Life] = {
    "plain": _plain,
    "range": _stays(3),
    "sticky": _stays(3, partition_assignment_strategy="cooperative-sticky"),
    "kip-848": _stays(2, group_protocol="consumer", session_timeout_ms=None, heartbeat_interval_ms=None),
    "rolls": _rolls(4),
    "rolls-sticky": _rolls(4, assignor="cooperative-sticky"),
    "rolls-static": _rolls(3, static=True),
    "crashes-static": _rolls(2, static=True, dies=True),
    "batch-6-min": _batch(360.0, 30.0),
    "batch-90-s": _batch(90.0, 20.0),
    "batch-idle": _batch(200.0, 60.0, topics=("quiet",)),
    "each-5-min": _stays(every_s=300.0),
    "each-90-s": _stays(2, every_s=90.0),
    "each-record": _stays(every_s=0.05),
    "idle": _stays(2, topics=("nothing",)),
    "rare": _stays(topics=("quiet",)),
    "never": _stays(mode="silent"),
    "manual": _stays(topics=("busy:0",)),
    "manual-2": _stays(topics=("busy:1", "busy:2")),
    "compacted": _stays(topics=("compacted",)),
    "bursts": _stays(topics=("bursts",), rate=15.0),
    "bursts-2": _stays(2, topics=("bursts",), rate=12.0, every_s=20.0),
    "scales": _scales,
    "deploys": _deploys,
    "passer-by": _passes_by,
    "wide": _grows,
    "transacts": _transacts,
}


def cases(until: float) -> list[Case]:
    """Return all lives as cases that end at ``until`` (of the monotonic clock) and expect nothing."""

    def limited(live: _Life) -> Callable[[Scene, str], Play]:
        def play(scene: Scene, group: str) -> Play:
            for seconds in live(scene, group):
                if time.monotonic() + seconds > until:
                    break
                yield seconds
            yield max(0.0, until - time.monotonic())

        return play

    return [Case(name, limited(live), always()) for name, live in LIVES.items()]


# --- the stage ------------------------------------------------------------------------------------------


class Bursts:
    """Writes to "bursts" for a minute, and then not for a while, until stopped."""

    def __init__(self, bootstrap: str) -> None:
        """Begin."""
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="bursts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write no more."""
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._stop.is_set():
            writer = Writer(self._bootstrap, {"bursts": BURST_RATE})
            self._stop.wait(BURST_S)
            writer.stop()
            self._stop.wait(PAUSE_S)


@contextmanager
def stage(folder: Path, mode: str) -> Iterator[Scene]:
    """Start the cluster with its topics and writers, and a job that is ready."""
    topics: Topics = {**TOPICS, **{topic: (partitions, {}) for topic, partitions in MORE_TOPICS.items()}}
    with opened(folder, mode, topics=topics, rates=RATES, offsets_partitions=8) as scene:
        bursts = Bursts(scene.kafka.bootstrap_servers)
        try:
            yield scene
        finally:
            bursts.stop()


def _play(folder: Path, mode: str, minutes: float) -> tuple[list[str], list[dict[str, Any]]]:
    """Return what did not come about or should not have, and all alerts."""
    with stage(folder, mode) as scene, watched(folder / "prometheus", scene.job.port) as prometheus:
        failures = play_all(scene, cases(time.monotonic() + 60 * minutes))
        return [*failures, *prometheus.ever()], alerts_of(scene.kafka.address)


def main(arguments: list[str] | None = None) -> int:
    """Let them live and print the alerts; 0 if there are none."""
    parser = argparse.ArgumentParser(prog="hours")
    parser.add_argument("--mode", choices=MODES, default="full")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="groupwatch-hours-"))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"material: {folder}")
    failures, alerts = _play(folder, options.mode, options.minutes)
    said = dict.fromkeys(f"{one['group']}: {one['name']}" for one in alerts)
    return tell(folder, alerts, [*failures, *said])


if __name__ == "__main__":
    sys.exit(main())
