"""JSON of strangers, nested so deeply that no decoder follows, at every door by which it may come in."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.alert.records import Refused, read_alert
from coordinator_model.capture import CaptureError, read_row
from coordinator_model.decoding.log_envelope import MAY_BE_PART, EnvelopeError, open_lines, whole_line
from coordinator_model.decoding.request_log import RequestLineError, parse_request_line
from coordinator_model.shard.settings import SettingsError, check_shard_settings
from streaming.asking import JobAddress, job_of
from streaming.config.config import parse_config
from streaming.control.marks import decode_mark
from streaming.devkit.kafka.webhook_probe import WebhookProbe
from streaming.driver.evidence.journal import newest
from streaming.kafka_clients.clients import ClientCredentials
from streaming.notify.direct_alerts import DirectAlerts
from streaming.notify.watching import of_records
from streaming.pipeline.beginning import run_of
from streaming.pipeline.folders import LocalFolder
from streaming.replay.described_records import describe_lines
from streaming.serving import explaining
from streaming.serving.explaining import ExplainError, explain_by_url
from streaming.workers.decode_stage import CONTROL, EVENTS
from tests.oracle.lines import play
from tests.unit.streaming.hostile import Job, Row

DEEP = 100_000
VALUES = [
    pytest.param(b"[" * DEEP, id="lists"),
    pytest.param(b"[" * DEEP + b"]" * DEEP, id="lists-that-end"),
    pytest.param(b'{"a":' * DEEP + b"1" + b"}" * DEEP, id="objects"),
    pytest.param(b'{"run":"r","kind":"clock","a":' + b"[" * DEEP + b"]" * DEEP + b"}", id="beside-fields"),
    pytest.param(b'{"run":"\xff","id":"\xff","kind":"\xff","error":"\xff"}', id="no-UTF-8"),
    pytest.param(b'{"run":' + b"9" * 5_000 + b',"access_token":' + b"9" * 5_000 + b"}", id="endless-numbers"),
]
"""The last two are refused by other errors than the rest, which are to be contained as well."""


class Answers:
    """A server that gives one answer, whatever is asked."""

    def __init__(self, content: bytes, status: int = 200) -> None:
        self._content, self._status = content, status

    def __call__(self, _asked: JobAddress | str, *_: Any, **__: Any) -> httpx.Response:
        """Return it."""
        return httpx.Response(self._status, content=self._content, request=httpx.Request("GET", "http://h"))


@pytest.mark.parametrize("value", VALUES)
def test_a_journal_passes_it_over(value: bytes) -> None:
    """What is no entry says nothing about a broker's log level."""
    assert newest([value], "prod") == {}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("status", [200, 404])
