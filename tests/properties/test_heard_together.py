"""What the members of a group were heard to do says the same as one observation and as one of each."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alerts.rules import RuleJudge
from coordinator_model import groups
from coordinator_model.observations.requests import GroupHeard
from coordinator_model.shard.judging import Judge
from coordinator_model.shard.timeline import Timeline
from tests.properties.calm_worlds import make_calm_world, make_first_beats
from tests.properties.cut_worlds import Recorder, make_slow_start, make_world, read
from tests.properties.examples import examples
from tests.properties.heard_together import put_together

SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("judge_type", [pytest.param(Recorder, id="all-that-rules-see"), RuleJudge])
@pytest.mark.parametrize("make", [make_world, make_slow_start, make_calm_world, make_first_beats])
@examples(100)
@example(world=348815, steps=62, one=232, other=0, batches=4)  # the last offset of a calm group is deleted
@example(world=928965334, steps=48, one=2387247727, other=2272990463, batches=40)  # one line is late
@example(world=2584970828, steps=136, one=232875049, other=3196549300, batches=52)  # only commits go on
@given(world=SEEDS, steps=st.integers(5, 120), one=SEEDS, other=SEEDS, batches=st.integers(1, 40))
def test_members_together_tell_the_same(
    judge_type: type[Judge], make: Any, *, world: int, steps: int, one: int, other: int, batches: int
) -> None:
    """Across clock copies, with late lines, rebalances and failovers, and whatever the batches."""
    parts = make(world, steps)

    assert read(parts, one, batches, judge_type(), gather=put_together) == read(
        parts, other, batches, judge_type()
    )


def test_calm_groups_are_heard_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what is put together in a calm world is applied as it is; or the test above compares little."""
    applied: list[bool] = []
    left: list[bool] = []
    beat: Callable[..., bool] = groups.beat
    run: Callable[..., Any] = Timeline._run_calmly

    def noted(group: Any, seen: Any) -> bool:
        done = beat(group, seen)
        if type(seen.what) is GroupHeard:
            applied.append(done)
        return done

    def counted(self: Timeline, live: Any, singles: Any, runs: Any, until_ms: int) -> Any:
        rest = run(self, live, singles, runs, until_ms)
        left.append(any(type(one.seen.what) is GroupHeard for one in runs) and bool(rest[1]))
        return rest

    monkeypatch.setattr(groups, "beat", noted)
    monkeypatch.setattr(Timeline, "_run_calmly", counted)
    for seed in range(30):
        read(make_calm_world(seed, 300), seed, 40, RuleJudge(), gather=put_together)

    assert sum(applied) > 100
    assert all(applied)
    assert sum(left) > 50
