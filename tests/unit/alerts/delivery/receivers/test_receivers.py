"""What is posted to a webhook, and how its answers are understood."""

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.alert.wording import rfc3339
from alerts.delivery.receivers.alert_body import ReceiverContext, culprits_text
from alerts.delivery.receivers.http_post import HttpOptions, retry_after_s
from alerts.delivery.receivers.log import LogReceiver
from alerts.delivery.receivers.receiver import Delivery, Notification, Outcome
from alerts.delivery.receivers.webhook import WebhookReceiver, webhook_body

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import Web

MakeAlert = Callable[..., Alert]


def told(*alerts: Alert) -> Notification:
    return Notification(id=alerts[-1].id, revision=alerts[-1].revision, alerts=alerts)


def post(web: "Web", *alerts: Alert) -> Delivery:
    receiver = WebhookReceiver("oncall", web.url, context=ReceiverContext("http://gw:9464"))
    delivery = receiver.deliver(told(*alerts))
    receiver.close()
    return delivery


def test_a_firing_alert_is_alertmanagers_body(web: "Web", make_alert: MakeAlert) -> None:
    """The whole body, field by field, as Alertmanager's version 4 has it."""
    assert post(web, make_alert(revision=3)) == Delivery(outcome=Outcome.DELIVERED)
    labels = {"alertname": "RebalanceStorm", "cluster": "eu", "group": "payments", "severity": "warning"}
    annotations = {
        "summary": "payments rebalanced 7 times in 10 minutes",
        "cause": "one member leaves and joins again and again",
        "culprit": "m-1 (client app, host /10.0.0.7, 80 %, observed)",
        "cost": "3 minutes without consumption",
        "advice": "look at the restarts of 10.0.0.7",
        "runbook_url": "https://runbooks.example/rebalancestorm",
    }
    assert web.bodies == [
        {
            "version": "4",
            "groupKey": '{}:{alertname="RebalanceStorm", cluster="eu", group="payments"}',
            "truncatedAlerts": 0,
            "status": "firing",
            "receiver": "oncall",
            "groupLabels": {"alertname": "RebalanceStorm", "cluster": "eu", "group": "payments"},
            "commonLabels": labels,
            "commonAnnotations": annotations,
            "externalURL": "http://gw:9464",
            "alerts": [
                {
                    "status": "firing",
                    "labels": labels,
                    "annotations": annotations,
                    "startsAt": "2023-11-14T22:13:20.123Z",
                    "endsAt": "0001-01-01T00:00:00Z",
                    "generatorURL": "http://gw:9464/?cluster=eu&q=payments",
                    "fingerprint": "a1",
                }
            ],
        }
    ]
    assert web.headers[0]["Idempotency-Key"] == "a1/3"
    assert web.headers[0]["Content-Type"] == "application/json"


def test_a_resolved_alert_says_when_it_ended(make_alert: MakeAlert) -> None:
    """Status and endsAt close it."""
    ended = make_alert(status=AlertStatus.RESOLVED, ends_at_ms=1_700_000_060_000)
    body = webhook_body(told(ended), receiver="r")
    assert body["status"] == "resolved"
    assert body["alerts"][0]["status"] == "resolved"
    assert body["alerts"][0]["endsAt"] == "2023-11-14T22:14:20.000Z"


def test_a_changed_severity_is_one_body_with_both_label_sets(make_alert: MakeAlert) -> None:
    """Resolved under the old labels, firing under the new; what differs is not common."""
    old = make_alert(status=AlertStatus.RESOLVED, ends_at_ms=1_700_000_060_000)
    new = make_alert(severity=Severity.CRITICAL, revision=1)
    body = webhook_body(told(old, new), receiver="r")
    assert body["status"] == "firing"
    assert [(a["status"], a["labels"]["severity"], a["fingerprint"]) for a in body["alerts"]] == [
        ("resolved", "warning", "a1"),
        ("firing", "critical", "a1"),
    ]
    assert "severity" not in body["commonLabels"]
    assert body["commonLabels"]["group"] == "payments"
    assert body["groupKey"] == webhook_body(told(old), receiver="r")["groupKey"]


