"""The words for each kind of cause, in one table: in stories, and in summaries of many rebalances."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_model.kafka import CauseKind


class _Words(NamedTuple):
    began: str
    """What happened; ``{who}`` is a member."""
    plural: str = "causes that no source tells"
    """Many of them, for summaries; only what begins rebalances is summed up."""


_WORDS: Mapping[CauseKind, _Words] = {
    CauseKind.MEMBER_JOINED: _Words("{who} joined", "members joining"),
    CauseKind.MEMBER_LEFT: _Words("{who} left", "members leaving"),
    CauseKind.SESSION_TIMEOUT: _Words(
        "{who} was removed: no heartbeat for its session timeout", "session timeouts"
    ),
    CauseKind.POLL_TIMEOUT: _Words(
        "{who} left: no poll() within max.poll.interval.ms", "members that exceeded max.poll.interval.ms"
    ),
    CauseKind.REBALANCE_TIMEOUT: _Words(
        "{who} was removed: it did not rejoin within the rebalance timeout",
        "members that did not rejoin in time",
    ),
    CauseKind.SYNC_TIMEOUT: _Words(
        "{who} was removed: it did not fetch its assignment in time",
        "members that did not fetch their assignment in time",
    ),
    CauseKind.SUBSCRIPTION_CHANGED: _Words(
        "{who} changed what it subscribes to or gave up partitions", "changed subscriptions"
    ),
    CauseKind.LEADER_REJOINED: _Words("The leader, {who}, joined again", "the leader joining again"),
    CauseKind.STATIC_MEMBER_REPLACED: _Words(
        "{who} took over a group.instance.id", "replaced static members"
    ),
    CauseKind.PARTITIONS_CHANGED: _Words(
        "Topics or partitions of the subscription changed, noticed by {who}", "changed partition counts"
    ),
    CauseKind.PROTOCOL_CHANGED: _Words("The group's protocol changed", "changed assignment protocols"),
    CauseKind.COORDINATOR_MOVED: _Words("Another broker took over as coordinator", "coordinator moves"),
    CauseKind.ALL_MEMBERS_LEFT: _Words("The last member, {who}, left"),
    CauseKind.GROUP_CREATED: _Words("The group was created"),
    CauseKind.GROUP_DELETED: _Words("The group was deleted"),
    CauseKind.OFFSETS_EXPIRED: _Words("The group's offsets expired"),
    CauseKind.JOIN_COMPLETED: _Words("The members have joined"),
    CauseKind.ASSIGNMENT_STORED: _Words("The assignment was stored"),
    CauseKind.UNKNOWN: _Words("A rebalance began; no source tells why"),
}


def what_began(kind: CauseKind, who: str) -> str:
    """Return what happened to whom, without a full stop; ``who`` may begin the sentence."""
    return _WORDS[kind].began.format(who=who)


def why(kind: CauseKind) -> str:
    """Return the cause of rebalances as a plural noun."""
    return _WORDS[kind].plural
