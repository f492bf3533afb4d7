"""Rows that nobody should write, and both stages to feed them to, as Spark would."""

import json
import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from coordinator_model.observations.base import CLUSTER_SHARD
from streaming.control.records import ClockRecord, SettingsRecord, encode_record
from streaming.pipeline import sinks
from streaming.workers.decode_stage import CONTROL, EVENTS, OFFSETS, DecodeStage
from streaming.workers.shard_state import ShardStage
from tests.unit.coordinator_model.kafka_bytes import (
    assignment,
    blob,
    commit_key,
    commit_value,
    group_key,
    group_value,
    subscription,
    tags,
    text,
    uvarint,
)

SHARDS = 4
NOW_MS = 1_760_000_000_000
RUN = "r"
TIME_LIMIT_S = 20.0
_CLOCK_KEY = b"groupwatch-clock"


class Row(NamedTuple):
    """One record of an input topic; ``behind_ms`` after the story's beginning it was appended."""

    feed: int
    value: bytes | None
    key: bytes | None = None
    behind_ms: int = 0


class StuckError(BaseException):
    """It took far too long; no guard of the product may catch this."""


@contextmanager
def time_limit(seconds: float = TIME_LIMIT_S) -> Iterator[None]:
    """Raise ``StuckError`` in the main thread after so long."""

    def ring(*_: Any) -> None:
        raise StuckError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class SavedShard:
    """Stands in for PySpark's group state: a tuple, or nothing yet."""

    def __init__(self, saved: tuple[Any, ...] | None = None) -> None:
        self.saved = saved

    @property
    def exists(self) -> bool:
        """Say whether anything was saved."""
        return self.saved is not None

    @property
    def get(self) -> tuple[Any, ...]:
        """Return what was saved."""
        assert self.saved is not None
        return self.saved

    def update(self, values: tuple[Any, ...]) -> None:
        """Save; Spark's column for the due time has 64 bits."""
        _, due_ms, blob_ = values
        struct.pack(">q", due_ms)
        assert isinstance(blob_, bytes)
        self.saved = values


class Job:
    """A query of one cluster, as far as its stages go."""

    def __init__(self) -> None:
        self.states = {shard: SavedShard() for shard in range(CLUSTER_SHARD, SHARDS)}
        self.rows: list[tuple[str, str, bytes]] = []
        self._next = {OFFSETS: 0, EVENTS: 0, CONTROL: 0}
        self._relayed: list[bytes] = []
        """Control records that the driver makes of what the shards tell it."""

    def batch(self, rows: Sequence[Row]) -> list[tuple[str, str, bytes]]:
        """Put rows through both stages, and with them a clock of now; return what came out."""
        placed = [(row, self._place(row.feed)) for row in rows]
        arrow = pa.RecordBatch.from_pydict(
            {
                "feed": pa.array([row.feed for row, _ in placed], pa.int8()),
                "partition": pa.array([0] * len(placed), pa.int32()),
                "offset": pa.array([place for _, place in placed], pa.int64()),
                "timestamp_ms": pa.array([NOW_MS + row.behind_ms for row, _ in placed], pa.int64()),
                "key": pa.array([row.key for row, _ in placed], pa.binary()),
                "value": pa.array([row.value for row, _ in placed], pa.binary()),
            }
        )
        cells: dict[int, list[bytes]] = {}
        for out in DecodeStage(shard_count=SHARDS, run=RUN)([arrow]):
            for shard, payload in zip(*(column.to_pylist() for column in out.columns), strict=True):
                cells.setdefault(shard, []).append(payload)
        found: list[tuple[str, str, bytes]] = []
        for shard, payloads in sorted(cells.items()):
            found += self._step(shard, payloads)
        self.rows += found
        self._relayed += [value for kind, _, value in found if kind == "quarantined"]
        return found

    def clocked(
        self, rows: Sequence[Row], *, behind_ms: int, ask: bool = False
    ) -> list[tuple[str, str, bytes]]:
        """Put rows through, and behind them clocks that let all of them happen."""
        at_ms = NOW_MS + behind_ms
        record = ClockRecord(
            at_ms=at_ms,
            run=RUN,
            sequence=at_ms,
            ends=[self._next[OFFSETS] + len([row for row in rows if row.feed == OFFSETS])] * SHARDS,
            positions=[],
            events_partitions=1,
            ask=ask,
        )
        relayed, self._relayed = self._relayed, []
        rows = [
            *rows,
            *(Row(CONTROL, sinks.relayed("quarantined", one, RUN), None, behind_ms) for one in relayed),
        ]
        copy = {"groupwatch": "clock", "at_ms": at_ms, "sequence": at_ms, "run": RUN, "skew_ms": {}}
        return self.batch(
            [
                *rows,
                Row(CONTROL, encode_record(record), None, behind_ms),
                Row(EVENTS, msgspec.json.encode(copy), _CLOCK_KEY, behind_ms),
            ]
        )

    def _place(self, feed: int) -> int:
        self._next[feed] += 1
        return self._next[feed] - 1

    def _step(self, shard: int, payloads: list[bytes]) -> list[tuple[str, str, bytes]]:
        frame = pd.DataFrame({"cluster": "c", "shard": shard, "payload": payloads})
        stage = ShardStage(cluster="c", shard_count=SHARDS)
        frames = stage(("c", shard), iter([frame]), self.states[shard])
        return [
            (str(kind), str(key), bytes(value))
            for out in frames
            for kind, key, value in out.itertuples(index=False)
        ]

    # --- what came of it ---

    def told(self, kind: str, group: str = "") -> list[bytes]:
        """Return the values of the rows of a kind, of one group if it is named."""
        return [value for one, key, value in self.rows if one == kind and (not group or key == group)]

    def counts(self) -> dict[tuple[str, str], int]:
        """Return (source, reason) -> rows that were counted as not read, as the cluster's shard has it."""
        reports = self.told("cluster")
        report = json.loads(reports[-1]) if reports else {"undecodable": []}
        return {(source, reason): count for source, reason, count in report["undecodable"]}

    def failures(self) -> list[dict[str, Any]]:
        """Return the divergences that are failures of our own code."""
        found = [json.loads(value) for value in self.told("divergence")]
        return [one for one in found if one["kind"] == "internal_error"]


