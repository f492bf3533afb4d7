"""Facts that only one module of the model may write: read from the source of all its modules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "coordinator_model").rglob("*.py"))
CORE = "coordinator_model/groups/core"
WRITERS = {
    "session_base_ms": f"{CORE}/session_timer.py",
    "state": f"{CORE}/transitions.py",
    "generation": f"{CORE}/transitions.py",
    "state_since_ms": f"{CORE}/transitions.py",
}
NAMESAKES = {
    (f"{CORE}/costs.py", "state.generation"),  # CostState: whose cost was told
    ("coordinator_model/groups/modern/costs.py", "state.generation"),
    ("coordinator_model/shard/cluster_shard.py", "self.state"),  # of the cluster
    ("coordinator_model/shard/snapshot.py", "*"),  # parts of a header
}
"""What other objects than groups and members call the same."""


def written(source: str) -> Iterator[tuple[str, int]]:
    """Yield what a module writes of objects, as ``object.attribute``, each with its line.

    A class's own declaration is no writing: it has no object.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Call):
            yield from ((one, node.lineno) for one in passed(node))


def passed(call: ast.Call) -> Iterator[str]:
    """Yield what a call writes of a group or member that it makes, copies, or sets by name."""
    called = ast.unparse(call.func).rpartition(".")[2]
    first = ast.unparse(call.args[0]) if call.args else ""
    is_copy = called == "replace" and first.rpartition(".")[2] in {"group", "member"}
    if called in {"Group", "Member"} or is_copy:
        yield from (f"{called}.{one.arg}" for one in call.keywords)
    if called == "setattr":
        yield f"{first}.{call.args[1].value!s}" if isinstance(call.args[1], ast.Constant) else "*"


def writes(name: str) -> set[str]:
    """Return where the model writes an attribute of that name, but for its namesakes."""
    return {
        f"{path.relative_to(ROOT)}:{line} {target}"
        for path in MODULES
        for target, line in written(path.read_text())
        if target.rpartition(".")[2] in {name, "*"} and (str(path.relative_to(ROOT)), target) not in NAMESAKES
    }


@pytest.mark.parametrize("name", WRITERS)
def test_one_module_writes_it(name: str) -> None:
    """Whoever wants to change the fact asks that module, where the reason stands."""
    found = writes(name)

    assert found
    assert {one for one in found if not one.startswith(WRITERS[name] + ":")} == set()


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
        "replace(turn.group, fact=1)",
        "Member(fact=1)",
    ],
)
def test_every_way_of_writing_is_seen(source: str) -> None:
    """The test above would prove nothing if a module could write in a way that it does not see."""
    assert "fact" in {target.rpartition(".")[2] for target, _ in written(source)}


def test_reading_and_declaring_are_no_writing() -> None:
    """Otherwise nobody else could ask."""
    assert list(written("class M:\n    fact: int = 1\nx = m.fact")) == []
