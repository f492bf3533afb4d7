"""The texts of StaticMemberFenced for each kind of trouble with instance ids."""

NAME = "StaticMemberFenced"

FENCED, UNRELEASED, REPLACED, LATE, RENAMED = "fenced", "unreleased", "replaced", "late", "renamed"

_FIGHT_COST = (
    "Only one of the two processes consumes. Each time one replaces the other, the group reads again what "
    "was not committed."
)
_FIGHT_ADVICE = (
    "Give each process a group.instance.id of its own (the pod name of a StatefulSet, or host and number). "
    "Look for two deployments with one configuration, and for replicas of a Deployment that share an id."
)
WORDS: dict[str, tuple[str, str, str]] = {
    FENCED: ("two processes use one group.instance.id: {ids}.", _FIGHT_COST, _FIGHT_ADVICE),
    UNRELEASED: (
        "a second process asks for a group.instance.id that a live process holds: {ids}.",
        "The second process cannot join, so it does no work.",
        _FIGHT_ADVICE,
    ),
    REPLACED: (
        "instance {ids} was replaced {times} times in {span}: two processes with one id, or one that "
        "restarts again and again.",
        _FIGHT_COST,
        _FIGHT_ADVICE + " If there is only one process, it restarts again and again: see its log.",
    ),
    LATE: (
        "the session of {ids} ends ({session}) before a restart is done ({took}), so static membership "
        "saves nothing.",
        "Each restart costs two rebalances, and nobody reads the partitions for a session timeout.",
        "Raise session.timeout.ms above the time that a restart takes ({took} here), within the broker's "
        "group.max.session.timeout.ms; or make restarts faster.",
    ),
    RENAMED: (
        "group.instance.id changes at each restart ({times} times so far; old ids: {ids}).",
        "A restart then costs more than without an id: nobody reads the old member's partitions until "
        "its session ends.",
        "Take the id from something that survives a restart (the name of a StatefulSet's pod, the host), "
        "not from a random or new name; or use no group.instance.id.",
    ),
}
"""Kind -> summary, cost, advice; the alert uses the first kind that was seen."""
