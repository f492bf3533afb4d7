"""What several modules of live tests share."""

from collections.abc import Callable, Iterator

import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.side_by_side import Act, play
from tests.live.support.stage import Told, need_jars


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Act], Told]:
    """Play the ``ACT`` of every chosen module at once; returns the way to what one of them saw."""
    need_jars()
    modules = {item.module for item in request.session.items if isinstance(item, pytest.Function)}
    acts = [module.ACT for module in modules if hasattr(module, "ACT")]
    told = play(acts, tmp_path_factory.mktemp("side-by-side"))
    return lambda act: told[act].result()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One broker of the module, with both loggers shipped; skipped where its jars are not to be had."""
    need_jars()
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), rebalance_delay_ms=500, heap="384m") as cluster:
        cluster.create_topic("orders", partitions=2)
        yield cluster
