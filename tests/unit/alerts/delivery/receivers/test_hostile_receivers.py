"""Receivers that do harm, on real sockets: none holds its thread for longer than a delivery may take."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.receivers.alert_body import ReceiverContext
from alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from alerts.delivery.receivers.apprise import AppriseReceiver
from alerts.delivery.receivers.http_post import HttpOptions
from alerts.delivery.receivers.messages import Messages
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome, Receiver
from alerts.delivery.receivers.webhook import WebhookReceiver
from alerts.delivery.silences import Match, Quiet, Silence

MakeAlert = Callable[..., Alert]
Behave = Callable[[socket.socket], None]
Deliver = Callable[..., Delivery]

DEADLINE_S = 0.5
DRIP_S = 0.02
OK = b"HTTP/1.1 200 OK\r\n"
BAD = b"HTTP/1.1 400 Bad Request\r\n"


class Hostile:
    """Accepts connections and does to each what it was told."""

    def __init__(self, behave: Behave) -> None:
        self._behave = behave
        self.connections = 0
        self._ended = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/hook"

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._behave(connection)

    def close(self) -> None:
        """Stop listening; what drips ends with its connection."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)


def silent(connection: socket.socket) -> None:
    """Read what comes until the other end has had enough, and say nothing."""
    while connection.recv(65_536):
        pass


def _drip(connection: socket.socket, parts: Iterator[bytes]) -> None:
    connection.recv(65_536)
    for part in parts:
        connection.sendall(part)
        time.sleep(DRIP_S)


def drips_its_status_line(connection: socket.socket) -> None:
    """One byte now and then, for ever."""
    _drip(connection, itertools.chain((b"HTTP/1.1 200 ",), itertools.repeat(b"O")))


def drips_headers(connection: socket.socket) -> None:
    """Whole headers, and never the last."""
    _drip(connection, itertools.chain((OK,), (b"X-%d: 1\r\n" % n for n in itertools.count())))


def says_continue_for_ever(connection: socket.socket) -> None:
    """As many informational answers as the line carries."""
    connection.recv(65_536)
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def drips_continue(connection: socket.socket) -> None:
    """An informational answer now and then."""
    _drip(connection, itertools.repeat(b"HTTP/1.1 102 Processing\r\n\r\n"))


def closes_at_once(_: socket.socket) -> None:
    """Accept and hang up."""


def closes_after_the_request(connection: socket.socket) -> None:
    """Read, and hang up without a word."""
    connection.recv(65_536)


def answers_garbage(connection: socket.socket) -> None:
    """What is no HTTP at all."""
    _drip(connection, iter((b"\x16\x03\x01\x00\xa5\x00\xff rubbish\r\n\r\n" * 10,)))


def answers_huge_headers(connection: socket.socket) -> None:
    """More header bytes than anybody needs."""
    _drip(connection, iter((OK, *([b"X-Long: " + b"a" * 60_000 + b"\r\n"] * 100))))


def _answers(head: bytes, body: Iterator[bytes]) -> Behave:
    def behave(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(head)
        for part in body:
            connection.sendall(part)

    return behave


def drips_a_refusal(connection: socket.socket) -> None:
    """The status at once, its text never."""
    _drip(connection, itertools.chain((BAD + b"Content-Length: 100000\r\n\r\n",), itertools.repeat(b"x")))


@pytest.fixture
def deliver(make_alert: MakeAlert) -> Iterator[Deliver]:
    """Deliver one notification to a receiver that behaves so."""
    opened: list[Hostile | WebhookReceiver] = []

    def make(behave: Behave, *, url: Callable[[str], str] = str) -> Delivery:
        hostile = Hostile(behave)
        receiver = WebhookReceiver("r", url(hostile.url), HttpOptions(timeout_ms=round(DEADLINE_S * 1000)))
        opened.extend((receiver, hostile))
        return receiver.deliver(Notification(id="a1", revision=0, alerts=(make_alert(),)))

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    "behave",
    [
        silent,
        drips_its_status_line,
        drips_headers,
        drips_continue,
        says_continue_for_ever,
    ],
)
def test_a_receiver_that_drips_is_given_up_when_the_delivery_has_had_its_time(
    behave: Behave, deliver: Deliver
) -> None:
    """A delivery has one deadline for all of it, however lively the other end is, and is tried again."""
    delivery = deliver(behave)
    assert (delivery.outcome, delivery.detail) == (Outcome.RETRY, f"no answer within {DEADLINE_S:g} s")


