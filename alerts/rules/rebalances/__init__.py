"""Rules about rebalances: storms, stuck states, churn, failovers."""

from alerts.rules.rebalances.assignment_churn import ASSIGNMENT_CHURN
from alerts.rules.rebalances.coordinator_moved import COORDINATOR_MOVED
from alerts.rules.rebalances.diagnosis import is_one_host
from alerts.rules.rebalances.rebalance_costs import note, noun_of, partition_time, rate
from alerts.rules.rebalances.rebalance_storm import REBALANCE_STORM
from alerts.rules.rebalances.stuck_completing_rebalance import STUCK_COMPLETING_REBALANCE, completing_due_ms
from alerts.rules.rebalances.stuck_preparing_rebalance import STUCK_PREPARING_REBALANCE, preparing_due_ms

__all__ = [
    "ASSIGNMENT_CHURN",
    "COORDINATOR_MOVED",
    "REBALANCE_STORM",
    "STUCK_COMPLETING_REBALANCE",
    "STUCK_PREPARING_REBALANCE",
    "completing_due_ms",
    "is_one_host",
    "note",
    "noun_of",
    "partition_time",
    "preparing_due_ms",
    "rate",
]
