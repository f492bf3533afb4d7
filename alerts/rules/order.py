"""The rules about one group, in the order in which they are asked, and why in this order."""

from collections.abc import Callable
from typing import NamedTuple

from alerts.rules import (
    assignment_churn,
    commits_stalled,
    commits_stopped,
    group_deleted,
    group_id_collision,
    idle_members,
    lag_growing,
    offset_rewind,
    offsets_expiring,
    poll_interval_exceeded,
    rebalance_storm,
    session_timeout,
    session_timeout_imminent,
    static_member_fenced,
    stuck_completing_rebalance,
    stuck_preparing_rebalance,
    unsafe_timeouts,
    zombie_commit,
)
from alerts.rules.situation import Situation, Verdict


class GroupRule(NamedTuple):
    """One rule: the name of its alert, and the function that judges."""

    name: str
    evaluate: Callable[[Situation], Verdict]


RULES: tuple[GroupRule, ...] = (
    # A loop of burned generations passes through the join phase again and again.  Its alert keeps such a
    # group until the join phase itself is stuck; then it ends, and StuckPreparingRebalance takes over.
    GroupRule(stuck_completing_rebalance.NAME, stuck_completing_rebalance.evaluate),
    GroupRule(stuck_preparing_rebalance.NAME, stuck_preparing_rebalance.evaluate),
    # The symptom before its causes: whoever gets a storm and the timeouts behind it reads the storm first.
    GroupRule(rebalance_storm.NAME, rebalance_storm.evaluate),
    # The forecast must see the departure that ends it in the same judgement that makes it an event.
    GroupRule(session_timeout_imminent.NAME, session_timeout_imminent.evaluate),
    GroupRule(session_timeout.NAME, session_timeout.evaluate),
    GroupRule(poll_interval_exceeded.NAME, poll_interval_exceeded.evaluate),
    # Two processes under one instance id are the cause, a fenced one's commits only a sign of it.
    GroupRule(static_member_fenced.NAME, static_member_fenced.evaluate),
    GroupRule(zombie_commit.NAME, zombie_commit.evaluate),
    GroupRule(group_id_collision.NAME, group_id_collision.evaluate),
    GroupRule(idle_members.NAME, idle_members.evaluate),
    # Nobody commits in a rebalance or after a timeout: those rules speak first, and these hold back.
    GroupRule(commits_stopped.NAME, commits_stopped.evaluate),
    GroupRule(commits_stalled.NAME, commits_stalled.evaluate),
    GroupRule(lag_growing.NAME, lag_growing.evaluate),
    GroupRule(offset_rewind.NAME, offset_rewind.evaluate),
    # Advice comes after what happened.
    GroupRule(unsafe_timeouts.NAME, unsafe_timeouts.evaluate),
    # After the storm, which tells the same cost and silences it.
    GroupRule(assignment_churn.NAME, assignment_churn.evaluate),
    # The forecast before the event that ends it.
    GroupRule(offsets_expiring.NAME, offsets_expiring.evaluate),
    GroupRule(group_deleted.NAME, group_deleted.evaluate),
)