def test_odd_group_names_survive_json(web: "Web", make_alert: MakeAlert) -> None:
    """Slashes, quotes and emoji reach the receiver unchanged."""
    name = 'a/b "c" \U0001f680\n'
    post(web, make_alert(group=name))
    assert web.bodies[0]["alerts"][0]["labels"]["group"] == name
    assert web.bodies[0]["groupKey"].endswith('group="a/b \\"c\\" \U0001f680\\n"}')


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.DELIVERED),
        (202, Outcome.DELIVERED),
        (299, Outcome.DELIVERED),
        (301, Outcome.RETRY),
        (302, Outcome.RETRY),
        (303, Outcome.RETRY),
        (304, Outcome.RETRY),
        (307, Outcome.RETRY),
        (308, Outcome.RETRY),
        (400, Outcome.REJECTED),
        (401, Outcome.REJECTED),
        (403, Outcome.REJECTED),
        (404, Outcome.RETRY),
        (408, Outcome.RETRY),
        (410, Outcome.REJECTED),
        (425, Outcome.RETRY),
        (429, Outcome.RETRY),
        (500, Outcome.RETRY),
        (502, Outcome.RETRY),
        (503, Outcome.RETRY),
        (599, Outcome.RETRY),
        (999, Outcome.RETRY),
    ],
)
def test_each_http_status_has_its_verdict(
    web: "Web", make_alert: MakeAlert, status: int, outcome: Outcome
) -> None:
    """Redirects (none is followed), 404, 408, 425, 429 and 5xx are tried again; other 4xx are final."""
    web.answers = [(status, {"Location": "/elsewhere"})]
    assert post(web, make_alert()).outcome is outcome
    assert web.paths == ["/hook"]


def test_a_refusal_keeps_its_first_words_for_the_log(web: "Web", make_alert: MakeAlert) -> None:
    """The operator reads why."""
    web.answers = [(400, {})]
    assert post(web, make_alert()).detail == "HTTP 400: body"


def test_retry_after_is_handed_on(web: "Web", make_alert: MakeAlert) -> None:
    """The receiver says when to come back."""
    web.answers = [(429, {"Retry-After": "17"})]
    assert post(web, make_alert()).retry_after_s == 17


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("3.5", None),
        ("NaN", None),
        ("inf", None),
        ("1e400", None),
        ("9" * 400, None),
        ("9" * 40, None),
        ("\u0663", None),
        ("31536000", 31_536_000.0),
        ("31622401", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Mon, 01 Jan 1000 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 0001 00:00:00 -0000", 0.0),
        ("Wed, 99 Oct 2015 99:99:99 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 +99999999", None),
        (", " * 50_000, None),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(value: str | None, expected: float | None) -> None:
    """Both forms of RFC 9110; nonsense, and waits of more than a year, ask nothing."""
    assert retry_after_s(value, now_s=1_445_412_450.0) == expected


def test_nobody_listening_is_worth_another_attempt(make_alert: MakeAlert) -> None:
    """A refused connection is an outage, not a refusal."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        receiver = WebhookReceiver(
            "r", f"http://127.0.0.1:{closed.getsockname()[1]}/", HttpOptions(timeout_ms=5000)
        )
        delivery = receiver.deliver(told(make_alert()))
    receiver.close()
    assert delivery.outcome is Outcome.RETRY
    assert delivery.detail.startswith("ConnectError")


def test_a_receiver_that_never_answers_is_given_up_on(make_alert: MakeAlert) -> None:
    """The timeout turns a hanging receiver into one to try again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        receiver = WebhookReceiver(
            "r", f"http://127.0.0.1:{silent.getsockname()[1]}/", HttpOptions(timeout_ms=200)
        )
        delivery = receiver.deliver(told(make_alert()))
    receiver.close()
    assert (delivery.outcome, delivery.detail) == (Outcome.RETRY, "no answer within 0.2 s")


def test_an_impossible_url_is_rejected(make_alert: MakeAlert) -> None:
    """No exception reaches the sender's thread."""
    receiver = WebhookReceiver("r", "http://[::1/", HttpOptions(timeout_ms=200))
    assert receiver.deliver(told(make_alert())).outcome is Outcome.REJECTED
    receiver.close()


def test_many_culprits_are_cut() -> None:
    """A line for people names five and counts the rest."""
    text = culprits_text(tuple(Culprit(member_id=f"m{n}", instance_id=f"i{n}") for n in range(7)))
    assert text == "; ".join([f"i{n} (observed)" for n in range(5)] + ["and 2 more"])


def test_times_are_utc_with_milliseconds() -> None:
    """As Go writes them."""
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_the_log_receiver_is_as_loud_as_the_alert(
    make_alert: MakeAlert, caplog: pytest.LogCaptureFixture
) -> None:
    """Critical is an error in the log, and the end of anything is information."""
    receiver = LogReceiver("journal", logging.getLogger("test.journal"))
    with caplog.at_level(logging.INFO, "test.journal"):
        receiver.deliver(told(make_alert(severity=Severity.CRITICAL)))
        receiver.deliver(told(make_alert(status=AlertStatus.RESOLVED)))
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.INFO]
    assert "payments rebalanced" in caplog.records[0].message
