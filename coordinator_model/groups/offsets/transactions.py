"""Offsets that transactions committed: claims until the marker tells whether they count.

The stream reads uncommitted, and a record does not show that it belongs to a transaction.  The request
log does: TxnOffsetCommit names group, producer and offsets, WriteTxnMarkers ends a producer's
transaction.  From the first of them on, a group's claims are kept apart, with what they would replace;
before it, and without the request log, a claim cannot be told from a commit.

Source: ``OffsetMetadataManager`` (pending transactional offsets), ``UnifiedLog`` control batches.
"""

from coordinator_model.groups.core import Turn
from coordinator_model.observations import OffsetsClaimed, TransactionEnded
from coordinator_model.state import Claim, Group

NOBODY = -1


def note_commit(group: Group, topic: str, partition: int, offset: int, at_ms: int) -> None:
    """Keep what a commit replaces, before it does: it may turn out to be a claim.

    Only in groups whose transactions were seen.  A claim that is open stays what would be gone back to.
    """
    if group.claims is None:
        return
    claimed = group.claims.setdefault(topic, {})
    last = claimed.get(partition)
    before = group.commits.get(topic, {}).get(partition)
    if last is not None and last.producer_id != NOBODY:
        before = last.before
    claimed[partition] = Claim(offset=offset, at_ms=at_ms, before=before)


def forget(group: Group, topic: str, partition: int) -> None:
    """Drop the claim of a partition whose offset was deleted: Kafka clears the pending one with it."""
    if group.claims is not None:
        group.claims.get(topic, {}).pop(partition, None)


def open_claims(group: Group) -> dict[str, dict[int, int]]:
    """Return topic -> partition -> producer of the offsets shown whose transaction has not ended."""
    open_ = {
        topic: {p: claim.producer_id for p, claim in claimed.items() if claim.producer_id != NOBODY}
        for topic, claimed in (group.claims or {}).items()
    }
    return {topic: producers for topic, producers in open_.items() if producers}


def claim(group: Group, what: OffsetsClaimed) -> None:
    """Take in that a producer committed offsets in its transaction; their records came before."""
    if group.claims is None:
        group.claims = {}
    for topic, partition, offset in what.offsets:
        claimed = group.claims.get(topic, {})
        last, shown = claimed.get(partition), group.commits.get(topic, {}).get(partition)
        if last is None and shown is not None and shown[0] == offset:
            # The first transaction that we see: what its record replaced is not known any more.
            last = Claim(offset=offset, at_ms=shown[1])
        if last is not None and last.offset == offset:
            group.claims.setdefault(topic, claimed)[partition] = Claim(
                offset=offset, at_ms=last.at_ms, producer_id=what.producer_id, before=last.before
            )


def transaction_ended(turn: Turn, what: TransactionEnded) -> None:
    """Let a producer's claims count, or take them back; Kafka ignores producers that it does not know."""
    group = turn.group
    for topic, claimed in (group.claims or {}).items():
        for partition in [p for p, one in claimed.items() if one.producer_id == what.producer_id]:
            ended = claimed.pop(partition)
            if not what.committed:
                _take_back(group, topic, partition, ended)


def _take_back(group: Group, topic: str, partition: int, aborted: Claim) -> None:
    """Show what was committed before; if nobody saw that, nothing: no offset is better than a wrong one."""
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
