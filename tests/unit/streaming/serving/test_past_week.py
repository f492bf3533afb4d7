"""The past of a cluster, read from the topics in small portions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Transition
from streaming.config.config import parse_config
from streaming.serving import past_week
from streaming.serving.past_week import SLICE_MS, PastReader

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

CONFIG = "clusters: [{name: eu, bootstrap_servers: ['127.0.0.1:1']}]\nhistory: {max_size_mb: 10}\n"
NOW_MS = 1_700_000_100_000
SINCE_MS = NOW_MS - 4 * SLICE_MS
MOVES, ALERTS = "groupwatch-transitions", "groupwatch-alerts"


class Record(NamedTuple):
    """What a consumer returns."""

    key: bytes
    value: bytes | None
    timestamp: int
    offset: int = 0


class Start(NamedTuple):
    """Where a time begins."""

    offset: int


class FakeReader:
    """Topics whose records have times."""

    def __init__(self, topics: Mapping[str, Sequence[Sequence[Record]]]) -> None:
        self.topics = topics
        self.positions: dict[Any, int] = {}
        self.assigned: list[Any] = []
        self.paused: set[Any] = set()
        self.polls = 0
        self.closed = False

    def _of(self, one: Any) -> Sequence[Record]:
        return self.topics[one.topic][one.partition]

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return its numbers."""
        return set(range(len(self.topics.get(topic, []))))

    def assign(self, partitions: list[Any]) -> None:
        """Take them."""
        self.assigned = list(partitions)

    def assignment(self) -> set[Any]:
        """Return what was taken."""
        return set(self.assigned)

    def resume(self, *partitions: Any) -> None:
        """Read them again."""
        self.paused -= set(partitions)

    def pause(self, *partitions: Any) -> None:
        """Read them no more."""
        self.paused |= set(partitions)

    def seek(self, partition: Any, offset: int) -> None:
        """Go there."""
        self.positions[partition] = offset

    def beginning_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        """Return the beginnings."""
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        """Return the ends."""
        return {one: len(self._of(one)) for one in partitions}

    def offsets_for_times(self, times: dict[Any, int]) -> dict[Any, Start | None]:
        """Find the first records that are not older."""
        found: dict[Any, Start | None] = {}
        for one, at_ms in times.items():
            later = [n for n, record in enumerate(self._of(one)) if record.timestamp >= at_ms]
            found[one] = Start(later[0]) if later else None
        return found

    def position(self, partition: Any) -> int:
        """Return where it stands."""
        return self.positions[partition]

    def poll(self, timeout_ms: int) -> dict[Any, list[Record]]:
        """Return the next two of each that is not paused."""
        self.polls += 1
        found = {}
        for one in self.assigned:
            if one not in self.paused:
                at = self.positions[one]
                found[one] = [
                    record._replace(offset=at + n) for n, record in enumerate(self._of(one)[at : at + 2])
                ]
                self.positions[one] = at + len(found[one])
        return found

    def close(self) -> None:
        """Remember it."""
        self.closed = True


Reading = Callable[[Mapping[str, Sequence[Sequence[Record]]]], FakeReader]


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    """Makes the consumer that the reader gets."""

    def make(topics: Mapping[str, Sequence[Sequence[Record]]]) -> FakeReader:
        reader = FakeReader(topics)
        monkeypatch.setattr(past_week, "consumer", lambda _, **more: reader)
        monkeypatch.setattr(past_week, "wall_clock_ms", lambda: NOW_MS)
        return reader

    return make


def move(rows: "Rows", at_ms: int, **changes: Any) -> Record:
    """A transition's record."""
    _, group, value = rows.transition(GroupState.STABLE, at_ms, **changes)
    return Record(group.encode(), value, at_ms)


def alarm(rows: "Rows", at_ms: int, **changes: Any) -> Record:
    """An alert's record."""
    told = {"cluster": "eu", "id": f"a-{at_ms}", "starts_at_ms": at_ms, "detected_at_ms": at_ms} | changes
    made = rows.make_alert(**told)
    return Record(made.id.encode(), msgspec.json.encode(made), at_ms)


