"""What a rebalance of a consumer group cost, counted again the slow way from picture to picture."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UnsetType

from tests.live.support.modern import recounted
from tests.properties.examples import examples
from tests.properties.handing_over import play


@examples(150)
@given(seed=st.integers(0, 2**32), steps=st.integers(20, 150))
def test_every_cost_is_what_the_pictures_show(seed: int, steps: int) -> None:
    """Time without an owner and moves: no rebalance is missing, and none is cheaper than it can be."""
    told, history = play(seed, steps)
    costs = {one.at_ms: one.cost for one in told if not isinstance(one.cost, UnsetType)}
    expected = recounted(history)

    assert expected.keys() <= costs.keys()
    assert {at_ms: (costs[at_ms].partition_ms, costs[at_ms].moved) for at_ms in expected} == expected
    for cost in costs.values():
        assert cost.least is not None
        assert cost.moved is not None
        assert cost.least <= cost.moved


def test_the_play_hands_partitions_over() -> None:
    """Lives in which nothing moves would prove nothing."""
    costs = [cost for seed in range(30) for cost in recounted(play(seed, 150)[1]).values()]

    assert len(costs) > 100
    assert sum(one.partition_ms > 0 and one.moved > 0 for one in costs) > 50
