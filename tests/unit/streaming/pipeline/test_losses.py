"""What a start finds lost, and how the checkpoint is put right for topics that were made anew."""

import json
from typing import Any

import msgspec
import pytest

from streaming.kafka_address import KafkaAddress
from streaming.pipeline import losses
from streaming.pipeline.beginning import FILE, Beginning
from streaming.pipeline.folders import CheckpointRefusedError
from streaming.pipeline.losses import Log, Missed, TopicNow, find_losses, judge, settle_losses, went_back
from tests.unit.streaming.made_plans import plan

OFFSETS, EVENTS, CONTROL = "__consumer_offsets", "events", "control"
OLD, NEW = "old-id", "new-id"
BEGAN = Beginning(
    format=1,
    cluster="prod",
    run="r",
    shard_count=2,
    started_at_ms=1,
    own_output=False,
    offsets_topic=OFFSETS,
    events_topic=EVENTS,
    offsets_ends=[7, 8],
    events_ends=[100, 100],
    events_starts=[50, 60],
    control_end=9,
    topic_ids=dict.fromkeys((OFFSETS, EVENTS, CONTROL), OLD),
)


class Folder:
    """A checkpoint's folder, in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def batch(self, number: int, *sources: dict[str, dict[str, int]] | None, ended: bool = True) -> None:
        """Let Spark have planned a batch, and perhaps ended it."""
        lines = [
            "v1",
            '{"batchWatermarkMs":0}',
            *("-" if one is None else json.dumps(one) for one in sources),
        ]
        self.files[f"query/offsets/{number}"] = "\n".join(lines).encode()
        if ended:
            self.files[f"query/commits/{number}"] = b"v1\n{}"

    def read(self, name: str) -> bytes | None:
        """Return a file."""
        return self.files.get(name)

    def names(self, name: str) -> list[str]:
        """Return what lies in a sub-folder, with Hadoop's sums beside it."""
        found = [path.removeprefix(f"{name}/") for path in self.files if path.startswith(f"{name}/")]
        return [*found, *(f".{one}.crc" for one in found)]

    def replace(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.files[name] = content

    def delete(self, name: str) -> None:
        """Remove a file or a folder."""
        self.files = {path: value for path, value in self.files.items() if not path.startswith(name)}


@pytest.fixture
def folder() -> Folder:
    """Return the checkpoint of a job that ended batch 10 and had planned batch 11."""
    folder = Folder()
    folder.batch(9, {OFFSETS: {"0": 5, "1": 5}, EVENTS: {"0": 150, "1": 150}, CONTROL: {"0": 20}})
    folder.batch(10, {OFFSETS: {"0": 10, "1": 10}, EVENTS: {"0": 200, "1": 200}, CONTROL: {"0": 30}})
    folder.batch(
        11, {OFFSETS: {"0": 12, "1": 10}, EVENTS: {"0": 210, "1": 200}, CONTROL: {"0": 35}}, ended=False
    )
    return folder


def now(monkeypatch: pytest.MonkeyPatch, **changed: TopicNow) -> None:
    """Let the cluster be as it was, but for some topics."""
    topics = {
        OFFSETS: TopicNow(OLD, {0: 0, 1: 0}, {0: 12, 1: 10}),
        EVENTS: TopicNow(OLD, {0: 0, 1: 0}, {0: 300, 1: 300}),
        CONTROL: TopicNow(OLD, {0: 0}, {0: 40}),
    }
    names = {"offsets": OFFSETS}
    topics |= {names.get(name, name): one for name, one in changed.items()}

    def ask(_: dict[str, KafkaAddress]) -> dict[str, TopicNow]:
        return topics

    monkeypatch.setattr(losses, "ask", ask)
    monkeypatch.setattr(losses, "_AGAIN_S", 0.0)


def test_nothing_is_lost_where_the_topics_hold_what_was_not_read(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """And nothing is changed."""
    now(monkeypatch)
    files = dict(folder.files)
    found = find_losses(plan(), BEGAN, folder)
    settle_losses(found, BEGAN, folder)
    assert (found.missed, found.began, folder.files) == ([], BEGAN, files)


def test_what_retention_deleted_unread_is_counted_by_partition(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """From where the next batch begins to where the log begins now; a batch that was planned has not read."""
    now(monkeypatch, events=TopicNow(OLD, {0: 260, 1: 0}, {0: 300, 1: 300}))
    found = find_losses(plan(), BEGAN, folder)
    assert found.missed == [Missed(EVENTS, (0,), 60, is_anew=False)]
    assert (
        "60 offsets of topic events (partitions 0) were deleted before they were read"
        in found.missed[0].sentence
    )
    settle_losses(found, BEGAN, folder)
    assert "query/offsets/11" in folder.files  # Spark goes on by itself


def test_gaps_of_compaction_are_no_loss() -> None:
    """The offsets topic has fewer records than offsets; only a log that begins later has lost some."""
    assert judge(OFFSETS, {0: 10}, OLD, TopicNow(OLD, {0: 10}, {0: 500})) is None
    lost = judge(OFFSETS, {0: 10}, OLD, TopicNow(OLD, {0: 11}, {0: 500}))
    assert lost == Missed(OFFSETS, (0,), 1, is_anew=False)


def test_another_topic_of_that_name_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """Also where it is longer than what had been read of the old one; what was planned is dropped."""
    now(monkeypatch, events=TopicNow(NEW, {0: 3, 1: 0}, {0: 900, 1: 2}))
    found = find_losses(plan(), BEGAN, folder)
    assert found.missed == [Missed(EVENTS, (0, 1), 1, is_anew=True)]
    settle_losses(found, BEGAN, folder)
    assert Log(folder).positions() == {
        OFFSETS: {0: 10, 1: 10},
        EVENTS: {0: 3, 1: 0},
        CONTROL: {0: 30},
    }
    assert "query/offsets/11" not in folder.files
    began = msgspec.json.decode(folder.files[FILE], type=Beginning)
    assert (began.events_starts, began.events_ends, began.topic_ids[EVENTS]) == ([3, 0], [0, 0], NEW)
    assert (began.offsets_ends, began.control_end, began.run) == ([7, 8], 9, "r")
    assert find_losses(plan(), began, folder).missed == []


def test_a_topic_with_fewer_partitions_than_before_is_read_as_it_is(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """Spark waits for ever for one that does not exist."""
    now(monkeypatch, events=TopicNow(NEW, {0: 0}, {0: 2}))
    found = find_losses(plan(), BEGAN, folder)
    settle_losses(found, BEGAN, folder)
    assert Log(folder).positions()[EVENTS] == {0: 0}
    assert found.began.events_starts == [0]


def test_records_of_new_offsets_and_control_topics_are_no_backlog(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """What stood before the first start stood in the old ones."""
    anew = TopicNow(NEW, {0: 0, 1: 0}, {0: 4, 1: 1})
    now(monkeypatch, offsets=anew, control=TopicNow(NEW, {0: 0}, {0: 1}))
    found = find_losses(plan(), BEGAN, folder)
    assert [(one.topic, one.is_anew) for one in found.missed] == [(OFFSETS, True), (CONTROL, True)]
    assert (found.began.offsets_ends, found.began.control_end) == ([0, 0], 0)


@pytest.mark.parametrize(("known", "told"), [("", ""), (OLD, ""), ("", NEW)])
def test_without_ids_a_topic_that_ends_before_our_position_is_another(known: str, told: str) -> None:
    """Brokers before 2.8 tell none, and older checkpoints hold none."""
    assert judge(EVENTS, {0: 10}, known, TopicNow(told, {0: 0}, {0: 9})) == Missed(
        EVENTS, (0,), 1, is_anew=True
    )
    assert judge(EVENTS, {0: 10}, known, TopicNow(told, {0: 0}, {0: 10})) is None


def test_the_same_topic_may_end_before_our_position() -> None:
    """After an unclean election; Spark reads on from there."""
    assert judge(EVENTS, {0: 10}, OLD, TopicNow(OLD, {0: 0}, {0: 9})) is None


def test_a_topic_that_is_made_anew_before_the_first_batch_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch is planned anew."""
    folder = Folder()
    folder.batch(0, {EVENTS: {"0": 200}}, ended=False)
    folder.files["query/sources/0/0"] = b"v1"
    now(monkeypatch, events=TopicNow(NEW, {0: 0, 1: 0}, {0: 0, 1: 0}))
    found = find_losses(plan(), BEGAN, folder)
    settle_losses(found, BEGAN, folder)
    assert set(folder.files) == {FILE}


def test_a_checkpoint_without_ids_takes_note_of_them(monkeypatch: pytest.MonkeyPatch, folder: Folder) -> None:
    """From the start that first asks for them."""
    now(monkeypatch)
    found = find_losses(plan(), msgspec.structs.replace(BEGAN, topic_ids={}), folder)
    settle_losses(found, BEGAN, folder)
    assert (found.missed, found.began.topic_ids) == ([], BEGAN.topic_ids)


def test_a_log_of_another_version_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch, folder: Folder) -> None:
    """It is refused with a sentence."""
    now(monkeypatch)
    folder.files["query/offsets/10"] = b"v2\n{}\n{}"
    with pytest.raises(CheckpointRefusedError, match="of version 'v2'"):
        find_losses(plan(), BEGAN, folder)


@pytest.mark.parametrize(
    ("after", "expected"),
    [([5, 9], ""), ([5, 7], EVENTS), ([-1, 9], ""), ([6], ""), ([6, 9, 0], "")],
)
def test_a_query_that_stands_at_smaller_offsets_has_met_another_topic(
    after: list[int], expected: str
) -> None:
    """Spark says nothing of it; a partition that is not known yet proves nothing."""
    assert went_back({EVENTS: [5, 8]}, {EVENTS: after, "new": [0]}) == expected


def test_ids_are_told_as_text() -> None:
    """The empty one is none."""

    class Admin:
        """A broker."""

        def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
            """Tell of three topics, of which one does not exist."""
            null = "00000000-0000-0000-0000-000000000000"
            return [
                {"name": "a", "topic_id": "x", "partitions": [{}, {}]},
                {"name": "b", "topic_id": null, "partitions": [{}]},
                {"name": "c", "partitions": []},
            ]

    admin: Any = Admin()
    assert losses.ids_of(admin, ["a", "b", "c"]) == {"a": ("x", 2), "b": ("", 1)}