def told(portions: Iterable[Sequence[tuple[str, str, bytes]]]) -> list[Transition | Alert]:
    """What the portions hold."""
    kinds: dict[str, type[Transition | Alert]] = {"transition": Transition, "alert": Alert}
    return [
        msgspec.json.decode(value, type=kinds[kind]) for portion in portions for kind, _, value in portion
    ]


def moves_in(portions: Iterable[Sequence[tuple[str, str, bytes]]]) -> list[int]:
    """When their transitions were."""
    return [one.at_ms for one in told(portions) if isinstance(one, Transition)]


def test_all_groups_are_read_the_newest_slice_first(reading: Reading, rows: "Rows") -> None:
    """Within a slice in the order of the topic, from every partition."""
    days = [NOW_MS - 4 * SLICE_MS + 10, NOW_MS - SLICE_MS - 10, NOW_MS - 2_000, NOW_MS - 1_000]
    reader = reading({MOVES: [[move(rows, at_ms) for at_ms in days], [move(rows, days[0] + 1, group="h")]]})
    found = moves_in(PastReader(parse_config(CONFIG))("eu", SINCE_MS))
    assert found == [days[2], days[3], days[1], days[0], days[0] + 1]
    assert reader.closed


def test_what_is_no_record_of_this_cluster_is_left_out(reading: Reading, rows: "Rows") -> None:
    """Of another cluster, forged, a tombstone, no JSON, or before the time that was asked for."""
    at_ms = NOW_MS - 1_000
    forged = move(rows, at_ms)._replace(key=b"other")
    reading(
        {
            MOVES: [
                [
                    move(rows, SINCE_MS - 1)._replace(timestamp=at_ms),
                    move(rows, at_ms, cluster="us"),
                    forged,
                    Record(b"g", None, at_ms),
                    Record(b"g", b"\xff no JSON", at_ms),
                    move(rows, at_ms + 5),
                ]
            ]
        }
    )
    assert moves_in(PastReader(parse_config(CONFIG))("eu", SINCE_MS)) == [at_ms + 5]


def test_alerts_that_were_open_since_are_read_however_old_their_record(
    reading: Reading, rows: "Rows"
) -> None:
    """The topic is compacted, so it has the newest revision of each."""
    old = SINCE_MS - SLICE_MS
    over = {"status": AlertStatus.RESOLVED, "ends_at_ms": SINCE_MS - 1}
    reading({ALERTS: [[alarm(rows, old), alarm(rows, old + 1, **over), alarm(rows, NOW_MS - 5)]]})
    found = told(PastReader(parse_config(CONFIG))("eu", SINCE_MS))
    assert [one.id for one in found] == [f"a-{old}", f"a-{NOW_MS - 5}"]


def test_what_does_not_fit_is_the_oldest(
    reading: Reading, rows: "Rows", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of the file's size is read at most; that is said."""
    monkeypatch.setattr(past_week, "_MEGABYTE", 100)  # the file may have 1,000 bytes
    times = [SINCE_MS + 10 + n * SLICE_MS for n in range(4)]
    reading({MOVES: [[move(rows, at_ms) for at_ms in times]]})
    found = moves_in(PastReader(parse_config(CONFIG))("eu", SINCE_MS))
    assert found == times[::-1][: len(found)]
    assert 0 < len(found) < 4
    assert "the oldest transitions are left out" in caplog.text


def test_a_portion_is_small_and_nothing_is_read_ahead_of_it(
    reading: Reading, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of others count as well: they cost the same time."""
    monkeypatch.setattr(past_week, "PORTION_RECORDS", 4)
    records = [move(rows, NOW_MS - 100 + n, cluster="eu" if n % 4 == 0 else "us") for n in range(12)]
    reader = reading({MOVES: [records]})
    portions = PastReader(parse_config(CONFIG))("eu", SINCE_MS)
    assert len(next(portions)) == 1
    assert reader.polls == 2
    assert [len(one) for one in portions] == [1, 1]


def test_topics_that_are_not_there_have_no_past(reading: Reading) -> None:
    """A first start makes them later."""
    reader = reading({})
    assert list(PastReader(parse_config(CONFIG))("eu", SINCE_MS)) == []
    assert reader.closed
