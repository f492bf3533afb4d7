"""SourceSilent: what proves that a log is being lost, and what does not."""

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.rules import RuleJudge
from coordinator_model.observations.answers import BrokerDescribed, LeadersDescribed
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import RecordsLost
from coordinator_model.observations.seen import AnyObservation
from coordinator_model.shard.cluster import REQUEST_LOGGER, ClusterState, Contradiction, Move
from tests.unit.made_seen import seen

T0 = 1_700_000_000_000
MINUTE = 60_000
REQUESTS, LOG = int(Source.REQUEST_LOG), int(Source.COORDINATOR_LOG)


class Watchtower:
    """A cluster whose sources speak as told, judged every second and when asked for."""

    def __init__(self, settings: bytes = b"{}") -> None:
        self.judge = RuleJudge(settings)
        self.state = ClusterState()
        self.memory: bytes | None = None
        self.now_ms = 0
        self.alerts: list[Alert] = []
        self.speaking: set[tuple[int, int]] = set()
        self.committing: set[int] = set()
        """Partitions of the offsets topic; broker 1 leads the even ones."""
        self.state.leaders = {partition: (1 + partition % 2, 0) for partition in range(4)}

    def run(self, duration_ms: int, *, every_ms: int = 1_000) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += every_ms
            for key in self.speaking:
                self.state.heard[key] = T0 + self.now_ms
            for partition in self.committing:
                self.state.committed_ms[partition] = T0 + self.now_ms
            self.ask()

    def ask(self) -> None:
        """Ask the rules now."""
        judgement = self.judge.judge_cluster(
            cluster="eu", state=self.state, memory=self.memory, now_ms=T0 + self.now_ms
        )
        self.memory = judgement.memory
        self.alerts += judgement.alerts

    def tell(self, what: AnyObservation) -> None:
        """The probe tells this now."""
        if self.state.apply(seen(T0 + self.now_ms, what, Source.CONTROL)):
            self.ask()

    def contradict(self, broker: int, lost: Source = Source.COORDINATOR_LOG) -> None:
        """The topic told what the broker's log should have told."""
        one = Contradiction(at_ms=T0 + self.now_ms, broker=broker, lost=lost, group="orders")
        self.state.contradictions.append(one)
        self.ask()


@pytest.fixture
def tower() -> Watchtower:
    """Return a cluster of two brokers with both logs, and commits."""
    tower = Watchtower()
    tower.speaking = {(1, REQUESTS), (2, REQUESTS), (1, LOG), (2, LOG)}
    tower.committing = {0, 1}
    return tower


