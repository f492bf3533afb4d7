"""PollIntervalExceeded: a client left its group because its application did not call poll() in time."""

from alerts.alert import round_up, span, who_is
from alerts.rules.engine import EventRule, GroupRule, RuleOptions, Sees, Situation
from coordinator_model.kafka import CauseKind
from coordinator_model.state import Basis, Departure

NAME = "PollIntervalExceeded"


class Options(RuleOptions, frozen=True, kw_only=True):
    """No threshold: the rule reports events."""


def _sentence(_: Situation, departure: Departure) -> str:
    # A client sends max.poll.interval.ms as its rebalance timeout.
    timeout_ms = departure.rebalance_timeout_ms
    limit = f" of {span(timeout_ms)}" if timeout_ms >= 0 else ""
    sure = "" if departure.basis is Basis.OBSERVED else " (inferred: it came back over the same connection)"
    return f"{who_is(departure)}: no poll() within its max.poll.interval.ms{limit}{_idle(departure)}{sure}."


def _idle(departure: Departure) -> str:
    if departure.progressed_at_ms < 0:
        return ""
    return f", last sign of progress {span(departure.at_ms - departure.progressed_at_ms)} before"


def _setting(departure: Departure) -> str:
    timeout_ms = departure.rebalance_timeout_ms
    if timeout_ms <= 0:
        return ""
    since_ms = departure.progressed_at_ms
    worked_ms = timeout_ms if since_ms < 0 else max(timeout_ms, departure.at_ms - since_ms)
    return f" It is {timeout_ms} now; for such batches set {round_up(3 * worked_ms // 2)} or more."


_RULE = EventRule(
    name=NAME,
    how=CauseKind.POLL_TIMEOUT,
    severity=lambda situation: situation.thresholds.of(Options).severity,
    sentence=_sentence,
    happened="did not call poll() in time",
    noun="poll timeout",
    cost="Another member gets all records since the last commit again, and may be as slow.",
    advice=(
        "Look in the client's log at that time for a record that takes too long or fails again and again. "
        "Lower max.poll.records, put a timeout on the calls made for each record, or raise "
        "max.poll.interval.ms above the slowest batch."
    ),
    setting=_setting,
)


POLL_INTERVAL_EXCEEDED = GroupRule(
    name=NAME,
    options=Options,
    evaluate=_RULE.evaluate,
    needs=Sees.A_LOG,
    remembers="events",
)
