"""The HTML of a file: the page's styles and modules within it, and the answers beside them.

Nothing of strangers stands in the markup: it is all in one block of JSON, which no parser of HTML can leave.
"""

import base64
import hashlib
from urllib.parse import quote

import msgspec

from streaming.serving import PageFiles
from streaming.serving.one_file.captured import Captured
from streaming.serving.one_file.joining import joined
from streaming.version import version

_ENTRY = "captured/app.js"
_INSTEAD = {"api.js": "captured/api.js"}
_ESCAPED = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"}

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="groupwatch {version}">
<title>groupwatch</title>
<link rel="icon" href="data:image/svg+xml,{icon}">
"""
_BODY = """</head>
<body>
<div id="app"><p class="loading">Loading …</p></div>
<noscript><p class="loading">This file needs JavaScript.</p></noscript>
"""


def document(captured: Captured, page: PageFiles | None = None) -> bytes:
    """Return the file's content, in UTF-8; the same answers give the same bytes."""
    page = page or PageFiles()
    script = joined(page.text, _ENTRY, _INSTEAD)
    styles = {name: page.text(name) for name in page.styles()}
    parts = [
        _HEAD.format(
            policy=_policy(script, list(styles.values())),
            version=version(),
            icon=quote(page.text("icon.svg"), safe=""),
        ),
        *(f'<style id="{_id_of(name)}">{text}</style>\n' for name, text in styles.items()),
        _BODY,
        f'<script type="application/json" id="captured">{embedded(captured)}</script>\n',
        f'<script type="module">{script}</script>\n</body>\n</html>\n',
    ]
    return "".join(parts).encode()


def embedded(content: object) -> str:
    """Return JSON that can stand in a script element, whatever the texts in it."""
    text = msgspec.json.encode(content).decode()
    for one, escape in _ESCAPED.items():
        text = text.replace(one, escape)
    return text


def _policy(script: str, styles: list[str]) -> str:
    """Return the policy that allows this script and these styles, and nothing from anywhere."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _id_of(name: str) -> str:
    """Return the id of a style sheet: style/picture.css -> style-picture."""
    return name.removesuffix(".css").replace("/", "-")