NO_ANSWERS = [
    silent,
    drips_its_status_line,
    drips_headers,
    drips_continue,
    says_continue_for_ever,
    closes_at_once,
    closes_after_the_request,
    answers_garbage,
    answers_huge_headers,
]


@pytest.mark.parametrize("behave", NO_ANSWERS)
@pytest.mark.parametrize("kind", ["alertmanager", "apprise"])
def test_other_kinds_outlive_it_as_well(kind: str, behave: Behave, make_alert: MakeAlert) -> None:
    """An Alertmanager that is asked for its silences first, and a service of the library."""
    hostile = Hostile(behave)
    timeout_ms = round(DEADLINE_S * 1000)
    made: Receiver
    if kind == "alertmanager":
        quiet = Quiet([Silence(match=Match())])
        made = AlertmanagerReceiver(
            "r", [hostile.url], HttpOptions(timeout_ms=timeout_ms), context=ReceiverContext(quiet=quiet)
        )
    else:
        address = hostile.url.replace("http:", "json:")
        made = AppriseReceiver("r", address, Messages(ReceiverContext()), timeout_ms=timeout_ms)
    one, other = make_alert(), make_alert(id="a2")
    delivery = made.deliver(Notification(id="a1", revision=0, alerts=(one, other)))
    made.close()
    hostile.close()
    if kind == "apprise":
        assert (delivery.outcome, bool(delivery.detail)) == (Outcome.RETRY, True)
    else:  # it is silenced here and cannot be silenced there: nothing is sent, and the trouble is told
        assert (delivery.outcome, "GET http://127.0.0.1" in delivery.detail) == (Outcome.DELIVERED, True)


@pytest.mark.parametrize(
    ("head", "body", "outcome", "wait_s"),
    [
        (OK + b"Content-Length: 0\r\n\r\n", b"", Outcome.DELIVERED, None),
        (b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", b"", Outcome.RETRY, 7),
        (
            b"HTTP/1.1 429 No\r\nRetry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
            b"",
            Outcome.RETRY,
            None,  # of more than a year
        ),
        (BAD + b"Content-Length: 3\r\n\r\n", b"why", Outcome.REJECTED, None),
        (
            b"HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            b"",
            Outcome.RETRY,
            None,
        ),
    ],
)
def test_an_alertmanagers_answer_counts_as_a_webhooks(
    head: bytes, body: bytes, outcome: Outcome, wait_s: float | None, make_alert: MakeAlert
) -> None:
    """Refusals, redirects and a wish to be left alone for a while."""
    hostile = Hostile(_answers(head, iter((body,))))
    made = AlertmanagerReceiver("r", [hostile.url], HttpOptions(timeout_ms=5_000), silences=False)
    delivery = made.deliver(Notification(id="a1", revision=0, alerts=(make_alert(),)))
    made.close()
    hostile.close()
    assert (delivery.outcome, delivery.retry_after_s) == (outcome, wait_s)


@pytest.mark.parametrize(
    "behave", [closes_at_once, closes_after_the_request, answers_garbage, answers_huge_headers]
)
def test_an_answer_that_is_none_is_tried_again(behave: Behave, deliver: Deliver) -> None:
    """Whoever hangs up or speaks no HTTP may be a proxy in trouble."""
    assert deliver(behave).outcome is Outcome.RETRY


def test_tls_garbage_is_tried_again(deliver: Deliver) -> None:
    """A port that does not speak TLS, or drips it, is an outage."""
    for behave in (answers_garbage, drips_its_status_line, silent):
        delivery = deliver(behave, url=lambda url: url.replace("http:", "https:"))
        assert delivery.outcome is Outcome.RETRY


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", itertools.repeat(b"4\r\nbody\r\n")),
        (OK + b"\r\n", itertools.repeat(b"x" * 1000)),
        (OK + b"Content-Length: 99999999999999999999\r\n\r\n", iter(())),
        (OK + b"Content-Length: 10\r\n\r\n", iter((b"short",))),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n", iter((b"nope",))),
    ],
)
def test_a_success_is_one_whatever_its_body_is(head: bytes, body: Iterator[bytes], deliver: Deliver) -> None:
    """The body of a success is not read: endless, cut off or packed, it costs nothing."""
    assert deliver(_answers(head, body)) == Delivery(outcome=Outcome.DELIVERED)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (BAD + b"Transfer-Encoding: chunked\r\n\r\n", itertools.repeat(b"4\r\nbody\r\n")),
        (BAD + b"\r\n", itertools.repeat(b"x" * 1000)),
        (BAD + b"Content-Length: 10\r\n\r\n", iter((b"short",))),
        (BAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n", iter((b"nope",))),
        (BAD + b"Transfer-Encoding: chunked\r\n\r\n", iter((b"zz\r\n",))),
    ],
)
def test_a_refusal_is_one_whatever_its_body_is(head: bytes, body: Iterator[bytes], deliver: Deliver) -> None:
    """Its first words go to the log, and no more of it is read."""
    delivery = deliver(_answers(head, body))
    assert delivery.outcome is Outcome.REJECTED
    assert len(delivery.detail) < 250


