"""What the live sources cannot show of a group, and until when its state is proved.

A quiet topic proves nothing: a group whose last record looks Stable may have been rebalancing for an hour.
So the report gives the state with the time of its last proof, and names what no live source shows.
"""

from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka import GroupState
from coordinator_model.state import Group

RUNNING, CAUSES, HEARTBEATS, REFUSALS = "running_rebalances", "causes", "heartbeats", "refused_requests"
"""Whether a rebalance is running; when and why rebalances begin and members leave; silence; refusals."""


def unknown(group: Group, context: Context) -> tuple[str, ...]:
    """Return what no live source shows of the group; causes from requests alone are inferred.

    The modern protocols write every change into the topic; the classic protocol writes only its results.
    """
    missing: list[str] = []
    if group.group_type == "classic" and not context.info_live and not context.requests_live:
        missing.append(RUNNING)
    if not context.info_live:
        missing.append(CAUSES)
    if not context.requests_live:
        missing += [HEARTBEATS, REFUSALS]
    return tuple(missing)


def known_at(group: Group, context: Context, at_ms: int) -> int:
    """Return the newest time (epoch ms, at most ``at_ms``) at which a source proved the state; -1 never.

    An accepted commit proves that its group has not gone on to another generation, an accepted heartbeat that
    the group is not rebalancing; neither proves anything about later times.
    """
    if context.info_live or group.group_type != "classic":
        return at_ms
    proofs = [group.state_since_ms, group.stored_at_ms, group.agreed_at_ms]
    if group.state is GroupState.STABLE:
        proofs.append(group.last_commit_ms)
        proofs += [max(one.last_heartbeat_ms, one.progressed_at_ms) for one in group.members.values()]
    return min(max(proofs), at_ms)
