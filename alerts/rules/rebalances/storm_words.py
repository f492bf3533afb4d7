"""The texts of RebalanceStorm for each pattern: the sentence about the cause, and the advice."""

from collections import Counter
from collections.abc import Callable

from alerts.alert import some, times, who_is
from alerts.rules.engine import StormMemory
from alerts.rules.rebalances.diagnosis import Diagnosis, Pattern
from coordinator_model.kafka import CauseKind

_Sentence = Callable[[StormMemory, Diagnosis], str]

_HOW = {
    CauseKind.SESSION_TIMEOUT: "by session timeout",
    CauseKind.MEMBER_LEFT: "by leaving",
    CauseKind.POLL_TIMEOUT: "by exceeding max.poll.interval.ms",
    CauseKind.REBALANCE_TIMEOUT: "by not rejoining in time",
}
_GONE = (*_HOW,)


def sentence(memory: StormMemory, found: Diagnosis) -> str:
    """Return the pattern in one sentence, with counts and names."""
    text = _SENTENCES[found.pattern](memory, found)
    others = some([f"{pattern} ({count})" for pattern, count in found.others])
    return f"{text} Also: {others}." if others else text


def _names(memory: StormMemory, found: Diagnosis) -> list[str]:
    return [who_is(memory.actors[index]) for index in found.clients]


def _kinds(found: Diagnosis) -> Counter[CauseKind]:
    return Counter(trigger.kind for trigger in found.triggers)


def _gone(found: Diagnosis) -> str:
    """Return how often and how members left: ``3 times (2 by session timeout, 1 by leaving)``."""
    kinds = _kinds(found)
    # The topic alone shows that a member is gone, not how; that counts as leaving.
    is_guess = any(one.kind is CauseKind.MEMBER_LEFT and not one.observed for one in found.triggers)
    words = {**_HOW, CauseKind.MEMBER_LEFT: "by leaving or a timeout"} if is_guess else _HOW
    how = [f"{kinds[kind]} {words[kind]}" for kind in _GONE if kinds[kind]]
    total = times(sum(kinds[kind] for kind in _GONE), "time")
    return f"{total} {how[0].split(' ', 1)[1]}" if len(how) == 1 else f"{total} ({', '.join(how)})"


def _back(found: Diagnosis) -> str:
    came = _kinds(found)[CauseKind.MEMBER_JOINED]
    return f" and came back {times(came, 'time')}" if came else ""


def _crash_loop(memory: StormMemory, found: Diagnosis) -> str:
    names = _names(memory, found)
    if len(names) == 1:
        return f"Crash loop: {names[0]} went {_gone(found)}{_back(found)}."
    return f"Crash loop: {some(names)} leave and come back again and again, {_gone(found)} in all."


def _pauses(memory: StormMemory, found: Diagnosis) -> str:
    went = f"was lost {_gone(found)}{_back(found)}"
    return (
        f"Pauses: {some(_names(memory, found))} {went} over the same connection: the process is alive, but "
        "paused (GC, CPU limit) or cut off from the network."
    )


def _host(memory: StormMemory, found: Diagnosis) -> str:
    hosts = some([host.lstrip("/") for host in found.hosts])
    return (
        f"One host: {found.losses} members on {hosts} fell silent, those on other hosts did not: a network "
        "fault, a pause or a crash of that host."
    )


def _silence(memory: StormMemory, found: Diagnosis) -> str:
    hosts = f" on {some([host.lstrip('/') for host in found.hosts])}" if found.hosts else ""
    return (
        f"Silence: {times(max(found.losses, 1), 'member')}{hosts} stopped sending heartbeats, none of them "
        "again and again: network, GC pauses, or processes killed."
    )


def _slow(memory: StormMemory, found: Diagnosis) -> str:
    names = some(_names(memory, found)) or "members that no source names"
    return (
        f"Slow processing: {names} did not call poll() within max.poll.interval.ms, "
        f"{times(sum(count for kind, count in _kinds(found).items() if kind in _HOW), 'time')}."
    )


def _hanging(memory: StormMemory, found: Diagnosis) -> str:
    names = some(_names(memory, found)) or "members that no source names"
    return f"Hanging members: {names} joined and then did not fetch the assignment in time."


def _deploy(memory: StormMemory, found: Diagnosis) -> str:
    kinds = _kinds(found)
    came, gone = kinds[CauseKind.MEMBER_JOINED], sum(kinds[kind] for kind in _GONE)
    moves = [f"{times(gone, 'member')} went" if gone else "", f"{times(came, 'member')} came" if came else ""]
    how = (
        ", without closing their consumers, so that the group waited for their session timeouts"
        if kinds[CauseKind.SESSION_TIMEOUT]
        else ""
    )
    each = "each once" if max(came, gone) <= len(found.clients) else "one after the other"
    return f"Deployment or scaling: {' and '.join(filter(None, moves))}, {each}{how}."


