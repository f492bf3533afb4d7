"""Makes Kafka clients from Java client properties.

Users write the properties that they know from Java (``security.protocol``, ``sasl.jaas.config``,
``ssl.truststore.location`` …).  Spark's source takes them unchanged with the prefix ``kafka.``; for
kafka-python this module translates them.  It refuses a property without a translation, with a sentence, and
drops none.
"""

import logging
import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.workarounds import Admin, Consumer, Producer

CLIENT_ID = "groupwatch"
GROUP_PREFIX = "groupwatch-"
"""Prefix of every group id that we give to a broker; groups with it are not monitored."""

_REQUEST_TIMEOUT_MS = 10_000

_log = logging.getLogger(__name__)

_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "send.buffer.bytes": "send_buffer_bytes",
    "receive.buffer.bytes": "receive_buffer_bytes",
}
_TEXTS = {
    "client.id": "client_id",
    "client.dns.lookup": "client_dns_lookup",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
_HANDLED_APART = (
    "sasl.jaas.config",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
    "sasl.login.callback.handler.class",  # Java's own way to the same token endpoint
)


class ClientPropertyError(ValueError):
    """The Python part of groupwatch cannot honour a client property."""


def spark_options(address: KafkaAddress) -> dict[str, str]:
    """Return the options of Spark's Kafka source for ``address``."""
    options = {f"kafka.{name}": str(value) for name, value in address.client.items()}
    options["kafka.bootstrap.servers"] = ",".join(address.bootstrap_servers)
    options.setdefault("kafka.client.id", CLIENT_ID)
    # Where a broker subscribes to its clients' metrics (KIP-714), each consumer would send them.
    options.setdefault("kafka.enable.metrics.push", "false")
    return options


def python_options(address: KafkaAddress) -> dict[str, Any]:
    """Return keyword arguments that every kafka-python client takes.

    Raises:
        ClientPropertyError: a property about our identity or our trust has no translation.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": list(address.bootstrap_servers),
        "client_id": CLIENT_ID,
        "request_timeout_ms": _REQUEST_TIMEOUT_MS,
        # Java's default.  kafka-python's is 30 s, which would delay alerts by that after an outage.
        "reconnect_backoff_max_ms": 1_000,
        "metric_reporters": [],
    }
    for name, value in address.client.items():
        if name in _NUMBERS:
            options[_NUMBERS[name]] = int(value)
        elif name in _TEXTS:
            options[_TEXTS[name]] = str(value)
        elif name.startswith(("sasl.", "ssl.", "security.")) and not _is_known_security(name):
            raise ClientPropertyError(
                f"client property {name!r} is not supported; see docs/data-path.md for those that are"
            )
    options |= _login(address.client)
    options |= _trust(address.client)
    return options


def admin_client(address: KafkaAddress) -> Admin:
    """Return an admin client, which the caller closes.

    Raises:
        kafka.errors.KafkaError: no bootstrap server answers.
    """
    return Admin(**python_options(address), bootstrap_timeout_ms=_REQUEST_TIMEOUT_MS)


def producer(address: KafkaAddress, **more: Any) -> KafkaProducer:
    """Return a producer that counts a record as written only if every in-sync replica has it.

    It is idempotent, so that a retry inside the client neither duplicates nor reorders records.
    """
    options = python_options(address) | {
        "acks": "all",
        "enable_idempotence": True,
        "linger_ms": 0,
        "max_request_size": 8 * 1024 * 1024,
        "delivery_timeout_ms": 30_000,
        "max_block_ms": _REQUEST_TIMEOUT_MS,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }
    return Producer(**options | more)


def consumer(address: KafkaAddress, **more: Any) -> KafkaConsumer:
    """Return a consumer for partitions assigned by hand; it never joins a group.

    It does not check the records' CRC again, which the broker has checked: kafka-python does so in Python,
    byte by byte (measured: 4 MB a second on a slow machine, a sixth of a busy driver's CPU).
    """
    options = python_options(address) | {
        "check_crcs": False,
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "allow_auto_create_topics": False,
        "exclude_internal_topics": False,
        "metrics_enabled": False,
    }
    return Consumer(**options | more)


def close_quietly(client: Any, **options: Any) -> None:
    """Close a client, if there is one; ``options`` go to its ``close``.  A failure is only logged."""
    if client is None:
        return
    try:
        client.close(**options)
    except Exception as error:
        _log.debug("closing a client: %r", error)


# --- our identity --------------------------------------------------------------------------------


_JAAS_PAIR = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")


def parse_jaas(text: str) -> dict[str, str]:
    """Return the options of a JAAS line: ``Module required name="value" …;``.

    Raises:
        ClientPropertyError: it has no login module, control flag and closing semicolon.
    """
    head = re.match(r"\s*[\w.$]+\s+(required|requisite|sufficient|optional)\b", text, re.IGNORECASE)
    if head is None or not text.rstrip().endswith(";"):
        raise ClientPropertyError('sasl.jaas.config must read: <login module> required <name>="<value>" …;')
    options = {}
    for name, double, single, bare in _JAAS_PAIR.findall(text[head.end() :]):
        options[name] = re.sub(r"\\(.)", r"\1", double or single or bare)
    return options


def _login(client: Mapping[str, str]) -> dict[str, Any]:
    if not str(client.get("security.protocol", "")).upper().startswith("SASL"):
        return {}
    mechanism = str(client.get("sasl.mechanism", "GSSAPI"))
    jaas = parse_jaas(str(client["sasl.jaas.config"])) if "sasl.jaas.config" in client else {}
    options: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
        if "username" not in jaas or "password" not in jaas:
            raise ClientPropertyError(f"{mechanism} needs username and password in sasl.jaas.config")
        return options | {"sasl_plain_username": jaas["username"], "sasl_plain_password": jaas["password"]}
    if mechanism == "OAUTHBEARER":
        return options | {"sasl_oauth_token_provider": _token_provider(client, jaas)}
    if mechanism == "GSSAPI":
        return options
    raise ClientPropertyError(f"sasl.mechanism {mechanism!r} is not supported")


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Bearer tokens from an OAuth 2 token endpoint, by the client credentials grant.

    kafka-python asks for a token at each connection, so none is stored.
    """

    def __init__(self, url: str, client_id: str, client_secret: str, scope: str | None) -> None:
        super().__init__()
        self._url = url
        self._auth = (client_id, client_secret)
        self._form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})

    def token(self) -> str:
        """Return a fresh access token.

        Raises:
            httpx.HTTPError: the endpoint does not answer, refuses, or answers without a token.
        """
        answer = httpx.post(self._url, auth=self._auth, data=self._form, timeout=10)
        answer.raise_for_status()
        try:
            return str(answer.json()["access_token"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            # The message omits the answer, which may contain a token.
            why = f"{self._url} answered with no access_token ({type(error).__name__})"
            raise httpx.DecodingError(why, request=answer.request) from None


def _token_provider(client: Mapping[str, str], jaas: Mapping[str, str]) -> ClientCredentials:
    url = client.get("sasl.oauthbearer.token.endpoint.url")
    if url is None or "clientId" not in jaas or "clientSecret" not in jaas:
        raise ClientPropertyError(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, and clientId and clientSecret "
            "in sasl.jaas.config"
        )
    scope = jaas.get("scope", client.get("sasl.oauthbearer.scope"))
    return ClientCredentials(str(url), jaas["clientId"], jaas["clientSecret"], scope)


# --- our trust -----------------------------------------------------------------------------------


_SSL_PROPERTIES = frozenset(
    {
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)


def _is_known_security(name: str) -> bool:
    return name in _SSL_PROPERTIES or name in _HANDLED_APART


def _trust(client: Mapping[str, str]) -> dict[str, Any]:
    if not str(client.get("security.protocol", "")).upper().endswith("SSL"):
        return {}
    for store in ("truststore", "keystore"):
        _require_pem(client, store)
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = client.get("ssl.endpoint.identification.algorithm", "https") != ""
    _load_trusted(context, client)
    _load_own(context, client)
    return {"ssl_context": context, "ssl_check_hostname": context.check_hostname}


def _require_pem(client: Mapping[str, str], store: str) -> None:
    has_store = f"ssl.{store}.location" in client
    if has_store and str(client.get(f"ssl.{store}.type", "JKS")).upper() != "PEM":
        raise ClientPropertyError(
            f"ssl.{store}.location must be a PEM file with ssl.{store}.type: PEM; Java's own stores "
            "cannot be read here: convert with keytool and openssl"
        )


def _load_trusted(context: ssl.SSLContext, client: Mapping[str, str]) -> None:
    if "ssl.truststore.location" in client:
        context.load_verify_locations(cafile=str(client["ssl.truststore.location"]))
    if "ssl.truststore.certificates" in client:
        context.load_verify_locations(cadata=str(client["ssl.truststore.certificates"]))


def _load_own(context: ssl.SSLContext, client: Mapping[str, str]) -> None:
    password = client.get("ssl.key.password")
    if "ssl.keystore.location" in client:
        context.load_cert_chain(str(client["ssl.keystore.location"]), password=password)
    elif "ssl.keystore.key" in client:
        # OpenSSL reads keys from files only; this file is private and deleted at once.
        pem = f"{client['ssl.keystore.key']}\n{client.get('ssl.keystore.certificate.chain', '')}\n"
        _with_private_file(pem, lambda path: context.load_cert_chain(path, password=password))


def _with_private_file(text: str, use: Callable[[str], None]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # created with mode 0600
        file.write(text)
        file.flush()
        use(file.name)
