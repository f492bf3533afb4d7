"""The tests' own house: what two tests share is no test, and nobody sleeps who could await a condition."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

SLEEPS = {
    # Between two looks at a condition; everything else that waits calls one of these.
    "live/support/stage.py await_that": (1, "the rest between two looks"),
    "live/support/scene.py play_all": (1, "the rest between two looks at plays side by side"),
    "live/support/asking.py Asker._connect_anew": (1, "the rest before a broker is tried again"),
    "unit/deploy/started.py first_answer": (1, "the rest between two attempts to connect"),
    "unit/streaming/notify/test_notify_alone.py look_until": (1, "the rest between two looks"),
    "unit/streaming/serving/test_http_limits.py _eventually": (1, "the rest between two looks"),
    # The pace of somebody who is played.
    "live/browser/real_incident.py Play._last": (1, "how long each act of the incident lasts"),
    "live/support/changes.py Changes._restart": (1, "the pace of a rolling restart"),
    "live/support/changes.py Changes._subscribe": (1, "the pace of a deployment"),
    "live/support/consumer.py Orders.work": (1, "a consumer that works for so long"),
    "live/support/schedule.py _Play._act": (1, "the random pace of a schedule"),
    "live/support/schedule.py _Play._move_coordinators": (1, "for so long a broker is away"),
    "live/test_diagnosis_cost.py _grow": (1, "one member enters a window alone, others share one"),
    "live/test_diagnosis_hygiene.py _calm": (1, "the absence of a member, shorter than its session"),
    "live/test_diagnosis_hygiene.py _stranger": (1, "commits that are told apart"),
    "live/test_outages.py _kills": (2, "the age of each incident when the job dies; how far a job starts"),
    "unit/alerts/delivery/receivers/test_hostile_receivers.py _drip": (1, "the pace of a slow server"),
    "unit/alerts/delivery/receivers/twins.py HttpsTwins._converse": (1, "the pace of a slow service"),
    "unit/streaming/serving/test_http_limits.py _drip": (1, "the pace of a slow client"),
    # A length of time is the evidence.
    "live/test_diagnosis_evidence.py _seek_evidence": (1, "a silence of which nothing must be said"),
    "live/test_levels.py _switch": (3, "how long a log is regular, off, and on again"),
    "live/test_reconciliation.py _measure": (1, "requests are counted for so long"),
}
"""Where a test may sleep: file and function -> how many calls, and why no condition can be awaited."""


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Every module of the tests, by its path."""
    files = sorted(TESTS.rglob("*.py"))
    return {str(file.relative_to(TESTS)): ast.parse(file.read_text()) for file in files}


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_no_test_is_imported(modules: dict[str, ast.Module]) -> None:
    """What two modules need lies in a module of its own, which pytest does not collect."""
    wrong = [
        f"{file} imports {name}"
        for file, tree in modules.items()
        for name in _imported(tree)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    ]

    assert len(modules) > 100
    assert wrong == []


def _sleeps(node: ast.AST, name: str) -> Iterator[str]:
    """Yield the qualified name of the function around each call of ``sleep``, or ``(module)``."""
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{child.name}".lstrip(".")
        elif isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] == "sleep":
            yield name or "(module)"
        yield from _sleeps(child, inner)


def test_nobody_sleeps_without_a_reason(modules: dict[str, ast.Module]) -> None:
    """A test that sleeps is slow on every machine and wrong on a busy one: it awaits a condition instead."""
    found = Counter(f"{file} {name}" for file, tree in modules.items() for name in _sleeps(tree, ""))

    assert found == {place: calls for place, (calls, _) in SLEEPS.items()}
