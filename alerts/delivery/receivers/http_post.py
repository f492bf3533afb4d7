"""One request within one deadline: how every receiver that speaks HTTP makes an attempt."""

import asyncio
import contextlib
import email.utils
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from alerts.delivery.receivers.concealing import concealed, secrets_of_headers, secrets_of_url
from alerts.delivery.receivers.lookups import Lookups
from alerts.delivery.receivers.receiver import Delivery, Outcome

_DETAIL_BYTES_MAX = 200
_BODY_BYTES_MAX = 16 * 1024 * 1024
_AGAIN = frozenset({404, 408, 425, 429})
"""Statuses that may pass: a route is being deployed, a queue is full."""
_WAIT_CHARACTERS_MAX = 64
_CLOSE_S = 1.0
_WAIT_S_MAX = 366 * 86_400.0
"""Longest believable ``Retry-After``: a year."""


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a receiver; durations in ms, files as paths, "" where nothing is given."""

    headers: Mapping[str, str] = {}
    timeout_ms: int = 10_000
    ca: str = ""
    """Certificates (PEM) of who may sign the receiver's, in place of the system's."""
    certificate: str = ""
    """Ours (PEM); with ``key``, if that is not in the same file."""
    key: str = ""
    proxy: str = ""
    """Address of a proxy; "": what the environment says."""

    def tls(self) -> ssl.SSLContext:
        """Return what connections use.

        Raises:
            OSError: a file cannot be read, or holds no certificate.
        """
        context = ssl.create_default_context(cafile=self.ca or None)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key or None)
        return context


class Post(NamedTuple):
    """One request."""

    url: str
    body: bytes
    headers: Mapping[str, str] = {}
    method: str = "POST"

    @property
    def shown(self) -> str:
        """Method, host, port and path for the log, without what may be secret."""
        parts = urlsplit(self.url)
        where = f"{self.method} {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return concealed(where, secrets_of_url(self.url))


class Answer(NamedTuple):
    """How a request ended, and what came back if it was taken."""

    delivery: Delivery
    body: bytes = b""


class Poster:
    """Posts JSON.  It follows no redirects: they would carry alerts, and secrets, elsewhere.

    ``timeout_ms`` bounds a whole delivery: name lookup, connecting, TLS, and the status and headers of the
    answer.  With a limit per read, a receiver that sends a byte now and then would block the thread for
    ever; so each delivery is a task that is cancelled after that time.
    """

    def __init__(self, options: HttpOptions, *, clock_s: Callable[[], float] = time.time) -> None:
        """Prepare; connections are opened when they are needed.

        Raises:
            OSError: a certificate cannot be read.
        """
        self._clock_s = clock_s
        self._timeout_s = options.timeout_ms / 1000
        self._secrets = secrets_of_headers(options.headers) | secrets_of_url(options.proxy)
        self._runner = asyncio.Runner()
        self._runner.get_loop().set_default_executor(Lookups())
        self._is_closed = False
        self._client = httpx.AsyncClient(
            timeout=None,  # noqa: S113 - each delivery as a whole has one
            follow_redirects=False,
            verify=options.tls(),
            proxy=options.proxy or None,
            headers={"User-Agent": "groupwatch", "Accept-Encoding": "identity", **options.headers},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # nothing is kept of an answer
            event_hooks={"response": [_set_location_aside]},
        )

    def post(self, *posts: Post) -> list[Delivery]:
        """Make all requests at once, each once, and return their outcomes in order, within one deadline."""
        return self._runner.run(self._post_all(posts))

    def ask(self, *posts: Post) -> list[Answer]:
        """Do the same, and return the bodies of the answers as well."""
        return self._runner.run(self._ask_all(posts))

    async def _post_all(self, posts: Sequence[Post]) -> list[Delivery]:
        return [one.delivery for one in await self._ask_all(posts, reads=False)]

    async def _ask_all(self, posts: Sequence[Post], *, reads: bool = True) -> list[Answer]:
        return list(await asyncio.gather(*(self._attempt(post, reads=reads) for post in posts)))

    async def _attempt(self, post: Post, *, reads: bool) -> Answer:
        try:
            return await self._send(post, reads=reads)
        except TimeoutError:
            why = Delivery(outcome=Outcome.RETRY, detail=f"no answer within {self._timeout_s:g} s")
        except (httpx.InvalidURL, UnicodeError) as error:
            why = Delivery(outcome=Outcome.REJECTED, detail=f"the URL cannot be used: {error}")
        except (httpx.HTTPError, OSError) as error:
            why = Delivery(outcome=Outcome.RETRY, detail=f"{type(error).__name__}: {error}".rstrip(": "))
        return Answer(self._without_secrets(why, post))

    def _without_secrets(self, delivery: Delivery, post: Post) -> Delivery:
        return msgspec.structs.replace(delivery, detail=concealed(delivery.detail, self._secrets_of(post)))

    def _secrets_of(self, post: Post) -> frozenset[str]:
        return self._secrets | secrets_of_url(post.url)

    async def _send(self, post: Post, *, reads: bool) -> Answer:
        headers = {"Content-Type": "application/json", **post.headers}
        async with (
            asyncio.timeout(self._timeout_s),
            self._client.stream(post.method, post.url, content=post.body, headers=headers) as response,
        ):
            where = concealed(response.extensions["location"], self._secrets_of(post))
            verdict = self._without_secrets(await self._verdict(response, where), post)
            is_read = reads and verdict.outcome is Outcome.DELIVERED
            return Answer(verdict, await _body(response) if is_read else b"")

    async def _verdict(self, response: httpx.Response, where: str) -> Delivery:
        status = response.status_code
        if response.is_success:
            return Delivery(outcome=Outcome.DELIVERED)
        if status in _AGAIN or not 400 <= status < 500:
            wait_s = retry_after_s(response.headers.get("Retry-After"), now_s=self._clock_s())
            return Delivery(outcome=Outcome.RETRY, detail=_refusal(response, where), retry_after_s=wait_s)
        words = await self._first_words(response)
        return Delivery(outcome=Outcome.REJECTED, detail=f"{_refusal(response, where)}{words}")

    async def _first_words(self, response: httpx.Response) -> str:
        """Return the beginning of a refusal's body for the log; the rest is never read, whatever its size."""
        found = b""
        try:
            async with asyncio.timeout(min(1.0, self._timeout_s / 4)):
                async for chunk in response.aiter_raw():
                    found += chunk[:_DETAIL_BYTES_MAX]
                    if len(found) >= _DETAIL_BYTES_MAX:
                        break
        except (httpx.HTTPError, TimeoutError):
            pass  # a refusal is one, whatever becomes of its text
        text = " ".join(found[:_DETAIL_BYTES_MAX].decode("utf-8", "replace").split())
        return f": {text}" if text else ""

    def close(self) -> None:
        """Close the connections within a second; the next start sends what was not delivered.

        A delivery under way keeps its own connection until it ends.  A lookup that hangs is abandoned.
        """
        if self._is_closed or self._runner.get_loop().is_running():
            return
        self._is_closed = True
        self._runner.run(self._close_connections())
        self._runner.close()

    async def _close_connections(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._client.aclose()


async def _body(response: httpx.Response) -> bytes:
    """Return an answer's body.

    Raises:
        httpx.HTTPError: it is cut off, or too long.
    """
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > _BODY_BYTES_MAX:
            raise httpx.DecodingError(f"an answer of more than {_BODY_BYTES_MAX} bytes")
    return bytes(found)


async def _set_location_aside(response: httpx.Response) -> None:
    """Hide a redirect's target from httpx, which raises on some targets even if it need not follow them."""
    response.extensions["location"] = response.headers.pop("Location", "")


def _refusal(response: httpx.Response, where: str) -> str:
    """Return the status in words, with the target of a redirect, so that the operator can configure it."""
    is_shown = response.is_redirect and where
    shown = f" to {where[:_DETAIL_BYTES_MAX]!r}, which is not followed" if is_shown else ""
    return f"HTTP {response.status_code}{shown}"


def retry_after_s(value: str | None, *, now_s: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header (seconds or an HTTP date) asks for; None if none."""
    text = (value or "").strip()
    if not text or len(text) > _WAIT_CHARACTERS_MAX:
        return None
    try:
        if text.isascii() and text.isdigit():
            asked_s = float(text)
        else:
            asked_s = max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return None
    return asked_s if asked_s <= _WAIT_S_MAX else None
