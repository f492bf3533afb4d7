"""A process of which nothing is to be said."""

from typing import Any


class Healthy:
    """No cluster, no problem."""

    def clusters(self) -> list[dict[str, Any]]:
        """Return nothing."""
        return []

    def problems(self) -> list[str]:
        """Return nothing."""
        return []
