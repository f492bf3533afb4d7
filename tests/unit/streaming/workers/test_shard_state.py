"""The host of a shard in Spark: what is saved, what is said, and when nothing needs doing."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pandas as pd
import pytest

from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, Counted, EventsClock
from coordinator_model.observations.records import GroupTombstone
from coordinator_model.observations.seen import AnyObservation, Seen, pack
from coordinator_model.ordering import SETTLE_MS
from coordinator_model.shard.judging import Divergence, Outputs
from streaming.control.clocks_read import ClocksRead
from streaming.workers.shard_state import NEVER_MS, STATE_VERSION, ShardStage, needs_look, rows_of
from tests.unit.made_seen import seen
from tests.unit.streaming.fakes import SavedShard


def _seen(what: AnyObservation, at_ms: int = 1_000, offset: int = 0) -> Seen:
    return seen(at_ms, what, Source.CONTROL, offset=offset)


def _clock(at_ms: int, *, ask: bool = False, skew_ms: int = 0) -> Seen:
    skews = {1: skew_ms} if skew_ms else {}
    return _seen(Clock(sequence=at_ms, end_offset=0, position=0, skew_ms=skews, ask=ask), at_ms)


def _frames(*seen: Seen) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame({"cluster": ["c"], "shard": [0], "payload": [pack(list(seen))]})


@pytest.mark.parametrize(
    ("seen", "due_ms", "expected"),
    [
        ([_clock(1_000)], NEVER_MS, False),
        ([_clock(1_000)], 1_001, False),
        ([_clock(1_000)], 1_000, True),
        ([_seen(EventsClock(sequence=1), 2_000)], 1_500, True),
        ([_clock(1_000, skew_ms=600)], 1_500, True),
        ([_clock(1_000, ask=True)], NEVER_MS, True),
        ([_seen(Counted(counts=()))], NEVER_MS, True),
        ([_clock(1_000), _seen(GroupTombstone(group="g"))], NEVER_MS, True),
        ([], NEVER_MS, False),
    ],
)
def test_a_shard_is_woken_by_news_questions_and_deadlines_only(
    seen: list[Seen], due_ms: int, *, expected: bool
) -> None:
    """Clocks that reach no deadline leave the shard asleep; anything else wakes it."""
    assert needs_look(seen, due_ms) is expected


def test_a_sleeping_shard_costs_no_update() -> None:
    """Once it exists and is not due, a clock neither loads nor saves it."""
    stage, state = ShardStage(cluster="c", shard_count=1), SavedShard()
    list(stage(("c", 0), _frames(_clock(1_000)), state))
    assert state.saved is not None
    assert (state.saved[0], state.updates) == (STATE_VERSION, 1)
    state.saved = (STATE_VERSION, NEVER_MS, state.saved[2])
    list(stage(("c", 0), _frames(_clock(2_000)), state))
    assert state.updates == 1


def test_an_asked_shard_reports() -> None:
    """A clock that asks gets one frame with the row that says so, keyed by the shard."""
    stage, state = ShardStage(cluster="c", shard_count=1), SavedShard()
    frames = list(stage(("c", 0), _frames(_clock(1_000, ask=True)), state))
    rows = [tuple(row) for frame in frames for row in frame[["kind", "key"]].itertuples(index=False)]
    assert ("reported", "0") in rows


def test_the_saved_shard_is_what_the_next_batch_begins_with() -> None:
    """Two batches over the saved bytes end like one batch with both."""
    stage = ShardStage(cluster="c", shard_count=1)
    first, second = _clock(1_000), _clock(2_000, ask=True)
    apart, together = SavedShard(), SavedShard()
    rows_apart = [*stage(("c", 0), _frames(first), apart), *stage(("c", 0), _frames(second), apart)]
    rows_together = list(stage(("c", 0), _frames(first, second), together))
    assert [frame["kind"].tolist() for frame in rows_apart] == [["due"], ["reported", "due"]]
    assert rows_apart[1].values.tolist() == rows_together[0].values.tolist()


def test_every_divergence_becomes_a_row() -> None:
    """Whatever its kind, with how many there were, so that the driver can count them all."""
    found = [
        Divergence(kind="inferred_wrong", group="g", broker=1, at_ms=5, detail="d", count=3),
        Divergence(kind="internal_error", group="", broker=-1, at_ms=6),
    ]
    rows = list(rows_of(Outputs(divergences=found), 4))
    assert [(kind, key) for kind, key, _ in rows] == [("divergence", "g"), ("divergence", "")]
    first = msgspec.json.decode(rows[0][2])
    assert {name: first[name] for name in ("kind", "broker", "at_ms", "detail", "count")} == {
        "kind": "inferred_wrong",
        "broker": 1,
        "at_ms": 5,
        "detail": "d",
        "count": 3,
    }


def test_a_shard_that_was_looked_at_tells_until_when_it_may_sleep() -> None:
    """The driver writes no clock for it until then, unless something happens."""
    stage, saved = ShardStage(cluster="c", shard_count=1), SavedShard()
    waiting = _seen(GroupTombstone(group="g"), 5_000)  # a record of the backlog waits for a clock after it
    told: list[int] = []
    for frames in (_frames(_clock(1_000), waiting), _frames(_clock(6_000))):
        rows = pd.concat(list(stage(("c", 0), frames, saved)))
        told += [msgspec.json.decode(value) for value in rows["value"][rows["kind"] == "due"]]
    assert told == [5_000 + 1 + SETTLE_MS, NEVER_MS]


def test_the_clusters_shard_tells_which_clocks_it_read() -> None:
    """Asleep or awake: from that the driver knows how far behind the wall clock all is judged."""
    stage, saved = ShardStage(cluster="c", shard_count=1), SavedShard()
    told = []
    for at_ms in (1_000, 2_000, 2_500):
        copies = [
            msgspec.structs.replace(_seen(EventsClock(sequence=1), at_ms - 100 * n), partition=n)
            for n in (0, 1)
        ]
        clock = Clock(sequence=1, end_offset=0, position=0, events_partitions=2)
        frames = [pd.DataFrame({"payload": [pack([_seen(clock, at_ms), *copies])]})]
        rows = pd.concat(list(stage(("c", -1), iter(frames), saved)))
        values: list[Any] = list(rows["value"][rows["kind"] == "clocks_read"])
        told += [msgspec.json.decode(value, type=ClocksRead) for value in values]
        saved.saved = (STATE_VERSION, NEVER_MS, saved.get[2])
    assert [one.control_ms for one in told] == [1_000, 2_000, 2_500]
    assert [one.events for one in told] == [{0: 1_000, 1: 900}, {0: 2_000, 1: 1_900}, {0: 2_500, 1: 2_400}]
    assert (told[0].now_ms, told[1].now_ms, told[0].partitions) == (600, -1, 2)
