"""What concerns all groups, or the cluster, has a handler, and the README's table shows it."""

import ast
import inspect

from coordinator_model import observations as on
from coordinator_model.shard.boundaries import BOUNDARIES
from coordinator_model.shard.cluster import HANDLERS
from coordinator_model.shard.segments import CUTS
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.timeline import Timeline
from tests.house.observation_table import README, written

LOOP = (Shard.step, Shard._run_until, Shard._run_segments, Timeline.run)
OF_THE_STEP = {on.Settings, on.Adopted, on.ShardRefilled}
"""What the cluster's shard takes for itself: ``ClusterShard``."""


def test_what_cuts_time_has_a_handler() -> None:
    """Nothing stops the groups of a shard for nothing."""
    assert set(BOUNDARIES) == CUTS


def test_what_concerns_the_cluster_has_a_handler() -> None:
    """Nothing is sent to the cluster's shard that it drops."""
    of_cluster = on.types_that(lambda one: one.concerns & on.Concerns.CLUSTER)
    assert set(HANDLERS) | OF_THE_STEP == of_cluster


def test_what_concerns_a_shard_cuts_time_or_tells_of_its_sources() -> None:
    """Without a cut only the logs' own signs of life are for a whole shard."""
    of_shard = on.types_that(lambda one: one.concerns & on.Concerns.SHARD and not one.cuts_time)
    assert of_shard == {on.LogNoted, on.LogSeconds}


def test_the_readme_shows_the_table() -> None:
    """``python -m tests.house.observation_table`` writes it anew."""
    text = README.read_text()
    assert written(text) == text


def test_the_readme_shows_the_loop() -> None:
    """Whatever the shortened loop calls is called by the loop itself."""
    shown = README.read_text().split("```python\n")[1].split("```")[0]
    loop = "".join(inspect.getsource(one) for one in LOOP)
    calls = {called for one in ast.walk(ast.parse(shown)) if (called := _called(one))}

    assert {name for name in calls if f".{name}(" not in loop} == set()
    assert len(calls) > 8


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""
