"""The metrics for Prometheus."""

from alerts.metrics.delivery_metrics import DeliveryCollector, SilenceCollector
from alerts.metrics.exporter import ClusterSample, Firing, GroupSample, SnapshotCollector
from alerts.metrics.health_metrics import HealthCollector, HealthSample
from alerts.metrics.label_names import Relabelled
from alerts.metrics.metrics import FAR_JOB, NotifierMetrics, OwnMetrics

__all__ = [
    "FAR_JOB",
    "ClusterSample",
    "DeliveryCollector",
    "Firing",
    "GroupSample",
    "HealthCollector",
    "HealthSample",
    "NotifierMetrics",
    "OwnMetrics",
    "Relabelled",
    "SilenceCollector",
    "SnapshotCollector",
]
