"""The rules, one file each: pure functions of a group, its history and the current time.

A shard calls ``RuleJudge``.  No module in this package reads a clock.
"""

from alerts.rules.judge import RuleJudge
from alerts.rules.registry import ALL_RULES, DeclaredRule, is_about_a_group, nobody, stops
from alerts.rules.settings import ThresholdsError, check_settings
from alerts.rules.wide_causes import WideCauses

__all__ = [
    "ALL_RULES",
    "DeclaredRule",
    "RuleJudge",
    "ThresholdsError",
    "WideCauses",
    "check_settings",
    "is_about_a_group",
    "nobody",
    "stops",
]
