"""Chat, pagers and mail: what really arrives at services that look like the real ones."""

import base64
import email
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from email import policy
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.receivers import messages
from alerts.delivery.receivers.alert_body import ReceiverContext
from alerts.delivery.receivers.apprise import AppriseReceiver
from alerts.delivery.receivers.messages import Messages
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from tests.unit.alerts.delivery.receivers.twins import HttpsTwins, MailTwin, certificates

MakeAlert = Callable[..., Alert]
CONTEXT = ReceiverContext("http://gw:9464", lambda _: "team-a")
PAGERDUTY, SLACK, TEAMS = "events.pagerduty.com", "hooks.slack.com", "prod-1.westus.logic.azure.com"
KEY = "k" * 32
URLS = {
    "pagerduty": f"pagerduty://{KEY}@{'a' * 20}/groupwatch/kafka",
    "slack": f"slack://T{'A' * 8}/B{'B' * 8}/{'c' * 24}",
    "teams": f"workflows://{TEAMS}/{'d' * 32}/{'e' * 43}",
}


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificates(tmp_path_factory.mktemp("ca"), PAGERDUTY, SLACK, TEAMS)


@pytest.fixture
def twins(pems: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpsTwins]:
    ca, signed = pems
    made = HttpsTwins(signed)
    monkeypatch.setenv("HTTPS_PROXY", made.url)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca))
    monkeypatch.delenv("NO_PROXY", raising=False)
    yield made
    made.close()


@pytest.fixture
def mail() -> Iterator[MailTwin]:
    made = MailTwin()
    yield made
    made.close()


def receiver(url: str, **more: int) -> AppriseReceiver:
    return AppriseReceiver("r", url, Messages(CONTEXT), **more)


def told(*alerts: Alert) -> Notification:
    return Notification(id=alerts[-1].id, revision=alerts[-1].revision, alerts=alerts)


def test_a_pager_has_one_incident_that_begins_gets_louder_and_ends(
    twins: HttpsTwins, make_alert: MakeAlert
) -> None:
    """The same key each time; the old severity is no end of it."""
    pager = receiver(URLS["pagerduty"])
    first = make_alert()
    quiet = make_alert(revision=1, status=AlertStatus.RESOLVED, ends_at_ms=1_700_000_100_000)
    loud = make_alert(revision=1, severity=Severity.CRITICAL)
    over = make_alert(revision=2, status=AlertStatus.RESOLVED, ends_at_ms=1_700_000_200_000)
    for alerts in ((first,), (quiet, loud), (over,)):
        assert pager.deliver(told(*alerts)).outcome is Outcome.DELIVERED
    assert {(one.host, one.path) for one in twins.asked} == {(PAGERDUTY, "/v2/enqueue")}
    bodies = [one.body for one in twins.asked]
    assert [one["event_action"] for one in bodies] == ["trigger", "trigger", "resolve"]
    assert {(one["dedup_key"], one["routing_key"]) for one in bodies} == {("a1", KEY)}
    assert [one["payload"]["severity"] for one in bodies[:2]] == ["warning", "critical"]
    assert first.summary in bodies[0]["payload"]["summary"]


def test_a_pager_gets_each_alert_of_a_bundle_for_itself(twins: HttpsTwins, make_alert: MakeAlert) -> None:
    """Incidents begin and end apart."""
    bundle = told(make_alert(id="a"), make_alert(id="b", group="orders"))
    assert receiver(URLS["pagerduty"]).deliver(bundle).outcome is Outcome.DELIVERED
    assert [one.body["dedup_key"] for one in twins.asked] == ["a", "b"]


def test_a_pager_takes_a_bundle_in_as_many_attempts_as_it_needs(
    twins: HttpsTwins, make_alert: MakeAlert
) -> None:
    """It refuses what comes too fast; what it has taken is not sent again, unless there is news of it."""
    pager = receiver(URLS["pagerduty"])
    alerts = [make_alert(id=name) for name in "abcde"]
    twins.statuses = [200, 200, 429, 200, 429]
    assert pager.deliver(told(*alerts)).outcome is Outcome.RETRY
    alerts[0] = make_alert(id="a", revision=1, severity=Severity.CRITICAL)
    assert pager.deliver(told(*alerts)).outcome is Outcome.RETRY
    assert pager.deliver(told(*alerts)).outcome is Outcome.DELIVERED
    assert [one.body["dedup_key"] for one in twins.asked] == ["a", "b", "c", "a", "c", "c", "d", "e"]


