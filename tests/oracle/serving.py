"""Which operation serves which request and which timer."""

from tests.oracle import commits, describing, endings, joins, leaves, phases, sessions, syncs
from tests.oracle.due import Due, InitialJoinDue, JoinDue, SessionDue, SyncDue
from tests.oracle.shard import Result, Shard
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.requests import (
    DeleteGroups,
    DescribeGroups,
    EndTransaction,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)
from tests.oracle.values.responses import EndTransactionResponse, Response
from tests.oracle.values.stored import TransactionMarker


def is_read(request: Request) -> bool:
    """Say whether a request only looks, at what is committed."""
    if isinstance(request, OffsetFetch):
        return not request.require_stable
    return isinstance(request, DescribeGroups | ListGroups)


def look(shard: Shard, request: Request) -> Response:
    """Answer a request that only looks."""
    match request:
        case DescribeGroups():
            return describing.describe(shard, request)
        case ListGroups():
            return describing.list_groups(shard, request)
        case OffsetFetch():
            return commits.fetch(shard, request)
        case _:
            raise TypeError(type(request))


def serve(ticket: Ticket, shard: Shard) -> Result:
    """Run the operation of a request.

    Raises:
        RefusedError: the whole request is answered with it.
    """
    match ticket.request:
        case JoinGroup() as request:
            return joins.join(shard, request, ticket)
        case SyncGroup() as request:
            return syncs.sync(shard, request, ticket)
        case Heartbeat() as request:
            return sessions.heartbeat(shard, request)
        case LeaveGroup() as request:
            return leaves.leave(shard, request)
        case _:
            return _serve_offsets(shard, ticket.request)


def _serve_offsets(shard: Shard, request: Request) -> Result:
    match request:
        case OffsetCommit():
            return commits.commit(shard, request)
        case TxnOffsetCommit():
            return commits.commit_in_transaction(shard, request)
        case OffsetDelete():
            return commits.delete(shard, request)
        case DeleteGroups():
            return endings.delete_groups(shard, request)
        case OffsetFetch():
            return Result(response=commits.fetch(shard, request))
        case EndTransaction():
            marker = TransactionMarker(producer_id=request.producer_id, committed=request.committed)
            return Result(records=[marker], response=EndTransactionResponse())
        case _:
            raise TypeError(type(request))


def on_due(due: Due, shard: Shard) -> Result:
    """Run the operation of a timer."""
    match due:
        case SessionDue():
            return sessions.on_session_due(shard, due)
        case JoinDue():
            return phases.on_join_due(shard, due)
        case InitialJoinDue():
            return phases.on_initial_join_due(shard, due)
        case SyncDue():
            return phases.on_sync_due(shard, due)
        case _:
            return endings.on_cleanup_due(shard)
