"""The metrics for Prometheus."""

from alerts.metrics.delivery_metrics import DeliveryCollector, SilenceCollector
from alerts.metrics.exporter import ClusterSample, Firing, SnapshotCollector
from alerts.metrics.exposition import render
from alerts.metrics.group_lines import GroupSample
from alerts.metrics.health_metrics import HealthCollector, HealthSample, HistoryCollector
from alerts.metrics.metrics import FAR_JOB, NotifierMetrics, OwnMetrics

__all__ = [
    "FAR_JOB",
    "ClusterSample",
    "DeliveryCollector",
    "Firing",
    "GroupSample",
    "HealthCollector",
    "HealthSample",
    "HistoryCollector",
    "NotifierMetrics",
    "OwnMetrics",
    "SilenceCollector",
    "SnapshotCollector",
    "render",
]
