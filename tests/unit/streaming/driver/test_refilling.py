"""Shards that lost their saved state: told what they need, shown until they are whole, and then told so."""

import threading
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaTimeoutError

from alerts.alert.alert import Alert
from coordinator_model.kafka.hashing import shard_of
from streaming.config.plan import ClusterPlan
from streaming.driver.refilling import WAIT_MAX_S, Refilling
from streaming.group_store.store import GroupStore
from streaming.health.query_progress import Progress
from streaming.kafka_address import KafkaAddress
from streaming.pipeline.beginning import Beginning
from tests.unit.made_alerts import an_alert
from tests.unit.streaming.conftest import NOW_MS, Rows
from tests.unit.streaming.fakes import FakeProducer

SHARDS = 4
GROUPS = ("a", "b", "c", "d", "e", "f", "g", "h")
HOME = shard_of("a", SHARDS)
MINE = [name for name in GROUPS if shard_of(name, SHARDS) == HOME]
OTHER = next(name for name in GROUPS if name not in MINE)
ADDRESS = KafkaAddress(("127.0.0.1:9092",), {})
PLAN = ClusterPlan(
    cluster="eu",
    kafka=ADDRESS,
    output=ADDRESS,
    offsets_topic="__consumer_offsets",
    events_topic="events",
    timezone="UTC",
    control_topic="control",
    transitions_topic="transitions",
    alerts_topic="alerts",
    checkpoint="unused",
    trigger_ms=1_000,
    settings=b'{"rules":{}}',
)
BEGAN = Beginning(
    format=1,
    cluster="eu",
    run="r",
    shard_count=SHARDS,
    started_at_ms=1,
    own_output=False,
    offsets_topic="__consumer_offsets",
    events_topic="events",
    offsets_ends=[],
    events_ends=[],
    events_starts=[],
    control_end=0,
)


def _row(shard: int, since_ms: int = 5) -> tuple[str, str, bytes]:
    told = {"shard": shard, "shard_count": SHARDS, "since_ms": since_ms}
    return "rebuilding", str(shard), msgspec.json.encode(told)


class Driver:
    """What surrounds the refilling of one cluster."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.listing: tuple[float, list[str]] | None = None
        self.known: set[str] = set()
        self.told_again = 0
        self.open: list[Alert] = []
        self.producer = FakeProducer()
        self.progress = Progress("eu")
        self.refilling = Refilling(
            PLAN,
            BEGAN,
            self.producer,
            self.progress,
            listing=lambda: self.listing,
            known=lambda: self.known,
            tell_again=self._tell,
            alerts=lambda _: self.open,
            now=lambda: self.now_s,
        )

    def _tell(self) -> None:
        self.told_again += 1

    def batch(self, *rows: tuple[str, str, bytes]) -> None:
        """Take a batch and wait for what is done beside it."""
        self.refilling.take(rows)
        for thread in threading.enumerate():
            if thread.name == "refilling-eu":
                thread.join()

    def written(self) -> list[dict[str, Any]]:
        """Return the control records so far."""
        return [msgspec.json.decode(one["value"]) for one in self.producer.sent]


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_a_rebuilt_shard_gets_the_settings_again_and_is_shown(driver: Driver) -> None:
    """Settings, leaders and brokers' settings went with its bytes; /ready says that it is being filled."""
    driver.batch(_row(HOME))
    driver.batch(_row(HOME))

    assert [one["kind"] for one in driver.written()] == ["settings"]
    assert driver.told_again == 1
    (notice,) = driver.progress.notices
    assert f"shard {HOME} lost its saved state" in notice


def test_it_is_whole_when_every_listed_group_is_known_again(driver: Driver) -> None:
    """Not by a listing from before; then its open alerts are handed over, and the shard is told."""
    driver.open = [an_alert(id="1", group="a"), an_alert(id="2", group=OTHER), an_alert(id="3", group="")]
    driver.listing = (driver.now_s - 1, [])
    driver.batch(_row(HOME))
    driver.listing = (driver.now_s + 1, list(GROUPS))
    driver.known = {*GROUPS} - {MINE[0]}
    driver.batch(_row(HOME))
    assert f"1 of the groups that brokers list are not known again ({MINE[0]})" in driver.progress.notices[0]

    driver.known = set(GROUPS)
    driver.batch(_row(HOME))
    *_, adopt, refilled = driver.written()
    assert (adopt["kind"], [one["id"] for one in adopt["alerts"]]) == ("adopt", ["1"])
    assert (refilled["kind"], refilled["shards"], refilled["complete"]) == ("refilled", [HOME], True)
    driver.batch(_row(HOME), _row(HOME))
    assert driver.progress.notices == []
    assert driver.written()[-1] == refilled


def test_it_is_given_up_after_ten_minutes_with_a_sentence(driver: Driver) -> None:
    """Where the brokers cannot be asked, what stays unknown is said for as long as the process lives."""
    driver.open = [an_alert(id="1", group="a")]
    driver.batch(_row(HOME))
    driver.now_s += WAIT_MAX_S + 1
    driver.batch()

    assert (driver.written()[-1]["kind"], driver.written()[-1]["complete"]) == ("refilled", False)
    assert not [one for one in driver.written() if one["kind"] == "adopt"]
    driver.batch()
    assert "start with a new checkpoint to read them all" in driver.progress.notices[0]


def test_a_second_loss_is_news_again(driver: Driver) -> None:
    """A shard that was whole, and says again that it lost its state, is filled again."""
    driver.listing = (driver.now_s + 1, [])
    driver.batch(_row(HOME))
    driver.batch(_row(HOME))
    driver.batch()
    driver.batch(_row(HOME, since_ms=9))

    assert [one["kind"] for one in driver.written()].count("settings") == 2


def test_a_shard_is_filled_after_another_was(driver: Driver) -> None:
    """What was whole before is not looked at again, though it still says that it is not."""
    driver.listing, driver.known = (driver.now_s + 1, list(GROUPS)), set(GROUPS)
    other = shard_of(OTHER, SHARDS)
    for rows in ([_row(HOME)],) * 2 + ([_row(HOME), _row(other)],) * 2:
        driver.batch(*rows)

    told = driver.written()
    assert [one["kind"] for one in told] == ["settings", "refilled"] * 2
    assert [one["shards"] for one in told if one["kind"] == "refilled"] == [[HOME], [other]]


def test_the_picture_forgets_the_groups_of_a_rebuilt_shard(rows: Rows) -> None:
    """What was reported of them before is out of date; those of other shards stay, and new reports count."""
    store = GroupStore(["eu"], clock_ms=lambda: NOW_MS)
    store.apply("eu", [rows.report("a"), rows.report(OTHER)])
    store.apply("eu", [_row(HOME, since_ms=0), rows.report(MINE[-1])])
    store.apply("eu", [_row(HOME, since_ms=7)])

    assert set(store.types_and_states("eu")) == {OTHER, MINE[-1]}


def test_what_kafka_did_not_take_is_written_again(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control topic without a leader for a moment, at the beginning and at the end.

    A shard whose beginning was not written is not told that it is whole: it would then ask no more.
    """
    driver.listing, driver.known = (driver.now_s + 1, list(GROUPS)), set(GROUPS)
    for _ in range(2):
        with monkeypatch.context() as away:
            away.setattr(driver.producer, "send", _fail)
            driver.batch(_row(HOME))
        driver.batch(_row(HOME))
    driver.batch(_row(HOME))

    assert [one["kind"] for one in driver.written()] == ["settings", "settings", "refilled"]


def _fail(*_: object, **__: object) -> None:
    raise KafkaTimeoutError("no leader")