# --- an ordinary group's life, which goes on whatever else is written --------------------------------

GROUP = "orders"


def line(text_: str, behind_ms: int) -> Row:
    """Return a line of broker 1's log."""
    seconds, millis = divmod(behind_ms, 1_000)
    minutes, seconds = divmod(seconds, 60)
    # NOW_MS is 2025-10-09 08:53:20 UTC.
    second = 20 + seconds
    stamp = f"2025-10-09 08:{53 + minutes + second // 60:02}:{second % 60:02},{millis:03}"
    logger = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    message = f"[{stamp}] INFO [GroupCoordinator id=1] {text_} ({logger})"
    return Row(EVENTS, message.encode(), b"1", behind_ms)


def _record(generation: int, behind_ms: int, members: int = 1) -> Row:
    value = group_value(
        generation, subscribed=subscription("t"), assigned=assignment({"t": [0]}), members=members
    )
    return Row(OFFSETS, value, group_key(GROUP), behind_ms)


def story() -> list[list[Row]]:
    """Return an ordinary group's batches: two generations, each with its lines and its record."""
    member = "m1"
    why = f"Adding new member {member} with group instance id None; client reason: not provided"
    started = f"Preparing to rebalance group {GROUP} in state PreparingRebalance with old generation"
    first = [
        line(f"{started} 0 (reason: {why}).", 100),
        line(f"Stabilized group {GROUP} generation 1 with 1 members.", 3_100),
        line(
            f"Assignment received from leader {member} for group {GROUP} for generation 1. "
            "The group has 1 members, 0 of which are static.",
            3_200,
        ),
        _record(1, 3_210),
        Row(OFFSETS, commit_value(5, NOW_MS + 4_000), commit_key(GROUP, "t", 0), 4_000),
    ]
    second = [
        line(f"{started} 1 (reason: {why}).", 10_100),
        line(f"Stabilized group {GROUP} generation 2 with 1 members.", 13_100),
        line(
            f"Assignment received from leader {member} for group {GROUP} for generation 2. "
            "The group has 1 members, 0 of which are static.",
            13_200,
        ),
        _record(2, 13_210),
    ]
    return [first, second]


# --- hostile material --------------------------------------------------------------------------------

WILD = (0, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, -(10**40))
WILD_JSON = (
    *map(str, WILD),
    "1" + "0" * 5_000,
    "1e400",
    "-1e308",
    "0.5",
    "true",
    "null",
    '""',
    '"x"',
    '"' + "x" * 2**20 + '"',
    '"\\ud800"',
    '"\\udc00 tail"',
    "[]",
    "{}",
    "[" * 400 + "]" * 400,
    "NaN",
    "[1,[2,[3]]]",
)


