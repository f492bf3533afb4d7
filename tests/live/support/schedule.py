"""One random schedule on a real cluster: consumers come, go, crash and freeze while the job watches."""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.jars.jars import DEFAULT_VERSIONS
from tests.live.support import comparing
from tests.live.support.asking import Asker
from tests.live.support.changes import Cast, Changes
from tests.live.support.histories import side_by_side
from tests.live.support.members import SESSION_MS, Member, happen
from tests.live.support.stage import (
    Job,
    Page,
    Pager,
    alerts_of,
    await_that,
    now_ms,
    records_of,
)
from tests.live.support.upgrading import Upgradable

MODES = ("full", "quiet", "requests", "offsets")
SETTLING_S = 90.0
TOPICS = {"orders": 6, "payments": 3}
"""Name -> partitions; some groups read the second one now and then."""
_CONSUMER_SESSIONS = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}
"""What members say for themselves in the classic protocol, the broker decides in the newer one."""


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
    changes: float = 0.35
    """Share of what happens that happens to a whole group or to a topic, not to one member."""
    version: str = DEFAULT_VERSIONS["broker"]
    """Of Kafka."""
    upgrade_to: str | None = None
    """The version that the brokers have in the end, one after the other; from Kafka 3 to 4."""

    @property
    def has_consumer_protocol(self) -> bool:
        """Whether the brokers know KIP-848 groups."""
        return int(self.version.split(".")[0]) >= 4


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

    def in_doubt(self) -> list[str]:
        """Return the groups about which brokers and job differ."""
        missing, extra = self.missing_and_extra()
        final = (group for group, state in self.states.items() if self.brokers_states.get(group) != state)
        wrong = (poll.group for poll, _ in self.agreement().wrong)
        accused = (group for group, *_ in self.wrong_causes()[1])
        return sorted({*wrong, *final, *accused, *(one[0] for one in (*missing, *extra))})

    def histories(self) -> list[str]:
        """Return what both sides say of the groups about which they differ, in lines for people."""
        logged = comparing.logged(self.lines)
        return [
            line
            for group in self.in_doubt()
            for line in ("", f"{group}:", *side_by_side(group, self.polls, logged, self.transitions))
        ]

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
    cluster = (EmbeddedKafka if schedule.upgrade_to is None else Upgradable)(
        folder / "kafka",
        brokers=schedule.brokers,
        version=schedule.version,
        offsets_partitions=8,
        request_log=schedule.mode in {"full", "requests"},
        coordinator_log=schedule.mode in {"full", "quiet"},
        heap="384m",
        properties=_CONSUMER_SESSIONS if schedule.has_consumer_protocol else {},
        tell=note,
    )
    with cluster as kafka, Pager() as pager:
        for topic, partitions in TOPICS.items():
            kafka.create_topic(topic, partitions=partitions)
        play = _Play(schedule, kafka, Job(kafka.bootstrap_servers, folder, pager), note)
        try:
            outcome = play.play()
        finally:
            play.end()
        outcome.pages = list(pager.pages)
        return outcome


def run_together(schedules: Mapping[str, Schedule], folder: Path) -> dict[str, Outcome]:
    """Play schedules at once, each with a cluster and a job of its own: most of each is waiting.

    What was played is printed when it is over, with both histories of each group in doubt.
    """
    folders = [folder / name for name in schedules]
    for one in folders:
        one.mkdir()
    with ThreadPoolExecutor(len(folders)) as pool:
        return dict(zip(schedules, pool.map(_run_and_print, schedules.values(), folders), strict=True))


