"""How a rule is declared: everything that others must know of it stands in its own file, once.

From the declarations follow the ``rules`` block of the configuration, what holds which alert back, the
tables of the documents and the reference configuration (``make tables``).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from alerts.rules.engine.cluster_memory import ClusterMemory
from alerts.rules.engine.options import RuleOptions, Thresholds
from alerts.rules.engine.situation import Situation, Verdict
from coordinator_model.shard import ClusterState

_OptionsT = TypeVar("_OptionsT", bound=RuleOptions)


class Sees(StrEnum):
    """The least that must be read for a rule to fire at all."""

    NOTHING = "nothing: the driver, or our own failures, tell"
    RECORDS = "records of the offsets topic"
    ENDS = "records and end offsets"
    A_LOG = "the coordinator's INFO log or its request log"
    REQUESTS = "the request log"


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[_OptionsT]):
    """A rule: the name of its alert, what can be set, and how others take it."""

    name: str
    """Of its alert, in CamelCase; the option in the YAML file is the same in snake_case."""
    options: type[_OptionsT]
    """With its severity, and units and defaults of its thresholds; a class of its own for each rule."""
    needs: Sees = Sees.RECORDS
    effect_of: tuple["Rule[Any]", ...] = ()
    """While one of these fires, for the same group or its whole cluster, this alert is not told beside it."""
    blames_nobody: str = "not known: no source that is read tells which member"
    """What stands in place of the culprits where an alert names none."""

    @property
    def key(self) -> str:
        """Return its name in the configuration: ``rebalance_storm`` for RebalanceStorm."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


@dataclass(frozen=True, kw_only=True)
class GroupRule(Rule[_OptionsT]):
    """A rule about one group."""

    evaluate: Callable[[Situation], Verdict]
    remembers: str = ""
    """The field of ``GroupMemory`` that it keeps."""
    excused_by: tuple["Rule[Any]", ...] = ()
    """While one of these fires, the rule itself has nothing to say."""
    timed: bool = True
    """When it is due is kept in the memory.  Who says False is asked in time without that: ``quick`` computes
    it from the group, or only news changes its answer."""
    watched: bool = False
    """While its alert is open, any observation may change its end or its culprits."""
    end_is_logged: bool = False
    """Only a log tells at once that it is over: where lines are lost, it may have ended unseen."""


@dataclass(frozen=True, kw_only=True)
class ClusterRule(Rule[_OptionsT]):
    """A rule about the whole cluster."""

    evaluate: Callable[[ClusterState, ClusterMemory, Thresholds, int], Verdict]
    remembers: str = ""
    """The field of ``ClusterMemory`` that it keeps."""


@dataclass(frozen=True, kw_only=True)
class SupervisorRule(Rule[_OptionsT]):
    """A rule that the driver's supervisor judges, beside the stream."""
