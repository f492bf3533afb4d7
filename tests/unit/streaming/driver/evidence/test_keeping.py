"""The keeper against brokers and a journal made of paper: what is raised, what is left, what is said."""

import itertools
import logging
import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from alerts.alert.alert import AlertStatus
from streaming.config.evidence import EvidenceConfig
from streaming.config.plan import ClusterPlan
from streaming.driver.evidence.deciding import JournalEntry, parent_level
from streaming.driver.evidence.keeping import FAILED_MS, GONE_MS, REFUSED_MS, RETRY_MS, EvidenceKeeper
from streaming.driver.evidence.switching import NO_ALTER, NO_DESCRIBE, NO_GROUPS
from streaming.driver.probing.brokers import NotAllowedError
from streaming.health.query_progress import Progress
from streaming.kafka_address import KafkaAddress
from tests.unit.made_alerts import an_alert

LOGGER = "kafka.request.logger"
MINUTE = 60_000
NAME = "StuckCompletingRebalance"
LIMITS = EvidenceConfig.model_construct(alerts=[NAME], for_ms=2 * MINUTE, every_ms=30 * MINUTE, brokers=1)


class Crash(BaseException):
    """The process is gone."""


class World:
    """Brokers with their loggers, the journal, and the time; after change ``crash_at`` we are gone."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.own: dict[int, dict[str, str]] = {1: {LOGGER: "WARN"}, 2: {LOGGER: "WARN"}}
        """Broker -> loggers with a level of their own."""
        self.above = {"kafka": "INFO", "root": "INFO"}
        self.coordinator = {"g": 1, "h": 2}
        self.there = {1, 2}
        self.records: list[JournalEntry] = []
        self.calls: list[str] = []
        self.refused: dict[str, str] = {}
        self.failing: set[str] = set()
        self.changes = 0
        self.crash_at = -1

    def level(self, broker: int = 1) -> str:
        """What the logger is at, its own level or the inherited one."""
        levels = {**self.above, **self.own[broker]}
        return levels.get(LOGGER) or str(parent_level(self.above, LOGGER))

    def _called(self, what: str, broker: int | None = None) -> None:
        self.calls.append(what if broker is None else f"{what} {broker}")
        if what in self.refused:
            raise NotAllowedError(self.refused[what])
        if what in self.failing or (broker is not None and broker not in self.there):
            raise OSError(f"{what} failed")

    def _done(self) -> None:
        self.changes += 1
        if self.changes == self.crash_at:
            raise Crash

    def coordinators(self, groups: Iterable[str]) -> dict[str, int]:
        """Return those that are known."""
        self._called("coordinators")
        return {group: self.coordinator[group] for group in groups if group in self.coordinator}

    def brokers(self) -> frozenset[int]:
        """Return who is in the cluster."""
        self._called("brokers")
        return frozenset(self.there)

    def levels(self, broker: int) -> dict[str, str]:
        """Return what the broker tells."""
        self._called("levels", broker)
        return {**self.above, LOGGER: self.level(broker)}

    def set(self, broker: int, level: str) -> None:
        """Give the logger a level of its own."""
        self._called("set", broker)
        self.own[broker][LOGGER] = level
        self._done()

    def unset(self, broker: int) -> None:
        """Take it away."""
        self._called("unset", broker)
        self.own[broker].pop(LOGGER, None)
        self._done()

    def close(self) -> None:
        """Nothing is open."""

    def ensure(self) -> None:
        """Make the topic."""
        self._called("ensure")

    def read(self) -> dict[int, JournalEntry]:
        """Return the newest records."""
        self._called("read")
        return {one.broker: one for one in self.records}

    def write(self, entry: JournalEntry) -> None:
        """Append a record."""
        self._called("write")
        self.records.append(entry)
        self._done()


class Ready(Progress):
    """A job that has caught up."""

    has_caught_up = True


class Life:
    """One process from its start on."""

    def __init__(self, world: World, limits: EvidenceConfig | None = LIMITS, checkpoint: str = "/c") -> None:
        self.world = world
        self.progress = Ready("eu")
        self.outcomes: list[str] = []
        self.shown: list[int] = []
        self.may_act = True
        address = KafkaAddress(("127.0.0.1:1",))
        plan = ClusterPlan(
            cluster="eu",
            kafka=address,
            output=address,
            offsets_topic=None,
            events_topic=None,
            timezone="UTC",
            control_topic="c",
            transitions_topic="t",
            alerts_topic="a",
            checkpoint=checkpoint,
            trigger_ms=1,
            settings=b"{}",
            evidence=limits,
        )
        self.keeper = EvidenceKeeper(
            plan,
            self.progress,
            count=self.outcomes.append,
            show=self.shown.append,
            switch=world,
            journal=world,
            now_ms=lambda: world.now_ms,
            may_act=lambda: self.may_act,
        )

    def alert(self, group: str = "g", revision: int = 0, **changes: Any) -> None:
        """Let a batch bring an alert."""
        began_ms = self.world.now_ms
        made = an_alert(
            id=f"a-{group}",
            revision=revision,
            name=NAME,
            group=group,
            starts_at_ms=began_ms,
            detected_at_ms=began_ms,
            **changes,
        )
        value = msgspec.json.encode(made)
        self.keeper.take([("report", group, b"{}"), ("alert", f"a-{group}", value)])

    def look(self, after_ms: int = 0) -> None:
        """Let time pass, and the keeper look."""
        self.world.now_ms += after_ms
        self.keeper.look()


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_written_down_then_raised_and_put_back_in_time(world: World) -> None:
    """Only on the group's coordinator, and the level that was there before comes back."""
    life = Life(world)
    life.look()
    assert world.calls == ["ensure", "read"]
    life.alert()
    life.look()
    assert world.calls[2:] == ["coordinators", "levels 1", "write", "set 1"]
    assert (world.level(1), world.level(2)) == ("DEBUG", "WARN")
    (entry,) = world.records
    assert (entry.before, entry.inherited, entry.groups, entry.back_at_ms) == ("WARN", False, ("g",), None)
    life.look(2 * MINUTE - 1)
    assert world.level() == "DEBUG"
    life.look(1)
    assert (world.level(), world.records[-1].back_at_ms) == ("WARN", world.now_ms)
    assert (life.outcomes, life.shown) == (["raised", "put_back"], [0, 1, 0])
    life.look(20 * MINUTE)
    assert world.level() == "WARN"
    life.look(8 * MINUTE)
    assert world.level() == "DEBUG"  # the trouble has not gone, and its half hour is over


