"""What is said about a delivery has no secret, nor a part of one."""

from collections.abc import Callable

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.receivers.concealing import concealed, secrets_of_service, secrets_of_url
from alerts.delivery.receivers.http_post import HttpOptions, Post
from alerts.delivery.receivers.receiver import Notification
from alerts.delivery.receivers.webhook import WebhookReceiver
from tests.unit.alerts.conftest import Web

MakeAlert = Callable[..., Alert]
SECRET = "".join(["t0ken", "-of-a-service"])


@pytest.mark.parametrize("kept", range(3, len(SECRET) + 1))
def test_a_secret_that_the_end_of_a_text_cuts_is_hidden(kept: int) -> None:
    """A refusal is shown up to a length, wherever that falls."""
    assert concealed(f"no: {SECRET[:kept]}", frozenset({SECRET, "other"})) == "no: ***"


def test_a_secret_that_is_cut_within_a_character_is_hidden() -> None:
    """Half a character is a replacement character."""
    assert concealed("no: s\u00e4\ufffd", frozenset({"s\u00e4\u00e4\u00e4"})) == "no: s\u00e4"
    assert concealed("no: s\u00e4\u00e4\ufffd", frozenset({"s\u00e4\u00e4\u00e4"})) == "no: ***"


@pytest.mark.parametrize("status", [400, 302])
@pytest.mark.parametrize("before", range(180, 201, 4))
def test_no_part_of_a_secret_is_left_of_a_long_answer(
    web: Web, make_alert: MakeAlert, status: int, before: int
) -> None:
    """Neither of a refusal's text nor of a redirect's target."""
    echoed = f"{'x' * before}{SECRET}{'y' * 300}"
    web.answers = [(status, {"Location": echoed})]
    web.text = echoed
    receiver = WebhookReceiver("r", f"{web.url}/{SECRET}", HttpOptions())
    said = receiver.deliver(Notification(id="a", revision=0, alerts=(make_alert(),))).detail
    receiver.close()
    assert "xxx" in said
    assert SECRET[:3] not in said


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        (f"pagerduty://{'k' * 32}@{SECRET}/groupwatch/kafka", SECRET),
        (f"slack://{SECRET}/B/C", SECRET),
        (f"tgram://123456789:{SECRET}/1/", SECRET),
        (f"workflows://prod.azure.com/w/{SECRET}", SECRET),
    ],
)
def test_a_token_in_place_of_a_host_is_one(url: str, secret: str) -> None:
    """As apprise writes addresses of services that have but one host."""
    assert secret in secrets_of_service(url)
    assert "prod.azure.com" not in secrets_of_service(url)


def test_an_address_in_the_log_has_no_token() -> None:
    """Its host and its words are left, so that people know which Alertmanager it is."""
    url = f"http://me:pass@am.example:9093/alertmanager/{SECRET}/api/v2/silences"
    assert Post(url, b"").shown == "POST http://am.example:9093/alertmanager/***/api/v2/silences"
    assert SECRET in secrets_of_url(url)
