"""The bounds and goals for each row that the bench measures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """One figure's bounds; ``smaller`` says which way is better."""

    figure: str
    must: float
    aim: float
    smaller: bool = False

    def verdict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bounds, and whether the row's figure keeps them."""
        value = row[self.figure]
        return {
            "figure": self.figure,
            "must": self.must,
            "aim": self.aim,
            "must_holds": self._holds(value, self.must),
            "aim_holds": self._holds(value, self.aim),
        }

    def _holds(self, value: float, bound: float) -> bool:
        return value <= bound if self.smaller else value >= bound


TARGETS: Mapping[str, Target] = {
    "backlog": Target("ratio", must=0.6, aim=0.8),
    "heartbeats": Target("ratio", must=0.5, aim=0.8),
    "mixed": Target("cpu_s_per_million", must=11.0, aim=9.0, smaller=True),
    "enveloped": Target("cpu_s_per_million", must=13.0, aim=10.5, smaller=True),
    "state": Target("bytes_per_group", must=8192, aim=3072, smaller=True),
    "delivery": Target("topic_p99_ms", must=3000.0, aim=1000.0, smaller=True),
    "latency": Target("p99_s", must=4.0, aim=2.0, smaller=True),
}


def percentile(values: list[float], part: float) -> float:
    """Return the smallest value that ``part`` (0 to 1) of all values do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1))]
