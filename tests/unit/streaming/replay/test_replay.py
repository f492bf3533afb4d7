"""Replay: captured files in, the same transitions and alerts out as in the stream."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alerts.alert.alert import Alert
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.state.group import Transition
from streaming.replay.files import ReplayError, Skipped
from streaming.replay.output import print_replay
from streaming.replay.run import replay
from tests.unit.coordinator_model.kafka_bytes import commit_key, commit_value, group_key, group_value

CONTEXT = "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
A = "client-a-5f1d7bd2-0000-4000-8000-000000000001"
B = "client-b-5f1d7bd2-0000-4000-8000-000000000002"


def line(at: str, text: str, *, group: str = "orders", partition: int = 17, broker: int = 1) -> str:
    prefix = f"[GroupCoordinator id={broker} topic=__consumer_offsets partition={partition}]"
    return f"[2026-11-20 {at}] INFO {prefix} {text.replace('<G>', group)} {CONTEXT}"


STORY = [
    line(
        "10:00:00,000",
        f"Dynamic member with unknown member id joins group <G> in Empty state. "
        f"Created a new member id {A} and requesting the member to rejoin with this id.",
    ),
    line(
        "10:00:00,500",
        f"Pending dynamic member with id {A} joins group <G> in Empty state. Adding to the group now.",
    ),
    line(
        "10:00:00,501",
        "Preparing to rebalance group <G> in state PreparingRebalance with old generation 0 "
        f"(reason: Adding new member {A} with group instance id null; client reason: "
        f"need to re-join with the given member-id: {A}).",
    ),
    line("10:00:03,510", "Stabilized group <G> generation 1 with 1 members."),
    line(
        "10:00:04,300",
        f"Assignment received from leader {A} for group <G> for generation 1. "
        "The group has 1 members, 0 of which are static.",
    ),
    "[2026-11-20 10:00:05,000] INFO [Broker id=1] something else (kafka.server.KafkaServer)",
    line(
        "10:01:00,000",
        "Preparing to rebalance group <G> in state PreparingRebalance with old generation 1 "
        f"(reason: Adding new member {B} with group instance id null; client reason: not provided).",
    ),
]
STUCK = [*STORY, "[2026-11-20 10:04:00,000] INFO [Broker id=1] still here (kafka.server.KafkaServer)"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def moves(happened: list[Transition | Alert]) -> list[tuple[str, str, int]]:
    return [
        (str(one.from_state), str(one.to_state), one.generation)
        for one in happened
        if isinstance(one, Transition)
    ]


def run(*paths: Path, timezone: str = "UTC", skipped: Skipped | None = None) -> list[Transition | Alert]:
    return list(replay(paths, config_rules=None, timezone=timezone, skipped=skipped, strict=True))


def test_server_log_alone_tells_every_move(tmp_path: Path) -> None:
    """A coordinator's INFO log without the topic gives all transitions, Stable at the leader's assignment."""
    happened = run(write(tmp_path / "server.log", STORY))

    assert moves(happened) == [
        ("Dead", "Empty", 0),
        ("Empty", "PreparingRebalance", 0),
        ("PreparingRebalance", "CompletingRebalance", 1),
        ("CompletingRebalance", "Stable", 1),
        ("Stable", "PreparingRebalance", 1),
    ]


def test_times_are_read_in_the_zone_given(tmp_path: Path) -> None:
    """A line's local time counts in --timezone."""
    happened = run(write(tmp_path / "server.log", STORY), timezone="Europe/Paris")

    assert isinstance(happened[0], Transition)
    assert happened[0].at_ms == 1_795_165_200_000  # 09:00 UTC


def test_gz_and_plain_files_of_two_brokers_are_merged(tmp_path: Path) -> None:
    """Compressed files are read as they are, and each broker's groups are told in the order of time."""
    other = [
        text.replace("id=1 ", "id=2 ").replace("partition=17", "partition=25").replace("orders", "payments")
        for text in STORY
    ]
    packed = tmp_path / "server.log.2"
    packed.write_bytes(gzip.compress("\n".join(other).encode()))

    happened = run(write(tmp_path / "server.log", STORY), packed)

    assert moves([one for one in happened if one.group == "payments"]) == moves(
        [one for one in happened if one.group == "orders"]
    )
    assert [one.at_ms for one in happened if isinstance(one, Transition)] == sorted(
        one.at_ms for one in happened if isinstance(one, Transition)
    )


def test_a_stuck_group_is_firing_at_the_last_line(tmp_path: Path) -> None:
    """Replay ends at the last line; what is firing by then stays firing."""
    happened = run(write(tmp_path / "server.log", STUCK))

    alerts = [(one.name, str(one.status), one.group) for one in happened if isinstance(one, Alert)]
    assert alerts == [("StuckPreparingRebalance", "firing", "orders")]


