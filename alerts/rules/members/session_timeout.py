"""SessionTimeout: a member was silent for its whole session timeout, and the coordinator removed it."""

from alerts.alert import span, who_is
from alerts.rules.engine import EventMemory, EventRule, GroupRule, RuleOptions, Sees, Situation
from alerts.rules.rebalances import is_one_host
from coordinator_model.groups.core import UPSET_MS, client_name, comes_again
from coordinator_model.kafka import CauseKind
from coordinator_model.state import Basis, Departure

NAME = "SessionTimeout"

_LOADED_MS = 2_000
"""Within this time a coordinator that takes over has loaded its groups and started their sessions."""


class Options(RuleOptions, frozen=True, kw_only=True):
    """No threshold: the rule reports events."""


def _sentence(_: Situation, departure: Departure) -> str:
    sure = "" if departure.basis is Basis.OBSERVED else " (inferred from its silence: no log line says so)"
    return f"{who_is(departure)}: {_silence(departure)}{sure}."


def _silence(departure: Departure) -> str:
    timeout_ms = departure.session_timeout_ms
    if timeout_ms < 0:
        return "no heartbeat for its whole session timeout (no source gives its length)"
    silent_ms = departure.at_ms - departure.last_heartbeat_ms
    # A shorter silence is impossible: the last heartbeat has another request's time, or another clock's.
    if departure.last_heartbeat_ms < 0 or silent_ms < timeout_ms:
        return f"no heartbeat for at least {span(timeout_ms)}, its session timeout"
    return f"no heartbeat for {span(silent_ms)}, session timeout {span(timeout_ms)}"


def _behind(situation: Situation, memory: EventMemory) -> tuple[str, str]:
    """Return the sign of a pause, or of trouble on one host, that distinguishes it from a crash."""
    storm = situation.memory.storm
    lost = [loss for loss in storm.losses if loss.at_ms >= memory.first_ms] if storm else []
    back = sum(loss.same_process for loss in lost)
    if back:
        who_came = "It" if len(lost) == 1 else f"{back} of {len(lost)}"
        why = "the process was paused (GC, CPU limit) or cut off by the network, not restarted"
        return "paused", f"{who_came} came back over the same connection: {why}."
    if is_one_host(lost, frozenset(one.client_host for one in situation.group.members.values())):
        host = lost[0].client_host.lstrip("/")
        return "host", f"All of them were on {host}, none elsewhere: look at that host and its network."
    return "", ""


def _is_told(situation: Situation, departure: Departure) -> bool:
    """Say whether the member is lost; it is not if its client is back under another member id.

    A failover does that to some clients (``groups/core/failovers.py``), in all groups at once, and one
    CoordinatorMoved alert reports it.  Each client that is back accounts for one old member.
    """
    group, moved = situation.group, situation.evidence.moved
    client_id = client_name(departure)
    if moved is None or not comes_again(client_id, departure, moved):
        return True
    # If the member was heard, its silence is known; otherwise only the coordinator's first wait shows it.
    slack_ms = UPSET_MS if departure.last_heartbeat_ms >= 0 else _LOADED_MS
    if not moved.at_ms <= departure.at_ms <= moved.over_ms + departure.session_timeout_ms + slack_ms:
        return True
    left = [
        one
        for one in group.departures
        if one.how is CauseKind.SESSION_TIMEOUT and comes_again(client_id, one, moved)
        if moved.at_ms <= one.at_ms <= departure.at_ms
    ]
    # A failover that only metadata shows becomes known after its clients have joined again.
    since_ms = min(moved.at_ms, departure.at_ms - departure.session_timeout_ms)
    back = [
        one
        for one in group.members.values()
        if one.joined_at_ms >= since_ms and client_name(one) == client_id
    ]
    return len(left) > len(back)


_RULE = EventRule(
    name=NAME,
    how=CauseKind.SESSION_TIMEOUT,
    severity=lambda situation: situation.thresholds.of(Options).severity,
    sentence=_sentence,
    happened="were removed after their session timeout",
    noun="session timeout",
    behind=_behind,
    is_told=_is_told,
    cost="Nobody read the partitions of a silent member until its session ended; then the whole group "
    "rebalanced.",
    advice=(
        "First check whether the process lives: look for a crash, an OOM kill or an eviction. Then look for "
        "GC pauses, CPU throttling and packet loss to the coordinator. If it was only restarted, let it "
        "close "
        "its consumer when it stops, or give it a group.instance.id."
    ),
)


SESSION_TIMEOUT = GroupRule(
    name=NAME,
    options=Options,
    evaluate=_RULE.evaluate,
    needs=Sees.A_LOG,
    remembers="events",
)
