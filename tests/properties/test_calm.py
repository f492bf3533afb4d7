"""A calm group takes a shorter way, which tells the same."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.rules import RuleJudge
from coordinator_model.shard.timeline import Timeline
from tests.properties.calm_worlds import make_calm_world
from tests.properties.cut_worlds import read
from tests.properties.examples import examples

SEEDS = st.integers(0, 2**32)


def never_calmly(_: Timeline, __: object, singles: list[Any], runs: list[Any], ___: int) -> tuple[Any, Any]:
    """Leave everything to the longer way."""
    return singles, runs


@examples(150)
@given(world=SEEDS, steps=st.integers(5, 120), cut=SEEDS, batches=st.integers(1, 12))
def test_a_calm_group_tells_the_same(*, world: int, steps: int, cut: int, batches: int) -> None:
    """Its commits, end offsets and heartbeats, taken apart, say what they say in their order."""
    parts = make_calm_world(world, steps)
    calmly = read(parts, cut, batches, RuleJudge())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Timeline, "_run_calmly", never_calmly)
        in_order = read(parts, cut, batches, RuleJudge())

    assert calmly == in_order


def test_these_worlds_have_calm_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the test above compares nothing."""
    fold: Callable[..., Any] = Timeline._fold
    folded: list[int] = []

    def noted(self: Timeline, live: Any, runs: list[Any], *others: Any) -> Any:
        folded.append(len(runs))
        return fold(self, live, runs, *others)

    monkeypatch.setattr(Timeline, "_fold", noted)
    said: list[dict[str, Any]] = []
    for seed in range(30):
        said.append(read(make_calm_world(seed, 120), seed, 3, RuleJudge()))

    assert sum(map(bool, folded)) > 50
    assert sum(len(one["alerts"]) for one in said) > 20
