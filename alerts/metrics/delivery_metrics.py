"""Metrics about deliveries, read from the outboxes at each scrape."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts.alert import REASONS
from alerts.delivery import DeliveryState
from alerts.metrics import metrics


class DeliveryCollector(Collector):
    """Prometheus collector for the receivers."""

    def __init__(self, deliveries: Callable[[], Sequence[DeliveryState]]) -> None:
        self._deliveries = deliveries

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the outboxes."""
        return [_family(one) for one in metrics.DELIVERY]

    def collect(self) -> Iterable[Metric]:
        """Read the current state of the receivers."""
        families = {one: _family(one) for one in metrics.DELIVERY}
        for state in self._deliveries():
            label = (state.receiver,)
            families[metrics.OLDEST_UNDELIVERED].add_metric(label, state.oldest_s)
            families[metrics.UNDELIVERED].add_metric(label, state.waiting)
            families[metrics.RECEIVER_UP].add_metric(label, float(not state.trouble))
            families[metrics.SENDER_ERRORS].add_metric(label, state.failures)
            for reason in REASONS:
                refused = state.refused.get(reason, 0)
                families[metrics.REFUSED_RECORDS].add_metric((*label, reason), refused)
        return families.values()


def _family(metric: metrics.Metric) -> GaugeMetricFamily | CounterMetricFamily:
    kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)
