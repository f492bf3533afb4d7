"""The declaration of a rule: everything that others must know of it stands once, in the rule's own file.

The ``rules`` block of the configuration, the inhibition of alerts, the tables of the documents and the
reference configuration (``make tables``) are derived from the declarations.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Generic, TypeVar

from alerts.rules.engine.cluster_memory import ClusterMemory
from alerts.rules.engine.options import RuleOptions, Thresholds
from alerts.rules.engine.situation import Situation, Verdict
from coordinator_model.shard import ClusterState

_OptionsT = TypeVar("_OptionsT", bound=RuleOptions)


class Sees(StrEnum):
    """The least that must be read so that a rule can fire at all."""

    NOTHING = "nothing: the driver, or our own failures, tell"
    RECORDS = "records of the offsets topic"
    ENDS = "records and end offsets"
    A_LOG = "the coordinator's INFO log or its request log"
    REQUESTS = "the request log"


class Stops(IntEnum):
    """How much stands still while an alert fires: of equal severity, more of it is shown first."""

    CLUSTER = 0
    """The whole cluster, or our sight of it."""
    GROUP = 1
    """A whole group, again and again or all the time."""
    PART = 2
    """Members or partitions of a group."""
    NOTHING = 3
    """Nothing yet: forecasts, advice, and what is over."""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[_OptionsT]):
    """A rule: the name of its alert, its options, and its relations to other rules."""

    name: str
    """The name of its alert in CamelCase; the key in the YAML file is the same in snake_case."""
    options: type[_OptionsT]
    """Severity and thresholds, with units and defaults; each rule has a class of its own."""
    needs: Sees = Sees.RECORDS
    stops: Stops = Stops.PART
    """How much stands still while its alert fires."""
    effect_of: tuple["Rule[Any]", ...] = ()
    """While one of these fires, for the same group or its whole cluster, this alert is not sent."""
    blames_nobody: str = "not known: no source tells which member"
    """The text in place of culprits if an alert names none."""

    @property
    def key(self) -> str:
        """Return the rule's key in the configuration: ``rebalance_storm`` for RebalanceStorm."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


@dataclass(frozen=True, kw_only=True)
class GroupRule(Rule[_OptionsT]):
    """A rule about one group."""

    evaluate: Callable[[Situation], Verdict]
    remembers: str = ""
    """The field of ``GroupMemory`` that belongs to it."""
    excused_by: tuple["Rule[Any]", ...] = ()
    """While one of these fires, the rule finds nothing."""
    timed: bool = True
    """The memory keeps its due time.  False: the rule is asked in time without that, because ``quick``
    computes the due time from the group, or because only news changes its answer."""
    watched: bool = False
    """While its alert is open, any observation may change the end or the culprits."""
    end_is_logged: bool = False
    """Only a log shows the end at once: if lines are lost, the condition may have ended unseen."""


@dataclass(frozen=True, kw_only=True)
class ClusterRule(Rule[_OptionsT]):
    """A rule about the whole cluster."""

    evaluate: Callable[[ClusterState, ClusterMemory, Thresholds, int], Verdict]
    remembers: str = ""
    """The field of ``ClusterMemory`` that belongs to it."""


@dataclass(frozen=True, kw_only=True)
class SupervisorRule(Rule[_OptionsT]):
    """A rule that the driver's supervisor judges, outside the stream."""
