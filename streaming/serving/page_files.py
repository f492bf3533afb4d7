"""The page: one shell for all its views, and the files that it loads.

The files lie under the digest of them all, so a browser keeps them for ever and never mixes two versions.
Every address in the shell is relative: the page works behind a proxy that adds a path of its own.
"""

import hashlib
import mimetypes
import re
from collections.abc import Callable
from importlib.abc import Traversable
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

HEADERS = {
    # The page needs nothing from elsewhere, so nothing that a group's name smuggles in can load or run.
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
PATH = "/page"
_FOR_EVER = "private, max-age=31536000, immutable"
_SHELL = "index.html"
_CAPTURED = "captured/"
"""Modules of a file of its own, which no server's page loads."""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


class PageFiles:
    """The files of the page, read once."""

    def __init__(self) -> None:
        self._files = dict(_read(files("streaming.serving") / "page", ""))
        whole = hashlib.sha256()
        for name, content in sorted(self._files.items()):
            whole.update(f"{name} {len(content)} ".encode() + content)
        self.digest = whole.hexdigest()[:16]
        self._shell = self._files.pop(_SHELL).decode()

    def address(self, name: str) -> str:
        """Return a file's path below the server's root, without a slash in front."""
        return f"{PATH[1:]}/{self.digest}/{name}"

    def text(self, name: str) -> str:
        """Return a file's text.

        Raises:
            KeyError: there is no such file.
        """
        return self._files[name].decode()

    def styles(self) -> list[str]:
        """Return the names of the style sheets, in the order in which they hold."""
        return re.findall(r'href="{{files}}/(style/[^"]+)"', self._shell)

    def shell(self, up: str) -> str:
        """Return the HTML for an address from which ``up`` ("../../") leads to the server's root."""
        modules = sorted(
            name for name in self._files if name.endswith(".js") and not name.startswith(_CAPTURED)
        )
        preload = "\n".join(f'<link rel="modulepreload" href="{up}{self.address(one)}">' for one in modules)
        folder = f"{up}{PATH[1:]}/{self.digest}"
        return self._shell.replace("<!--preload-->", preload).replace("{{files}}", folder)

    def routes(self, answering: Callable[[Callable[[Request], Response]], Any]) -> list[Route]:
        """Return the routes of the shell and its files."""

        def one(request: Request) -> Response:
            name = request.path_params["name"]
            content = self._files.get(name)
            if content is None or request.path_params["digest"] != self.digest:
                return Response("there is no such file of this version's page\n", 404, HEADERS, "text/plain")
            return _cached(request, content, _media_type(name), _FOR_EVER)

        def shell(request: Request) -> Response:
            return _cached(request, self.shell(way_up(request)).encode(), "text/html", "no-cache")

        return [
            Route(f"{PATH}/{{digest}}/{{name:path}}", answering(one)),
            Route("/groups/{names:names}", answering(shell)),
            Route("/group", answering(shell)),
            Route("/", answering(shell)),
        ]


def way_up(request: Request) -> str:
    """Return the relative way from a request's address to the server's root."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return "../" * (raw.split(b"?", 1)[0].count(b"/") - 1)


def _read(folder: Traversable, before: str) -> list[tuple[str, bytes]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _read(one, f"{before}{one.name}/")
        else:
            found.append((before + one.name, one.read_bytes()))
    return found


def _media_type(name: str) -> str:
    ending = name[name.rfind(".") :] if "." in name else ""
    return _TYPES.get(ending) or mimetypes.guess_type(name)[0] or "text/plain"


def _cached(request: Request, content: bytes, media_type: str, cache: str) -> Response:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**HEADERS, "ETag": tag, "Cache-Control": cache}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
