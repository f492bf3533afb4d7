"""Facts that only one module of the model may write: read from the source of all its modules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "coordinator_model").rglob("*.py"))
WRITERS = {
    "session_base_ms": "coordinator_model/groups/core/session_timer.py",
}


def written(source: str) -> Iterator[tuple[str, int]]:
    """Yield the attributes that a module assigns, deletes or passes by name, each with its line.

    A class's own declaration is no writing: it has no object.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Call):
            yield from passed(node)


def passed(call: ast.Call) -> Iterator[tuple[str, int]]:
    """Yield what a call may write: keywords, and the name that ``setattr`` is given."""
    yield from ((one.arg, call.lineno) for one in call.keywords if one.arg is not None)
    if getattr(call.func, "id", "") == "setattr" and isinstance(call.args[1], ast.Constant):
        yield str(call.args[1].value), call.lineno


@pytest.mark.parametrize("name", WRITERS)
def test_one_module_writes_it(name: str) -> None:
    """Whoever wants to change the fact asks that module, where the reason stands."""
    writers = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in MODULES
        for attribute, line in written(path.read_text())
        if attribute == name
    }

    assert writers
    assert {one for one in writers if not one.startswith(WRITERS[name])} == set()


@pytest.mark.parametrize(
    "source",
    [
        "m.fact = 1",
        "m.fact += 1",
        "m.fact: int = 1",
        "a, m.fact = 1, 2",
        "(m.x, [m.fact]) = y",
        "del m.fact",
        "for m.fact in y: pass",
        "setattr(m, 'fact', 1)",
        "replace(m, fact=1)",
        "Member(fact=1)",
    ],
)
def test_every_way_of_writing_is_seen(source: str) -> None:
    """The test above would prove nothing if a module could write in a way that it does not see."""
    assert "fact" in {name for name, _ in written(source)}


def test_reading_is_no_writing() -> None:
    assert "fact" not in {name for name, _ in written("class M:\n    fact: int = 1\nx = m.fact")}
