"""Lines in any layout say the same whether their columns are read at once or row by row.

Layouts are drawn at random: a line's pattern, what carries it (prefixes, JSON, JSON in JSON), and the digits
that differ from row to row.  Most are nothing that a broker writes; that is the point.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from coordinator_model.observations import CommitsAnswered, Heartbeats, Seen
from streaming.decoders import line_frames
from streaming.decoders.buffered_lines import BufferedLines, LineReader
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_events import Row, decode_lines, decode_rows
from streaming.devkit.bench.material import Population, heartbeat_line
from streaming.devkit.bench.mixed_lines import commit_line, modern_line
from tests.unit.streaming.decoders.tables import events_table

POPULATION, SHARDS = Population(groups=12), 4
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
STARTS = tuple(
    int(datetime.fromisoformat(f"{text}Z").timestamp()) * 1000
    for text in (
        *("2026-11-21T06:28:53", "2026-11-20T23:59:50", "2026-12-31T23:59:55"),
        *("2026-10-25T00:20:00", "2026-10-25T01:20:00", "2026-11-01T05:30:00", "2026-11-01T06:30:00"),
        *("2026-03-29T01:10:00", "2026-03-29T02:10:00", "2026-03-08T02:20:00", "2026-03-08T07:20:00"),
    )
)
"""Ordinary times, the hours that are repeated when summer time ends, and, in UTC, those that are skipped."""
STEPS_MS = (0, 7, 333, 1_000, 61_007)
LAGS_MS = (0, 0, 250, 1_700, -61_000, -59_999, -7_200_000, 3_600_000, 3 * 86_400_000)
"""How long after a line its record was written."""
KEYS = (None, b"1", b"2", b"host", b"01")


@pytest.fixture(autouse=True)
def no_frame_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test learn as many frames as a process learns at first."""
    monkeypatch.setattr(line_frames, "_known", line_frames.Frames())


def reader(timezone: str) -> LineReader:
    """Return the reader of one table after another."""
    return LineReader({}, timezone)


# --- layouts ------------------------------------------------------------------------------------------
# <m>: what is carried, <j>: as JSON string, <J>: the same with a line end, <t>: the line's own time,
# <c> and <b>: the shipper's as a runtime or syslog writes it, <s> <i> <f> <k>: as epoch s, ms, ns and
# ms of the second, <d>: a digit, <n>: a number, <l>: a level.

