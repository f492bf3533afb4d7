"""Keeps pending transactional offsets: offsets of open transactions, until a marker commits or aborts them.

The stream reads uncommitted, and a record does not show that it belongs to a transaction.  The request log
does: TxnOffsetCommit names group, producer and offsets, WriteTxnMarkers ends a producer's transaction.  From
a group's first one on, its pending offsets are kept apart, with the offsets that they replace.  Before it,
and without the request log, a pending offset looks like a plain commit.

Source: ``OffsetMetadataManager`` (pending transactional offsets), ``UnifiedLog`` control batches.
"""

from coordinator_model.groups.core import Turn
from coordinator_model.observations import TransactionalCommit, TransactionEnded
from coordinator_model.state import Group, PendingOffset

NOBODY = -1


def note_commit(group: Group, topic: str, partition: int, offset: int, at_ms: int) -> None:
    """Keep the offset that a commit replaces: the commit may turn out to be transactional.

    Only in groups whose transactions were seen.  While a transaction is open, the offset before it is kept.
    """
    if group.claims is None:
        return
    claimed = group.claims.setdefault(topic, {})
    last = claimed.get(partition)
    before = group.commits.get(topic, {}).get(partition)
    if last is not None and last.producer_id != NOBODY:
        before = last.before
    claimed[partition] = PendingOffset(offset=offset, at_ms=at_ms, before=before)


def forget(group: Group, topic: str, partition: int) -> None:
    """Drop the pending offset of a partition whose offset was deleted, as Kafka does."""
    if group.claims is not None:
        group.claims.get(topic, {}).pop(partition, None)


def open_claims(group: Group) -> dict[str, dict[int, int]]:
    """Return topic -> partition -> producer of the shown offsets whose transaction is open."""
    open_ = {
        topic: {p: claim.producer_id for p, claim in claimed.items() if claim.producer_id != NOBODY}
        for topic, claimed in (group.claims or {}).items()
    }
    return {topic: producers for topic, producers in open_.items() if producers}


def claim(group: Group, what: TransactionalCommit) -> None:
    """Apply a transactional commit of a producer; its records came before."""
    if group.claims is None:
        group.claims = {}
    for topic, partition, offset in what.offsets:
        claimed = group.claims.get(topic, {})
        last, shown = claimed.get(partition), group.commits.get(topic, {}).get(partition)
        if last is None and shown is not None and shown[0] == offset:
            # This is the first transaction seen: the offset that its record replaced is unknown.
            last = PendingOffset(offset=offset, at_ms=shown[1])
        if last is not None and last.offset == offset:
            group.claims.setdefault(topic, claimed)[partition] = PendingOffset(
                offset=offset, at_ms=last.at_ms, producer_id=what.producer_id, before=last.before
            )


def transaction_ended(turn: Turn, what: TransactionEnded) -> None:
    """Commit or abort a producer's pending offsets; Kafka ignores producers that it does not know."""
    group = turn.group
    for topic, claimed in (group.claims or {}).items():
        for partition in [p for p, one in claimed.items() if one.producer_id == what.producer_id]:
            ended = claimed.pop(partition)
            if not what.committed:
                _take_back(group, topic, partition, ended)


def _take_back(group: Group, topic: str, partition: int, aborted: PendingOffset) -> None:
    """Restore the offset committed before; none if it is unknown: no offset is better than a wrong one."""
    partitions = group.commits.get(topic, {})
    shown = partitions.get(partition)
    if shown is None or shown[0] != aborted.offset:
        return
    if aborted.before is not None:
        partitions[partition] = aborted.before
        return
    del partitions[partition]
    if not partitions:
        del group.commits[topic]
