"""The texts of StaticMemberFenced for each kind of trouble with instance ids."""

NAME = "StaticMemberFenced"

FENCED, UNRELEASED, REPLACED, LATE, RENAMED = "fenced", "unreleased", "replaced", "late", "renamed"

_FIGHT_COST = (
    "Only one of them consumes; each time one is thrown out, what it had not committed is read again."
)
_FIGHT_ADVICE = (
    "Give each process a group.instance.id of its own (the pod name of a StatefulSet, or host and number). "
    "Look for two deployments with one configuration, and for replicas of a Deployment that share an id."
)
WORDS: dict[str, tuple[str, str, str]] = {
    FENCED: ("two processes use one group.instance.id: {ids}.", _FIGHT_COST, _FIGHT_ADVICE),
    UNRELEASED: (
        "a second process asks for a group.instance.id whose holder lives: {ids}.",
        "The second process cannot join, so its capacity is missing.",
        _FIGHT_ADVICE,
    ),
    REPLACED: (
        "instance {ids} was replaced {times} times in {span}: two processes with one id, or one that "
        "restarts again and again.",
        _FIGHT_COST,
        _FIGHT_ADVICE + " If there is only one, it crash-loops: see its log.",
    ),
    LATE: (
        "the session of {ids} ends before a restart is done ({session} against {took}), so that static "
        "membership saves nothing.",
        "Each restart costs two rebalances and lets its partitions stand still for a session timeout.",
        "Raise session.timeout.ms above the time that a restart takes ({took} here), within the broker's "
        "group.max.session.timeout.ms; or make restarts quicker.",
    ),
    RENAMED: (
        "group.instance.id changes at each restart ({times} times now; last gone: {ids}).",
        "A restart then costs more than without the id: the old one stands still until its session ends.",
        "Take the id from something that survives a restart (the name of a StatefulSet's pod, the host), "
        "not from a random or new name; or drop it.",
    ),
}
"""Kind -> summary, cost, advice; the alert uses the first kind that was seen."""
