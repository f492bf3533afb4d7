"""SessionTimeout: a member was silent for its whole session timeout, and the coordinator removed it."""

from alerts.rules.diagnosis import is_one_host
from alerts.rules.events import EventRule
from alerts.rules.situation import EventMemory, Situation, Verdict
from alerts.wording import span, who_is
from coordinator_model.group import Basis, CauseKind, Departure

NAME = "SessionTimeout"


def _sentence(_: Situation, departure: Departure) -> str:
    sure = "" if departure.basis is Basis.OBSERVED else " (inferred from its silence, no log line)"
    return f"{who_is(departure)}: {_silence(departure)}{sure}."


def _silence(departure: Departure) -> str:
    timeout_ms = departure.session_timeout_ms
    if timeout_ms < 0:
        return "no heartbeat for its whole session timeout (how long that is, no source has told)"
    if departure.last_heartbeat_ms < 0:
        return f"no heartbeat for at least {span(timeout_ms)}, its session timeout"
    silent_ms = departure.at_ms - departure.last_heartbeat_ms
    return f"no heartbeat for {span(silent_ms)}, session timeout {span(timeout_ms)}"


def _behind(situation: Situation, memory: EventMemory) -> tuple[str, str]:
    """Return what tells a pause, or the trouble of one host, from a crash."""
    storm = situation.memory.storm
    lost = [loss for loss in storm.losses if loss.at_ms >= memory.first_ms] if storm else []
    back = sum(loss.same_process for loss in lost)
    if back:
        who_came = "It" if len(lost) == 1 else f"{back} of {len(lost)}"
        why = "paused (GC, CPU limit) or cut off by the network, not restarted"
        return "paused", f"{who_came} came back over the same connection: {why}."
    if is_one_host(lost, frozenset(one.client_host for one in situation.group.members.values())):
        host = lost[0].client_host.lstrip("/")
        return "host", f"All were on {host} and none elsewhere: look at that host and its network."
    return "", ""


_RULE = EventRule(
    name=NAME,
    how=CauseKind.SESSION_TIMEOUT,
    severity=lambda situation: situation.thresholds.session_timeout.severity,
    sentence=_sentence,
    happened="had their session time out",
    noun="session timeout",
    behind=_behind,
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
