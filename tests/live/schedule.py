"""One random schedule on a real cluster: consumers come, go, crash and freeze while the job watches."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError

from streaming.embedded.jars import DEFAULT_VERSIONS
from streaming.embedded.kafka import EmbeddedKafka
from streaming.kafka_io import admin_client
from tests.live import comparing
from tests.live.members import Member, happen
from tests.live.stage import (
    Job,
    Page,
    Pager,
    alerts_of,
    await_that,
    now_ms,
    records_of,
    states_of,
)

MODES = ("full", "quiet", "requests")
SETTLING_S = 90.0


@dataclass(frozen=True)
class Schedule:
    """What shall happen; the same seed makes the same things happen, at about the same times."""

    mode: str
    seed: int = 1
    seconds: float = 120.0
    groups: int = 4
    brokers: int = 1
    kills: int = 0
    """How often the job is killed on the way."""
    failovers: int = 0
    """How often a broker of three is stopped, or killed, and started again."""
    version: str = DEFAULT_VERSIONS["broker"]
    """Of Kafka."""


@dataclass
class Outcome:
    """What the brokers said and what the job said, for whoever judges."""

    polls: list[comparing.Poll] = field(default_factory=list)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    twofold: list[tuple[str, int]] = field(default_factory=list)
    """(id, revision) of alerts, or (id, -1) of transitions, that have more than one content."""
    lines: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    brokers_states: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    metrics: str = ""
    exit_code: int = -1
    until_ms: int = 2**62
    """What came later may not have been told any more when the job was stopped."""

    def agreement(self) -> comparing.Agreement:
        """Compare each answer of the brokers with the state we claim for that moment."""
        return comparing.compare(self.polls, self.transitions, {})

    def recall_and_precision(self) -> tuple[float, float]:
        """Count the same as two shares."""
        missing, extra = self.missing_and_extra()
        expected = comparing.logged(self.lines, self.until_ms)
        return comparing.recall_and_precision(len(expected), len(missing), len(extra))

    def missing_and_extra(
        self,
    ) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]:
        """Compare the transitions with the lines of ``server.log``."""
        return comparing.missing_and_extra(self._told(), comparing.logged(self.lines, self.until_ms))

    def wrong_causes(self) -> tuple[int, list[tuple[str, int, str, str]]]:
        """Compare why rebalances began with the reasons in ``server.log``."""
        return comparing.wrong_causes(self._told(), comparing.logged(self.lines, self.until_ms))

    def _told(self) -> list[dict[str, Any]]:
        return [one for one in self.transitions if one["at_ms"] <= self.until_ms]

    def delays_ms(self) -> list[int]:
        """Return how long each alert took from its detection to the webhook, shortest first.

        Later revisions keep the time of the first detection, so only the first one tells.
        """
        detected = {f"{one['id']}/0": one["detected_at_ms"] for one in self.alerts if one["revision"] == 0}
        return sorted(page.received_at_ms - detected[page.key] for page in self.pages if page.key in detected)


def run(schedule: Schedule, folder: Path, note: Callable[[str], None] = lambda _: None) -> Outcome:
    """Play a schedule on a cluster of its own, whose data stays in ``folder``."""
    cluster = EmbeddedKafka(
        folder / "kafka",
        brokers=schedule.brokers,
        version=schedule.version,
        offsets_partitions=8,
        request_log=schedule.mode != "quiet",
        coordinator_log=schedule.mode != "requests",
        heap="384m",
        tell=note,
    )
    with cluster as kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=6)
        play = _Play(schedule, kafka, Job(kafka.bootstrap_servers, folder, pager), note)
        try:
            outcome = play.play()
        finally:
            play.end()
        outcome.pages = list(pager.pages)
        return outcome


def _asked_anew(admin: Any, kafka: EmbeddedKafka) -> Any:
    """Return a client that looks for coordinators again: kafka-python's remembers one that has moved."""
    try:
        fresh = admin_client(kafka.address)
    except KafkaError:
        return admin
    admin.close()
    return fresh


def _spread(count: int, seconds: float) -> list[float]:
    """Return moments that divide the time evenly."""
    return [seconds * (index + 1) / (count + 1) for index in range(count)]


