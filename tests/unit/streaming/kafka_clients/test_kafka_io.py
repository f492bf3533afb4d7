"""Java's client properties, as kafka-python and Spark are told them."""

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import clients
from streaming.kafka_clients.clients import (
    ClientPropertyError,
    close_quietly,
    parse_jaas,
    python_options,
    spark_options,
)

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="p;\\"q";'


def _options(**client: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in client.items()}
    return python_options(KafkaAddress(("a:1", "b:2"), named))


def test_an_address_is_the_same_whatever_the_order_of_its_servers() -> None:
    """Two lists with the same servers are one cluster, so one Spark source reads it."""
    assert KafkaAddress(("a:1", "b:2")).identity == KafkaAddress(("b:2", "a:1")).identity


def test_spark_gets_every_property_as_it_is() -> None:
    """Spark hands all that stands behind ``kafka.`` to the Java client."""
    options = spark_options(
        KafkaAddress(("a:1", "b:2"), {"sasl.jaas.config": SCRAM, "max.poll.records": "7"})
    )
    assert options["kafka.bootstrap.servers"] == "a:1,b:2"
    assert options["kafka.sasl.jaas.config"] == SCRAM
    assert options["kafka.max.poll.records"] == "7"


def test_sparks_clients_push_no_metrics_unless_asked_to() -> None:
    """A broker may subscribe to the metrics of every client; a monitor would add hundreds."""
    name = "enable.metrics.push"
    assert spark_options(KafkaAddress(("a:1",)))[f"kafka.{name}"] == "false"
    assert spark_options(KafkaAddress(("a:1",), {name: "true"}))[f"kafka.{name}"] == "true"


def test_what_the_broker_has_checked_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python reckons a record's CRC in Python: 25 ms for a full record of end offsets."""
    monkeypatch.setattr(clients, "Consumer", lambda **options: options)
    assert clients.consumer(KafkaAddress(("a:1",)))["check_crcs"] is False


def test_numbers_and_names_are_translated() -> None:
    """What kafka-python knows under another name arrives there, numbers as numbers."""
    options = _options(request_timeout_ms="1234", client_id="watcher")
    assert options["request_timeout_ms"] == 1234
    assert options["client_id"] == "watcher"
    assert options["bootstrap_servers"] == ["a:1", "b:2"]


def test_properties_only_java_has_are_left_to_java() -> None:
    """A tuning property without a counterpart neither fails nor reaches kafka-python."""
    assert not {name for name in _options(fetch_min_bytes="1") if "fetch" in name}


@pytest.mark.parametrize("name", ["ssl.provider", "sasl.client.callback.handler.class", "security.providers"])
def test_security_that_cannot_be_honoured_is_refused(name: str) -> None:
    """A login or trust setting is never dropped in silence."""
    with pytest.raises(ClientPropertyError, match=name):
        python_options(KafkaAddress(("a:1",), {name: "x"}))


def test_jaas_is_read_with_its_quotes_and_escapes() -> None:
    """Semicolons and escaped quotes inside of a password belong to the password."""
    assert parse_jaas(SCRAM) == {"username": "me", "password": 'p;"q'}


@pytest.mark.parametrize("text", ["", "username=a password=b;", "x.Module required username=a"])
def test_jaas_that_java_would_refuse_is_refused(text: str) -> None:
    """Without module, flag or semicolon Java refuses it, and so do we, with the form it must have."""
    with pytest.raises(ClientPropertyError, match=r"sasl\.jaas\.config must read"):
        parse_jaas(text)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_login_is_taken_from_the_jaas_line(mechanism: str) -> None:
    """User and password come from sasl.jaas.config, as for every Java client."""
    options = _options(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=SCRAM)
    assert options["sasl_mechanism"] == mechanism
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("me", 'p;"q')


def test_a_password_login_without_a_password_is_refused() -> None:
    """The mistake is told before a broker is asked."""
    with pytest.raises(ClientPropertyError, match="username and password"):
        _options(security_protocol="SASL_SSL", sasl_mechanism="PLAIN")


def test_bearer_tokens_need_an_endpoint_and_a_client() -> None:
    """OAUTHBEARER without the token endpoint's address is refused."""
    jaas = 'x.OAuthBearerLoginModule required clientId="c" clientSecret="s";'
    with pytest.raises(ClientPropertyError, match=r"token\.endpoint\.url"):
        _options(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=jaas)


def test_java_key_stores_are_refused_with_the_way_out() -> None:
    """JKS cannot be read by OpenSSL; the message says what can."""
    with pytest.raises(ClientPropertyError, match="PEM"):
        _options(security_protocol="SSL", ssl_truststore_location="/x.jks")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=groupwatch.test"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-days", "2"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


def test_pem_files_become_a_context_that_trusts_them(pem: Path) -> None:
    """A truststore of PEM certificates is loaded, and host names are checked unless switched off."""
    client = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(pem / "cert.pem"),
    }
    context: ssl.SSLContext = python_options(KafkaAddress(("a:1",), client))["ssl_context"]
    assert any(
        ("commonName", "groupwatch.test") in part for c in context.get_ca_certs() for part in c["subject"]
    )
    assert context.check_hostname
    lax = client | {"ssl.endpoint.identification.algorithm": ""}
    assert not python_options(KafkaAddress(("a:1",), lax))["ssl_check_hostname"]


def test_keys_written_into_the_configuration_are_loaded(pem: Path) -> None:
    """Key and chain given inline, as in a Kubernetes secret, make a client certificate."""
    client = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": (pem / "key.pem").read_text(),
        "ssl.keystore.certificate.chain": (pem / "cert.pem").read_text(),
    }
    assert isinstance(python_options(KafkaAddress(("a:1",), client))["ssl_context"], ssl.SSLContext)
    with pytest.raises(ssl.SSLError):
        python_options(KafkaAddress(("a:1",), client | {"ssl.keystore.key": "no key"}))


class Unclosable:
    """A client whose broker is gone."""

    def __init__(self) -> None:
        self.closed: list[float] = []

    def close(self, timeout: float = -1.0) -> None:
        """Keep the timeout, and fail."""
        self.closed.append(timeout)
        raise KafkaTimeoutError("gone")


def test_closing_quietly_stops_nobody() -> None:
    """Neither a client that cannot be closed nor a missing one raises; the options reach ``close``."""
    client = Unclosable()

    close_quietly(None)
    close_quietly(client, timeout=3.0)

    assert client.closed == [3.0]