def _run_and_print(schedule: Schedule, folder: Path) -> Outcome:
    heard: list[str] = []
    outcome = run(schedule, folder, heard.append)
    lines = [str(schedule), *heard, *outcome.histories()]
    print(*lines, sep="\n")  # noqa: T201 - pytest shows it if a test fails
    return outcome


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
        casts = [self._cast(index) for index in range(schedule.groups)]
        self._members = [member for cast in casts for member in cast.members]
        self._changes = Changes(casts, kafka.address, self._rng, dict(TOPICS), self._say)
        self._asking = threading.Event()
        self._begun = time.monotonic()
        self._outcome = Outcome()

    def _cast(self, index: int) -> Cast:
        """Return a group: every second one librdkafka, one in four static, some of the others cooperative."""
        client = "confluent" if index % 2 else "kafka-python"
        is_cooperative = index % 4 == 3 and self._rng.random() < 0.5
        cast = Cast(
            self._groups[index],
            [],
            is_cooperative,
            can_convert=client == "confluent" and self._schedule.has_consumer_protocol,
        )
        for number in range(self._rng.randint(1, 4)):
            name = f"{client}-{index}-{number}"
            options: dict[str, Any] = {"other_topic": "payments", "metadata_ms": 3_000}
            options["assignor"] = "cooperative-sticky" if is_cooperative else cast.assignor
            if index % 8 in {2, 5}:
                options["instance_id"] = name
            cast.members.append(Member(self._kafka.bootstrap_servers, cast.group, name, client, **options))
        return cast

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
        asker = Asker(self._kafka.address)
        asker.keep_asking(self._groups, self._asking.wait, self._outcome.polls)
        asker.close()

    def _say(self, what: str) -> None:
        """Tell what happens, and when."""
        self._note(f"{time.monotonic() - self._begun:7.1f}  {what}")

    def _act(self) -> None:
        schedule = self._schedule
        self._begun = time.monotonic()
        kills = _spread(schedule.kills, schedule.seconds)
        failovers = _spread(schedule.failovers, schedule.seconds)
        upgrades = _spread(schedule.brokers if schedule.upgrade_to else 0, schedule.seconds)
        while self._elapsed() < schedule.seconds:
            self._happen()
            time.sleep(self._rng.uniform(0.3, 4.0))
            if kills and self._elapsed() > kills[0]:
                kills.pop(0)
                self._say("SIGKILL the job")
                self._job.kill()
                self._job.start()
            if failovers and self._elapsed() > failovers[0]:
                failovers.pop(0)
                self._move_coordinators()
            if upgrades and self._elapsed() > upgrades[0]:
                upgrades.pop(0)
                self._upgrade(schedule.brokers - len(upgrades))

    def _elapsed(self) -> float:
        return time.monotonic() - self._begun

    def _happen(self) -> None:
        if self._rng.random() < self._schedule.changes:
            self._changes.happen()
            return
        member = self._rng.choice(self._members)
        self._say(f"{happen(self._rng, member)} {member.client_id}")

    def _move_coordinators(self) -> None:
        """Take a broker away, gently or as a power cut would, and bring it back after some seconds."""
        broker, hard = self._rng.choice(self._kafka.broker_ids), self._rng.random() < 0.5
        self._say(f"{'SIGKILL' if hard else 'stop'} broker {broker}")
        self._kafka.stop_broker(broker, hard=hard)
        time.sleep(self._rng.uniform(1.0, 12.0))
        self._say(f"start broker {broker}")
        self._kafka.start_broker(broker)

    def _upgrade(self, broker: int) -> None:
        assert isinstance(self._kafka, Upgradable)
        assert self._schedule.upgrade_to is not None
        self._say(f"broker {broker} becomes {self._schedule.upgrade_to}")
        self._kafka.upgrade(broker, self._schedule.upgrade_to)
        self._say(f"broker {broker} is back")

    def _settle(self) -> None:
        """Wait until all that was asked about has been judged, and states agree if they ever will."""
        self._say("settling")
        self._outcome.until_ms = now_ms()
        self._mark()
        asker = Asker(self._kafka.address)
        outcome = self._outcome

        def agree() -> bool:
            before = asker.states(self._groups)
            ours, outcome.metrics = self._job.states(), self._job.metrics()
            outcome.brokers_states = asker.states(self._groups)
            outcome.states = {group: ours.get(group, "Dead") for group in self._groups}
            return before == outcome.states == outcome.brokers_states

        with contextlib.suppress(AssertionError):  # in what they differ, the comparison says
            await_that(agree, "brokers and mirror agree", SETTLING_S)
        asker.close()

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
