"""One incident on a real cluster, for the pictures: a consumer that is killed and started again in a loop.

``payments`` reads a little faster than is written while all three members work, and a little slower while
one is away; so its lag grows with each loss, and falls after the repair.  Beside it stand healthy groups of
the demo, and ``invoices``, whose leader never delivers an assignment.  A Prometheus keeps the lag of these
minutes and nothing else.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.devkit.demo.cast import Cast
from streaming.devkit.demo.plan import FOLLOWERS, RESTARTED, SILENT_LEADER, TOPICS, Member
from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.browser.lag_only import LagOnly, keeping_lag
from tests.live.support.stage import Job, Pager, await_that, need_jars, now_ms

CLUSTER, GROUP, RATE = "demo", "payments", 200
CULPRIT = Member("payments-3", session_ms=10_000, record_ms=12)
OTHERS = tuple(Member(f"payments-{n}", session_ms=10_000, record_ms=12) for n in (1, 2))
HEALTHY = (Member("orders-1"), Member("orders-2"), Member("audit-1"), *RESTARTED)
PARTITIONS = 6


@dataclass(frozen=True)
class Tempo:
    """How long each act lasts, in seconds."""

    calm: float
    rounds: int
    """How often the culprit is killed."""
    away: float = 15.0
    """From its death to its next start; the coordinator removes it after 10 s."""
    back: float = 16.0
    recovery: float = 20.0


FOR_PICTURES = Tempo(calm=75, rounds=8, recovery=90)
"""More than five minutes until the repair, which is the shortest window of the page."""
FOR_TESTS = Tempo(calm=10, rounds=3, back=10)


@dataclass
class Incident:
    """What is to be looked at."""

    page: str
    """Address of the page, with a slash at its end."""
    lag: LagOnly
    job: Job
    pager: Pager
    began_ms: int = 0
    """Begin of the calm minutes before it."""
    killed_ms: list[int] = field(default_factory=list)
    repaired_ms: int = 0

    def explained(self) -> str:
        """Return the group's story as ``groupwatch explain`` prints it."""
        answer = self.job.get(f"/api/v1/groups/{CLUSTER}/{GROUP}/explain?format=text")
        assert answer is not None
        return answer.text


class Play:
    """The cluster, its consumers and what watches them; acts are played one after the other."""

    def __init__(self, kafka: EmbeddedKafka, cast: Cast, incident: Incident, tempo: Tempo) -> None:
        self._kafka = kafka
        self._cast = cast
        self._tempo = tempo
        self.incident = incident

    def calm(self) -> None:
        """Some time in which nothing happens."""
        self.incident.began_ms = now_ms()
        self._last(self._tempo.calm)

    def trouble(self) -> None:
        """Kill the culprit, and start it again, until its last start is some seconds old."""
        for number in range(self._tempo.rounds):
            self._cast.crash(CULPRIT)
            self.incident.killed_ms.append(now_ms())
            self._last(self._tempo.away)
            self._await_state(GROUP, "Stable", len(OTHERS))
            self._cast.start(CULPRIT)
            if number == 1:
                self._silent_leader()
            self._last(self._tempo.back)
            self._await_state(GROUP, "Stable", len(OTHERS) + 1)

    def _silent_leader(self) -> None:
        self._cast.start(SILENT_LEADER)
        # So that the silent one is the first member and thereby the leader.
        self._await_state(SILENT_LEADER.group, "CompletingRebalance", 1)
        for follower in FOLLOWERS:
            self._cast.start(follower)

    def repair(self) -> None:
        """Whoever is called takes the memory limit away: it is not killed again."""
        self.incident.repaired_ms = now_ms()
        self._last(self._tempo.recovery)

    def _await_state(self, group: str, state: str, members: int) -> None:
        await_that(
            lambda: self._kafka.group_states([group])[group] == (state, members),
            f"{group} is {state} with {members}",
        )

    @staticmethod
    def _last(seconds: float) -> None:
        """Let so much time pass: what is seen of it is the picture."""
        time.sleep(seconds)


@contextmanager
def begun(folder: Path, tempo: Tempo) -> Iterator[Play]:
    """Everything runs, and nothing has happened yet."""
    need_jars()
    with ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(folder / "kafka", rebalance_delay_ms=500, heap="384m"))
        for topic in TOPICS:
            kafka.create_topic(topic, partitions=PARTITIONS)
        pager = stack.enter_context(Pager())
        job = Job(kafka.bootstrap_servers, folder, pager)
        job.config.write_text(json.dumps(_settings(job, kafka.bootstrap_servers, pager)))
        job.start()
        stack.callback(job.stop)
        lag = stack.enter_context(keeping_lag(folder / "prometheus", job.port))
        cast = stack.enter_context(Cast(kafka.address, folder))
        stack.enter_context(_written(kafka.bootstrap_servers))
        members = (*OTHERS, CULPRIT, *HEALTHY)
        for member in members:
            cast.start(member)
        job.await_ready()
        wanted = {group: ("Stable", count) for group, count in Counter(m.group for m in members).items()}
        await_that(lambda: kafka.group_states(list(wanted)) == wanted, "everybody has joined")
        await_that(lambda: lag.knows(GROUP), "Prometheus has seen lag")
        yield Play(kafka, cast, Incident(f"http://127.0.0.1:{job.port}/", lag, job, pager), tempo)


def _settings(job: Job, bootstrap: str, pager: Pager) -> dict[str, Any]:
    """The configuration of the tutorial, at the addresses of this run."""
    return {
        "clusters": [{"name": CLUSTER, "bootstrap_servers": bootstrap.split(",")}],
        "checkpoint": str(job.checkpoint),
        "trigger_interval": "1s",
        "http": {"host": "127.0.0.1", "port": job.port, "partition_lag": True},
        "receivers": [{"name": "oncall", "webhook": {"url": pager.url}}],
        "routes": [
            {
                "receivers": ["oncall"],
                "group_by": ["cluster", "group"],
                "group_wait": "2s",
                "group_interval": "20s",
            }
        ],
    }


@contextmanager
def _written(bootstrap: str) -> Iterator[None]:
    """Write what the group reads, at a steady rate."""
    command = [
        sys.executable, "-m", "streaming.devkit.consumers", "producer",
        "--bootstrap", bootstrap, "--topic", GROUP, "--rate", str(RATE),
    ]  # fmt: skip
    producer = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        producer.terminate()
        producer.wait(30)
