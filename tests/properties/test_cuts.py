"""The result depends on what stands in the partitions, not on how they are cut into batches.

A small world is read twice, and both readings must tell the same story, byte for byte.
"""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alerts.rules import RuleJudge
from coordinator_model.shard.judging import Judge
from tests.properties.calm_worlds import make_first_beats
from tests.properties.cut_worlds import Recorder, make_world, read
from tests.properties.examples import examples

SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("judge_type", [pytest.param(Recorder, id="all-that-rules-see"), RuleJudge])
@pytest.mark.parametrize("make", [make_world, make_first_beats])
@examples(120)
@given(world=SEEDS, steps=st.integers(5, 120), one=SEEDS, other=SEEDS, batches=st.integers(2, 12))
@example(world=170, steps=12, one=0, other=0, batches=3)  # a record of the backlog after the first live one
def test_every_cut_tells_the_same(
    judge_type: type[Judge], make: Any, *, world: int, steps: int, one: int, other: int, batches: int
) -> None:
    """Whatever the batches, each group's transitions, and all that the rules are shown, are the same."""
    parts = make(world, steps)

    assert read(parts, one, 1, judge_type()) == read(parts, other, batches, judge_type())
