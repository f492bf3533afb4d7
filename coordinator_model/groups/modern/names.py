"""Finds names of topics, of which most records of modern groups hold only ids.

Some records have names (share groups, Kafka 4.0).  Elsewhere the subscription behind a target assignment
often leaves one name only; if it leaves several, the id is shown in place of the name.
"""

from coordinator_model.observations import Assignment
from coordinator_model.state import SHARE, STREAMS, Modern

NAMES_MAX = 10_000


def named(modern: Modern, assignment: Assignment) -> Assignment:
    """Return an assignment by topic names, by ids where the name is not known."""
    names = modern.names
    return {names.get(topic, topic): partitions for topic, partitions in assignment.items()}


def learn(modern: Modern, group_type: str) -> None:
    """Infer names from a target assignment that has just been computed.

    A topic that several members have is one that all of them subscribed; each name belongs to one topic.
    """
    if group_type in {SHARE, STREAMS} or modern.assignment_epoch != modern.epoch:
        return
    candidates = _candidates(modern)
    while _conclude(modern, candidates):
        pass  # each known name leaves fewer for the others


def _conclude(modern: Modern, candidates: dict[str, set[str]]) -> bool:
    """Name the topics that can have one name only; False if there is none."""
    assigned = {topic for target in modern.targets.values() for topic in target}
    taken = {modern.names[topic] for topic in assigned & modern.names.keys()}
    certain = {}
    for topic, names in candidates.items():
        left = names if len(names) == 1 else names - taken
        if len(left) == 1 and len(modern.names) < NAMES_MAX:
            certain[topic] = next(iter(left))
    for topic in certain:
        del candidates[topic]
    modern.names.update(certain)
    return bool(certain)


def _candidates(modern: Modern) -> dict[str, set[str]]:
    """Return topic id -> names that it may have, for ids whose name is not known."""
    found: dict[str, set[str]] = {}
    for member_id, target in modern.targets.items():
        unknown = target.keys() - modern.names.keys()
        if not unknown:
            continue
        member = modern.members.get(member_id)
        metadata = None if member is None else member.metadata
        names = set() if metadata is None else {*metadata.topics, *modern.regexes.get(metadata.regex, ())}
        for topic in unknown:
            found[topic] = names if topic not in found else found[topic] & names
    return found
