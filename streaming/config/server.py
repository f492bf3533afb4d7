"""The HTTP servers: where they listen, who may read and who may change something."""

import ipaddress
import re
import ssl
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from streaming.config.types import Options, Property

_SECRET_MIN = 8
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN = {"alertname", "group", "group_type", "state", "topic", "partition", "cause", "severity", "silenced"}


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value) or value.startswith("__") or value in _TAKEN:
        raise ValueError('must be a label name that no metric has yet, for instance "kafka_cluster"')
    return value


class UserConfig(Options):
    """Somebody who may ask the server: by name and password, or by a token."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^:\x00-\x1f]+$")]
    password: Property = ""
    """With the name, for HTTP's basic authentication."""
    token: Property = ""
    """For ``Authorization: Bearer``."""
    role: Literal["read", "operate"] = "read"
    """``operate`` may also add and end silences, and let the configuration be read again."""

    @model_validator(mode="after")
    def _has_one_secret(self) -> "UserConfig":
        if bool(self.password) == bool(self.token):
            raise ValueError("give either a password or a token")
        secret = self.password or self.token
        if len(secret) < _SECRET_MIN or not secret.isprintable():
            raise ValueError(f"a password or token has at least {_SECRET_MIN} printable characters")
        return self


class ServerConfig(Options):
    """What every HTTP server has; port 0 takes any free one."""

    host: str = "127.0.0.1"
    """Without users, anybody who reaches it can read everything."""
    port: int = Field(default=9464, ge=0, le=65535)
    certificate: str = ""
    """PEM file with the certificate, then those that signed it: the server speaks TLS."""
    key: str = ""
    """Its key, if that is in another file."""
    users: list[UserConfig] = Field(default_factory=list)
    """With any, everything but /healthz and /ready needs a login."""
    access_log: bool = True
    """One line for each request, without those of scrapers and health checks that succeed."""

    @model_validator(mode="after")
    def _can_speak_tls(self) -> "ServerConfig":
        if self.key and not self.certificate:
            raise ValueError("key: needs a certificate")
        if self.certificate:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                    self.certificate, self.key or None, password=""
                )
            except OSError as error:
                why = error.strerror or "it holds no such thing"
                raise ValueError(f"certificate: the file cannot be used: {why}") from None
        names = [user.name for user in self.users]
        if len(set(names)) < len(names):
            raise ValueError("users: each needs a name of its own")
        return self

    @property
    def open_to(self) -> str:
        """A sentence about strangers who can read everything; "" if there can be none."""
        if self.users or is_loopback(self.host):
            return ""
        return (
            f"listens on {self.host} without users: who reaches it can read every group, member and alert; "
            "nobody can change anything over it"
        )


class HttpConfig(ServerConfig):
    """The job's HTTP server."""

    max_groups: int = Field(default=10_000, ge=1)
    external_url: str = ""
    """The page's address for people; notifications, rules and dashboards link to it."""
    cluster_label: Annotated[str, AfterValidator(_label)] = "cluster"
    """The metrics' label for the Kafka cluster; another name if your Prometheus uses this one itself."""
    partition_lag: bool = False
    """A series for each partition that a group commits to; sizes grow accordingly."""


class NotifyHttpConfig(ServerConfig):
    """The small HTTP server of ``groupwatch notify``: metrics and health."""

    port: int = Field(default=9465, ge=0, le=65535)
