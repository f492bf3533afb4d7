"""Replay of files that are no logs, that lie about their size or times, or whose names imitate lines."""

import gzip
import json
import re
from pathlib import Path

import pytest

from alerts.alert.alert import Alert
from coordinator_model.decoding.log_envelope import LENGTH_MAX
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.state.group import Transition
from streaming.replay.files import ReplayError, Skipped
from streaming.replay.output import print_replay
from streaming.replay.run import replay

LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"


def said(text: str, group: str = "orders") -> str:
    """Return a sentence of the coordinator."""
    prefix = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard_of(group, 50)}]"
    return f"{prefix} {text.replace('<G>', group)}"


def line(at: str, text: str, group: str = "orders", day: str = "2026-11-20") -> str:
    """Return a line in Kafka's own pattern."""
    return f"[{day} {at}] INFO {said(text, group)} ({LOGGER})"


PREPARING = (
    "Preparing to rebalance group <G> in state PreparingRebalance with old generation 0 (reason: Adding new "
    "member m with group instance id null; client reason: not provided)."
)
STORY = [
    line("10:00:00,501", PREPARING),
    line("10:00:03,510", "Stabilized group <G> generation 1 with 1 members."),
    line(
        "10:00:04,300",
        "Assignment received from leader m for group <G> for generation 1. The group has 1 members, "
        "0 of which are static.",
    ),
]
EMPTIED = line("10:05:00,000", "Group <G> with generation 2 is now empty.")


def run(path: Path, *lines: str, skipped: Skipped | None = None) -> list[Transition | Alert]:
    """Replay a file with these lines."""
    path.write_bytes("".join(f"{one}\n" for one in lines).encode())
    return list(replay([path], config_rules=None, timezone="UTC", skipped=skipped, strict=True))


def moves(happened: list[Transition | Alert]) -> list[tuple[str, str, int]]:
    """Return each move with its time of day in ms."""
    return [
        (one.group, str(one.to_state), one.at_ms % 86_400_000)
        for one in happened
        if isinstance(one, Transition)
    ]


