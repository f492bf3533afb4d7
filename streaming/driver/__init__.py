"""The driver's side of one cluster's job: clock, supervisor, probes, marks."""

from streaming.driver.cluster_job import ClusterJob
from streaming.driver.cluster_probe import ClusterProbe
from streaming.driver.outlets import Counts, Outlets
from streaming.driver.supervisor import ANSWERING_S, Limits, Supervisor, Watched, limits_from

__all__ = [
    "ANSWERING_S",
    "ClusterJob",
    "ClusterProbe",
    "Counts",
    "Limits",
    "Outlets",
    "Supervisor",
    "Watched",
    "limits_from",
]
