"""The route by which people let the job read its configuration again."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streaming.config import HttpConfig, Reloads
from streaming.serving.api import Problem
from streaming.serving.silencing import may_write

PATH = "/-/reload"
_WAIT_S = 30.0
"""A notifier that is made anew finishes its attempts first."""


def reload_route(
    reloads: Reloads, config: HttpConfig, answering: Callable[[Callable[[Request], Response]], Any]
) -> Route:
    """Return the route: 200 with what changed, 400 for a file that cannot be used, 403 for strangers."""

    def reload(request: Request) -> Response:
        refused = may_write(request, config)
        if refused:
            return _answer(Problem(error=refused), 403)
        try:
            found = reloads.ask_and_wait(_WAIT_S)
        except TimeoutError:
            return _answer(
                Problem(error=f"not done within {_WAIT_S:.0f} s; the log will say when it is"), 503
            )
        return _answer(found, 400 if found.error else 200)

    return Route(PATH, answering(reload), methods=["POST"])


def _answer(content: object, status: int) -> Response:
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")
