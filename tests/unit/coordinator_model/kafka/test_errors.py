"""Kafka's numbers stand in one table."""

import ast
from pathlib import Path

from coordinator_model.kafka import Error

ROOT = Path(__file__).parents[4]
TABLE = ROOT / "coordinator_model" / "kafka" / "errors.py"


def numbers_for_errors(source: str) -> list[int]:
    """Return the lines that compare an error code with a number, or give a number an error's name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and "error_code" in ast.unparse(node.left):
            numbers = [one for side in node.comparators for one in ast.walk(side) if is_number(one)]
            found += [node.lineno] * bool(numbers)
        elif isinstance(node, ast.Assign) and is_number(node.value):
            names = {ast.unparse(target).strip("_") for target in node.targets}
            found += [node.lineno] * bool(names & set(Error.__members__))
    return found


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value != 0


def test_nobody_else_writes_an_error_code_as_a_number() -> None:
    """Whoever reads 27 has to look it up."""
    files = [
        path for room in ("coordinator_model", "alerts", "streaming") for path in (ROOT / room).rglob("*.py")
    ]
    found = {
        str(path.relative_to(ROOT)): numbers_for_errors(path.read_text()) for path in files if path != TABLE
    }

    assert {path: lines for path, lines in found.items() if lines} == {}


def test_numbers_are_seen() -> None:
    """The test above would prove nothing if it saw none."""
    source = (
        "if what.error_code == 27: pass\nif error_code in {1, 2}: pass\n"
        "_UNKNOWN_MEMBER_ID = 25\nx.error_code == 0"
    )

    assert sorted(numbers_for_errors(source)) == [1, 2, 3]