def control(body: str, run: str = RUN) -> Row:
    """Return a control record of these fields, in JSON."""
    return Row(CONTROL, f'{{"run":"{run}",{body}}}'.encode("utf-8", "surrogatepass"), None, 5_000)


def copy(body: str) -> Row:
    """Return a clock copy of these fields, in JSON."""
    return Row(EVENTS, f'{{"groupwatch":"clock","run":"{RUN}",{body}}}'.encode(), _CLOCK_KEY, 5_000)


def request(api: int, name: str, asked: str, answer: str, total: str = "1.0") -> Row:
    """Return a line of the request log."""
    body = (
        'Completed request:{"isForwarded":false,'
        f'"requestHeader":{{"requestApiKey":{api},"requestApiVersion":9,'
        f'"correlationId":1,"clientId":"c","requestApiKeyName":"{name}"}},"request":{asked},"response":{answer},'
        f'"connection":"127.0.0.1:1-10.0.0.1:2-0","totalTimeMs":{total},"requestQueueTimeMs":0.1,'
        '"localTimeMs":0.1,"remoteTimeMs":0.1,"throttleTimeMs":0,"responseQueueTimeMs":0.1,"sendTimeMs":0.1,'
        '"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"L",'
        '"clientInformation":{"softwareName":"s","softwareVersion":"1"}}'
    )
    return Row(EVENTS, body.encode("utf-8", "surrogatepass"), b"1", 5_000)


_CONTROL_FIELDS: dict[str, dict[str, str]] = {
    "clock": {
        "at_ms": "1760000005000",
        "sequence": "1",
        "ends": "[1,1,1,1]",
        "positions": "[1,1,1,1]",
        "events_partitions": "1",
        "skew_ms": '{"1":5}',
        "ask": "false",
    },
    "settings": {"at_ms": "1760000005000", "settings": "{}"},
    "adopt": {"at_ms": "1760000005000", "alerts": "[]"},
    "contradicted": {"at_ms": "1760000005000", "broker": "1", "lost": '"coordinator_log"', "group": '"g"'},
    "groups": {
        "at_ms": "1760000005000",
        "broker": "1",
        "asked_at_ms": "1760000004000",
        "skew_ms": "0",
        "groups": '[{"group":"g","group_type":"classic","state":"Stable","epoch":5,"members":[]}]',
    },
    "leaders": {"at_ms": "1760000005000", "leaders": '{"9":[1,5]}', "shrunk": "[]"},
    "brokers": {"at_ms": "1760000005000", "brokers": '{"1":{"offsets.retention.minutes":"10080"}}'},
    "topics": {"at_ms": "1760000005000", "partitions": '{"t":3}'},
    "upset": {
        "at_ms": "1760000005000",
        "group": '"g"',
        "rebalanced_ms": "1760000004000",
        "partition": "1",
        "moved_ms": "1760000003000",
        "came_from": "1",
        "went_to": "2",
        "stood": "false",
    },
    "ends": {
        "at_ms": "1760000005000",
        "groups": '[{"group":"g","ends":{"t":{"0":5}},"stable":{"t":{"0":4}}}]',
        "since_ms": "1760000000000",
        "transaction_ms": "900000",
    },
    "quarantined": {
        "at_ms": "1760000005000",
        "group": '"g"',
        "partition": "1",
        "since_ms": "1760000000000",
        "last_ms": "1760000000000",
        "count": "1",
        "error": '"E"',
    },
}
# These mean something wherever they are in range: they belong to the records that an ordinary group needs.
_MEANT = {("clock", "at_ms"), ("clock", "events_partitions"), ("clock", "ends")}


def _wild_control() -> Iterator[tuple[str, Row]]:
    for kind, fields in _CONTROL_FIELDS.items():
        for name in fields:
            if (kind, name) in _MEANT:
                continue
            for number, value in enumerate(WILD_JSON):
                body = ",".join(
                    f'"{field}":{value if field == name else told}' for field, told in fields.items()
                )
                yield f"control {kind}.{name} {number}", control(f'"kind":"{kind}",{body}')


