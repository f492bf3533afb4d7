"""Applies commits and deleted offsets from the topic, to groups of every type."""

from coordinator_model.groups.core import Inference, Turn, create, note_commits
from coordinator_model.groups.offsets import intake
from coordinator_model.groups.offsets.transactions import forget, note_commit
from coordinator_model.kafka import GroupState
from coordinator_model.observations import (
    PARTITIONS_MAX,
    TOO_MANY_TOPICS,
    TOPICS_MAX,
    Commit,
    OffsetsCommitted,
)
from coordinator_model.state import Group


def offsets_committed(turn: Turn, what: OffsetsCommitted) -> None:
    """Store the newest offsets; a commit proves that the group exists, at least as a simple group."""
    group = turn.group
    if group.state is GroupState.DEAD and any(commit.offset is not None for commit in what.commits):
        create(turn, by=Inference.COMMIT_STORED)
    note_commits(turn, what.commits)
    if not turn.context.backlog:
        turn.step.progressed |= intake.note_commits(group, what.commits)
    removed_ms = -1
    for commit in what.commits:
        if commit.offset is not None:
            if has_room(group, commit.topic, commit.partition):
                _keep(group, commit, commit.offset)
            elif TOO_MANY_TOPICS not in turn.step.divergences:
                turn.step.divergences.append(TOO_MANY_TOPICS)
        else:
            # A run of records may have its partitions in any order.
            removed_ms = max(removed_ms, _remove(group, commit))
    if removed_ms >= 0 and not group.commits:
        group.offsets_gone_ms = removed_ms


def has_room(group: Group, topic: str, partition: int) -> bool:
    """Return whether a group may commit to one more partition; groups of real clusters have fewer."""
    known = group.commits.get(topic)
    if known is None:
        return len(group.commits) < TOPICS_MAX
    return partition in known or len(known) < PARTITIONS_MAX


def _keep(group: Group, commit: Commit, offset: int) -> None:
    at_ms = commit.committed_at_ms
    if group.claims is not None:
        note_commit(group, commit.topic, commit.partition, offset, at_ms)
    topic = group.commits.setdefault(commit.topic, {})
    topic[commit.partition] = (offset, at_ms)
    group.last_commit_ms = max(group.last_commit_ms, at_ms)
    group.offsets_gone_ms = -1


def _remove(group: Group, commit: Commit) -> int:
    """Return when (epoch ms) an offset of the group was deleted; -1 if the group had none."""
    forget(group, commit.topic, commit.partition)
    partitions = group.commits.get(commit.topic)
    if partitions is None or partitions.pop(commit.partition, None) is None:
        return -1
    if not partitions:
        del group.commits[commit.topic]
    return commit.committed_at_ms
