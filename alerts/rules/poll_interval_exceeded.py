"""PollIntervalExceeded: a client left its group by itself, as its application did not call poll() in time."""

from alerts.rules.events import EventRule
from alerts.rules.situation import Situation, Verdict, rebalance_timeout_ms
from alerts.wording import span, who_is
from coordinator_model.group import CauseKind, Departure

NAME = "PollIntervalExceeded"


def _sentence(situation: Situation, departure: Departure) -> str:
    # A client sends max.poll.interval.ms as its rebalance timeout; the one that went took its own along.
    timeout_ms = rebalance_timeout_ms(situation.group)
    limit = f"; the group's largest is {span(timeout_ms)}" if timeout_ms >= 0 else ""
    return f"{who_is(departure)}: no poll() within its max.poll.interval.ms{limit}."


_RULE = EventRule(
    name=NAME,
    how=CauseKind.POLL_TIMEOUT,
    severity=lambda situation: situation.thresholds.poll_interval_exceeded.severity,
    sentence=_sentence,
    happened="did not call poll() in time",
    cost="What it worked on since its last commit is delivered again to another member, which may be as "
    "slow.",
    advice=(
        "Find the slow or poisonous record in its log at that time. Lower max.poll.records, put a "
        "timeout on the calls "
        "made for each record, or raise max.poll.interval.ms above the slowest batch."
    ),
)


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    return _RULE.evaluate(situation)