def test_captured_rows_are_read(tmp_path: Path) -> None:
    """JSON Lines of captured rows give the same as the lines in them, and a clock row passes time."""
    rows = [
        json.dumps(
            {
                "source": "log",
                "broker": 1,
                "timestamp_ms": 1_000_000_000_000 + n * 1000,
                "text": text.partition(" INFO ")[2],
            }
        )
        for n, text in enumerate(STORY)
    ]
    rows.append("not a row")
    rows.append(json.dumps({"source": "clock", "timestamp_ms": 1_000_000_200_000}))
    skipped = Skipped()

    happened = run(write(tmp_path / "captured.jsonl", rows), skipped=skipped)

    assert moves(happened)[-1] == ("Stable", "PreparingRebalance", 1)
    assert [one.name for one in happened if isinstance(one, Alert)] == ["StuckPreparingRebalance"]
    assert skipped.counts == {"not_a_captured_row": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there ends the replay with a sentence that names it."""
    with pytest.raises(ReplayError, match=r"gone\.log: No such file"):
        run(tmp_path / "gone.log")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    """A truncated .gz ends the replay with a sentence that names it."""
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(("\n".join(STORY) * 50).encode())[:-30])

    with pytest.raises(ReplayError, match=r"server\.log\.gz"):
        run(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """Files with no line in them are a mistake, not a calm cluster."""
    with pytest.raises(ReplayError, match="nothing to replay"):
        run(write(tmp_path / "server.log", []))


def test_json_lines_are_the_topics_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one JSON object a line, with the field names of the topics."""
    count = print_replay(run(write(tmp_path / "server.log", STUCK)), as_json=True, alerts=True)

    printed = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert count == len(printed) == 6
    assert printed[1]["from"] == "Empty"
    assert printed[1]["to"] == "PreparingRebalance"
    assert printed[1]["cause"]["kind"] == "member_joined"
    assert printed[-1]["name"] == "StuckPreparingRebalance"


def test_alerts_are_printed_only_if_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --alerts the table holds transitions alone."""
    count = print_replay(run(write(tmp_path / "server.log", STUCK)), as_json=False, alerts=False)

    assert count == 5
    assert "Stuck" not in capsys.readouterr().out


def test_a_line_without_a_time_has_that_of_its_neighbours(tmp_path: Path) -> None:
    """A file that begins in the middle of a stack trace is not dated to 1970."""
    happened = run(write(tmp_path / "server.log", ["\tat a.rolled.StackTrace(File.java:1)", *STORY]))

    assert moves(happened) == moves(run(write(tmp_path / "other.log", STORY)))


def test_a_real_brokers_logs_are_replayed_together() -> None:
    """Both logs of a Kafka 4.3.1 broker tell one story, read to its end."""
    logs = Path(__file__).parents[3] / "golden" / "logs"
    skipped = Skipped()
    happened = run(logs / "kafka-4.3.1-server.log", logs / "kafka-4.3.1-request.log", skipped=skipped)

    assert moves([one for one in happened if one.group == "g1"])[-1] == ("Empty", "Dead", 7)
    assert skipped.counts == {}


def commits_and_ends(*rows: tuple[int, int | None, int | None], group: str = "orders") -> list[str]:
    """Return captured rows of one partition: (second, offset committed or None, end offset or None)."""
    lines = []
    for second, offset, end in rows:
        at_ms = 1_700_000_000_000 + second * 1000
        if end is not None:
            told = {"source": "end_offset", "topic": "t", "partition": 0, "offset": end}
            lines.append(json.dumps({**told, "timestamp_ms": at_ms}))
        if offset is not None:
            record = {"key": commit_key(group, "t", 0).hex(), "value": commit_value(offset, at_ms).hex()}
            place = {"source": "offsets", "partition": shard_of(group, 50), "timestamp_ms": at_ms}
            lines.append(json.dumps({**place, **record}))
    return lines


def told(happened: list[Transition | Alert]) -> list[tuple[str, str]]:
    return [(one.name, str(one.status)) for one in happened if isinstance(one, Alert)]


STEADY = [(10 * n, 100 * n, 100 * n + 50) for n in range(1, 13)]


def test_commits_and_end_offsets_alone_tell_of_progress(tmp_path: Path) -> None:
    """Stopped; no alert before its time, and the last line's time is the last to be judged."""
    late = run(write(tmp_path / "a.jsonl", commits_and_ends(*STEADY, (210, None, 9_000))))
    later = run(write(tmp_path / "b.jsonl", commits_and_ends(*STEADY, (213, None, 9_000))))

    assert told(late) == []
    assert told(later) == [("CommitsStopped", "firing")]


def test_a_clock_row_lets_time_pass(tmp_path: Path) -> None:
    """Without any further line."""
    clock = json.dumps({"source": "clock", "timestamp_ms": 1_700_000_400_000})
    happened = run(write(tmp_path / "a.jsonl", [*commits_and_ends(*STEADY), clock]))

    assert told(happened) == [("CommitsStopped", "firing")]


def test_an_end_offset_counts_for_groups_that_are_met_later(tmp_path: Path) -> None:
    """The capture of the ends began before that of the commits."""
    rows = [(1, None, 90_000), *[(10 * n, 100 * n, None) for n in range(1, 13)], (300, None, None)]
    clock = json.dumps({"source": "clock", "timestamp_ms": 1_700_000_400_000})
    happened = run(write(tmp_path / "a.jsonl", [*commits_and_ends(*rows), clock]))

    assert told(happened) == [("CommitsStopped", "firing")]


def test_every_group_of_a_topic_hears_of_its_end(tmp_path: Path) -> None:
    """One goes on, the other does not."""
    other = [*STEADY, *[(10 * n, 100 * n, None) for n in range(13, 50)]]
    lines = [*commits_and_ends(*other), *commits_and_ends(*STEADY, group="late")]
    happened = run(
        write(tmp_path / "a.jsonl", sorted(lines, key=lambda row: json.loads(row)["timestamp_ms"]))
    )

    alerts = [one for one in happened if isinstance(one, Alert)]
    assert [(one.name, one.group) for one in alerts] == [("CommitsStopped", "late")]


def heartbeat(second: int) -> str:
    """Return a captured line of broker 1's request log."""
    text = (
        'Completed request:{"requestHeader":{"requestApiKeyName":"HEARTBEAT","clientId":"a"},'
        f'"request":{{"groupId":"orders","generationId":1,"memberId":"{A}","groupInstanceId":null}},'
        '"response":{"throttleTimeMs":0,"errorCode":0},"connection":"127.0.0.1:1-127.0.0.1:2-0-5"}'
    )
    at_ms = 1_700_000_000_000 + second * 1000
    return json.dumps({"source": "log", "broker": 1, "timestamp_ms": at_ms, "text": text})


@pytest.mark.parametrize(("commits_until_s", "names"), [(400, ["SourceSilent"]), (180, [])])
def test_a_request_log_that_ends_is_lost_if_commits_go_on(
    tmp_path: Path, commits_until_s: int, names: list[str]
) -> None:
    """Of the only broker; nobody is missed where nobody commits either."""
    beats = [heartbeat(second) for second in range(0, 180, 3)]
    commits = commits_and_ends(*[(second, second, second) for second in range(0, commits_until_s, 5)])
    clock = json.dumps({"source": "clock", "timestamp_ms": 1_700_000_400_000})
    rows = sorted([*beats, *commits, clock], key=lambda row: json.loads(row)["timestamp_ms"])
    happened = run(write(tmp_path / "a.jsonl", rows))

    assert [name for name, _ in told(happened) if name == "SourceSilent"] == names


def captured_story(zone: timedelta) -> list[str]:
    """Return captured rows of ``STUCK``, its lines written in another zone, with a record of generation 1."""
    rows: list[tuple[int, dict[str, Any]]] = []
    home = shard_of("orders", 50)
    for told in STUCK:
        text = told.replace("partition=17", f"partition={home}")
        at = datetime.fromisoformat(text[1:24].replace(",", ".")).replace(tzinfo=UTC)
        written = f"[{(at + zone).strftime('%Y-%m-%d %H:%M:%S')},{at.microsecond // 1000:03d}]{text[25:]}"
        at_ms = round(at.timestamp() * 1000)
        rows.append((at_ms + 20, {"source": "log", "broker": 1, "text": written}))
        if "Assignment received" in text:
            record = {"key": group_key("orders").hex(), "value": group_value(1, version=1).hex()}
            rows.append((at_ms + 2, {"source": "offsets", "partition": home, **record}))
    return [json.dumps({"timestamp_ms": at_ms, **row}) for at_ms, row in sorted(rows, key=lambda one: one[0])]


@pytest.mark.parametrize("zone", [timedelta(hours=-5), timedelta(hours=5, minutes=30), timedelta(hours=1)])
def test_lines_of_another_zone_tell_the_same_beside_their_records(tmp_path: Path, zone: timedelta) -> None:
    """A host in New York or Kolkata, read as UTC: same moves, times, causes and alerts as if it wrote UTC."""
    right = run(write(tmp_path / "right.jsonl", captured_story(timedelta())))
    wrong = run(write(tmp_path / "wrong.jsonl", captured_story(zone)))

    assert wrong == right
    assert [one.name for one in right if isinstance(one, Alert)] == ["StuckPreparingRebalance"]


def test_without_records_the_configured_zone_is_believed(tmp_path: Path) -> None:
    """Nothing proves it wrong, and nobody waits for a proof."""
    alone = [row for row in captured_story(timedelta(hours=-5)) if '"log"' in row]
    happened = run(write(tmp_path / "a.jsonl", alone), timezone="Etc/GMT+5")

    assert happened == run(
        write(tmp_path / "b.jsonl", [one for one in captured_story(timedelta()) if '"log"' in one])
    )
