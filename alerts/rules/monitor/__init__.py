"""Rules about groupwatch itself and its sources."""

from alerts.rules.monitor.cluster_unreachable import CLUSTER_UNREACHABLE, cluster_reachable, find_unreachable
from alerts.rules.monitor.groups_quarantined import GROUPS_QUARANTINED
from alerts.rules.monitor.monitor_stalled import MONITOR_STALLED, find_stalled, monitor_running
from alerts.rules.monitor.source_silent import SOURCE_SILENT

__all__ = [
    "CLUSTER_UNREACHABLE",
    "GROUPS_QUARANTINED",
    "MONITOR_STALLED",
    "SOURCE_SILENT",
    "cluster_reachable",
    "find_stalled",
    "find_unreachable",
    "monitor_running",
]
