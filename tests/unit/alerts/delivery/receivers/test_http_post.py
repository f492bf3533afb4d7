"""How receivers are reached: own certificates, a proxy, and bodies that are signed."""

import hashlib
import hmac
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from alerts.delivery.receivers.http_post import HttpOptions
from alerts.delivery.receivers.receiver import Notification, Outcome
from alerts.delivery.receivers.webhook import WebhookReceiver, signature
from tests.unit.alerts.conftest import Web

SECRET = "".join(["s3", "cret"])
MakeAlert = Callable[..., Alert]


def _certificate(folder: Path, name: str) -> Path:
    """Make a key and a certificate that signs itself, in one file."""
    path = folder / f"{name}.pem"
    key = folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pems")
    return {name: _certificate(folder, name) for name in ("theirs", "ours")}


def _secured(web: Web, pems: dict[str, Path]) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems["theirs"])
    context.load_verify_locations(pems["ours"])
    context.verify_mode = ssl.CERT_REQUIRED
    web.server.socket = context.wrap_socket(web.server.socket, server_side=True)
    return web.url.replace("http://", "https://")


def _told(alert: Alert) -> Notification:
    return Notification(id=alert.id, revision=alert.revision, alerts=(alert,))


def test_own_certificates_both_ways(web: Web, pems: dict[str, Path], make_alert: MakeAlert) -> None:
    """The receiver is known by ``ca``, and knows us by ``certificate``."""
    http = HttpOptions(ca=str(pems["theirs"]), certificate=str(pems["ours"]))
    receiver = WebhookReceiver("r", _secured(web, pems), http)
    assert receiver.deliver(_told(make_alert())).outcome is Outcome.DELIVERED
    receiver.close()


@pytest.mark.parametrize("given", [["certificate"], ["ca"], []])
def test_without_them_nothing_is_sent(
    web: Web, pems: dict[str, Path], make_alert: MakeAlert, given: list[str]
) -> None:
    """A receiver that we do not know, or that does not know us, gets no alert, and is tried again."""
    http = HttpOptions(
        ca=str(pems["theirs"]) if "ca" in given else "",
        certificate=str(pems["ours"]) if "certificate" in given else "",
    )
    receiver = WebhookReceiver("r", _secured(web, pems), http)
    assert receiver.deliver(_told(make_alert())).outcome is Outcome.RETRY
    assert web.bodies == []
    receiver.close()


def test_a_proxy_is_asked(web: Web, make_alert: MakeAlert) -> None:
    """It gets the whole address."""
    receiver = WebhookReceiver("r", "http://hook.example/x", HttpOptions(proxy=web.url.removesuffix("/hook")))
    assert receiver.deliver(_told(make_alert())).outcome is Outcome.DELIVERED
    assert web.paths == ["http://hook.example/x"]
    receiver.close()


def test_a_body_is_signed_with_its_time(web: Web, make_alert: MakeAlert) -> None:
    """Who has the secret can check the body, and refuse an old one."""
    receiver = WebhookReceiver("r", web.url, secret=SECRET, clock_s=lambda: 1_700_000_000.9)
    receiver.deliver(_told(make_alert()))
    assert web.headers[0]["X-Groupwatch-Signature"].startswith("t=1700000000,v1=")
    receiver.close()


def test_the_signature_is_hmac_of_time_and_body() -> None:
    """As the reference says, so that ten lines in any language check it."""
    expected = hmac.new(b"key", b"17.{}", hashlib.sha256).hexdigest()
    assert signature(b"key", b"{}", 17) == f"t=17,v1={expected}"


def test_an_alertmanager_that_refuses_is_named(web: Web, make_alert: MakeAlert) -> None:
    """One that took it is enough; what the other said is told all the same."""
    web.answers = [(400, {})]
    receiver = AlertmanagerReceiver("am", [web.url, "http://127.0.0.1:1"])
    delivery = receiver.deliver(_told(make_alert()))
    assert delivery.outcome is Outcome.RETRY
    assert "127.0.0.1:1/api/v2/alerts: ConnectError" in delivery.detail
    assert "HTTP 400" in delivery.detail
    receiver.close()
