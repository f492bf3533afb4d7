"""Following log files: whole events, once each, across rotation."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from streaming import kafka_clients
from streaming.devkit.kafka.tailer import Follower, Tailer, envelope
from streaming.kafka_address import KafkaAddress

FIRST = "[2026-11-20 23:51:50,925] INFO first (a.B)"
SECOND = "[2026-11-20 23:51:51,000] ERROR second (a.B)"
TRACE = "java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)"


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_what_is_added_comes_once(tmp_path: Path) -> None:
    """A line is given out when no other follows it at once, and never again."""
    path = tmp_path / "server.log"
    follower = Follower(path, from_start=True)
    _append(path, FIRST + "\n")

    given = [follower.events() for _ in range(3)]

    assert given == [[], [FIRST], []]


def test_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    """A write in two parts is one event."""
    path = tmp_path / "server.log"
    follower = Follower(path, from_start=True)
    _append(path, FIRST[:20])
    before = [follower.events(), follower.events()]
    _append(path, FIRST[20:] + "\n")

    assert before == [[], []]
    assert follower.events() + follower.events() == [FIRST]


def test_a_stack_trace_stays_with_its_line(tmp_path: Path) -> None:
    """Lines without a date belong to the event above."""
    path = tmp_path / "server.log"
    _append(path, f"{FIRST}\n{SECOND}\n{TRACE}\n")
    follower = Follower(path, from_start=True)

    assert follower.events() + follower.events() == [FIRST, f"{SECOND}\n{TRACE}"]


def test_rotation_loses_nothing(tmp_path: Path) -> None:
    """The renamed file is read to its end before the new one."""
    path = tmp_path / "server.log"
    _append(path, "")
    follower = Follower(path, from_start=True)
    follower.events()
    _append(path, FIRST + "\n")
    path.rename(tmp_path / "server.log.1")
    _append(path, SECOND + "\n")

    given = [event for _ in range(4) for event in follower.events()]

    assert given == [FIRST, SECOND]


def test_a_late_start_skips_what_was_there(tmp_path: Path) -> None:
    """Without from_start only news counts."""
    path = tmp_path / "server.log"
    _append(path, FIRST + "\n")
    follower = Follower(path, from_start=False)
    follower.events()
    _append(path, SECOND + "\n")

    assert follower.events() + follower.events() == [SECOND]


def test_a_file_that_comes_later_is_read_whole(tmp_path: Path) -> None:
    """A broker that was not started yet has no log yet."""
    path = tmp_path / "server.log"
    follower = Follower(path, from_start=False)
    follower.events()
    _append(path, FIRST + "\n")

    assert follower.events() + follower.events() == [FIRST]


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    """What was given out before is not given out again, and nothing in between is lost."""
    path = tmp_path / "server.log"
    _append(path, FIRST + "\n")
    before = Follower(path, from_start=True)
    given = before.events() + before.events()
    _append(path, SECOND + "\n")
    after = Follower(path, from_start=True, position=before.position())

    assert (given, after.events() + after.events()) == ([FIRST], [SECOND])


def test_what_is_held_counts_as_not_given(tmp_path: Path) -> None:
    """A stop while an event waits for its stack trace repeats that event after the restart."""
    path = tmp_path / "server.log"
    _append(path, f"{FIRST}\n{SECOND}\n")
    before = Follower(path, from_start=True)
    given = before.events()
    after = Follower(path, from_start=True, position=before.position())

    assert (given, after.events() + after.events()) == ([FIRST], [SECOND])


def test_a_restart_after_rotation_reads_the_old_file_to_its_end(tmp_path: Path) -> None:
    """The position names the file, whatever it is called by now."""
    path = tmp_path / "server.log"
    _append(path, FIRST + "\n")
    before = Follower(path, from_start=True)
    before.events(), before.events()
    _append(path, SECOND + "\n")
    path.rename(tmp_path / "server.log.1")
    _append(path, FIRST + "\n")
    after = Follower(path, from_start=True, position=before.position())

    assert [event for _ in range(4) for event in after.events()] == [SECOND, FIRST]


def test_what_was_not_acknowledged_is_given_again(tmp_path: Path) -> None:
    """After a failure the file is read again from where Kafka has it."""
    path = tmp_path / "server.log"
    _append(path, FIRST + "\n")
    follower = Follower(path, from_start=True)
    given = follower.events() + follower.events()
    follower.rewind(None)

    assert given == follower.events() + follower.events() == [FIRST]


def test_going_back_brings_no_lines_that_were_to_be_skipped(tmp_path: Path) -> None:
    """Without from_start, the beginning is the end at the time."""
    path = tmp_path / "server.log"
    _append(path, FIRST + "\n")
    follower = Follower(path, from_start=False)
    follower.events()
    _append(path, SECOND + "\n")
    follower.rewind(None)

    assert follower.events() + follower.events() == [SECOND]


def test_the_envelope_has_no_time_of_its_own(tmp_path: Path) -> None:
    """The time of reading must not win over the line's."""
    assert json.loads(envelope(FIRST, tmp_path / "server.log", 2)) == {
        "message": FIRST,
        "file": str(tmp_path / "server.log"),
        "broker": 2,
    }