def test_it_is_put_back_when_the_alert_is_resolved(world: World) -> None:
    """There is nothing more to learn."""
    life = Life(world)
    life.alert()
    life.look()
    life.alert(revision=1, status=AlertStatus.RESOLVED)
    life.look(1_000)
    assert world.level() == "WARN"


def test_an_inherited_level_is_put_back_by_deleting_ours(world: World) -> None:
    """So that the logger follows its parents again."""
    world.own[1] = {}
    life = Life(world)
    life.alert()
    life.look()
    assert world.records[0].inherited
    world.above["kafka"] = "ERROR"
    life.look(2 * MINUTE)
    assert (world.own[1], world.level()) == ({}, "ERROR")


def test_a_level_that_only_looked_inherited_is_set(world: World) -> None:
    """Where deleting ours does not give what was there before, nor what its parents say."""
    life = Life(world)
    life.alert()
    life.look()
    world.records[-1] = entry = msgspec.structs.replace(world.records[-1], inherited=True)
    life.keeper._raising.entries[1] = entry
    world.unset = lambda broker: world.own[broker].update({LOGGER: "ERROR"})  # type: ignore[method-assign]
    life.look(2 * MINUTE)
    assert world.level() == "WARN"


@pytest.mark.parametrize("level", ["DEBUG", "TRACE", "ALL"])
def test_what_the_operator_raised_is_left_alone(world: World, level: str) -> None:
    """Not raised, not written down, never lowered."""
    world.own[1][LOGGER] = level
    life = Life(world)
    life.alert()
    life.look()
    life.look(29 * MINUTE)
    life.keeper.look(stopping=True)
    assert (world.level(), world.records, life.outcomes) == (level, [], ["already_on"])


@pytest.mark.parametrize("level", ["TRACE", "ERROR"])
def test_what_the_operator_changed_meanwhile_is_left_as_it_is(world: World, level: str) -> None:
    """Or what a restart of the broker made of it."""
    life = Life(world)
    life.alert()
    life.look()
    world.own[1][LOGGER] = level
    life.look(2 * MINUTE)
    assert (world.level(), life.outcomes) == (level, ["raised", "left"])
    assert world.records[-1].back_at_ms == world.now_ms


@pytest.mark.parametrize("levels", [{LOGGER: "OFF"}, {LOGGER: ""}])
def test_a_level_that_could_not_be_put_back_is_not_changed(world: World, levels: dict[str, str]) -> None:
    """Kafka does not let anybody set OFF; and a broker may have no such logger."""
    world.levels = lambda broker: {"root": "INFO", **{k: v for k, v in levels.items() if v}}  # type: ignore[method-assign]
    life = Life(world)
    life.alert()
    life.look()
    assert (world.records, life.outcomes) == ([], ["failed"])


