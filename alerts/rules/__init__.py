"""The rules: one file for each, pure functions of a group, its history and the time they are given.

``RULES`` (in ``order``) fixes order and precedence; ``RuleJudge`` is what a shard calls.  Nobody here
asks what time it is.
"""

from alerts.rules.cluster_unreachable import cluster_reachable, cluster_unreachable
from alerts.rules.judge import RuleJudge
from alerts.rules.monitor_stalled import monitor_running, monitor_stalled
from alerts.rules.order import RULES
from alerts.rules.rule import GroupRule

__all__ = [
    "RULES",
    "GroupRule",
    "RuleJudge",
    "cluster_reachable",
    "cluster_unreachable",
    "monitor_running",
    "monitor_stalled",
]
