"""Server-sent events, read over a real socket."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from coordinator_model.kafka.states import GroupState
from streaming.config.server import HttpConfig
from streaming.serving.api import EVENTS
from streaming.serving.events import LISTENERS_MAX, NAMES_MAX, PATH, Hub
from streaming.serving.http import HttpServer
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.healthy import Healthy

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000


class Stage:
    """A server with its hub."""

    def __init__(self) -> None:
        self.view = FedView(["eu"], clock_ms=lambda: NOW_MS)
        self.hub = Hub(self.view.store, clock_ms=lambda: NOW_MS, version="1.2", flush_s=0.01, beat_s=0.05)
        config = HttpConfig(host="127.0.0.1", port=0)
        self.server = HttpServer(config, self.view, Healthy(), CollectorRegistry(), hub=self.hub)
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.server.start()}",
            timeout=60,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )

    def batch(self, *rows: tuple[str, str, bytes]) -> None:
        """One batch, as the job gives it."""
        self.view.apply("eu", rows)
        self.hub.apply("eu", rows)

    @contextmanager
    def listening(self) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of one listener, beats left out; the first is read already."""
        with self.client.stream("GET", PATH) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.iter_lines()
            found = ((event, data) for event, data in _events(lines) if event != "beat")
            assert next(found)[0] == "hello"
            yield found


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    event = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, msgspec.json.decode(value, type=EVENTS[event])


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.client.close()
    made.server.stop()
    assert not made.server.is_alive


def test_a_listener_learns_which_groups_changed(stage: Stage, rows: "Rows") -> None:
    """By their names and cluster, with the server's time."""
    stage.batch(rows.report("g"), rows.report("h"))
    with stage.listening() as events:
        stage.batch(rows.report("g", GroupState.EMPTY), rows.report("h"))
        event, data = next(events)
        assert (event, data.cluster, data.changed, data.at_ms) == ("groups", "eu", ["g"], NOW_MS)
        stage.batch(rows.report("h", removed=True))
        assert next(events)[1].changed == ["h"]


def test_a_report_that_says_the_same_again_is_no_change(stage: Stage, rows: "Rows") -> None:
    """Reports are repeated in turns; alerts are told apart."""
    stage.batch(rows.report("g"))
    with stage.listening() as events:
        stage.batch(rows.report("g", at_ms=NOW_MS + 1), rows.alert("g"))
        assert next(events)[0] == "alerts"


def test_signs_of_life_come_while_nothing_happens(stage: Stage) -> None:
    """With the time, by which a page knows its own clock's error."""
    with stage.client.stream("GET", PATH) as answer:
        events = _events(answer.iter_lines())
        assert next(events)[1].version == "1.2"
        event, data = next(events)
        assert (event, data.at_ms) == ("beat", NOW_MS)


def test_more_changes_than_can_be_named_are_cut_and_it_is_said(stage: Stage, rows: "Rows") -> None:
    """The page then asks for the whole list."""
    with stage.listening() as events:
        stage.batch(*(rows.report(f"g{n}") for n in range(NAMES_MAX + 1)))
        _, data = next(events)
        assert (len(data.changed), data.truncated) == (NAMES_MAX, True)


def test_listeners_are_bounded_and_leave_no_trace(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused with a sentence; a closed one makes room."""
    monkeypatch.setattr("streaming.serving.events.LISTENERS_MAX", 1)
    assert LISTENERS_MAX > 1
    with stage.listening():
        refused = stage.client.get(PATH)
        assert (refused.status_code, "listen already" in refused.json()["error"]) == (503, True)
    while stage.hub._listeners:
        stage.client.get("/healthz")  # the server learns of a closed connection in its own time
    with stage.listening():
        assert len(stage.hub._listeners) == 1


def test_a_slow_listener_is_dropped_and_others_go_on() -> None:
    """What it does not take would wait in memory for ever."""
    hub = Hub(FedView(["eu"], clock_ms=lambda: NOW_MS).store, clock_ms=lambda: NOW_MS)

    async def play() -> None:
        slow, quick = hub._joined(), hub._joined()
        while slow in hub._listeners:
            hub._tell([b"news"])
            await quick.queue.get()
        assert slow.is_dropped
        assert hub._listeners == {quick}

    asyncio.run(play())


def test_a_stream_outlasts_the_time_for_an_answer(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the client takes what it is sent."""
    monkeypatch.setattr("streaming.serving.http_limits.ANSWER_S", 0.05)
    with stage.client.stream("GET", PATH) as answer:
        events = _events(answer.iter_lines())
        assert [next(events)[0] for _ in range(5)] == ["hello", *["beat"] * 4]


def test_without_listeners_batches_leave_nothing(stage: Stage, rows: "Rows") -> None:
    """Nothing grows while nobody looks."""
    stage.batch(rows.report("g"))
    assert stage.hub._pending == {}