def test_a_pager_hears_of_an_update_only_what_is_new(twins: HttpsTwins, make_alert: MakeAlert) -> None:
    """What still fires in a bundle is no news for an incident; a repeat of all of it is one."""
    pager = receiver(URLS["pagerduty"])
    first, second, third = (make_alert(id=name) for name in "abc")
    over = make_alert(id="a", revision=1, status=AlertStatus.RESOLVED, ends_at_ms=1_700_000_100_000)
    for bundle in ((first, second), (third, first, second), (over, second, third), (second, third)):
        assert pager.deliver(told(*bundle)).outcome is Outcome.DELIVERED
    events = [(one.body["event_action"], one.body["dedup_key"]) for one in twins.asked]
    assert events == [
        *(("trigger", "a"), ("trigger", "b")),
        ("trigger", "c"),
        ("resolve", "a"),
        *(("trigger", "b"), ("trigger", "c")),
    ]
    twins.statuses = [200, 429]
    assert pager.deliver(told(second, third)).outcome is Outcome.RETRY
    assert pager.deliver(told(second, third)).outcome is Outcome.DELIVERED
    assert [one.body["dedup_key"] for one in twins.asked[6:]] == ["b", "c", "c"]


def test_a_pager_has_its_time_for_each_alert(twins: HttpsTwins, make_alert: MakeAlert) -> None:
    """However many there are, none fails because of the others."""
    twins.delay_s = 0.3
    pager = receiver(URLS["pagerduty"], timeout_ms=2_000)
    alerts = [make_alert(id=f"a{number}") for number in range(8)]
    assert pager.deliver(told(*alerts)).outcome is Outcome.DELIVERED
    assert len(twins.asked) == 8


@pytest.mark.parametrize(("kind", "host"), [("slack", SLACK), ("teams", TEAMS)])
def test_a_chat_gets_one_message_for_each_revision(
    twins: HttpsTwins, make_alert: MakeAlert, kind: str, host: str
) -> None:
    """With title, cause, culprit, cost, advice, and where to look."""
    alert = make_alert(group="<!channel> payments")
    assert receiver(URLS[kind]).deliver(told(alert)).outcome is Outcome.DELIVERED
    (asked,) = twins.asked
    assert asked.host == host
    said = str(asked.body)
    for text in (alert.summary, alert.cause, "m-1", alert.cost, alert.advice, alert.runbook):
        assert text in said
    assert "FIRING RebalanceStorm" in said
    assert kind != "slack" or "<!channel>" not in said


def test_an_alert_without_a_runbook_is_told(make_alert: MakeAlert) -> None:
    """It has none while nothing says where runbooks can be opened."""
    title, body = Messages(CONTEXT).of([make_alert(runbook="")])
    assert title.startswith("FIRING RebalanceStorm")
    assert "Cause: " in body
    assert "template failed" not in body


def test_a_bundle_is_one_message_in_a_chat(twins: HttpsTwins, make_alert: MakeAlert) -> None:
    """A line for each of the first twenty, and how many more."""
    alerts = [make_alert(id=f"a{n}", group=f"g{n}") for n in range(25)]
    assert receiver(URLS["slack"]).deliver(told(*alerts)).outcome is Outcome.DELIVERED
    (asked,) = twins.asked
    said = str(asked.body)
    assert "25 firing, 0 resolved: RebalanceStorm" in said
    assert "FIRING RebalanceStorm g19: " in said
    assert "g20: " not in said
    assert "and 5 more" in said


