"""A replay that is watched as the job is: what its page shows."""

from pathlib import Path

import pytest

from alerts.alert.alert import Alert
from coordinator_model.state.group import Transition
from streaming.replay.files import Skipped
from streaming.replay.run import CLUSTER, Passed, replay
from streaming.serving.explaining import ExplainError, explain_replay
from streaming.serving.one_file import replayed
from streaming.serving.one_file.captured import Captured
from streaming.serving.one_file.replayed import captured_replay
from tests.unit.streaming.serving.one_file.made_captures import life, upset

GOLDEN = Path(__file__).parents[4] / "golden"
SERVER_LOG = GOLDEN / "logs" / "kafka-4.3.1-server.log"
REQUEST_LOG = GOLDEN / "logs" / "kafka-4.3.1-request.log"
RECORDS = GOLDEN / "modern" / "records.jsonl"


def captured(*paths: Path, group: str | None = None) -> Captured:
    """What a file would hold."""
    return captured_replay(list(paths), config_rules=None, timezone="UTC", group=group, skipped=Skipped())


def test_a_captured_log_has_bands_marks_lanes_and_alerts() -> None:
    """Of the group that met a slow record: who, when and why, and what to do."""
    found = captured(SERVER_LOG, REQUEST_LOG, group="slow")
    one = found.groups[0]
    assert (len(found.groups), one.group, found.left_out) == (1, "slow", 0)
    assert {span.state for span in one.history.states} >= {"Stable", "PreparingRebalance", "Empty"}
    causes = [str(span.cause.kind) for span in one.history.rebalances]
    assert causes == ["member_joined", "poll_timeout", "member_joined", "member_left"]
    assert [lane.client_id for lane in one.history.members] == ["slow-1", "slow-1"]
    assert [lane.end_cause for lane in one.history.members] == ["poll_timeout", "member_left"]
    assert [alert.name for alert in one.alerts.alerts] == ["PollIntervalExceeded"]
    assert one.detail is not None
    assert one.detail.report.generation == 4
    assert found.until_ms == one.history.to_ms
    assert found.source == "kafka-4.3.1-server.log, kafka-4.3.1-request.log"


def test_heartbeats_of_a_request_log_are_drawn() -> None:
    """A lane has them as bars where the request log was captured, too."""
    known = {
        lane.client_id
        for one in captured(SERVER_LOG, REQUEST_LOG).groups
        for lane in one.history.members
        if lane.heartbeats
    }
    assert known
    assert not [
        lane for one in captured(SERVER_LOG).groups for lane in one.history.members if lane.heartbeats
    ]


def test_the_words_are_those_of_explain() -> None:
    """The same story as `replay --explain` prints."""
    skipped = Skipped()
    happened = list(replay([SERVER_LOG], config_rules=None, timezone="UTC", skipped=skipped))
    told = explain_replay(happened, CLUSTER, "slow", skipped.last_ms, skipped.reports)
    assert [one.story for one in captured(SERVER_LOG, group="slow").groups] == told


def test_owners_and_commits_stand_in_captured_records() -> None:
    """Who had which partitions when the group was stable."""
    owners = [one for group in captured(RECORDS).groups for one in group.history.owners]
    assert owners
    assert all(one.assignment for one in owners)


@pytest.mark.parametrize("paths", [[SERVER_LOG, REQUEST_LOG], [RECORDS]], ids=["logs", "records"])
def test_whoever_watches_a_replay_changes_nothing(paths: list[Path]) -> None:
    """The stretches are shorter; what happens is the same, and is seen whole."""
    seen: list[Transition | Alert] = []

    def watch(passed: Passed) -> None:
        seen.extend(passed.happened)

    plain, watched = Skipped(), Skipped()
    expected = list(replay(paths, config_rules=None, timezone="UTC", skipped=plain))
    found = list(replay(paths, config_rules=None, timezone="UTC", skipped=watched, watch=watch))
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert seen == found
    assert set(watched.reports) == set(plain.reports)


def test_a_log_that_is_silent_for_an_hour_was_watched(tmp_path: Path) -> None:
    """A coordinator's log says nothing while all is well: no gap is drawn."""
    log = tmp_path / "server.log"
    log.write_text(
        life("10:00", "orders")
        + "[2026-11-20 11:30:00,000] INFO [Broker id=1] still here (kafka.server.KafkaServer)\n"
    )
    history = captured(log).groups[0].history
    assert history.gaps == []
    assert history.states[-1].state == "Stable"
    assert history.to_ms - history.from_ms == 90 * 60_000


def test_groups_in_most_trouble_come_first_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stays small enough for a browser."""
    monkeypatch.setattr(replayed, "GROUPS_MAX", 2)
    log = tmp_path / "server.log"
    lives = (life(f"10:0{n}", name) for n, name in enumerate(("calm", "upset", "well")))
    log.write_text("".join(lives) + upset("10:05:00", "upset"))
    found = captured(log)
    assert [one.group for one in found.groups] == ["upset", "calm"]
    assert found.left_out == 1


def _with_old_groups(log: Path, later: str) -> Path:
    """Write a log of two groups that were deleted nine days before ``later``; quiet minutes follow each."""
    tail = "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
    at = "[2026-11-20 10:03:00,000] INFO [GroupCoordinator id=1]"
    empty = "".join(f"{at} Group {one} with generation 2 is now empty. {tail}" for one in ("old", "older"))
    gone = f"{at} The following groups were deleted: old, older. A total of 2 offsets were removed. {tail}"
    old = life("10:00", "old") + life("10:01", "older") + empty + gone
    minutes = (
        f"[2026-11-20 10:{n}:00,000] INFO [Broker id=1] here (kafka.server.X)\n" for n in range(10, 25)
    )
    quiet = "".join(minutes)
    log.write_text((old + quiet).replace("2026-11-20", "2026-11-11") + later + quiet)
    return log


def test_a_group_of_which_the_last_days_know_nothing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and takes nobody's place; who asks for it alone is told."""
    monkeypatch.setattr(replayed, "GROUPS_MAX", 2)
    log = _with_old_groups(tmp_path / "server.log", life("10:00", "calm") + life("10:01", "well"))
    found = captured(log)
    assert ([one.group for one in found.groups], found.left_out) == (["calm", "well"], 2)
    with pytest.raises(ExplainError, match="nothing is known of group 'old'"):
        captured(log, group="old")


def test_a_log_whose_last_days_know_no_group_is_refused(tmp_path: Path) -> None:
    """A file without groups would show nothing."""
    log = _with_old_groups(tmp_path / "server.log", "")
    with pytest.raises(ExplainError, match="nothing is known of any group in the last days"):
        captured(log)


def test_a_large_capture_is_cut_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least one group is in the file."""
    monkeypatch.setattr(replayed, "SIZE_MAX", 1)
    found = captured(SERVER_LOG)
    assert len(found.groups) == 1
    assert found.left_out > 0


def test_a_group_that_is_not_in_it_is_said(tmp_path: Path) -> None:
    """With those that are; and so is a log in which no group did anything."""
    with pytest.raises(ExplainError, match="there is no group 'nobody'"):
        captured(SERVER_LOG, group="nobody")
    log = tmp_path / "server.log"
    log.write_text("[2026-11-20 10:00:05,000] INFO [Broker id=1] something else (kafka.server.KafkaServer)\n")
    with pytest.raises(ExplainError, match="no group did anything"):
        captured(log)