def test_stopping_puts_it_back(world: World) -> None:
    """SIGTERM, or a new configuration; the work is then done."""
    life = Life(world)
    life.alert()
    life.look()
    life.keeper.look(stopping=True)
    assert (world.level(), life.outcomes) == ("WARN", ["raised", "put_back"])
    assert life.keeper.is_alive


@pytest.mark.parametrize("inherited", [False, True])
@pytest.mark.parametrize("after", [LIMITS, None])
def test_a_crash_at_any_point_is_put_right_by_the_next_start(
    *, inherited: bool, after: EvidenceConfig | None
) -> None:
    """Whether evidence is still configured or not; and nothing is left open in the journal."""
    for crash_at in itertools.count(1):
        world = World()
        world.own[1] = {} if inherited else {LOGGER: "WARN"}
        before = dict(world.own[1])
        world.crash_at = crash_at
        try:
            life = Life(world)
            life.alert()
            life.look()
            life.look(2 * MINUTE)
            assert crash_at > world.changes >= 4
            return
        except Crash:
            pass
        world.crash_at = -1
        life = Life(world, after)
        life.look()
        assert world.own[1] == before, crash_at
        assert all(one.back_at_ms is not None for one in world.read().values())


def test_a_new_start_elsewhere_waits_until_it_is_late(world: World) -> None:
    """The other one may live; if its host and checkpoint are lost, its time bounds it all the same."""
    life = Life(world)
    life.alert()
    life.look()
    other = Life(world, checkpoint="/elsewhere")
    other.look(2 * MINUTE)
    assert world.level() == "DEBUG"
    other.look(10_000)
    assert world.level() == "WARN"


def test_where_it_is_not_configured_the_journal_is_read_once(world: World) -> None:
    """No topic is made for it, nothing is raised, and the thread ends."""
    life = Life(world, limits=None)
    life.alert()
    life.look()
    assert world.calls == ["read"]
    assert life.keeper.is_alive
    assert life.progress.evidence == "off"


def test_the_backlog_raises_nothing(world: World) -> None:
    """What is open in it may be over long ago."""
    life = Life(world)
    life.keeper._progress = Progress("eu")
    life.alert()
    life.look()
    assert world.calls == ["ensure", "read"]


