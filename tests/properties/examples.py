"""How many examples a property is tried with."""

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """Return settings for so many examples in the ordinary profile, and for more in a larger one."""
    return settings(
        max_examples=max(1, count * settings().max_examples // 100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
