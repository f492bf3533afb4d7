"""The tests' own house: what two tests share is no test."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_no_test_is_imported() -> None:
    """What two modules need lies in a module of its own, which pytest does not collect."""
    modules = {file: ast.parse(file.read_text()) for file in sorted(TESTS.rglob("*.py"))}
    wrong = [
        f"{file.relative_to(TESTS)} imports {name}"
        for file, tree in modules.items()
        for name in _imported(tree)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    ]

    assert len(modules) > 100
    assert wrong == []