def _autoscaler(memory: StormMemory, found: Diagnosis) -> str:
    kinds = _kinds(found)
    sizes = [trigger.size for trigger in found.triggers if trigger.size >= 0]
    between = f" between {min(sizes)} and {max(sizes)} members" if sizes and min(sizes) < max(sizes) else ""
    came, gone = kinds[CauseKind.MEMBER_JOINED], sum(kinds[kind] for kind in _GONE)
    moves = f"{times(came, 'arrival')} and {times(gone, 'departure')}"
    return (
        f"Autoscaler: membership goes up and down{between}: {moves} of {times(len(found.clients), 'client')}."
    )


def _by_kind(what: str) -> _Sentence:
    def tell(memory: StormMemory, found: Diagnosis) -> str:
        names = some(_names(memory, found))
        return f"{what}: {times(len(found.triggers), 'rebalance')}{f' by {names}' if names else ''}."

    return tell


_SENTENCES: dict[Pattern, _Sentence] = {
    Pattern.CRASH_LOOP: _crash_loop,
    Pattern.PAUSES: _pauses,
    Pattern.HOST: _host,
    Pattern.SILENCE: _silence,
    Pattern.SLOW: _slow,
    Pattern.HANGING: _hanging,
    Pattern.DEPLOY: _deploy,
    Pattern.AUTOSCALER: _autoscaler,
    Pattern.SUBSCRIPTION: _by_kind("Changed subscriptions"),
    Pattern.PARTITIONS: _by_kind("Changed partition counts or topics"),
    Pattern.LEADER: _by_kind("The leader keeps joining again"),
    Pattern.STATIC: _by_kind("A group.instance.id is taken over again and again"),
    Pattern.PROTOCOL: _by_kind("Changed assignment protocols"),
    Pattern.COORDINATOR: _by_kind("The group's coordinator moved"),
    Pattern.UNKNOWN: _by_kind("Cause not known: no source tells it"),
}

_SILENT = (
    "look for restarts, OOM kills, long GC and packet loss on their hosts. If they are only slow, raise "
    "session.timeout.ms (45 s or more)."
)

IN_SUMMARY = frozenset(
    {Pattern.CRASH_LOOP, Pattern.PAUSES, Pattern.HOST, Pattern.DEPLOY, Pattern.AUTOSCALER, Pattern.STATIC}
)
"""Patterns that say more than the most frequent cause."""

ADVICE: dict[Pattern, str] = {
    Pattern.CRASH_LOOP: (
        "Stop this client until it is fixed, and read its log just before each end: look for exceptions, OOM "
        "kills and failed health checks. Give members a group.instance.id, so that a restart within "
        "session.timeout.ms needs no rebalance."
    ),
    Pattern.PAUSES: (
        "Look at this process at those times: long GC pauses, CPU throttling, swapping, packet loss to "
        "the coordinator. Until it is fixed raise session.timeout.ms (45 s or more)."
    ),
    Pattern.HOST: (
        "Look at that host: network, CPU limit, disk, swapping, long GC, OOM kills. Move its members to "
        "other hosts until it is healthy."
    ),
    Pattern.SILENCE: f"These clients die or go silent: {_SILENT}",
    Pattern.SLOW: (
        "Processing one batch takes longer than max.poll.interval.ms: lower max.poll.records, speed the "
        "work up, or raise max.poll.interval.ms above the slowest batch."
    ),
    Pattern.HANGING: (
        "These clients join and then hang before they fetch their assignment: take thread dumps, look "
        "for GC and CPU throttling, restart them."
    ),
    Pattern.DEPLOY: (
        "Wait for the deployment to end; if there is none, look at what starts and stops these members. Let "
        "them close their consumers when they stop, start new ones together, and give them a "
        "group.instance.id: then a restart needs no rebalance."
    ),
    Pattern.AUTOSCALER: (
        "Slow the autoscaler down: a longer stabilisation window, larger steps, and no scaling on lag that a "
        "rebalance itself causes. A cooperative assignor makes each step cheaper; with a group.instance.id "
        "a restart needs no rebalance."
    ),
    Pattern.SUBSCRIPTION: (
        "A client changes its subscription again and again: look for subscribe() in a loop, a regex "
        "that matches topics that come and go, or members of one group that subscribe differently."
    ),
    Pattern.PARTITIONS: (
        "Topics of the subscription keep changing: look for topics created, deleted or extended again "
        "and again, and narrow a subscription by pattern."
    ),
    Pattern.LEADER: (
        "The leader keeps joining again: look at its log for the reason (metadata changes, errors in "
        "its assignor), and restart it."
    ),
    Pattern.STATIC: (
        "One group.instance.id is used again and again: look for two processes with the same instance "
        "id, or a static member that crash-loops."
    ),
    Pattern.PROTOCOL: (
        "Members offer different assignors: look for a half-finished change of "
        "partition.assignment.strategy, and finish it or undo it."
    ),
    Pattern.COORDINATOR: (
        "Look at the brokers, not at the group: restarts, elections of the offsets topic's leaders, or a "
        "broker that comes and goes."
    ),
    Pattern.UNKNOWN: (
        "Read the coordinator's 'Preparing to rebalance group' lines for the reasons, and the clients' logs "
        "at those times."
    ),
}
"""Pattern -> advice."""
