"""Hundreds of histories of partitions against Burrow's own verdicts on them."""

import pytest

from alerts.rules.progress.verdicts import verdict
from tests.unit.partition_cases import CASES, CORRECTED, MEANS


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES}))
def test_verdicts_are_burrows_without_its_errors(kind: str) -> None:
    """The same status for the same history, but for what is known to be false."""
    mine = [case for case in CASES if case.kind == kind]

    assert [
        (case.burrow, verdict(case.commits, case.ends, case.now_ms, steady_ms=case.steady_ms))
        for case in mine
    ] == [(case.burrow, case.expected) for case in mine]


def test_each_verdict_and_each_correction_has_cases() -> None:
    """A correction that no case needs is one too many."""
    answers = [case.burrow for case in CASES]

    assert len(CASES) >= 500
    assert {answer: answers.count(answer) >= 30 for answer in MEANS} == dict.fromkeys(MEANS, True)
    assert {(case.kind, case.burrow) for case in CASES} >= set(CORRECTED)