def _wild_clocks() -> Iterator[tuple[str, Row]]:
    for value in (*WILD_JSON[2:], str(2**62)):
        if value in ("0", "-1", "true", "null"):
            continue
        yield f"clock at {value[:20]}", control(f'"kind":"clock","sequence":1,"at_ms":{value}')
        yield f"copy at {value[:20]}", copy(f'"sequence":1,"at_ms":{value}')
        yield f"copy sequence {value[:20]}", copy(f'"at_ms":{NOW_MS},"sequence":{value}')
        yield f"copy skew {value[:20]}", copy(f'"at_ms":{NOW_MS},"sequence":1,"skew_ms":{{"1":{value}}}')
        yield (
            f"copy skew of broker {value[:20]}",
            copy(f'"at_ms":{NOW_MS},"sequence":1,"skew_ms":{{"{value[:60].strip(chr(34))}":1}}'),
        )
    many = ",".join(f'"{broker}":1' for broker in range(50_000))
    yield "copy with a skew map of 50,000", copy(f'"at_ms":{NOW_MS},"sequence":1,"skew_ms":{{{many}}}')


def _wild_lines() -> Iterator[tuple[str, Row]]:
    sentences = (
        "Preparing to rebalance group g in state Stable with old generation {} (reason: x).",
        "Stabilized group g generation {} with 1 members.",
        "Stabilized group g generation 1 with {} members.",
        "Assignment received from leader l for group g for generation {}. "
        "The group has 1 members, 0 of which are static.",
        "Group g with generation {} is now empty.",
        "Finished loading of metadata from __consumer_offsets-1 with epoch {} in 3 milliseconds.",
        "Loading of metadata from __consumer_offsets-{} with epoch 1 completed.",
        "Loading group metadata for g with generation {}.",
        "Scheduling unloading of metadata for __consumer_offsets-1 with epoch {}.",
        "Finished unloading of metadata for __consumer_offsets-{} with epoch 1.",
    )
    numbers = ("9" * 3, "9" * 11, "9" * 20, "9" * 40, "9" * 5_000, "-1", "-" + "9" * 30, "٣", "")
    for sentence in sentences:
        for number in numbers:
            yield f"line {sentence[:30]} {number[:12]}", line(sentence.format(number), 5_000)
    for number in numbers:
        yield f"broker {number[:12]}", Row(EVENTS, line("x", 5_000).value, number.encode(), 5_000)
        said = "Stabilized group g generation 1 with 1 members."
        prefix = f"[GroupCoordinator id={number} topic=__consumer_offsets partition={number}] {said}"
        yield f"prefix {number[:12]}", Row(EVENTS, prefix.encode(), None, 5_000)
        dated = f'{{"message":"[GroupCoordinator id=1] {said}","@timestamp":{number or 0}}}'
        yield f"envelope time {number[:12]}", Row(EVENTS, dated.encode(), b"1", 5_000)


