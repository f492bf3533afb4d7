"""Whether a broker and the model of its coordinator did the same: answers, lines of the log, records."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from kafka.structs import TopicPartition

from coordinator_model.decoding.schemas import decode_key, decode_value
from coordinator_model.kafka.hashing import shard_of
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients import clients as kafka_io
from tests import oracle as ora
from tests.oracle.duel.wire import essence
from tests.oracle.values.responses import JoinGroupResponse

LATE_MS = 100
"""What happens later than that after the model's instant was delayed by the machine."""
WRONG_MS = 600
"""And what is later than that has another reason."""
NEAR_MS = 60
"""A request so near to a timer may have come before or after it."""
SHARDS = 50

Line = tuple[int, str]
"""When a line was logged, since the beginning, and its words."""
Plain = tuple[object, ...]


class Sent(Protocol):
    """A request as it was sent, and its answer."""

    at_ms: int
    request: ora.Request
    response: Any
    answered_ms: int | None


class Played(Protocol):
    """A group as it was played; a disturbed one counts up to ``ended_ms``."""

    group: str
    disturbed: bool
    ended_ms: int

    @property
    def exchanges(self) -> Sequence[Sent]:
        """All requests, in order."""


class Verdict(NamedTuple):
    """What differs, of how many requests."""

    differences: list[str]
    compared: int


class Run(NamedTuple):
    """What the model did with the same requests."""

    tickets: list[ora.Ticket]
    lines: list[Line]
    records: list[Plain]


def judge(
    config: ora.Config, played: Played, lines: Sequence[Line], records: Sequence[tuple[int, Plain]]
) -> Verdict:
    """Run the model over what was sent, and compare.

    A request near to a timer ends the comparison, and so does a timer that the broker served late, as its
    log shows: nobody can say which was first.
    """
    ran = _run(config, played, lines)
    late_ms = _first_late(lines, ran.lines)
    if late_ms is not None:
        played.disturbed, played.ended_ms = True, min(played.ended_ms, late_ms - 1)
        ran = _run(config, played, lines)
    # The broker went on after the last request, alone with its timers.
    said = [text for at_ms, text in lines if at_ms <= played.ended_ms]
    wrote = [plain for at_ms, plain in records if at_ms <= played.ended_ms]
    differences = [
        *_differing_answers(played, ran.tickets),
        *_first_difference(played, "log", said, [text for _, text in ran.lines]),
        *_first_difference(played, "records", _settled(wrote), _settled(ran.records)),
    ]
    return Verdict(differences, len(ran.tickets))


def _first_late(real: Sequence[Line], model: Sequence[Line]) -> int | None:
    for (real_ms, real_text), (model_ms, model_text) in zip(real, model, strict=False):
        if LATE_MS < real_ms - model_ms < WRONG_MS:
            return model_ms
        if real_text != model_text:
            return None
    return None


class _Ids:
    """The member ids that the broker made, for the model to make them again."""

    def __init__(self, played: Played, lines: Sequence[Line]) -> None:
        """Know those of the answers; of who was never answered the log alone tells."""
        self._told: list[str] = []
        answered = {
            s.response.member_id for s in played.exchanges if isinstance(s.response, JoinGroupResponse)
        }
        self._untold = [one for one in _ids_in([text for _, text in lines]) if one not in answered]

    def expect(self, sent: Sent) -> None:
        """Be ready for the id of one request."""
        asks_id = isinstance(sent.request, ora.JoinGroup) and not sent.request.member_id
        self._told = (
            [sent.response.member_id] if asks_id and sent.response and sent.response.member_id else []
        )

    def make(self, prefix: str, number: int) -> str:
        """Return the id that the broker made."""
        if self._told:
            return self._told.pop()
        named = next((one for one in self._untold if _prefix_of(one) == prefix), None)
        if named is None:
            return ora.numbered(prefix, number)
        self._untold.remove(named)
        return named


def _run(config: ora.Config, played: Played, lines: Sequence[Line]) -> Run:
    ids = _Ids(played, lines)
    coordinator = ora.Coordinator(config, member_ids=ids.make)
    tickets = []
    for sent in played.exchanges:
        if sent.at_ms > played.ended_ms:
            break
        coordinator.advance(max(sent.at_ms - NEAR_MS, coordinator.now_ms))
        due_ms = coordinator.due_at()
        if due_ms is not None and due_ms <= sent.at_ms + NEAR_MS:
            played.disturbed, played.ended_ms = True, coordinator.now_ms
            break
        ids.expect(sent)
        tickets.append(coordinator.request(sent.at_ms, sent.request))
    coordinator.advance(max(played.ended_ms, coordinator.now_ms))
    return Run(tickets, list(_lines_of(coordinator, played.group)), list(_records_of(coordinator)))


def _lines_of(coordinator: ora.Coordinator, group: str) -> Iterator[Line]:
    for one in coordinator.outcomes:
        if isinstance(one, ora.Logged) and group in one.message:
            yield one.at_ms, _comparable(one.message)