TIMES = (
    "%Y-%m-%d %H:%M:%S,~3", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.~6", "%Y-%m-%d %H:%M:%S,~1", "%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.~9Z", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S,~3%z", "%Y-%m-%dT%H:%M:%S.~3#", "@.~3",
    "%Y/%m/%d %H:%M:%S.~3", "%Y.%m.%d %H:%M:%S:~3", "%d %b %Y %H:%M:%S,~3", "%d/%b/%Y:%H:%M:%S %z", "@~3", "",
    "%b %d %H:%M:%S", "%a %b %d %H:%M:%S.~3", "%Y%m%dT%H%M%S,~3", "%Y%m%d%H%M%S~3", "%Y-%m-%d %H:%M:%S UTC",
    "%H:%M:%S,~3", "@", "@~6", "@~9", "%Y-%m-%d_%H:%M:%S,~3",
)  # fmt: skip
"""``~``: digits of the second's fraction, ``@``: epoch seconds, ``#``: the offset with a colon."""
OWN_TIME = TIMES[0]
THREAD = "data-plane-kafka-request-handler-<d>"
OWN = tuple(f"[<t>] <l> <m> (kafka.request.logger){end}" for end in ("", "", "", "\n", "\r\n", " [CRLF]"))
LINES = (
    *OWN, *3 * (f"<t> <l> [{THREAD}] logger:283 - <m>", "<m>"), "<n> <t> <l> RequestChannel$:<n> <m>",
    f"<t> <l> <m> (kafka.request.logger) [{THREAD}]", f"<t> <l> [{THREAD}] kafka.request.logger - <m>",
    "<m> (kafka.request.logger)", "<m>\n", "<t> <l> <m>", "<t> [<l>] <m>", "<l> <t> <m>", "[<t>][<l>]<m>",
    "\x1b[36m<t> <l>\x1b[0m logger - <m>", "<t> \x1b[3<d>m<l>\x1b[0;39m <m>\x1b[0m", "(<t>) <l>: <m>",
    "<t> | <l> | <n> | kafka.request.logger | <m>", "#<n> <t> <l> <m>", "<l> <m>", "<t> - <m>", "<t> D <m>",
    "<t> <l> {} [] <m> (x.Y)", "<t> <t> <l> <m>", "node=<d> <t> <l> <m>",
)  # fmt: skip
PREFIXES = (
    *3 * ("<c> stdout F <m>", "<n>-kafka-<d> | <m>"), "<m> ", "<m>\n", "<l> <m>", " <m>", "\ufeff<m>",
    "<c> <m>", "<c> stderr F:x <m>", "<<n>>1 <c> host-<d> kafka <n> - - <m>",
    '<13>1 <c> h k 1 - [a b="<n>"] <m>', "<<n>><b> host kafka[<n>]: <m>", "<b> host-<d> kafka: <m>",
    "[pod/kafka-<d>/kafka] <m>", "kafka-<d> <m>", "/var/log/kafka-<d>.log:<n>: <m>",
)  # fmt: skip
BROKERS = (
    '"broker":1', '"broker":"2"', *3 * ('"broker":<d>', '"broker":"<d>"'), '"broker":{"id":<d>}',
    '"broker_id":null', '"fields":{"broker_id":7}', '"labels":{"node_id":"<d>"}', '"nodeId":<n>',
    '"broker":"<n>é"',
)  # fmt: skip
CLOCKS = (
    '"@timestamp":"<c>"', '"timestamp":"<t>"', '"time":"<c>"', '"time":"<b>"', '"timeMillis":<i>',
    '"date":<s>', '"instant":{"epochSecond":<s>,"nanoOfSecond":<f>}', '"date":<s>.<k>', '"ts":"<s>"',
    '"_time":"<t>"', '"timestampSeconds":<s>,"timestampNanos":<f>', '"time":<d>', '"@timestamp":null',
    '"eventTime":"<t>Z"',
)  # fmt: skip
FIELDS = (
    *6 * ("BROKER", "CLOCK"), '"level":"DEBUG"', '"level":"WARN"', '"level":<n>', '"log.level":"info"',
    '"logger":"kafka.request.logger"', '"loggerName":"x.Y"', f'"thread":"{THREAD}"', '"offset":<n>', '"a":[]',
    '"kubernetes":{"pod_name":"kafka-<d>","labels":{"broker":"<d>"},"annotations":{"x":"}}"}}',
    '"stream":"stdout"', '"stream":"stderr","logtag":"F"', '"log":{"file":{"path":"/a/<n>"},"offset":<n>}',
    '"tags":["a","<n>"]', '"host":"h<n>"', '"note":"Completed request:{ \\"}} }}"', '"x":"é\\u00e9"',
    '"message":""', '"message":"<n>"', '"log":"<n>"', '"message":{"a":1}', '"streams":<d>', '"n":-<n>.5e<d>',
    '"original":<j>', '"broker":1,"broker":<d>', '"_partial":false', '"data":[]', '"b":<d>,"b":"}}"',
)  # fmt: skip
PARTS = ('"logtag":"P","stream":"stdout"', '"_partial":true', '"partial_message":"true"')
MESSAGES = (*5 * ("message", "log"), "msg", "text", "line", "body", "event", "MESSAGE", "textPayload")
WHOLES = (
    *3 * ('{"log":<J>,"stream":"stdout","time":"<c>"}',), '{"<n>":<j>}', '{"data":<j>}', '\n{"log":<j>}',
    '{"instant":{"epochSecond":<s>,"nanoOfSecond":<f>},"thread":"t-<d>","level":"DEBUG","loggerName":'
    '"kafka.request.logger","message":<j>,"endOfBatch":false,"threadId":<n>,"threadPriority":5}',
    '{"@timestamp":"<c>","ecs.version":"1.2.0","log.level":"DEBUG","message":<j>,"log.logger":"logger"}',
    '[{"message":<j>,"broker":<d>}]', "[<j>]", "<j>", '{"message":{"message":<j>,"broker":<d>},"ts":<s>}',
    '{"streams":[{"stream":{"broker":"<d>"},"values":[["<s>000000000",<j>]]}]}', '{"_source":{"log":<j>}}',
    '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"<i>000000","body":{"stringValue":<j>}}]}]}]}',
    '{"records":[{"message":<j>,"time":"<c>"}]}', '{"message":<j>,"broker":1}\n{"message":<j>,"broker":1}',
    "level=debug msg=<j>", 'ts="<c>" level=debug broker=<d> msg=<j>', "time=<c> text=<j> a=<n>", "<m>\n<m>",
    '{"message":<j>,"broker":1', '{"message":<j>}}', '{"message":<j>,}', '{"message":<j>,"a":<n>,<n>}',
)  # fmt: skip
TOKEN = re.compile("(<[mjJtcbsifkdnl]>)")
CUT_AT = 16_384
"""Length at which Docker cuts a line; nothing else tells that one continues."""