def test_a_request_log_that_falls_silent_is_told(tower: Watchtower) -> None:
    """A minute after its last line, while clients go on committing there."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    last_ms = tower.now_ms
    tower.run(59_000)
    assert tower.alerts == []
    tower.run(2_000)
    (fired,) = tower.alerts

    assert (fired.name, fired.group, fired.severity) == ("SourceSilent", "", Severity.WARNING)
    assert (fired.starts_at_ms, fired.detected_at_ms) == (T0 + last_ms, T0 + last_ms + MINUTE)
    assert fired.summary == "The request log of broker 1 is incomplete: lines are missing."
    assert fired.culprits == ()


def test_it_resolves_when_the_log_is_heard_again(tower: Watchtower) -> None:
    """With the first line."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.run(5 * MINUTE)
    tower.speaking.add((1, REQUESTS))
    tower.run(1_000)

    assert [alert.status for alert in tower.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert tower.alerts[-1].ends_at_ms == T0 + tower.now_ms


@pytest.mark.parametrize(("level", "told"), [("WARN", 0), ("OFF", 0), ("DEBUG", 1), (None, 1)])
def test_a_request_log_that_was_switched_off_is_not_lost(
    tower: Watchtower, level: str | None, told: int
) -> None:
    """The broker says which level its request logger has; one that cannot be asked may have lost lines."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.run(20_000)
    if level is not None:
        tower.state.brokers[1] = {"kafka.request.logger": level}
    tower.run(30 * MINUTE)

    assert len(tower.alerts) == told


def test_one_who_learns_late_that_it_was_switched_off_resolves(tower: Watchtower) -> None:
    """The alert that was fired meanwhile ends with the answer."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.run(2 * MINUTE)
    tower.state.brokers[1] = {"kafka.request.logger": "INFO"}
    tower.ask()

    assert [alert.status for alert in tower.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


@pytest.mark.parametrize(("silent_ms", "told"), [(MINUTE - 2_000, 0), (MINUTE + 2_000, 1)])
def test_a_log_that_is_on_again_is_given_time_to_speak(tower: Watchtower, silent_ms: int, told: int) -> None:
    """The probe may see the level before the first line is read: nothing was lost while it was off."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.tell(BrokerDescribed(broker=1, settings={REQUEST_LOGGER: "WARN"}))
    tower.run(30 * MINUTE)
    tower.tell(BrokerDescribed(broker=1, settings={REQUEST_LOGGER: "DEBUG"}))
    tower.run(silent_ms)
    tower.speaking.add((1, REQUESTS))
    tower.run(30 * MINUTE)

    assert [alert.status for alert in tower.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED][: 2 * told]


def test_a_second_broker_is_another_revision(tower: Watchtower) -> None:
    """One open alert for the cluster."""
    tower.run(10 * MINUTE)
    tower.speaking = {(1, LOG), (2, LOG)}
    tower.run(MINUTE)
    tower.contradict(2)

    assert [(alert.id, alert.revision) for alert in tower.alerts] == [
        (tower.alerts[0].id, 0),
        (tower.alerts[0].id, 1),
    ]


def test_an_idle_cluster_is_silent_and_well(tower: Watchtower) -> None:
    """No client, no requests: nothing else goes on either."""
    tower.run(10 * MINUTE)
    tower.speaking.clear()
    tower.committing.clear()
    tower.run(120 * MINUTE)

    assert tower.alerts == []


def test_a_broker_whose_last_consumers_end_may_be_silent(tower: Watchtower) -> None:
    """Its neighbour goes on, and hears its own consumers."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.committing.remove(0)
    tower.run(120 * MINUTE)

    assert tower.alerts == []


def test_the_last_consumer_that_is_killed_leaves_a_record_and_no_request() -> None:
    """The coordinator writes by itself that the group is empty, a session timeout after the last request."""
    tower = Watchtower()
    tower.speaking, tower.committing = {(1, REQUESTS), (1, LOG)}, {0}
    tower.run(10 * MINUTE)
    tower.speaking.clear()
    tower.committing.clear()
    tower.run(45_000)
    tower.state.newest_ms["offsets"] = T0 + tower.now_ms
    tower.run(30 * MINUTE)

    assert tower.alerts == []


@pytest.mark.parametrize(("brokers", "told"), [((1,), ["SourceSilent"]), ((1, 2), [])], ids=["one", "two"])
def test_where_nobody_tells_who_leads_one_broker_leads_all(brokers: tuple[int, ...], told: list[str]) -> None:
    """The probe is forbidden, or this is a replay; of several brokers each commit may be another's."""
    tower = Watchtower()
    tower.state.leaders.clear()
    tower.speaking, tower.committing = {(broker, REQUESTS) for broker in brokers}, {3}
    tower.run(10 * MINUTE)
    tower.speaking.discard((1, REQUESTS))
    tower.run(2 * MINUTE)

    assert [alert.name for alert in tower.alerts] == told


def test_in_quiet_mode_silence_is_never_loss() -> None:
    """INFO logs say nothing for hours, while commits go on."""
    tower = Watchtower()
    tower.speaking = {(1, LOG)}
    tower.committing = {0, 1}
    tower.run(10 * MINUTE)
    tower.speaking.clear()
    tower.run(120 * MINUTE)

    assert tower.alerts == []


def test_a_log_that_never_spoke_regularly_is_not_missed(tower: Watchtower) -> None:
    """Someone turned DEBUG on for a moment."""
    tower.run(MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.run(30 * MINUTE)

    assert tower.alerts == []


def test_a_broker_that_lost_its_shards_may_be_silent(tower: Watchtower) -> None:
    """Coordinators moved: its groups talk to another broker now."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    tower.state.moves.append(Move(at_ms=T0 + tower.now_ms, broker=1, kind="unloaded"))
    tower.run(30 * MINUTE)

    assert tower.alerts == []


def test_a_broker_that_leads_anew_is_given_time_to_speak(tower: Watchtower) -> None:
    """It was away for minutes: commits to what is its partition again were made at its neighbour."""
    tower.run(10 * MINUTE)
    tower.speaking -= {(1, REQUESTS), (1, LOG)}
    for leader in (2, 1):
        tower.tell(LeadersDescribed(leaders={0: (leader, 5 - leader)}))
        tower.run(5 * MINUTE)

    assert tower.alerts == []


def test_an_hour_of_silence_is_taken_for_intent(tower: Watchtower) -> None:
    """Somebody set the level back to INFO; the alert does not stay for ever."""
    tower.run(10 * MINUTE)
    tower.speaking.remove((1, REQUESTS))
    last_ms = tower.now_ms
    tower.run(90 * MINUTE)

    assert [alert.ends_at_ms for alert in tower.alerts] == [None, T0 + last_ms + 60 * MINUTE]


def test_a_contradiction_proves_loss(tower: Watchtower) -> None:
    """A generation in the topic whose lines never came, from a broker whose log was heard."""
    tower.run(10 * MINUTE)
    tower.contradict(1)
    at_ms = tower.now_ms
    tower.run(30 * MINUTE)

    assert [alert.status for alert in tower.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert tower.alerts[0].detected_at_ms == T0 + at_ms
    assert "INFO log of broker 1" in tower.alerts[0].summary
    assert tower.alerts[1].ends_at_ms == T0 + at_ms + 10 * MINUTE


def test_a_contradiction_of_a_log_never_heard_proves_nothing() -> None:
    """Whoever reads the topic alone loses no log."""
    tower = Watchtower()
    tower.committing = {0, 1}
    tower.run(10 * MINUTE)
    tower.contradict(1)

    assert tower.alerts == []


def test_a_disabled_rule_resolves_and_sleeps(tower: Watchtower) -> None:
    """Configuration wins."""
    tower.run(10 * MINUTE)
    tower.contradict(1)
    tower.judge.configure(b'{"rules":{"source_silent":{"enabled":false}}}')
    tower.run(2_000)

    assert [alert.status for alert in tower.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_an_adopted_alert_about_the_cluster_ends(tower: Watchtower) -> None:
    """The sources are well now."""
    tower.run(10 * MINUTE)
    tower.contradict(1)
    left_open = msgspec.structs.replace(tower.alerts[0], id="0" * 32, revision=3)
    later = Watchtower()
    later.memory = later.judge.adopt(alert=msgspec.json.encode(left_open), memory=None)
    later.run(1_000)

    assert [(alert.id, alert.revision, alert.status) for alert in later.alerts] == [
        ("0" * 32, 4, AlertStatus.RESOLVED)
    ]


def test_records_that_were_deleted_before_they_were_read_are_told(tower: Watchtower) -> None:
    """With topic, partitions and count; ten minutes later it is over."""
    tower.run(MINUTE)
    tower.tell(RecordsLost(topic="events", feed="events", partitions=(0, 3), records=4_321))
    (fired,) = tower.alerts
    assert (fired.name, fired.status) == ("SourceSilent", AlertStatus.FIRING)
    assert fired.summary == "Records of events were lost before they were read."
    assert (
        "4321 offsets of the topic events (partitions 0, 3) were deleted before groupwatch read them"
        in fired.cause
    )
    assert "no cause" in fired.cost
    tower.run(10 * MINUTE)
    assert tower.alerts[-1].status is AlertStatus.RESOLVED


def test_a_topic_that_was_made_anew_is_told_beside_a_log_that_loses_lines(tower: Watchtower) -> None:
    """Both in one alert, each with its own cost and advice."""
    tower.run(MINUTE)
    tower.contradict(1)
    tower.tell(RecordsLost(topic="o", feed="offsets", partitions=(0,), records=1, is_anew=True))
    told = tower.alerts[-1]
    assert "coordinator's INFO log of broker 1" in told.summary
    assert "Records of o were lost" in told.summary
    assert any("o was deleted and created again" in sentence for sentence in told.evidence)
    assert "groupwatch may show old states of groups" in told.cost
    assert "let nobody delete the topic" in told.advice