def test_a_refusal_that_drips_its_text_is_a_refusal(deliver: Deliver) -> None:
    """The words are waited for only a little."""
    delivery = deliver(drips_a_refusal)
    assert (delivery.outcome, delivery.detail.split(":")[0]) == (Outcome.REJECTED, "HTTP 400")


def test_a_redirect_says_where_it_points_and_is_not_followed(deliver: Deliver) -> None:
    """Alerts, and headers with secrets, go to no address that nobody configured; the log names it."""
    head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/evil\r\nContent-Length: 0\r\n\r\n"
    delivery = deliver(_answers(head, iter(())))
    assert delivery.outcome is Outcome.RETRY
    assert delivery.detail == "HTTP 302 to 'http://127.0.0.1:1/evil', which is not followed"


def test_nothing_of_an_answer_is_kept(make_alert: MakeAlert) -> None:
    """Cookies are not sent back, so a receiver cannot make the process grow."""
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        while request := connection.recv(65_536):
            seen.append(request)
            connection.sendall(OK + b"Set-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n")

    hostile = Hostile(behave)
    receiver = WebhookReceiver("r", hostile.url, HttpOptions(timeout_ms=5000))
    for _ in range(3):
        receiver.deliver(Notification(id="a1", revision=0, alerts=(make_alert(),)))
    receiver.close()
    hostile.close()
    assert b"Cookie:" not in b"".join(seen)


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(b"http://xn--/", id="no-IDNA"),
        pytest.param("http://xn--é.example/".encode(), id="not-even-ASCII"),
        pytest.param(b"http://[::1/", id="no-URL"),
        pytest.param(b"http://h:99999999/", id="no-port"),
        pytest.param(b"\xff\xfe", id="no-UTF-8"),
        pytest.param(b"http://h/" + b"a" * 60_000, id="too-long"),
    ],
)
def test_a_redirect_to_nowhere_is_a_redirect(where: bytes, deliver: Deliver) -> None:
    """Nobody follows it, so nobody minds where it points; it is tried again like any other."""
    head = b"HTTP/1.1 302 Found\r\nLocation: " + where + b"\r\nContent-Length: 0\r\n\r\n"
    delivery = deliver(_answers(head, iter(())))
    assert delivery.outcome is Outcome.RETRY
    assert delivery.detail.startswith("HTTP 302 to '")
    assert len(delivery.detail) < 300


def test_a_name_server_that_hangs_does_not_hold_up_the_end(
    make_alert: MakeAlert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can break off the lookup of a name, so it is left behind; the process may end at once."""
    answers = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        answers.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    receiver = WebhookReceiver("r", "http://hook.example/", HttpOptions(timeout_ms=200))
    try:
        delivery = receiver.deliver(Notification(id="a1", revision=0, alerts=(make_alert(),)))
        began_s = time.monotonic()
        receiver.close()
        took_s = time.monotonic() - began_s
        looking_up = [one for one in threading.enumerate() if one.name == "lookup"]
    finally:
        answers.set()
    assert delivery == Delivery(outcome=Outcome.RETRY, detail="no answer within 0.2 s")
    assert took_s < 2
    assert [one.daemon for one in looking_up] == [True]


def test_lookups_that_hang_do_not_pile_up(make_alert: MakeAlert, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hang at a time; what comes then is tried again later."""
    answers = threading.Event()
    calls: list[int] = []

    def hang(*_: object, **__: object) -> list[object]:
        calls.append(1)
        answers.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    receiver = WebhookReceiver("r", "http://hook.example/", HttpOptions(timeout_ms=20))
    try:
        details = [
            receiver.deliver(Notification(id="a1", revision=0, alerts=(make_alert(),))).detail
            for _ in range(12)
        ]
        receiver.close()
    finally:
        answers.set()
    assert len(calls) == 4
    assert "lookups" in details[-1]
