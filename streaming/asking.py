"""Asks a running groupwatch over HTTP, for commands."""

import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import httpx

from streaming.config import Config

TROUBLE = (httpx.HTTPError, httpx.InvalidURL)
"""What is raised where nobody answers."""
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - where to ask one who listens everywhere


class JobAddress(NamedTuple):
    """Where a job's server is, and how to log in."""

    url: str
    login: httpx.Auth | None = None
    tls: ssl.SSLContext | None = None
    """Whom to trust; None: the system's authorities, or those of ``SSL_CERT_FILE``."""

    @property
    def shown(self) -> str:
        """The address without name and password, for people."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class _Token(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def job_of(config: Config) -> JobAddress:
    """Return the job that runs with this configuration, and its first user's login."""
    http = config.http
    login: httpx.Auth | None = None
    if http.users:
        user = http.users[0]
        login = _Token(user.token) if user.token else httpx.BasicAuth(user.name, user.password)
    if http.external_url:
        return JobAddress(http.external_url.rstrip("/"), login)
    host = _ANY.get(http.host, http.host)
    if not http.certificate:
        return JobAddress(f"http://{host}:{http.port}", login)
    trust = ssl.create_default_context(cafile=http.certificate)
    trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the certificate itself, whoever signed it
    trust.check_hostname = False  # it is for the name by which people know this machine
    return JobAddress(f"https://{host}:{http.port}", login, trust)


def ask(
    job: JobAddress, path: str, *, timeout_s: float, method: str = "GET", json: object = None
) -> httpx.Response:
    """Return the answer, without any proxy if the job is on this machine, whatever the environment says.

    Raises:
        httpx.HTTPError: there is no answer.
        httpx.InvalidURL: the address is invalid.
    """
    url = f"{job.url.rstrip('/')}{path}"
    tls = job.tls or ssl.create_default_context()
    is_here = httpx.URL(url).host in _HERE
    return httpx.request(
        method, url, json=json, auth=job.login, verify=tls, timeout=timeout_s, trust_env=not is_here
    )
