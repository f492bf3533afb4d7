"""The runbooks as pages, so that a link in a page at night leads to what this very version says."""

import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streaming.serving.page_files import HEADERS, PageFiles

PATH = "/runbooks"
_ELSEWHERE = re.compile(r"\[([^\]\n]*)\]\((?!https?://|\w+\.md[)#])[^)\n]*\)")
"""A link into the source tree, which this server does not have."""


def runbooks() -> dict[str, str]:
    """Return alert name -> its runbook in Markdown."""
    folder = files("alerts") / "runbooks"
    found = (one for one in folder.iterdir() if one.name.endswith(".md"))
    return {one.name.removesuffix(".md"): one.read_text(encoding="utf-8") for one in found}


def as_html(title: str, markdown: str, style: str) -> str:
    """Return a page of its own with the style sheet at ``style``."""
    text = _ELSEWHERE.sub(r"\1", markdown)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="stylesheet" href="{escape(style)}">'
        f'<body class="runbook"><main>{body}</main></body></html>'
    )


def runbook_routes(answering: Callable[[Callable[[Request], Response]], Any], page: PageFiles) -> list[Route]:
    """Return the routes: the list, and a page for each alert with or without ``.md`` behind its name."""
    known = runbooks()
    style = f"../{page.address('style/page.css')}"

    def listed(_: Request) -> Response:
        # With its folder, so that it works under an external URL with a path of its own.
        lines = "\n".join(f"- [{name}]({name}.md)" for name in sorted(known))
        return _page("Runbooks", f"# Runbooks\n\n{lines}\n")

    def one(request: Request) -> Response:
        name = request.path_params["name"].removesuffix(".md")
        if name not in known:
            return Response(f"there is no runbook {name!r}\n", 404, HEADERS, "text/plain")
        return _page(name, known[name])

    def _page(title: str, markdown: str) -> Response:
        return Response(as_html(title, markdown, style), media_type="text/html", headers=HEADERS)

    return [Route(f"{PATH}/", answering(listed)), Route(f"{PATH}/{{name}}", answering(one))]