STRIMZI = "{date} {second} INFO  [group-coordinator-event-processor-1] GroupMetadataManager:612 - {message}"
LAYOUTS = {
    "strimzi": STRIMZI,
    "confluent": "[INFO] {date} {second},{millis} [t-1] " + LOGGER + " lambda$x$1 - {message}",
    "json": '{{"timeMillis":{epoch},"level":"INFO","loggerName":"l","message":{json}}}',
    "cri": "{date}T{second}.{millis}999999Z stdout F [{date} {second},{millis}] INFO {message} ("
    + LOGGER
    + ")",
    "journald": "Nov 20 {second} kafka-0 kafka[47]: [{date} {second},{millis}] INFO {message} ("
    + LOGGER
    + ")",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_story_in_every_layout(tmp_path: Path, layout: str) -> None:
    """A log tells the same moves in any layout, to the millisecond where it has them."""
    expected = moves(run(tmp_path / "kafka.log", *STORY))
    told = []
    for one in STORY:
        found = re.fullmatch(r"\[(\S+) (\S+),(\d+)\] INFO (.*) \(\S+\)", one)
        assert found
        date, second, millis, message = found.groups()
        hours, minutes, seconds = map(int, second.split(":"))
        epoch = 1795132800000 + ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(millis)
        words = {"date": date, "second": second, "millis": millis, "message": message, "epoch": epoch}
        told.append(LAYOUTS[layout].format(**words, json=json.dumps(message)))
    happened = moves(run(tmp_path / "other.log", *told))

    within_ms = 1_000 if layout == "strimzi" else 1
    assert len(expected) == 4
    assert [one[:2] for one in happened] == [one[:2] for one in expected]
    assert all(abs(one[2] - other[2]) < within_ms for one, other in zip(happened, expected, strict=True))


def test_the_end_says_what_was_used(tmp_path: Path) -> None:
    """Replay counts the lines that it used, those that it did not, and says why."""
    skipped = Skipped()
    other = "[2026-11-20 10:00:05,000] INFO [Broker id=1] something else (kafka.server.KafkaServer)"
    run(
        tmp_path / "server.log",
        *STORY,
        other,
        "\tat x.Y(Z.java)",
        f"rack=a {said('Startup complete.')}",
        skipped=skipped,
    )

    assert skipped.sentence() == "3 lines used, 3 not used: 1 continuation, 1 other, 1 unknown_layout"


def test_a_line_without_a_header_in_a_file_of_headers(tmp_path: Path) -> None:
    """What a line break in a name makes a line of is no sentence, where the file's lines have headers."""
    skipped = Skipped()
    happened = run(
        tmp_path / "server.log", *STORY, said("Group <G> with generation 2 is now empty."), skipped=skipped
    )

    assert moves(happened)[-1][1] == "Stable"
    assert skipped.counts == {"headerless": 1}


@pytest.mark.parametrize("day", ["1970-01-01", "9998-12-31", "2031-01-01"])
@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_time_far_away(tmp_path: Path, day: str, place: int) -> None:
    """One line with a time years away takes nothing along."""
    lines = list(STORY)
    lines.insert(
        place, line("00:00:00,000", "Group <G> with generation 7 is now empty.", group="elsewhere", day=day)
    )
    skipped = Skipped()
    happened = run(tmp_path / "server.log", *lines, EMPTIED, skipped=skipped)

    assert [one[1] for one in moves(happened) if one[0] == "orders"][:4] == [
        one[1] for one in moves(run(tmp_path / "plain.log", *STORY))
    ]
    assert skipped.counts == {"far_away": 1}


def test_a_log_with_a_gap_of_months(tmp_path: Path) -> None:
    """A log that goes on months later is read on."""
    later = [one.replace("2026-11-20", "2027-05-20").replace("orders", "orders") for one in STORY]
    skipped = Skipped()
    happened = run(tmp_path / "server.log", *STORY, *later, skipped=skipped)

    assert skipped.counts == {}
    assert max(one.at_ms for one in happened if isinstance(one, Transition)) > 1_800_000_000_000


@pytest.mark.parametrize("unit", [b"x", b"\n"])
def test_a_gzip_bomb(tmp_path: Path, unit: bytes) -> None:
    """A file that expands beyond what a log can is refused with a sentence."""
    path = tmp_path / "server.log.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        for _ in range(80):
            stream.write(unit * ((1 << 20) // len(unit)))

    with pytest.raises(ReplayError, match="expands to more than 400 times its size"):
        list(replay([path], config_rules=None, timezone="UTC"))


def test_a_line_without_an_end(tmp_path: Path) -> None:
    """A line that is too long is counted, and the next one read."""
    path = tmp_path / "server.log"
    path.write_bytes(b"x" * (LENGTH_MAX + 5_000_000) + b"\n" + "\n".join(STORY).encode())
    skipped = Skipped()
    happened = list(replay([path], config_rules=None, timezone="UTC", skipped=skipped))

    assert moves(happened)[-1][1] == "Stable"
    assert skipped.counts == {"too_long": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", "is binary"),
        (b"\xfd7zXZ\x00\x00", "is compressed by xz"),
        (b"PK\x03\x04\x00", "is a zip archive"),
        ("[2026".encode("utf-16"), "is UTF-16"),
        (b"\x1f\x8b\x08\x00broken", "server.log: "),
    ],
)
def test_what_is_no_log(tmp_path: Path, content: bytes, words: str) -> None:
    """A file that is no text is refused by what it is."""
    path = tmp_path / "server.log"
    path.write_bytes(content)

    with pytest.raises(ReplayError, match=words):
        list(replay([path], config_rules=None, timezone="UTC"))


def test_captured_rows_out_of_range(tmp_path: Path) -> None:
    """A captured row whose time no date can have is counted."""
    rows = [
        json.dumps({"source": "log", "broker": 1, "timestamp_ms": 1795168810000, "text": one})
        for one in STORY
    ]
    wild = [json.dumps({"source": "clock", "timestamp_ms": number}) for number in (10**30, -5, 2**62)]
    skipped = Skipped()
    happened = run(tmp_path / "rows.jsonl", *wild, *rows, skipped=skipped)

    assert moves(happened)[-1][1] == "Stable"
    assert sum(skipped.counts.values()) == 3


def test_names_are_printed_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name reaches the terminal without what steers it or turns around what is read."""
    group = "a\x1b[2J\u202eb\u2028c"
    happened = run(tmp_path / "server.log", *(one.replace("orders", group) for one in STORY))
    print_replay(happened, as_json=False, alerts=True)
    printed = capsys.readouterr().out

    assert "a\\x1b[2J\\u202eb\\u2028c" in printed
    assert all(one.isprintable() for one in printed.replace("\n", ""))
