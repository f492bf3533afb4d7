"""Settings of every test: no verdict depends on how fast the machine is."""

import os

import pytest
from hypothesis import HealthCheck, settings

# On top of what hypothesis chose by itself, for on a build server that is a profile of its own.
settings.register_profile(
    "groupwatch", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# make test TESTS=tests/properties ARGS=--hypothesis-profile=long
settings.register_profile("long", settings.get_profile("groupwatch"), max_examples=5_000)
settings.load_profile("groupwatch")

# A JVM that lives for two minutes spends more on its optimising compiler than it gets back: without it
# brokers and jobs of the live tests take less than half the processor time, and a quarter less time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that need a cluster or Spark behind all others.

    What is quick fails first.  And clients of Kafka have threads that draw random numbers, some beyond the
    end of their test, which hypothesis takes for randomness of the test that it runs.
    """
    items.sort(key=_needs_a_cluster)


def _needs_a_cluster(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("kafka", "spark"))