class Answer:
    """What a producer gives for a record."""

    def __init__(self, error: KafkaTimeoutError | None) -> None:
        """Acknowledged, unless there is an error."""
        self._error = error

    def get(self) -> None:
        """Return, or raise what went wrong."""
        if self._error is not None:
            raise self._error


class Topic:
    """What Kafka has taken, and the producers that were made for it; it can refuse the next record."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.taken: list[tuple[bytes, str]] = []
        self.has_taken = threading.Event()
        self.producers = 0
        self.refusing = 0
        self.unreachable: set[int] = set()

    def producer(self, _address: object) -> "Topic":
        """In place of ``kafka_clients.producer``."""
        self.producers += 1
        if self.producers in self.unreachable:
            raise KafkaConnectionError
        return self

    def send(self, _topic: str, *, key: bytes, value: bytes) -> Answer:
        """Take a record, or refuse it."""
        if self.refusing:
            self.refusing -= 1
            return Answer(KafkaTimeoutError("no replica"))
        self.taken.append((key, json.loads(value)["message"]))
        self.has_taken.set()
        return Answer(None)

    def flush(self) -> None:
        """All is sent at once."""

    def close(self, timeout: float | None = None) -> None:
        """Nothing to close."""


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(kafka_clients, "producer", made.producer)
    return made


def _shipped(path: Path, positions: Path | None = None, keep: Callable[[str], bool] = lambda _: True) -> None:
    address = KafkaAddress(("127.0.0.1:1",))
    with Tailer({path: 2}, address, "events", positions=positions, keep=keep):
        pass  # stopping ships all that is there


def test_lines_go_out_under_the_brokers_id(tmp_path: Path, topic: Topic) -> None:
    """All lines of one broker share a key, and so a partition."""
    _append(tmp_path / "server.log", f"{FIRST}\n{SECOND}\n")
    _shipped(tmp_path / "server.log")

    assert topic.taken == [(b"2", FIRST), (b"2", SECOND)]


def test_what_is_not_wanted_stays(tmp_path: Path, topic: Topic) -> None:
    """A line that is not kept is passed over, and not met again."""
    path, positions = tmp_path / "server.log", tmp_path / "shipped.json"
    _append(path, f"{FIRST}\n{SECOND}\n")
    _shipped(path, positions, keep=lambda event: "second" in event)
    _shipped(path, positions)

    assert topic.taken == [(b"2", SECOND)]


def test_a_second_shipper_goes_on_where_the_first_stopped(tmp_path: Path, topic: Topic) -> None:
    """What was acknowledged is shipped once; what came meanwhile is not lost."""
    path, positions = tmp_path / "server.log", tmp_path / "shipped.json"
    _append(path, FIRST + "\n")
    _shipped(path, positions)
    _append(path, SECOND + "\n")
    _shipped(path, positions)

    assert topic.taken == [(b"2", FIRST), (b"2", SECOND)]


def test_what_kafka_refuses_is_sent_again(tmp_path: Path, topic: Topic) -> None:
    """A broker that is away, even for a new producer, loses nothing: the file is read again."""
    topic.refusing, topic.unreachable = 1, {2}
    _append(tmp_path / "server.log", f"{FIRST}\n")
    address = KafkaAddress(("127.0.0.1:1",))
    with Tailer({tmp_path / "server.log": 2}, address, "events"):
        assert topic.has_taken.wait(60)

    assert topic.taken == [(b"2", FIRST)]
    assert topic.producers == 3
