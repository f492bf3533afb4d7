"""The bounds and goals for each row that the bench measures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """One figure's bounds, None where there is none; ``smaller`` says which way is better."""

    figure: str
    """Of a part of the row: ``part.figure``."""
    must: float | None
    aim: float | None
    smaller: bool = True

    def verdict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bounds, and whether the row's figure keeps them."""
        value: Any = row
        for part in self.figure.split("."):
            value = value[part]
        return {
            "figure": self.figure,
            "value": value,
            "must": self.must,
            "aim": self.aim,
            "must_holds": self._holds(value, self.must),
            "aim_holds": self._holds(value, self.aim),
        }

    def _holds(self, value: float, bound: float | None) -> bool | None:
        if bound is None:
            return None
        return value <= bound if self.smaller else value >= bound


TARGETS: Mapping[str, tuple[Target, ...]] = {
    "mixed": (Target("cpu_s_per_million", must=11.0, aim=9.0),),
    "enveloped": (Target("cpu_s_per_million", must=13.0, aim=10.5),),
    "live": (
        Target("trigger_5s.batch_s_p95", must=4.0, aim=None),
        Target("trigger_5s.cores", must=1.3, aim=None),
        Target("trigger_5s.backlog_grows", must=0, aim=0),
        Target("trigger_2s.batch_s_p95", must=None, aim=1.5),
        Target("trigger_2s.cores", must=None, aim=1.0),
        Target("trigger_2s.backlog_grows", must=None, aim=0),
    ),
    "idle": (Target("cpu_s_a_minute", must=20.0, aim=12.0), Target("batch_s_p95", must=1.0, aim=0.7)),
    "idle-many": (Target("cpu_s_a_minute", must=75.0, aim=40.0), Target("batch_s_p95", must=3.0, aim=1.5)),
    "quiet-idle": (Target("cpu_s_a_minute", must=10.0, aim=6.0), Target("memory_gib", must=1.5, aim=1.0)),
    "trickle": (Target("cpu_s_a_minute", must=40.0, aim=25.0),),
    "backlog": (
        Target("groups_1000.rows_a_cpu_s", must=150_000, aim=250_000, smaller=False),
        Target("groups_10000.rows_a_cpu_s", must=120_000, aim=200_000, smaller=False),
    ),
    "start": (Target("ready_s", must=20.0, aim=12.0), Target("cpu_s", must=30.0, aim=20.0)),
    "first-beats": (Target("cpu_s", must=3.0, aim=1.5),),
    "held": (Target("memory_gib", must=5.0, aim=3.0), Target("batch_s_p95", must=3.0, aim=1.5)),
    "workers": (Target("ratio", must=1.25, aim=1.1),),
    "state": (Target("bytes_per_group", must=4096, aim=1024),),
    "latency": (Target("p99_s", must=2.5, aim=1.5),),
    "latency-beside": (Target("p99_s", must=4.0, aim=2.5),),
    "scrape": (Target("cpu_s", must=0.5, aim=0.2),),
    "restart": (Target("detecting_s", must=25.0, aim=12.0),),
    "delivery": (Target("topic_p99_ms", must=3000.0, aim=1000.0),),
    "heartbeats": (),
    "million": (),
}
"""Each row that the bench measures, in the order of its running; without bounds: for information."""


def percentile(values: list[float], part: float) -> float:
    """Return the smallest value that ``part`` (0 to 1) of all values do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1))]
