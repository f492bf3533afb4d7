"""Where faults are played: one cluster, one job, and every process that takes part."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import admin_client
from tests.live.support.conformance import say
from tests.live.support.members import CALM_SESSION_MS, Member
from tests.live.support.readers import Reader, Writer
from tests.live.support.stage import PATIENCE_S, Job, Pager, await_that

Topics = Mapping[str, tuple[int, Mapping[str, str]]]
"""Topic -> its partitions and configuration."""
Step = float | Callable[[], object]
"""Seconds to wait, or what must become true."""
Play = Generator[Step, None, None]
Expected = Mapping[str, set[str] | None]
"""Alert name -> client ids of its culprits; None: any."""


class Scene:
    """Where the plays are played: one cluster, one job, all processes."""

    def __init__(self, kafka: EmbeddedKafka, job: Job, mode: str) -> None:
        """Nothing runs yet."""
        self.kafka = kafka
        self.job = job
        self.mode = mode
        self.admin = admin_client(kafka.address)
        self._members: list[Member] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._readers: list[Reader] = []

    def member(self, group: str, client_id: str, client: str = "kafka-python", **options: Any) -> Member:
        """Start a consumer."""
        made = Member(self.kafka.bootstrap_servers, group, client_id, client, **options)
        self._members.append(made)
        made.start()
        return made

    def reader(
        self, group: str, number: int = 0, topics: tuple[str, ...] = ("busy",), **options: Any
    ) -> Reader:
        """Start a consumer that reads records and commits as it is told."""
        made = Reader(self.kafka.bootstrap_servers, group, f"{group}-{number}", topics, **options)
        self._readers.append(made)
        return made

    def silent_leader(self, group: str, client_id: str, session_ms: int = 30_000) -> None:
        """Start a member that joins and never syncs."""
        command = [
            *(sys.executable, "-m", "streaming.devkit.consumers", "silent-leader"),
            *("--bootstrap", self.kafka.bootstrap_servers, "--group", group, "--topic", "orders"),
            *("--client-id", client_id, "--session-ms", str(session_ms)),
        ]
        self._processes[client_id] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def end_process(self, client_id: str) -> None:
        """Kill a silent leader."""
        process = self._processes.pop(client_id)
        process.kill()
        process.wait()

    def set_level(self, level: str, *loggers: str) -> None:
        """Set the level of loggers of broker 1, as an operator does."""
        wanted = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", dict.fromkeys(loggers, level))
        self.admin.alter_configs([wanted], raise_on_unknown=False)

    def led_by(self, broker: int) -> set[int]:
        """Return the partitions of the offsets topic that a broker leads, as the job has learnt."""
        answer = self.job.get("/api/v1/clusters")
        told = {} if answer is None else answer.json()["clusters"][0]["offsets_leaders"]
        return {int(partition) for partition, leader in told.items() if leader == broker}

    def await_judgement(self, marker: str) -> None:
        """Return when the job has told of ``marker``, a group that did not exist before this call.

        All that happened earlier has been judged by then: what must not be told of it can be looked for.
        """
        self.member(marker, f"{marker}-0", session_timeout_ms=CALM_SESSION_MS)
        await_that(lambda: self.job.states().get(marker) == "Stable", f"{marker} is seen")

    def is_stable(self, group: str, members: int) -> Callable[[], bool]:
        """Return whether the broker says that a group is Stable with so many members."""
        return lambda: self._described(group) == ("Stable", members)

    def is_in(self, group: str, state: str) -> Callable[[], bool]:
        """Return whether the broker says that a group is in this state."""
        return lambda: self._described(group)[0] == state

    def is_told(self, group: str, name: str, culprits: frozenset[str] = frozenset()) -> Callable[[], bool]:
        """Return whether an alert of that name is open, and names these clients, maybe among others."""

        def told() -> bool:
            answer = self.job.get("/api/v1/alerts")
            found = answer.json()["alerts"] if answer is not None else []
            return any(
                (one["name"], one["group"]) == (name, group)
                and culprits <= {who["client_id"] for who in one["culprits"]}
                for one in found
            )

        return told

    def _described(self, group: str) -> tuple[str, int]:
        one = self.admin.describe_groups([group])[group]
        return str(one["group_state"]), len(one["members"])

    def end(self) -> None:
        """End every process and thread."""
        for reader in self._readers:
            reader.stop()
        for member in self._members:
            member.crash()
        for client_id in list(self._processes):
            self.end_process(client_id)
        self.admin.close()


@contextmanager
def opened(
    folder: Path,
    mode: str,
    *,
    topics: Topics,
    rates: dict[str, float],
    rules: Mapping[str, Any] | None = None,
    **cluster: Any,
) -> Iterator[Scene]:
    """Start a cluster, somebody who writes, and a job that is ready; all of it ends with the scene.

    Args:
        folder: where everything lies.
        mode: which of the brokers' logs there are.
        topics: what is made.
        rates: records a second, by topic.
        rules: of the job's configuration.
        cluster: more options of ``EmbeddedKafka``.
    """
    embedded = EmbeddedKafka(
        folder / "kafka",
        request_log=mode != "quiet",
        coordinator_log=mode != "requests",
        heap="384m",
        **cluster,
    )
    with embedded as kafka, Pager() as pager:
        for topic, (partitions, config) in topics.items():
            kafka.create_topic(topic, partitions=partitions, configs=config)
        writer = Writer(kafka.bootstrap_servers, rates)
        scene = Scene(kafka, Job(kafka.bootstrap_servers, folder, pager, rules), mode)
        try:
            scene.job.start()
            scene.job.await_ready()
            yield scene
        finally:
            writer.stop()
            scene.end()
            scene.job.stop()


def tell(folder: Path, alerts: list[dict[str, Any]], wrong: list[str]) -> int:
    """Keep the alerts, print them and the mistakes; 0 if there are none."""
    (folder / "alerts.json").write_text(json.dumps(alerts, indent=1))
    for one in alerts:
        names = ", ".join(f"{culprit['client_id']}@{culprit['client_host']}" for culprit in one["culprits"])
        say(
            f"  {one['group']} {one['name']} {one['severity']} r{one['revision']} {one['status']} "
            f"[{names}] {one['summary']}"
        )
    say("\n".join(["MISTAKES", *wrong]) if wrong else "no mistakes")
    return 1 if wrong else 0


@dataclass(frozen=True)
class Case:
    """One group's play, and what it must raise in each mode."""

    name: str
    play: Callable[[Scene, str], Play]
    expected: Callable[[str], Expected]
    """Of the mode."""
    tolerated: frozenset[str] = frozenset()
    """Alerts that are true as well, and may be seen."""
    summaries: Mapping[str, str] = field(default_factory=dict)
    """Alert name -> pattern of its summary in the end, for what culprits do not tell."""


