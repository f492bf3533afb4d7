"""The rules: one file for each, pure functions of a group, its history and the time they are given.

``RuleJudge`` is what a shard calls.  Nobody here asks what time it is.
"""

from alerts.rules.judge import RuleJudge
from alerts.rules.registry import RULES

__all__ = ["RULES", "RuleJudge"]