def _wild_requests() -> Iterator[tuple[str, Row]]:
    for value in WILD_JSON:
        named = f'"groupId":"g","memberId":"m","generationId":{value}'
        yield f"heartbeat {value[:12]}", request(12, "HEARTBEAT", f"{{{named}}}", '{"errorCode":0}')
        yield (
            f"heartbeat error {value[:12]}",
            request(
                12, "HEARTBEAT", '{"groupId":"g","memberId":"m","generationId":1}', f'{{"errorCode":{value}}}'
            ),
        )
        yield (
            f"time {value[:12]}",
            request(
                12, "HEARTBEAT", '{"groupId":"g","memberId":"m","generationId":1}', '{"errorCode":0}', value
            ),
        )
        yield (
            f"join {value[:12]}",
            request(
                11,
                "JOIN_GROUP",
                f'{{"groupId":"g","memberId":"m","sessionTimeoutMs":{value},"rebalanceTimeoutMs":{value},"protocolType":"consumer","protocols":[]}}',
                f'{{"errorCode":0,"generationId":{value},"leader":"m","memberId":"m","members":[]}}',
            ),
        )
        yield (
            f"sync {value[:12]}",
            request(14, "SYNC_GROUP", f'{{{named},"assignments":[]}}', f'{{"errorCode":{value}}}'),
        )
        yield (
            f"leave {value[:12]}",
            request(
                13,
                "LEAVE_GROUP",
                '{"groupId":"g","members":[{"memberId":"m"}]}',
                f'{{"errorCode":0,"members":[{{"errorCode":{value}}}]}}',
            ),
        )
        partition = f'[{{"name":"t","partitions":[{{"partitionIndex":{value},"committedOffset":{value}}}]}}]'
        refused = '{"topics":[{"name":"t","partitions":[{"partitionIndex":0,"errorCode":25}]}]}'
        yield (
            f"commit {value[:12]}",
            request(
                8,
                "OFFSET_COMMIT",
                f'{{"groupId":"g","memberId":"m","generationIdOrMemberEpoch":{value},"topics":{partition}}}',
                refused,
            ),
        )
        accepted = f'{{"topics":[{{"name":"t","partitions":[{{"partitionIndex":{value},"errorCode":0}}]}}]}}'
        yield (
            f"claim {value[:12]}",
            request(
                28,
                "TXN_OFFSET_COMMIT",
                f'{{"groupId":"g","memberId":"m","generationId":1,"producerId":{value},"topics":{partition}}}',
                accepted,
            ),
        )
        topic = f'{{"name":"__consumer_offsets","partitionIndexes":[{value},1]}}'
        markers = f'{{"markers":[{{"producerId":{value},"transactionResult":true,"topics":[{topic}]}}]}}'
        written = ",".join(f'{{"partitionIndex":{number},"errorCode":0}}' for number in (value, 1))
        topic = f'{{"name":"__consumer_offsets","partitions":[{written}]}}'
        marked = f'{{"markers":[{{"producerId":{value},"topics":[{topic}]}}]}}'
        yield f"markers {value[:12]}", request(27, "WRITE_TXN_MARKERS", markers, marked)
        yield (
            f"delete {value[:12]}",
            request(
                42,
                "DELETE_GROUPS",
                '{"groupsNames":["g"]}',
                f'{{"results":[{{"groupId":"g","errorCode":{value}}}]}}',
            ),
        )
        for api, protocol in ((68, "CONSUMER"), (76, "SHARE"), (88, "STREAMS")):
            yield (
                f"{protocol} {value[:12]}",
                request(
                    api,
                    f"{protocol}_GROUP_HEARTBEAT",
                    f'{{"groupId":"g","memberId":"m","memberEpoch":{value}}}',
                    f'{{"errorCode":0,"memberId":"m","memberEpoch":{value},"heartbeatIntervalMs":{value}}}',
                ),
            )


def _wild_records() -> Iterator[tuple[str, Row]]:
    for value in (-(2**63), -1, 2**63 - 1, 2**62):
        yield (
            f"commit offset {value}",
            Row(OFFSETS, commit_value(value, NOW_MS), commit_key("g", "t", 0), 5_000),
        )
        yield f"commit time {value}", Row(OFFSETS, commit_value(5, value), commit_key("g", "t", 0), 5_000)
        old = struct.pack(">hq", 0, value) + text("") + struct.pack(">q", value)
        yield f"legacy commit {value}", Row(OFFSETS, old, commit_key("g", "t", 0, 0), 5_000)
        wild = bytearray(group_value(1))
        wild[2 + len(text("consumer")) + 4 + len(text("range")) + len(text("m1")) :][:8] = struct.pack(
            ">q", value
        )
        at = 2 + len(text("consumer")) + 4 + len(text("range")) + len(text("m1"))
        wild[at : at + 8] = struct.pack(">q", value)
        yield f"group since {value}", Row(OFFSETS, bytes(wild), group_key("g"), 5_000)
    for number in (-(2**31), -1, 2**31 - 1):
        yield f"generation {number}", Row(OFFSETS, group_value(number), group_key("g"), 5_000)
        yield (
            f"partition {number}",
            Row(OFFSETS, commit_value(5, NOW_MS), commit_key("g", "t", number), 5_000),
        )
        huge = subscription("t")[:2] + struct.pack(">i", number)
        yield (
            f"topics announced {number}",
            Row(OFFSETS, group_value(1, subscribed=huge, assigned=huge), group_key("g"), 5_000),
        )
    for record_type in range(26):
        key = struct.pack(">h", record_type) + text("g") + text("m")
        for version in (0, 1, 99, -1):
            for body in (
                b"",
                uvarint(2**32 - 1),
                b"\xff" * 40,
                struct.pack(">iqi", 2**31 - 1, -1, -1) + tags(),
            ):
                yield (
                    f"record {record_type} v{version} {body[:4].hex()}",
                    Row(OFFSETS, struct.pack(">h", version) + body, key, 5_000),
                )
    keys: tuple[bytes | None, ...] = (
        None,
        b"",
        b"\0",
        blob(b"x"),
        struct.pack(">h", 2) + b"\x7f\xff",
        struct.pack(">h", 2) + struct.pack(">h", 3) + b"\xed\xa0\x80",
    )
    for odd in keys:
        yield f"key {(odd or b'none')[:6].hex()}", Row(OFFSETS, group_value(1), odd, 5_000)
    yield "name of 32,767", Row(OFFSETS, group_value(1), group_key("x" * 32_767), 5_000)


