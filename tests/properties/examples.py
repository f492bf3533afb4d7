"""How many examples a property is tried with."""

from hypothesis import settings


def examples(count: int) -> settings:
    """Return settings for so many examples in the ordinary profile, and for more in a larger one."""
    return settings(max_examples=max(1, count * settings().max_examples // 100))