class Moment(NamedTuple):
    """What differs from row to row of a layout."""

    at_ms: int
    told_ms: int  # by the shipper
    zone: str
    chance: random.Random


def _time(form: str, at_ms: int, moment: Moment) -> str:
    chance = moment.chance
    local = datetime.fromtimestamp(at_ms // 1000, UTC if form.endswith("Z") else ZoneInfo(moment.zone))
    digits, offset = f"{at_ms % 1000:03d}{chance.choice([0, chance.randrange(10**6)]):06d}", f"{local:%z}"
    text = local.strftime(form.replace("#", f"{offset[:3]}:{offset[3:]}").replace("@", str(at_ms // 1000)))
    text = re.sub(r"~(\d)", lambda found: digits[: int(found[1])], text)
    if chance.random() < 0.03:
        date = chance.choice(["2026-13-01", "2026-02-30", "9999-12-31", "1969-12-31", "0000-00-00"])
        text = re.sub(r"\d{4}-\d\d-\d\d", date, text)
    return text


class Layout:
    """A way to write lines, in which only digits differ from row to row."""

    def __init__(self, chance: random.Random, *, has_parts: bool) -> None:
        is_own = chance.random() < 0.3
        self._form = OWN_TIME if is_own else chance.choice([OWN_TIME, TIMES[1], *TIMES])
        self._carrier = chance.choice([form for form in TIMES if "T%H:" in form])
        self._level = chance.choice(["DEBUG", "INFO"] if is_own else ["DEBUG", "INFO", "debug", "WARN "])
        self._ascii, self._slashes = chance.random() < 0.5, chance.random() < 0.2
        self._quotes = chance.choice(['\\"'] * 9 + ["\\u0022"])
        kinds = PREFIXES, WHOLES, tuple(_object(chance, has_parts=has_parts) for _ in "abc")
        around = chance.choices(kinds, (3, 3, 9), k=chance.choice([0, 0, 1, 1, 1, 1, 2, 3]))
        self._templates = [*map(chance.choice, (OWN if is_own else LINES, *around))]
        self._templates += ["<c> stdout P <m>"] if has_parts and chance.random() < 0.4 else []

    def written(self, message: str, moment: Moment) -> str:
        """Return a message in this layout."""
        for template in self._templates:
            words = self._words(message, moment)
            pieces = TOKEN.split(template)
            message = "".join(words[one[1]]() if TOKEN.match(one) else one for one in pieces)
            if template is self._templates[0] and moment.chance.random() < 0.005:
                pad = "x" * (CUT_AT - len(message) - moment.chance.choice([0, 1]))
                message = message.replace('"clientId":"', f'"clientId":"{pad}', 1)
        return message

    def _words(self, text: str, moment: Moment) -> Mapping[str, Callable[[], str]]:
        told_ms, chance = moment.told_ms, moment.chance
        number = chance.choice([chance.randrange(10), 10 + chance.randrange(90), 10**9 + told_ms])
        return {
            "m": lambda: text, "j": lambda: self._quoted(text), "J": lambda: self._quoted(f"{text}\n"),
            "l": lambda: self._level, "t": lambda: _time(self._form, moment.at_ms, moment),
            "c": lambda: _time(self._carrier, told_ms, moment),
            "b": lambda: _time("%b %d %H:%M:%S", told_ms, moment),
            "s": lambda: str(told_ms // 1000), "k": lambda: f"{told_ms % 1000:03d}",
            "i": lambda: str(told_ms), "f": lambda: str(told_ms % 1000 * 1_000_000 + chance.randrange(1_000)),
            "d": lambda: str(chance.randrange(4)), "n": lambda: str(number + chance.randrange(3)),
        }  # fmt: skip

    def _quoted(self, text: str) -> str:
        quoted = json.dumps(text, ensure_ascii=self._ascii).replace('\\"', self._quotes)
        return quoted.replace("/", "\\/") if self._slashes else quoted


def _object(chance: random.Random, *, has_parts: bool) -> str:
    """Return a JSON object around a line."""
    fields = chance.choices(FIELDS, k=chance.randrange(5))
    fields = [chance.choice({"BROKER": BROKERS, "CLOCK": CLOCKS}.get(one, (one,))) for one in fields]
    fields += [chance.choice(PARTS)] if has_parts and chance.random() < 0.5 else []
    fields.insert(chance.randrange(len(fields) + 1), f'"{chance.choice(MESSAGES)}":<j>')
    text = chance.choice([",", ",", ", ", ",\n ", " ,"]).join(fields)
    return f"{{{text}}}" if chance.random() < 0.5 else f"{{{text}}}".replace('":', '": ')


# --- lines --------------------------------------------------------------------------------------------

TEXTS = (
    "", "}}", '\\"}}', "x}} (kafka.request.logger)", "Completed request:{", '\\"}} (kafka.request.logger)',
    "[2026-11-21 06:28:53,123] DEBUG Completed request:{", "2026-11-21T06:28:53Z stdout P ", "a\\\\b", "\\\\",
    '\\"}}\\n[2026-11-21 06:28:53,123] DEBUG ', "\\u00e9", "é", "консьюмер 👋", "\\n", "\\t", "\\ud800", "\t",
    '\\",\\"totalTimeMs\\":', ',\\"clientId\\":', "/10.0.0.1", "\u2028", "[CRLF]", "{", "\x1b[0m", "1 2 03",
)  # fmt: skip
_NAMED = r'"(clientId|groupId|memberId|principal|softwareName|connection|listener|name)":"[^"]*"'
CHANGES: tuple[tuple[str, str], ...] = (
    *((r'"errorCode":0', f'"errorCode":{code}') for code in (27, 25, 22, 15) * 3),
    *((r'"requestApiKey":\d+', f'"requestApiKey":{key}') for key in (11, 13, 14, 3, 0, 76, 42)),
    *((rf'"{name}":[\d.]+', rf'"{name}":1500.25') for name in ("totalTimeMs", "remoteTimeMs") * 2),
    *((r'"correlationId":\d+', f'"correlationId":{number}') for number in (-5, 2147483647, 12345678901, 0)),
    *((r'"(generationId|generationIdOrMemberEpoch|memberEpoch)":1', rf'"\1":{n}') for n in (-1, 0, 7, 99)),
    ('"isForwarded":false,', ""), ('"clientId":"[^"]*"', '"clientId":null'), (":{", ": {"), (",", ", "),
    *((r"}}$", end) for end in ("}", "}}}", "} }", "}} ", "}}x")), (r'"request":\{.*?\},', '"request":"",'),
    ('"softwareVersion":"[^"]*"', ""), ('"groupInstanceId":null', '"groupInstanceId":"i-1"'), (".{40}$", ""),
)  # fmt: skip


def _message(chance: random.Random, at_ms: int, sequence: int, *, is_odd: bool) -> str:
    """Return a message of the request log."""
    make = chance.choice([heartbeat_line, heartbeat_line, commit_line, modern_line])
    line = make(POPULATION, chance.randrange(12), chance.randrange(2), at_ms, sequence).decode()
    message = line[line.index("Completed") : line.rindex(" (kafka")]
    if is_odd and chance.random() < 0.5:
        names = list(re.finditer(_NAMED, message))
        found = chance.choice([names[0], chance.choice(names)])
        return f'{message[: found.start()]}"{found[1]}":"{chance.choice(TEXTS)}"{message[found.end() :]}'
    shape, other = chance.choice(CHANGES)
    return re.sub(shape, other, message, count=chance.choice([0, 1])) if is_odd else message


OTHERS = (
    None, b"", b"\tat kafka.Kafka.main(Kafka.scala)",
    b"[2026-11-21 06:28:53,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
    b"Completed request:{", b"2026-11-21T06:28:53.1Z stdout F ", b"{}", b"\xff",
)  # fmt: skip
_NO_JSON_NUMBER = re.compile(rb'":\s*-?0\d')
"""A number that begins with 0: nobody writes it, and digits that differ are not looked at one by one."""


def _other_digit(value: bytes, chance: random.Random) -> bytes:
    """Return a row with another digit beside the message."""
    begin, end = value.find(b"Completed"), value.rfind(b"}}")
    at = chance.choice([n for n, one in enumerate(value) if 48 <= one <= 57 and not begin <= n < end] or [-1])
    return value if at < 0 else value[:at] + b"%d" % chance.randrange(10) + value[at + 1 :]


def _damaged(value: bytes, chance: random.Random) -> bytes:
    """Return a row with a byte or two flipped, cut, doubled or inserted."""
    at = chance.choice([chance.randrange(len(value)), *(chance.randrange(min(80, len(value))) for _ in "ab")])
    other = bytes([chance.choice(b'0123456789".,:{}[] \\abcxyzDEBUGINFO\x00\xc3\xa9\n' + 9 * b"\xff")])
    size, flipped = chance.choice([1, 1, 2, 9]), bytes([value[at] ^ 1 << chance.randrange(8)])
    kinds = ((size, b""), (0, other), (1, other), (1, flipped), (0, value[at : at + size]), (len(value), b""))
    removed, added = chance.choice(kinds)
    return value[:at] + added + value[at + removed :]


def _rows(chance: random.Random, timezone: str, count: int = 120, *, is_hostile: bool = True) -> list[Row]:
    """Return rows of a few layouts many times, and of others once."""
    has_parts = is_hostile and chance.random() < 0.25
    written, start = chance.choice([timezone, timezone, *ZONES]), chance.choice(STARTS)
    step, lag, odd = chance.choice(STEPS_MS), chance.choice(LAGS_MS), chance.choice([0.0, 0.1, 0.5])
    keys = chance.choices(KEYS, k=chance.choice([1, 2, 4]))
    layouts = [Layout(chance, has_parts=has_parts) for _ in range(chance.choice([1, 2, 4]))]
    rows: list[Row] = []
    for n in range(count):
        at_ms = start + step * n
        told_ms = at_ms + chance.choice([0, 0, -(at_ms % 1000), 1, 800, 1_500, -2_500, 7_200_000])
        is_rare = is_hostile and chance.random() < 0.15
        layout = Layout(chance, has_parts=has_parts) if is_rare else chance.choice(layouts)
        message = _message(chance, at_ms, n, is_odd=is_hostile and chance.random() < odd)
        value = layout.written(message, Moment(at_ms, told_ms, written, chance)).encode(errors="replace")
        if is_hostile and chance.random() < 0.1:
            value = _other_digit(value, chance)
        stamp = at_ms + (chance.choice(LAGS_MS) if chance.random() < 0.1 else lag + chance.randrange(300))
        other = chance.choice(OTHERS) if is_hostile and chance.random() < 0.01 else value
        rows.append((n * 3 // count, n, stamp, chance.choice(keys), other))
    return [row for row in rows if not _NO_JSON_NUMBER.search(row[4] or b"")]


def _by_columns(rows: Sequence[Row], timezone: str, cut: int = 0) -> Decoded:
    one, table = reader(timezone), events_table(rows)
    tables = [table.slice(0, cut), table.slice(cut)] if cut else [table]
    blocks = [block for part in tables for block in one.lines(part).blocks]
    return decode_lines(BufferedLines(blocks), shard_count=SHARDS, timezone=timezone)


def _coalesced(cell: Iterable[Seen]) -> list[Seen]:
    """Return what was seen; runs of one member with one answer, of which a way may make several, as one."""
    found: list[Seen] = []
    runs: dict[tuple[object, ...], tuple[Seen, list[int]]] = {}
    for seen in sorted(cell, key=lambda one: (one.offset, one.index)):
        what = seen.what
        if not isinstance(what, Heartbeats | CommitsAnswered):
            found.append(seen)
            continue
        refused = repr(replace(what, times=())) if what.error_code and type(what) is CommitsAnswered else ""
        answer = (type(what), what.group, what.member_id, what.generation, what.error_code, refused)
        key = (seen.partition, seen.broker, *answer)
        times = sorted((*runs[key][1], *what.times) if key in runs else what.times)
        runs[key] = replace(seen, at_ms=times[-1], what=replace(what, times=())), times
    return [*found, *(replace(seen, what=replace(seen.what, times=tuple(t))) for seen, t in runs.values())]


def _told(result: Decoded) -> tuple[object, ...]:
    cells = {shard: sorted(map(repr, _coalesced(cell))) for shard, cell in result.cells.items()}
    return cells, result.counts, sorted((one.reason, one.count) for one in result.bad)


def _differ(rows: Sequence[Row], timezone: str, cut: int = 0) -> bool:
    by_line = decode_rows(rows, shard_count=SHARDS, backlog_ends={}, timezone=timezone)
    return _told(_by_columns(rows, timezone, cut)) != _told(by_line)


def _fewest(rows: list[Row], timezone: str) -> list[Row]:
    """Return few of the rows, which differ as well."""
    size = len(rows) // 2
    while size:
        parts = (rows[:at] + rows[at + size :] for at in range(0, len(rows), size))
        fewer = next((one for one in parts if one and _differ(one, timezone)), None)
        rows, size = (rows, size // 2) if fewer is None else (fewer, min(size, len(fewer) // 2))
    return rows


def _check(rows: list[Row], timezone: str, chance: random.Random) -> None:
    assert not _differ(rows, timezone), _fewest(rows, timezone)
    cut = chance.randrange(1, len(rows))
    assert not _differ(rows, timezone, cut), (cut, "in two tables")


@pytest.mark.parametrize("seed", range(200))
def test_any_layout_says_the_same_both_ways(seed: int) -> None:
    """In one table and in two, with rows that imitate and digits that mean something else."""
    chance = random.Random(seed)
    timezone = chance.choice(ZONES)
    _check(_rows(chance, timezone, is_hostile=seed % 4 > 0), timezone, chance)


@pytest.mark.parametrize("seed", range(120))
def test_damaged_rows_say_the_same_both_ways(seed: int) -> None:
    """Among whole ones of their layouts, which are known by then."""
    chance = random.Random(1_000 + seed)
    timezone = chance.choice(ZONES)
    rows = []
    for row in _rows(chance, timezone, is_hostile=False):
        other = _damaged(row[4], chance) if row[4] and chance.random() < 0.5 else row[4]
        rows.append(row if _NO_JSON_NUMBER.search(other or b"") else (*row[:4], other))
    _check(rows, timezone, chance)
