"""Transactional commits are claims until their marker: pending, committed or aborted."""

from coordinator_model import observations as on
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.observations.requests import (
    CommitsAnswered,
    Heartbeats,
    TransactionalCommit,
    TransactionEnded,
)
from coordinator_model.shard.report import report_of
from coordinator_model.state.group import Group
from tests.unit.made_seen import seen

FULL = Context("c", info_live=True, offsets_enabled=True, backlog=False, requests_live=True)
PRODUCER = 4_001


def see(group: Group, at_ms: int, what: on.AnyObservation, context: Context = FULL) -> None:
    source = Source.OFFSETS if isinstance(what, OffsetsCommitted) else Source.REQUEST_LOG
    classic.apply(group, seen(at_ms, what, source, offset=at_ms), context)


def commit(group: Group, at_ms: int, offset: int | None, partition: int = 0) -> None:
    see(group, at_ms, OffsetsCommitted(group="g", commits=(Commit("t", partition, offset, at_ms),)))


def claim(group: Group, at_ms: int, offset: int, *, producer: int = PRODUCER, partition: int = 0) -> None:
    """A transactional commit: its record, and a little later its answer in the request log."""
    commit(group, at_ms, offset, partition)
    claimed = TransactionalCommit(
        group="g",
        member_id="",
        generation=-1,
        error_code=0,
        producer_id=producer,
        offsets=(("t", partition, offset),),
    )
    see(group, at_ms + 1, claimed)


def end(group: Group, at_ms: int, *, committed: bool, producer: int = PRODUCER) -> None:
    see(group, at_ms, TransactionEnded(producer_id=producer, committed=committed, partition=0))


def offsets(group: Group) -> dict[str, dict[int, int]]:
    """Return what the report shows."""
    report = report_of(group, at_ms=0)
    return {topic: {p: offset for p, (offset, _) in some.items()} for topic, some in report.commits.items()}


def transacting() -> Group:
    """Return a group that has committed offset 100 in a transaction."""
    group = classic.new_group("g")
    claim(group, 10, 100)
    end(group, 20, committed=True)
    return group


def test_an_open_transaction_is_said() -> None:
    """The offset shows as soon as it is in the topic, with the producer that has not decided yet."""
    group = transacting()
    claim(group, 30, 200)

    assert (offsets(group), report_of(group, at_ms=0).claimed) == ({"t": {0: 200}}, {"t": {0: PRODUCER}})


def test_a_committed_claim_stays() -> None:
    """After the marker it is a commit like any other."""
    group = transacting()
    claim(group, 30, 200)
    end(group, 40, committed=True)

    assert (offsets(group), report_of(group, at_ms=0).claimed) == ({"t": {0: 200}}, {})


def test_an_aborted_claim_is_taken_back() -> None:
    """What was committed before counts again."""
    group = transacting()
    claim(group, 30, 200)
    claim(group, 32, 210)
    end(group, 40, committed=False)

    assert (offsets(group), report_of(group, at_ms=0).claimed) == ({"t": {0: 100}}, {})


def test_the_first_claim_of_all_leaves_nothing() -> None:
    """What the first transaction replaced was not kept: no offset is better than one that does not count."""
    group = classic.new_group("g")
    commit(group, 5, 50)
    claim(group, 10, 100)
    end(group, 20, committed=False)

    assert offsets(group) == {}


def test_a_commit_behind_a_claim_outlives_its_abort() -> None:
    """A plain commit with a later record counts whatever the transaction comes to."""
    group = transacting()
    claim(group, 30, 200)
    commit(group, 35, 150)
    end(group, 40, committed=False)

    assert offsets(group) == {"t": {0: 150}}


def test_a_claim_after_a_plain_commit_goes_back_to_it() -> None:
    """Plain commits and transactions may alternate."""
    group = transacting()
    commit(group, 25, 120)
    claim(group, 30, 200)
    end(group, 40, committed=False)

    assert offsets(group) == {"t": {0: 120}}


def test_only_its_own_producer_ends_a_transaction() -> None:
    """Markers of producers that are not known here are ignored, and two transactions do not mix."""
    group = transacting()
    claim(group, 30, 200)
    claim(group, 30, 900, producer=7, partition=1)
    end(group, 40, committed=False, producer=9)
    end(group, 41, committed=False, producer=7)

    assert offsets(group) == {"t": {0: 200}}
    assert report_of(group, at_ms=0).claimed == {"t": {0: PRODUCER}}


def test_a_deleted_offset_takes_its_claim_along() -> None:
    """A tombstone clears the pending offset as well: its abort brings nothing back."""
    group = transacting()
    claim(group, 30, 200)
    commit(group, 35, None)
    end(group, 40, committed=False)

    assert offsets(group) == {}


def test_groups_without_transactions_keep_nothing() -> None:
    """State is paid for by those who use it."""
    group = classic.new_group("g")
    commit(group, 5, 50)
    commit(group, 6, 60)

    assert group.claims is None


def test_a_claim_does_not_prove_the_group_stable() -> None:
    """The coordinator accepts transactional commits in the sync phase too."""
    group = classic.new_group("g")
    requests = Context("c", info_live=False, offsets_enabled=True, backlog=False, requests_live=True)
    claimed = TransactionalCommit(group="g", member_id="a", generation=3, error_code=0, producer_id=1)
    see(group, 10, claimed, requests)

    assert (group.state, group.generation) == ("CompletingRebalance", 3)


def test_a_transactional_commit_is_progress_and_no_sign_of_life() -> None:
    """The coordinator restarts the session timer for plain commits only, in Kafka 3 and 4."""
    group = classic.new_group("g")
    requests = Context("c", info_live=False, offsets_enabled=True, backlog=False, requests_live=True)
    beat = Heartbeats(group="g", member_id="a", generation=3, error_code=0, times=(10,))
    claimed = TransactionalCommit(group="g", member_id="a", generation=3, error_code=0, producer_id=1)
    committed = CommitsAnswered(group="g", member_id="a", generation=3, error_code=0, times=(6_000,))

    see(group, 10, beat, requests)
    see(group, 5_000, claimed, requests)
    member = group.members["a"]
    assert (member.session_base_ms, member.progressed_at_ms) == (10, 5_000)

    see(group, 6_000, committed, requests)
    assert (member.session_base_ms, member.progressed_at_ms) == (6_000, 6_000)
