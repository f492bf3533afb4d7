"""SessionTimeout: a member was silent for its whole session timeout, and the coordinator removed it."""

from alerts.rules.events import EventRule
from alerts.rules.situation import Situation, Verdict
from alerts.wording import span, who_is
from coordinator_model.group import Basis, CauseKind, Departure

NAME = "SessionTimeout"


def _sentence(_: Situation, departure: Departure) -> str:
    timeout_ms = departure.session_timeout_ms
    limit = "session timeout not known" if timeout_ms < 0 else f"session timeout {span(timeout_ms)}"
    silent = _silence(departure)
    sure = "" if departure.basis is Basis.OBSERVED else " (inferred from its silence, no log line)"
    return f"{who_is(departure)}: no heartbeat for {silent}, {limit}{sure}."


def _silence(departure: Departure) -> str:
    if departure.last_heartbeat_ms >= 0:
        return span(departure.at_ms - departure.last_heartbeat_ms)
    if departure.session_timeout_ms >= 0:
        return f"at least {span(departure.session_timeout_ms)}"
    return "its whole session"


_RULE = EventRule(
    name=NAME,
    how=CauseKind.SESSION_TIMEOUT,
    severity=lambda situation: situation.thresholds.session_timeout.severity,
    sentence=_sentence,
    happened="had their session time out",
    cost="Its partitions stood still while it was silent, and then the whole group rebalanced.",
    advice=(
        "See whether the process lives: crash, OOM kill or eviction first, then GC pauses, CPU "
        "throttling and packet loss "
        "to the coordinator. If it was only restarted, let it close its consumer, or give it a "
        "group.instance.id."
    ),
)


def evaluate(situation: Situation) -> Verdict:
    """Return what is to be said of the group now."""
    return _RULE.evaluate(situation)