def test_a_mail_is_text_with_a_subject(mail: MailTwin, make_alert: MakeAlert) -> None:
    """As any mail reader shows it."""
    alert = make_alert()
    url = f"mailto://127.0.0.1:{mail.port}/?from=groupwatch@example.org&to=oncall@example.org"
    assert receiver(url).deliver(told(alert)).outcome is Outcome.DELIVERED
    (raw,) = mail.mails
    message = email.message_from_string(raw, policy=policy.default)
    assert (message["Subject"], message["To"]) == (
        "FIRING RebalanceStorm payments (warning)",
        "oncall@example.org",
    )
    text = "".join(part.get_content() for part in message.walk() if part.get_content_type() == "text/html")
    assert alert.summary in text
    assert alert.advice in text
    mail.refuses = True
    assert receiver(url).deliver(told(alert)).outcome is Outcome.RETRY


def test_a_mail_goes_over_starttls_with_a_login(
    tmp_path: Path, make_alert: MakeAlert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a server whose authority is ours; to one that nobody vouches for goes neither mail nor password."""
    ca, signed = certificates(tmp_path, "localhost")
    mail = MailTwin(signed)
    query = "from=groupwatch@example.org&to=oncall@example.org&mode=starttls"
    url = f"mailtos://ada:s3cret@localhost:{mail.port}/?{query}"
    try:
        monkeypatch.setenv("SSL_CERT_FILE", str(ca))
        assert receiver(url).deliver(told(make_alert())) == Delivery(outcome=Outcome.DELIVERED)
        assert [base64.b64decode(one) for one in mail.logins] == [b"\0ada\0s3cret"]
        assert len(mail.mails) == 1
        monkeypatch.delenv("SSL_CERT_FILE")
        assert receiver(url).deliver(told(make_alert())).outcome is Outcome.RETRY
        assert (len(mail.mails), len(mail.logins)) == (1, 1)
    finally:
        mail.close()


def test_a_redirect_is_not_followed(make_alert: MakeAlert) -> None:
    """The body would be posted again, to somebody that nobody configured."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    delivery = receiver(f"json://127.0.0.1:{server.server_address[1]}/hook").deliver(told(make_alert()))
    server.shutdown()
    server.server_close()
    assert (delivery.outcome, asked) == (Outcome.RETRY, ["/hook"])


def test_a_no_is_tried_again_and_says_why(
    twins: HttpsTwins, make_alert: MakeAlert, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the address: it is full of secrets, and no log has it either."""
    twins.status = 503
    with caplog.at_level(logging.DEBUG):
        delivery = receiver(URLS["pagerduty"]).deliver(told(make_alert()))
    assert (delivery.outcome, "error=503" in delivery.detail) == (Outcome.RETRY, True)
    assert KEY not in delivery.detail + caplog.text


def test_one_that_never_answers_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, make_alert: MakeAlert
) -> None:
    """A few may hang; then no other begins."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{silent.getsockname()[1]}")
        hanging = receiver(URLS["slack"], timeout_ms=50)
        details = [hanging.deliver(told(make_alert())).detail for _ in range(5)]
    assert "no answer within 0.05 s" in details[0] or "Connection" in details[0]
    assert all(details)


def test_a_template_has_the_last_word_on_the_text(make_alert: MakeAlert) -> None:
    """It has what is documented, and nothing else."""
    mine = Messages(CONTEXT, "{{ alerts[0].owner }}/{{ alerts[0].group }}", "{{ firing|length }}")
    assert mine.of([make_alert()]) == ("team-a/payments", "1")


@pytest.mark.parametrize("body", ["{{ alerts[7].group }}", "{{ nothing }}", "{{ ''.__class__.__mro__ }}"])
def test_a_template_that_fails_gives_way_to_ours(make_alert: MakeAlert, body: str) -> None:
    """The alert is worth more than its form; and that it failed is said."""
    title, said = Messages(CONTEXT, "", body).of([make_alert()])
    assert title == "FIRING RebalanceStorm payments (warning)"
    assert make_alert().summary in said
    assert "The template failed" in said


def test_our_templates_are_documented() -> None:
    """As they are, to begin one's own with."""
    readme = (Path(messages.__file__).parent / "README.md").read_text()
    for template in (messages.TITLE, messages.BODY.rstrip()):
        assert f"```jinja\n{template}\n```" in readme


def test_what_is_no_template_is_refused() -> None:
    """When the configuration is read."""
    with pytest.raises(ValueError, match="not a template"):
        Messages(CONTEXT, "{% if %}")