def test_who_answers_it_is_no_groupwatch(value: bytes, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain --url` says so in a sentence."""
    monkeypatch.setattr(explaining, "ask", Answers(value, status))
    with pytest.raises(ExplainError, match="is not groupwatch"):
        explain_by_url("http://h", "prod", "orders", 0)


@pytest.mark.parametrize("value", VALUES)
def test_a_story_from_the_topics_does_without_it(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server may have the port of the job."""
    monkeypatch.setattr(explaining, "ask", Answers(value))
    config = parse_config("clusters: [{name: prod, bootstrap_servers: ['127.0.0.1:1']}]\n")
    detail, note = explaining._ask_detail(job_of(config), "prod", "orders")
    assert detail is None
    assert "No running groupwatch" in note


@pytest.mark.parametrize("value", VALUES)
def test_a_token_endpoint_that_answers_it_has_no_token(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an outage of the endpoint like others, and its answer is not repeated."""
    monkeypatch.setattr(httpx, "post", Answers(value))
    with pytest.raises(httpx.HTTPError, match="no access_token") as raised:
        ClientCredentials("http://h/token", "id", "secret", None).token()
    assert len(str(raised.value)) < 200


class Checkpoint(LocalFolder):
    """A checkpoint with one damaged file."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, _name: str) -> bytes:
        """Return the damage."""
        return self._content


@pytest.mark.parametrize("value", VALUES)
def test_a_checkpoint_of_which_it_is_the_beginning_has_no_run(value: bytes) -> None:
    """None that we can read."""
    assert run_of(Checkpoint(value)) == ""


def _captured(value: bytes) -> object:
    with pytest.raises(CaptureError):
        read_row(value)
    return None


def _played(value: bytes) -> object:
    with pytest.raises(ValueError, match=r"^line 1: "):
        list(play([value.decode("utf-8", "replace")]))
    return None


def _settings(value: bytes) -> object:
    with pytest.raises(SettingsError):
        check_shard_settings(value)
    return None


def _request_line(value: bytes) -> object:
    with pytest.raises(RequestLineError):
        parse_request_line(b'Completed request:{"requestHeader":{"requestApiKey":11},"request":' + value, 1)
    return None


def _enveloped(value: bytes) -> object:
    (found,) = open_lines(value, key=None, timestamp_ms=1, timezone="UTC")
    # What begins like a log line is one, whatever it says.
    assert isinstance(found, EnvelopeError) or value.startswith(b"[")
    whole = whole_line(value, -1) if value.startswith(b"{") else None
    return None if whole == MAY_BE_PART else whole


def _described(value: bytes) -> object:
    out = io.StringIO()
    describe_lines(io.BytesIO(value), out)
    assert '"error"' in out.getvalue()
    return None


DOORS: list[Callable[[bytes], object]] = [
    _captured,
    _played,
    _settings,
    _request_line,
    _enveloped,
    _described,
    decode_mark,
    lambda value: of_records([value], ["prod"]) or None,
]


@pytest.mark.parametrize("value", VALUES[:4])
@pytest.mark.parametrize("door", DOORS)
def test_it_is_refused_at_every_other_door(door: Callable[[bytes], object], value: bytes) -> None:
    """As what cannot be decoded is refused there."""
    assert door(value) is None


@pytest.mark.parametrize("value", VALUES)
def test_it_is_no_alert(value: bytes, tmp_path: Path) -> None:
    """Neither in the topic nor in the file of open ones."""
    assert isinstance(read_alert(b"a", value, timestamp_ms=1, now_ms=1), Refused)
    path = tmp_path / "open.json"
    path.write_bytes(value)
    assert DirectAlerts(path).open_alerts() == []


@pytest.mark.parametrize("value", VALUES)
def test_a_webhook_probe_refuses_it(value: bytes) -> None:
    """With a status, and not with a connection that breaks off."""
    with WebhookProbe() as web:
        assert httpx.post(web.url, content=value).status_code == 400


DEEP_LISTS = b"[" * DEEP + b"]" * DEEP
CLOCK_KEY = b"groupwatch-clock"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            Row(CONTROL, b'{"kind":"clock","at_ms":1,"run":"r","job":' + DEEP_LISTS + b"}"), id="job"
        ),
        pytest.param(Row(CONTROL, b'{"kind":"settings","run":"r","settings":' + DEEP_LISTS + b"}"), id="set"),
        pytest.param(Row(CONTROL, b'{"kind":"adopt","run":"r","alerts":[' + DEEP_LISTS + b"]}"), id="adopt"),
        pytest.param(
            Row(EVENTS, b'{"groupwatch":"clock","at_ms":' + DEEP_LISTS + b"}", CLOCK_KEY), id="copy"
        ),
        pytest.param(Row(EVENTS, b'{"message":' + DEEP_LISTS + b"}"), id="envelope"),
        pytest.param(Row(EVENTS, b'{"resourceLogs":' + DEEP_LISTS + b"}"), id="open-telemetry"),
    ],
)
def test_a_record_of_a_topic_that_holds_it_is_counted(row: Row) -> None:
    """The query goes on, and the record is one that could not be decoded."""
    job = Job()
    job.clocked([row], behind_ms=6_000)
    job.clocked([], behind_ms=30_000, ask=True)
    reports = [json.loads(value) for kind, _, value in job.rows if kind == "cluster"]
    assert [count for *_, count in reports[-1]["undecodable"]] == [1]
