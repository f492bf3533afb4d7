"""The answer to a scrape: what prometheus_client renders, and families that come as lines already.

prometheus_client takes 10 to 20 µs for a series, which is seconds for 10,000 groups; so ``group_lines.py``
keeps the lines of each group, and they are only joined here.
"""

from collections.abc import Iterator
from functools import partial

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from alerts.metrics import metrics

CLUSTER = "cluster"
_END = b"# EOF\n"
"""Last line of OpenMetrics."""
_OPEN_METRICS = "application/openmetrics-text"


class RenderedFamily(Metric):
    """A family whose lines stand as they are sent; lines without timestamps look the same in both formats."""

    def __init__(self, metric: metrics.Metric, lines: bytes) -> None:
        self.lines = lines
        super().__init__(metric.name, metric.help, metric.kind)

    @property
    def samples(self) -> list[Sample]:
        """The lines as samples, for others than ``render``: slow."""
        suffix = "_total" if self.type == "counter" else ""
        text = f"# TYPE {self.name}{suffix} {self.type}\n" + self.lines.decode()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    @samples.setter
    def samples(self, _: list[Sample]) -> None:
        """Ignore what ``Metric`` sets when it is made."""


class Relabelled(Collector):
    """All metrics of a registry, with the label ``cluster`` under another name.

    Many Prometheus servers use that label for their own; families that are lines already have the other name.
    """

    def __init__(self, registry: Collector, cluster_label: str) -> None:
        self._registry = registry
        self._label = cluster_label

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for family in self._registry.collect():
            if self._label != CLUSTER and not isinstance(family, RenderedFamily):
                family.samples = [self._renamed(one) for one in family.samples]
            yield family

    def _renamed(self, sample: Sample) -> Sample:
        if CLUSTER not in sample.labels:
            return sample
        labels = {self._label if name == CLUSTER else name: value for name, value in sample.labels.items()}
        return sample._replace(labels=labels)


class _These(Collector):
    """Some families."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        """Return them."""
        return self._families


def render(registry: Collector, accept: str = "", cluster_label: str = CLUSTER) -> tuple[bytes, str]:
    """Return all metrics of a registry, and the media type, in the newest format that ``accept`` names."""
    try:
        return _rendered(registry, accept, cluster_label)
    except (ValueError, TypeError):  # it names a version that is none
        return _rendered(registry, "", cluster_label)


def _rendered(registry: Collector, accept: str, cluster_label: str) -> tuple[bytes, str]:
    encode, media_type = choose_encoder(accept)
    end = _END if media_type.startswith(_OPEN_METRICS) else b""
    families = list(Relabelled(registry, cluster_label).collect())
    rendered = [one for one in families if isinstance(one, RenderedFamily)]
    parts = [encode(_These([one for one in families if not isinstance(one, RenderedFamily)]))]
    for family in rendered:
        parts[-1] = parts[-1].removesuffix(end)
        head = partial(Metric, family.name, family.documentation, family.type)
        parts += [encode(_These([head()])).removesuffix(end), family.lines]
    if rendered:
        parts.append(end)
    return b"".join(parts), media_type