class _Play:
    """A schedule being played."""

    def __init__(
        self, schedule: Schedule, kafka: EmbeddedKafka, job: Job, note: Callable[[str], None]
    ) -> None:
        self._schedule = schedule
        self._kafka = kafka
        self._job = job
        self._note = note
        self._rng = random.Random(schedule.seed)
        self._groups = [f"group-{index}" + (" (x)" if index == 0 else "") for index in range(schedule.groups)]
        self._members = [member for index in range(schedule.groups) for member in self._cast(index)]
        self._asking = threading.Event()
        self._outcome = Outcome()

    def _cast(self, index: int) -> list[Member]:
        """Return a group's members: every second group librdkafka, one in four static, one cooperative."""
        client = "confluent" if index % 2 else "kafka-python"
        found = []
        for number in range(self._rng.randint(1, 4)):
            name = f"{client}-{index}-{number}"
            options: dict[str, Any] = {"instance_id": name} if index % 4 == 2 else {}
            if index % 4 == 3:
                options["assignor"] = self._rng.choice(["range", "cooperative-sticky"])
            member = Member(self._kafka.bootstrap_servers, self._groups[index], name, client, **options)
            found.append(member)
        return found

    def play(self) -> Outcome:
        self._job.start()
        self._job.await_ready()
        asker = threading.Thread(target=self._ask)
        asker.start()
        try:
            self._act()
            self._job.await_ready()
        finally:
            self._asking.set()
            asker.join()
        self._settle()
        self._outcome.exit_code = self._job.stop()
        self._collect()
        return self._outcome

    def end(self) -> None:
        for member in self._members:
            member.crash()
        self._job.stop()

    def _ask(self) -> None:
        """Ask the coordinators about five times a second."""
        admin = admin_client(self._kafka.address)
        while not self._asking.wait(0.2):
            for group in self._groups:
                asked_at_ms = now_ms()
                state = states_of(admin, [group]).get(group)
                if state is not None:
                    self._outcome.polls.append(comparing.Poll(group, state, asked_at_ms, now_ms()))
                elif self._schedule.failovers:
                    admin = _asked_anew(admin, self._kafka)
        admin.close()

    def _act(self) -> None:
        schedule, begun = self._schedule, time.monotonic()
        kills = _spread(schedule.kills, schedule.seconds)
        failovers = _spread(schedule.failovers, schedule.seconds)
        while (elapsed := time.monotonic() - begun) < schedule.seconds:
            member = self._rng.choice(self._members)
            self._note(f"{elapsed:7.1f}  {happen(self._rng, member)} {member.client_id}")
            time.sleep(self._rng.uniform(0.3, 4.0))
            if kills and time.monotonic() - begun > kills[0]:
                kills.pop(0)
                self._note(f"{time.monotonic() - begun:7.1f}  SIGKILL the job")
                self._job.kill()
                self._job.start()
            if failovers and time.monotonic() - begun > failovers[0]:
                failovers.pop(0)
                self._move_coordinators(begun)

    def _move_coordinators(self, begun: float) -> None:
        """Take a broker away, gently or as a power cut would, and bring it back after some seconds."""
        broker, hard = self._rng.choice(self._kafka.broker_ids), self._rng.random() < 0.5
        self._note(f"{time.monotonic() - begun:7.1f}  {'SIGKILL' if hard else 'stop'} broker {broker}")
        self._kafka.stop_broker(broker, hard=hard)
        time.sleep(self._rng.uniform(1.0, 12.0))
        self._note(f"{time.monotonic() - begun:7.1f}  start broker {broker}")
        self._kafka.start_broker(broker)

    def _settle(self) -> None:
        """Wait until all that was asked about has been judged, and states agree if they ever will."""
        self._note("settling")
        self._outcome.until_ms = now_ms()
        self._mark()
        deadline = time.monotonic() + SETTLING_S
        admin = admin_client(self._kafka.address)  # after the last failover, so it knows no old coordinator
        outcome = self._outcome
        while True:
            before = states_of(admin, self._groups)
            ours, outcome.metrics = self._job.states(), self._job.metrics()
            outcome.brokers_states = states_of(admin, self._groups)
            outcome.states = {group: ours.get(group, "Dead") for group in self._groups}
            if before == outcome.states == outcome.brokers_states or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        admin.close()

    def _mark(self) -> None:
        """Return when the job has told of a group that did not exist before this call."""
        marker = Member(self._kafka.bootstrap_servers, "marker", "marker")
        self._members.append(marker)
        marker.start()
        await_that(lambda: self._job.states().get("marker") == "Stable", "the marker group is seen")

    def _collect(self) -> None:
        address, outcome = self._kafka.address, self._outcome
        transitions = records_of(address, "groupwatch-transitions")
        alerts = records_of(address, "groupwatch-alerts")
        outcome.transitions = [one for _, one in transitions if one["group"] != "marker"]
        outcome.alerts = alerts_of(address)
        contents: dict[tuple[str, int], set[bytes]] = {}
        for raw, one in (*transitions, *alerts):
            contents.setdefault((one["id"], one.get("revision", -1)), set()).add(raw)
        outcome.twofold = [key for key, found in contents.items() if len(found) > 1]
        outcome.lines = [
            line
            for broker in self._kafka.broker_ids
            for line in self._kafka.log_files(broker)[0].read_text(errors="replace").splitlines()
            if "marker" not in line
        ]