@pytest.mark.parametrize(
    ("what", "sentence"), [("levels", NO_DESCRIBE), ("set", NO_ALTER), ("coordinators", NO_GROUPS)]
)
def test_a_refusal_is_said_once_and_left_for_a_while(
    world: World, what: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With what to do about it; what was written down is taken back."""
    world.refused[what] = sentence
    life = Life(world)
    life.alert()
    with caplog.at_level(logging.WARNING):
        life.look()
        asked = len(world.calls)
        for _ in range(9):
            life.look(MINUTE)
        assert len(world.calls) - asked <= 1 + len(world.records)
        life.look(REFUSED_MS)
    assert life.outcomes == ["refused", "refused"]
    assert [record.getMessage() for record in caplog.records] == [f"eu: no evidence on demand: {sentence}"]
    assert life.progress.evidence == sentence
    assert (world.level(), life.keeper._raising.raised()) == ("WARN", [])
    world.refused.clear()
    life.look(REFUSED_MS)
    assert (life.outcomes[2:], life.progress.evidence) == (["raised"], "on")


@pytest.mark.parametrize("what", ["write", "set"])
def test_what_failed_half_way_is_looked_at_again(world: World, what: str) -> None:
    """A request without an answer may have been carried out; it does not count as a raise."""
    world.failing.add(what)
    life = Life(world)
    life.alert()
    life.look()
    assert life.outcomes == ["failed"]
    world.failing.clear()
    world.own[1][LOGGER] = "DEBUG" if what == "set" else "WARN"  # it was carried out after all
    life.look(RETRY_MS)
    assert world.level() == "WARN"
    life.look(FAILED_MS)
    assert world.level() == "DEBUG"


def test_a_broker_that_does_not_answer_is_put_back_when_it_does(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator is told once how to do it by hand."""
    life = Life(world)
    life.alert()
    life.look()
    world.failing.add("levels")
    with caplog.at_level(logging.WARNING):
        life.look(2 * MINUTE)
        for _ in range(5):
            life.look(RETRY_MS)
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"--entity-name 1 --add-config {LOGGER}=WARN" in said
    assert life.shown[-1] == 1
    world.failing.clear()
    life.look(RETRY_MS)
    assert (world.level(), life.outcomes) == ("WARN", ["raised", "failed", "put_back"])


def test_a_broker_that_is_gone_makes_room_and_is_forgotten_in_the_end(world: World) -> None:
    """Its groups are with another one now."""
    life = Life(world)
    life.alert()
    life.look()
    world.there = {2}
    world.coordinator["g"] = 2
    life.look(11_000)
    life.look(RETRY_MS)
    assert world.level(2) == "DEBUG"
    life.look(2 * MINUTE)
    assert world.level(2) == "WARN"
    life.look(GONE_MS)
    assert [one.broker for one in life.keeper._raising.raised()] in ([], [2])
    assert world.read()[1].back_at_ms == world.now_ms


def test_who_may_not_act_asks_and_changes_nothing(world: World) -> None:
    """Another process may have taken over what we raised: neither a look nor the end puts it back."""
    life = Life(world)
    life.alert()
    life.look()
    asked = list(world.calls)
    life.may_act = False
    world.now_ms += 3_600_000
    life.keeper._try()
    assert world.calls == asked
    life.may_act = True
    life.keeper.ask_to_stop(puts_back=False)
    life.keeper.start()
    life.keeper.stop()
    assert world.calls == asked


def test_the_thread_starts_and_ends(world: World) -> None:
    """What it raised is put back when it is asked to stop."""
    life = Life(world)
    life.alert()
    life.look()
    life.keeper.start()
    life.keeper.ask_to_stop()
    life.keeper.stop()
    assert world.level() == "WARN"
    assert life.keeper.is_alive  # its work is done


class Fate:
    """What happens to a world, drawn by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World()
        self.limits = LIMITS.model_copy(update={"brokers": self.chance.choice((1, 2))})
        self.meant = {broker: dict(own) for broker, own in self.world.own.items()}
        """Broker -> the loggers' levels as the operator wants them."""
        self.life = Life(self.world, self.limits)
        self._revision = 0

    def strike(self) -> None:
        """Let one thing happen, then some time pass."""
        acts = (self._alert, self._move, self._operate, self._crash, self._outage, self._refusal)
        self.chance.choice(acts)()
        try:
            self.life.look(self.chance.choice((500, 5_000, MINUTE, 40 * MINUTE)))
        except Crash:
            self.life = Life(self.world, self.limits)

    def _alert(self) -> None:
        self._revision += 1
        status = self.chance.choice(list(AlertStatus))
        self.life.alert(self.chance.choice("gh"), self._revision, status=status)

    def _move(self) -> None:
        self.world.coordinator[self.chance.choice("gh")] = self.chance.choice((1, 2))

    def _operate(self) -> None:
        broker = self.chance.choice((1, 2))
        levels = ["WARN", "INFO", "TRACE", ""]
        known = [*self.life.keeper._raising.raised(), *self.world.read().values()]
        if all(one.back_at_ms is not None for one in known if one.broker == broker):
            levels.append("DEBUG")  # while it is, or may be, raised, nobody could tell it from ours
        level = self.chance.choice(levels)
        self.meant[broker] = {LOGGER: level} if level else {}
        self.world.own[broker] = dict(self.meant[broker])

    def _crash(self) -> None:
        self.world.crash_at = self.world.changes + self.chance.randint(1, 2)

    def _outage(self) -> None:
        self.world.failing ^= {self.chance.choice(("levels", "set", "write"))}

    def _refusal(self) -> None:
        self.world.refused = {} if self.world.refused else {self.chance.choice(("levels", "set")): "no"}

    def calm_down(self) -> None:
        """Everything answers again, and groupwatch stops."""
        self.world.failing.clear()
        self.world.refused.clear()
        self.world.crash_at = -1
        self.life.look(MINUTE)
        self.life.keeper.look(stopping=True)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_operator_gets_what_he_wants(seed: int) -> None:
    """Alerts, moves, refusals, outages, crashes and the operator's own hand, in any order and at any time."""
    fate = Fate(seed)
    world = fate.world
    for _ in range(60):
        fate.strike()
        ours = [b for b, own in world.own.items() if own != fate.meant[b] and world.level(b) == "DEBUG"]
        assert len(ours) <= fate.limits.brokers
    fate.calm_down()
    wanted = [{**world.above, **own}.get(LOGGER, "INFO") for own in fate.meant.values()]
    assert [world.level(broker) for broker in fate.meant] == wanted
