"""The rules about one group, in the order in which they are asked, and why in this order."""

from collections.abc import Callable
from typing import NamedTuple

from alerts.rules import (
    group_id_collision,
    idle_members,
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
    # Advice comes after what happened.
    GroupRule(unsafe_timeouts.NAME, unsafe_timeouts.evaluate),
)
