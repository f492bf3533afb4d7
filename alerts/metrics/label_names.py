"""The scrape with another name for the label ``cluster``, which many Prometheus servers use for their own."""

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

CLUSTER = "cluster"


class Relabelled(Collector):
    """All metrics of a registry, with the label ``cluster`` under another name."""

    def __init__(self, registry: Collector, cluster_label: str) -> None:
        self._registry = registry
        self._label = cluster_label

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for family in self._registry.collect():
            if self._label != CLUSTER:
                family.samples = [
                    one._replace(
                        labels={
                            self._label if name == CLUSTER else name: value
                            for name, value in one.labels.items()
                        }
                    )
                    if CLUSTER in one.labels
                    else one
                    for one in family.samples
                ]
            yield family
