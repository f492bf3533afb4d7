"""The metrics for Prometheus."""

from alerts.metrics.delivery_metrics import DeliveryCollector
from alerts.metrics.exporter import ClusterSample, Firing, GroupSample, SnapshotCollector
from alerts.metrics.metrics import FAR_JOB, NotifierMetrics, OwnMetrics

__all__ = [
    "FAR_JOB",
    "ClusterSample",
    "DeliveryCollector",
    "Firing",
    "GroupSample",
    "NotifierMetrics",
    "OwnMetrics",
    "SnapshotCollector",
]
