"""One writer of revisions: what receivers order by is made in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIFECYCLE = "alerts/rules/engine/lifecycle.py"
MAKERS = {
    "alerts": [LIFECYCLE],
    "streaming": ["streaming/devkit/bench/delivery.py", "streaming/notify/trial.py"],
}
"""Those of streaming are of the bench's alerts and of a test page, which stand in no topic of a job."""


def _made(source: str) -> Iterator[int]:
    """Yield the lines that make a revision: a call or an assignment with a number of its own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "revision":
            is_copy = isinstance(node.value, ast.Attribute | ast.Name)
            yield from () if is_copy else (node.value.lineno,)


@pytest.mark.parametrize("house", ["coordinator_model", "alerts", "streaming"])
def test_only_the_lifecycle_makes_revisions(house: str) -> None:
    """Elsewhere a revision is only copied."""
    files = {str(file.relative_to(ROOT)): file.read_text() for file in sorted((ROOT / house).rglob("*.py"))}
    found = {name: list(_made(text)) for name, text in files.items()}

    assert [name for name, lines in found.items() if lines] == MAKERS.get(house, [])


def test_the_lifecycle_makes_some() -> None:
    """The first, the next, another summary, the last."""
    assert len(list(_made((ROOT / LIFECYCLE).read_text()))) == 4
