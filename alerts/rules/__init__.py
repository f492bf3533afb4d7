"""The rules: one file for each, pure functions of a group, its history and the time they are given.

``RuleJudge`` is what a shard calls.  Nobody here asks what time it is.
"""

from alerts.rules.judge import RuleJudge
from alerts.rules.registry import ALL_RULES, DeclaredRule, is_about_a_group, nobody
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
]
