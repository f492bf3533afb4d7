"""Python's cyclic collector is kept from the workers' work."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from streaming.workers.collector import RareCollector, collector_paused


class _Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def ring() -> Iterator[weakref.ref[_Ring]]:
    """Return a cycle that nobody else holds, while Python does not look for any by itself."""
    with collector_paused():
        yield weakref.ref(_Ring())


def test_it_collects_after_many_tasks_and_not_before(ring: weakref.ref[_Ring]) -> None:
    """Cycles that a task leaves go in the end, and no single task waits for that."""
    collector = RareCollector()
    freed = [collector.collect() for _ in range(RareCollector.EVERY_TASKS - 1)]

    assert not any(freed)
    assert ring() is not None
    assert collector.collect() > 0
    assert ring() is None


@pytest.mark.parametrize("was_enabled", [True, False])
def test_a_pause_ends_as_it_began(was_enabled: bool) -> None:
    """Whoever has switched it off keeps it off."""
    before = gc.isenabled()
    try:
        (gc.enable if was_enabled else gc.disable)()
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() is was_enabled
    finally:
        (gc.enable if before else gc.disable)()
