"""Who is told: what each kind of receiver takes, who owns which groups, and the routes."""

import ssl
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from alerts.alert import Severity
from alerts.delivery import Owned
from alerts.delivery.receivers import Messages, ReceiverContext, service_at
from streaming.config.types import DurationMs, Many, Options, Patterns, Property, one_or_many

Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
_URL_MAX = 8_000
Severities = Annotated[list[Severity], BeforeValidator(one_or_many)]


def http_url(value: str) -> str:
    """Refuse what is no address of an HTTP server."""
    # The message omits the value: webhook addresses often contain their secret.
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False  # Python's own words repeat a part of it
    is_plain = value.isprintable() and not any(character.isspace() for character in value)
    if not is_good or not is_plain or len(value) > _URL_MAX:
        raise ValueError("not a usable URL; write http://host/path or https://host/path")
    return value


HttpUrl = Annotated[str, AfterValidator(http_url)]


def _proxy(value: str) -> str:
    return http_url(value) if value else ""


def _apprise(value: str) -> str:
    # The message omits the value: it is full of secrets.
    if service_at(value) is None:
        raise ValueError("apprise knows no service with this address")
    return value


def _template(value: str) -> str:
    Messages(ReceiverContext(), value)
    return value


def _header(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("a header may contain printable ASCII only")
    return value


class HttpReceiverConfig(Options):
    """What all receivers have that speak HTTP."""

    headers: dict[Header, Annotated[Property, AfterValidator(_header)]] = Field(default_factory=dict)
    timeout_ms: DurationMs = Field(default=10_000, alias="timeout")
    max_age_ms: DurationMs = Field(default=86_400_000, alias="max_age")
    """How long one notification is retried."""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    proxy: Annotated[str, AfterValidator(_proxy)] = ""

    @model_validator(mode="after")
    def _pair(self) -> "HttpReceiverConfig":
        if self.key and not self.certificate:
            raise ValueError("key: needs a certificate")
        for name, load in (("ca", self._load_ca), ("certificate", self._load_certificate)):
            try:
                load()
            except OSError as error:
                why = error.strerror or "it holds no such thing"
                raise ValueError(f"{name}: the file cannot be used: {why}") from None
        return self

    def _load_ca(self) -> None:
        if self.ca:
            ssl.create_default_context(cafile=self.ca)

    def _load_certificate(self) -> None:
        if self.certificate:
            ssl.create_default_context().load_cert_chain(self.certificate, self.key or None)


class WebhookConfig(HttpReceiverConfig):
    """An HTTP endpoint that takes Alertmanager's webhook format, version 4."""

    url: HttpUrl
    secret: Property = ""
    """Signs each body (HMAC-SHA256)."""


class AlertmanagerConfig(HttpReceiverConfig):
    """Alertmanagers, by their API v2; each of them gets everything."""

    urls: Annotated[list[HttpUrl], Field(min_length=1, max_length=20)]
    silences: bool = True
    """Make silences there as well."""


class AppriseConfig(Options):
    """Chat, pagers and mail, by an address of the library apprise."""

    url: Annotated[Property, AfterValidator(_apprise)]
    title: Annotated[str, AfterValidator(_template)] = ""
    body: Annotated[str, AfterValidator(_template)] = ""
    """Templates (Jinja2); "": ours."""
    timeout_ms: DurationMs = Field(default=10_000, alias="timeout")
    max_age_ms: DurationMs = Field(default=86_400_000, alias="max_age")


class LogConfig(Options):
    """Writes each notification to our own log."""


class ReceiverConfig(Options):
    """One destination of alerts; exactly one kind is given."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    alertmanager: AlertmanagerConfig | None = None
    apprise: AppriseConfig | None = None
    webhook: WebhookConfig | None = None
    log: LogConfig | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "ReceiverConfig":
        if len(self._given()) != 1:
            raise ValueError(f"give exactly one of {' and '.join(self.kinds())}")
        return self

    @classmethod
    def kinds(cls) -> list[str]:
        """Return the kinds of receivers: every field but the name."""
        return [field for field in cls.model_fields if field != "name"]

    def _given(self) -> list[str]:
        return [kind for kind in self.kinds() if getattr(self, kind) is not None]

    @property
    def kind(self) -> str:
        """The kind that is given."""
        return self._given()[0]

    @property
    def options(self) -> dict[str, Any]:
        """The options of that kind, with durations in ms."""
        given: Options = getattr(self, self.kind)
        return given.model_dump()


class MatchConfig(Options):
    """Selects alerts for a route; a missing key matches all.  ``group`` holds patterns."""

    severity: Severities = Field(default_factory=list)
    alertname: Many = Field(default_factory=list)
    cluster: Many = Field(default_factory=list)
    group: Patterns = Field(default_factory=list)
    owner: Many = Field(default_factory=list)


GroupBy = Annotated[
    list[Literal["alertname", "cluster", "group", "severity", "owner"]], BeforeValidator(one_or_many)
]


class OwnerConfig(Options):
    """Who owns groups; the first entry that matches says it."""

    owner: Annotated[str, Field(min_length=1, max_length=200)]
    groups: Annotated[Patterns, Field(min_length=1)]
    clusters: Many = Field(default_factory=list)

    def owned(self) -> Owned:
        """Return the entry for the notifier."""
        return Owned(owner=self.owner, groups=tuple(self.groups), clusters=tuple(self.clusters))


class RouteConfig(Options):
    """Routes are tried in order: the first that matches takes the alert, unless it says ``continue``."""

    match: MatchConfig = Field(default_factory=MatchConfig)
    receivers: Annotated[Many, Field(min_length=1)]
    repeat_interval_ms: DurationMs = Field(default=14_400_000, alias="repeat_interval")
    goes_on: bool = Field(default=False, alias="continue")
    group_by: GroupBy = Field(default_factory=list)
    """Alerts with the same values of these labels are told together."""
    group_wait_ms: DurationMs = Field(default=30_000, alias="group_wait")
    group_interval_ms: DurationMs = Field(default=300_000, alias="group_interval")