_SETTINGS = (
    '{"rules":7}',
    '{"rules":{"rebalance_storm":7}}',
    '{"rules":{"rebalance_storm":{"overrides":7}}}',
    '{"rules":{"rebalance_storm":{"overrides":[7]}}}',
    '{"rules":{"rebalance_storm":{"overrides":[{"groups":["("]}]}}}',
    '{"rules":{"rebalance_storm":{"rebalances":-1}}}',
    '{"rules":{"rebalance_storm":{"window_ms":9223372036854775807}}}',
    '{"rules":{"session_timeout_imminent":{"at":0}}}',
    '{"groups":7}',
    '{"groups":{"allow":["("]}}',
    '{"groups":{"deny":["(?P<a>x)(?P<a>y)"]}}',
    '{"forget_after_ms":-5}',
    '{"forget_after_ms":9223372036854775807}',
    '{"runbook_base":' + '"' + "x" * 2**19 + '"' + "}",
    '{"runbook_base":[[]]}',
)


def _wild_settings() -> Iterator[tuple[str, Row]]:
    for number, settings in enumerate(_SETTINGS):
        yield f"settings {number}", control(f'"kind":"settings","at_ms":1760000005000,"settings":{settings}')


def _garbage() -> Iterator[tuple[str, Row]]:
    pieces = (
        None,
        b"",
        b"\0" * 64,
        b"\xff" * 64,
        b"{",
        b"{}",
        b"[]",
        b"null",
        b"7",
        b'"x"',
        b"\xed\xa0\x80",
        b"x" * 2**20,
    )
    for number, piece in enumerate(pieces):
        for feed in (OFFSETS, EVENTS, CONTROL):
            yield f"garbage {feed} {number}", Row(feed, piece, None, 5_000)
        yield f"garbage copy {number}", Row(EVENTS, piece, _CLOCK_KEY, 5_000)
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    yield "deep json line", Row(EVENTS, deep, b"1", 5_000)
    yield "deep json copy", Row(EVENTS, deep, _CLOCK_KEY, 5_000)
    yield "deep json control", Row(CONTROL, deep, None, 5_000)
    alerts = ('{"id":1}', "7", "{}", '{"revision":' + "9" * 40 + "}")
    for number, alert in enumerate(alerts):
        yield f"adopted {number}", control(f'"kind":"adopt","at_ms":1760000005000,"alerts":[{alert}]')
    yield (
        "clock of a billion partitions",
        control('"kind":"clock","at_ms":1760000001000,"sequence":1,"events_partitions":1000000000'),
    )
    yield (
        "an ask list of 100,000",
        control(
            f'"kind":"clock","at_ms":1760000001000,"sequence":1,"events_partitions":1,"ask":{list(range(100_000))}'
        ),
    )


def hostile_rows() -> dict[str, Row]:
    """Return every hostile row by a name of its own."""
    makers = (
        _wild_control,
        _wild_clocks,
        _wild_lines,
        _wild_requests,
        _wild_records,
        _wild_settings,
        _garbage,
    )
    return {
        f"{number} {name}": row for number, (name, row) in enumerate(one for make in makers for one in make())
    }


def settings_row(settings: dict[str, Any]) -> Row:
    """Return a settings record as a job writes it at its start."""
    return Row(CONTROL, encode_record(SettingsRecord(at_ms=NOW_MS, run=RUN, settings=settings)), None, 0)


def lived(*hostile: Row) -> Job:
    """Return a job that an ordinary group lived through, with hostile rows between its generations."""
    job = Job()
    first, second = story()
    with time_limit():
        job.clocked(first, behind_ms=6_000)
        job.batch(hostile)
        job.clocked(second, behind_ms=20_000)
        job.clocked([], behind_ms=30_000, ask=True)
        job.clocked([], behind_ms=31_000, ask=True)
    return job