# --- playing ------------------------------------------------------------------------------------------


@dataclass
class _Playing:
    """A play under way."""

    case: Case
    play: Play
    until: Step = 0.0
    since: float = field(default_factory=time.monotonic)
    failure: str = ""

    def go_on(self) -> bool:
        """Take the next step if its time has come; False if the play is over."""
        waited = time.monotonic() - self.since
        if callable(self.until):
            try:
                is_due = bool(self.until())
            except Exception as error:  # the next look may be luckier
                is_due, self.failure = False, str(error)
            if not is_due and waited > PATIENCE_S:
                self.failure = f"a step did not come true; {self.failure}"
                return False
        else:
            is_due = waited >= self.until
        if not is_due:
            return True
        try:
            self.until, self.since, self.failure = next(self.play), time.monotonic(), ""
        except StopIteration:
            return False
        return True


def play_all(scene: Scene, cases: list[Case]) -> list[str]:
    """Play the cases side by side; return what did not come about."""
    playing = [_Playing(case, case.play(scene, case.name)) for case in cases]
    failures = []
    while playing:
        for one in list(playing):
            if not one.go_on():
                playing.remove(one)
                say(f"  {one.case.name}: {one.failure or 'played'}")
                failures += [f"{one.case.name}: {one.failure}"] if one.failure else []
        time.sleep(0.2)
    return failures