def _records_of(coordinator: ora.Coordinator) -> Iterator[Plain]:
    for one in coordinator.outcomes:
        plain = _plain(one.record) if isinstance(one, ora.Appended) else None
        if plain is not None:
            yield plain


def _differing_answers(played: Played, tickets: Sequence[ora.Ticket]) -> Iterator[str]:
    for sent, ticket in zip(played.exchanges, tickets, strict=False):
        if played.disturbed and not ticket.is_answered:
            continue
        real, model = essence(sent.response), essence(ticket.response)
        late_ms = (sent.answered_ms or 0) - (ticket.answered_at_ms or 0)
        if real != model or not -LATE_MS <= late_ms <= WRONG_MS:
            yield (
                f"{played.group} {sent.at_ms} ms {sent.request}\n"
                f"    broker at {sent.answered_ms}: {real}\n"
                f"    model  at {ticket.answered_at_ms}: {model}"
            )


def _first_difference(
    played: Played, what: str, real: Sequence[object], model: Sequence[object]
) -> Iterator[str]:
    # A disturbed group was late with its last entries, or did something else after them.
    for index in range(min(len(real), len(model)) if played.disturbed else max(len(real), len(model))):
        left = real[index] if index < len(real) else None
        right = model[index] if index < len(model) else None
        if left != right:
            yield f"{played.group} {what}, entry {index}\n    broker: {left}\n    model:  {right}"
            return


def _settled(records: Sequence[Plain]) -> list[Plain]:
    """Return the records with tombstones of offsets that follow each other in one order."""
    settled: list[Plain] = []
    run: list[Plain] = []
    for one in records:
        if len(one) == 3 and one[2] is None:
            run.append(one)
            continue
        settled += [*sorted(run, key=str), one]
        run = []
    return settled + sorted(run, key=str)


_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def _ids_in(lines: Sequence[str]) -> list[str]:
    found = re.findall(rf"[\w-]+-{_UUID}", "\n".join(lines))
    return list(dict.fromkeys(found))


def _prefix_of(member_id: str) -> str:
    return re.sub(rf"-{_UUID}$", "", member_id)


def _comparable(line: str) -> str:
    return re.sub(r"\[B@[0-9a-f]+", "[B@0", line)


# --- what the broker wrote ----------------------------------------------------------------------------


def _plain(record: ora.Record) -> Plain | None:
    match record:
        case ora.GroupMetadata():
            members = tuple((m.member_id, m.group_instance_id, m.assignment) for m in record.members)
            return record.generation, record.protocol_type, record.protocol, record.leader, members
        case ora.GroupTombstone():
            return ("tombstone",)
        case ora.OffsetCommitted():
            return record.topic, record.partition, record.offset
        case ora.OffsetTombstone():
            return record.topic, record.partition, None
        case _:
            return None


def written(
    cluster: EmbeddedKafka, groups: Sequence[str], began_ms: int
) -> dict[str, list[tuple[int, Plain]]]:
    """Return the broker's records by group, each with its time, in the form of ``_plain``."""
    found: dict[str, list[tuple[int, Plain]]] = {group: [] for group in groups}
    consumer = kafka_io.consumer(cluster.address)
    places = [TopicPartition("__consumer_offsets", one) for one in {shard_of(g, SHARDS) for g in groups}]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = consumer.end_offsets(places)
    while any(consumer.position(place) < ends[place] for place in places):
        for batch in consumer.poll(timeout_ms=200).values():
            for one in batch:
                kind, key = decode_key(one.key)
                if key["group"] in found:
                    found[key["group"]].append((one.timestamp - began_ms, _read(kind, key, one.value)))
    consumer.close()
    return found


def _read(kind: int, place: Any, value: bytes | None) -> Plain:
    content = None if value is None else decode_value(kind, value)[1]
    if kind == 1:
        return place["topic"], place["partition"], content and content["offset"]
    if content is None:
        return ("tombstone",)
    members = tuple((m["memberId"], m["groupInstanceId"], bytes(m["assignment"])) for m in content["members"])
    head = content["generation"], content["protocolType"], content["protocol"], content["leader"]
    return *head, members


_LOGGED = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] \w+ "
    r"\[GroupCoordinator id=\d+ topic=\S+ partition=\d+\] (.*) \(org\.apache\.\S+\)(?: \[CRLF\])?$"
)


def logged(cluster: EmbeddedKafka, groups: Sequence[str], began_ms: int) -> dict[str, list[Line]]:
    """Return the coordinator's lines by group; every name of a group's members contains its own."""
    lines: dict[str, list[Line]] = {group: [] for group in groups}
    for line in cluster.log_files(1)[0].read_text().splitlines():
        found = _LOGGED.search(line)
        if found is None:
            continue
        at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
        at_ms = round(at.timestamp() * 1_000) - began_ms
        for group in groups:
            if group in found[2]:
                lines[group].append((at_ms, _comparable(found[2])))
    return lines
