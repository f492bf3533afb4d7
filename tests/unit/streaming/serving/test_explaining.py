"""Where a group's story is read: over HTTP, from the command line, out of logs; and how each says no."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import msgspec
import pytest
from kafka.errors import KafkaTimeoutError
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner, Result

from alerts.alert import AlertStatus
from alerts.delivery.silences import KeptSilence
from alerts.story.narrative import Explanation
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.costs import ToldCost
from coordinator_model.state.group import Basis, Cause, Transition
from streaming import cli
from streaming.config.config import parse_config
from streaming.config.plan import plan_of
from streaming.config.server import HttpConfig
from streaming.serving import history
from streaming.serving.explaining import explain_by_url, parse_since
from streaming.serving.history import History, TopicReader, read_history
from streaming.serving.http import HttpServer
from streaming.silences.topic import SilencesTopic
from tests.unit.coordinator_model.kafka_bytes import commit_key, commit_value
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
SERVER_LOG = Path(__file__).parents[3] / "golden" / "logs" / "kafka-4.3.1-server.log"
MODERN_RECORDS = Path(__file__).parents[3] / "golden" / "modern" / "records.jsonl"
CONFIG = "clusters:\n  - {name: eu, bootstrap_servers: [127.0.0.1:1]}\nhttp: {port: 1}\n"


def transition(group: str = "g", *, at_ms: int = NOW_MS, cluster: str = "eu") -> Transition:
    """A member leaves."""
    return Transition(
        id=f"{group}{at_ms}{cluster}",
        cluster=cluster,
        group=group,
        group_type="classic",
        from_state=GroupState.STABLE,
        to_state=GroupState.PREPARING_REBALANCE,
        generation=7,
        at_ms=at_ms,
        recorded_at_ms=at_ms,
        cause=Cause(kind=CauseKind.MEMBER_LEFT, member_id="m", client_id="app"),
        basis=Basis.OBSERVED,
        source="coordinator_log",
    )


# --- since -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", NOW_MS - 7_200_000),
        ("90s", NOW_MS - 90_000),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14 23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_since_is_a_span_or_a_time(text: str, expected: int) -> None:
    """A time without a zone is UTC."""
    assert parse_since(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["yesterday", "", "2h ago", "25:00"])
def test_a_since_that_is_neither_is_refused(text: str) -> None:
    """With examples of what is understood."""
    with pytest.raises(ValueError, match="write for example"):
        parse_since(text, NOW_MS)


# --- HTTP --------------------------------------------------------------------------------------------


class Past:
    """The topics, as a test wants them."""

    def __init__(self) -> None:
        self.history = History([], [], [])
        self.asked: list[tuple[str, str, int]] = []

    def __call__(self, cluster: str, group: str, since_ms: int) -> History:
        """Answer, and remember what was asked."""
        self.asked.append((cluster, group, since_ms))
        return self.history


class FakeHealth:
    """All is well."""

    def clusters(self) -> list[dict[str, Any]]:
        """Return one cluster."""
        return [{"cluster": "eu", "ready": True}]

    def problems(self) -> list[str]:
        """Return nothing."""
        return []


class Site(NamedTuple):
    """A server with what stands behind it."""

    client: httpx.Client
    view: FedView
    past: Past
    url: str


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    view, past = FedView(["eu"], clock_ms=lambda: NOW_MS), Past()
    server = HttpServer(HttpConfig(host="127.0.0.1", port=0), view, FakeHealth(), CollectorRegistry(), past)
    url = f"http://127.0.0.1:{server.start()}"
    with httpx.Client(base_url=url, timeout=20, trust_env=False) as client:
        yield Site(client, view, past, url)
    server.stop()


@pytest.fixture
def site(shared_site: Site, rows: "Rows", monkeypatch: pytest.MonkeyPatch) -> Site:
    # Nobody asks a proxy for what is on this machine.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    shared_site.past.history = History([], [], [])
    shared_site.view.apply("eu", [rows.report("g"), rows.report("a/b")])
    return shared_site


@pytest.mark.parametrize("name", [".", ".."])
def test_a_group_named_like_a_folder_is_asked_for_in_the_query(site: Site, rows: "Rows", name: str) -> None:
    """Whose path every client would fold."""
    site.view.apply("eu", [rows.report(name)])
    assert explain_by_url(site.url, "eu", name, NOW_MS - 1).group == name


def test_a_story_over_http_joins_the_present_and_the_topics(site: Site) -> None:
    """As JSON of the published schema, or as text for people."""
    site.past.history = History([transition()], [], ["A note."])
    answer = site.client.get("/api/v1/groups/eu/g/explain", params={"since": "1700000000000"})
    told = msgspec.json.decode(answer.content, type=Explanation)
    text = site.client.get("/api/v1/groups/eu/g/explain", params={"since": "1700000000000", "format": "text"})

    assert answer.status_code == 200
    assert site.past.asked[-1] == ("eu", "g", 1_700_000_000_000)
    assert (told.cluster, told.group, told.since_ms, told.notes) == (
        "eu",
        "g",
        1_700_000_000_000,
        ["A note."],
    )
    assert told.now.startswith("g is Stable for ")
    assert [entry.text for entry in told.entries] == ["app left."]
    assert text.headers["content-type"].startswith("text/plain")
    assert "app left." in text.text


def test_the_schema_of_a_story_is_published(site: Site) -> None:
    """With those of the other answers."""
    endpoints = site.client.get("/api/v1/schema").json()["endpoints"]

    assert endpoints["/api/v1/groups/{cluster}/{group}/explain"] == {"$ref": "#/$defs/Explanation"}


@pytest.mark.parametrize("name", ["a/b", "a%2Fb"])
def test_a_group_whose_name_has_a_slash_has_a_story(site: Site, name: str) -> None:
    """Encoded or not."""
    assert site.client.get(f"/api/v1/groups/eu/{name}/explain").json()["group"] == "a/b"


def test_a_group_that_is_called_explain_is_itself(site: Site, rows: "Rows") -> None:
    """And has a story like any other."""
    site.view.apply("eu", [rows.report("explain"), rows.report("x/explain")])

    assert site.client.get("/api/v1/groups/eu/explain").json()["report"]["group"] == "explain"
    assert site.client.get("/api/v1/groups/eu/x/explain").json()["report"]["group"] == "x/explain"
    assert site.client.get("/api/v1/groups/eu/explain/explain").json()["group"] == "explain"


def test_a_group_that_is_gone_is_told_from_the_topics(site: Site) -> None:
    """Whoever asks why it went finds it."""
    site.past.history = History([transition("gone")], [], [])

    assert site.client.get("/api/v1/groups/eu/gone/explain").json()["entries"][0]["text"] == "app left."


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("nobody/explain", 404, "there is no group 'nobody' in cluster 'eu'"),
        ("g/explain?since=soon", 400, "since: "),
        ("g/explain?format=xml", 400, "format must be one of"),
    ],
)
def test_what_cannot_be_told_is_said(site: Site, path: str, status: int, says: str) -> None:
    """With a sentence."""
    answer = site.client.get(f"/api/v1/groups/eu/{path}")

    assert (answer.status_code, says in answer.json()["error"]) == (status, True)


# --- topics ------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """What a consumer returns; it was written under the group, or the alert, that it is about."""

    value: bytes | None
    timestamp: int = NOW_MS

    @property
    def key(self) -> bytes:
        """Return the key that a groupwatch would have given it."""
        try:
            told = json.loads(self.value or b"")
        except ValueError:
            return b""
        return str(told["group"] if "from" in told else told["id"]).encode()


class FakeReader:
    """Two topics of two partitions; ``offsets_for_times`` finds a start in partition 0 only."""

    def __init__(self, topics: dict[str, list[list[bytes | None]]]) -> None:
        self.topics = topics
        self.positions: dict[Any, int] = defaultdict(int)
        self.assigned: list[Any] = []
        self.sought_ms: list[int] = []
        self.closed = False

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return its numbers."""
        return set(range(len(self.topics.get(topic, []))))

    def assign(self, partitions: list[Any]) -> None:
        """Take them."""
        self.assigned = partitions

    def seek_to_beginning(self, *partitions: Any) -> None:
        """Go there."""
        for one in partitions:
            self.positions[one] = 0

    def seek_to_end(self, *partitions: Any) -> None:
        """Go there."""
        for one in partitions:
            self.positions[one] = len(self.topics[one.topic][one.partition])

    def seek(self, partition: Any, offset: int) -> None:
        """Go there."""
        self.positions[partition] = offset

    def offsets_for_times(self, times: dict[Any, int]) -> dict[Any, Any]:
        """Find a start in partition 0."""
        self.sought_ms += list(times.values())
        start = type("Start", (), {"offset": 1})
        return {one: start if one.partition == 0 else None for one in times}

    def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        """Return the ends."""
        return {one: len(self.topics[one.topic][one.partition]) for one in partitions}

    def position(self, partition: Any) -> int:
        """Return where it stands."""
        return self.positions[partition]

    def poll(self, timeout_ms: int) -> dict[Any, list[Record]]:
        """Return the next two of each."""
        found = {}
        for one in self.assigned:
            held = self.topics[one.topic][one.partition][self.positions[one] :][:2]
            self.positions[one] += len(held)
            found[one] = [Record(value) for value in held]
        return found

    def close(self) -> None:
        """Remember it."""
        self.closed = True


NewReader = Callable[[dict[str, list[list[bytes | None]]]], FakeReader]


@pytest.fixture
def new_reader(monkeypatch: pytest.MonkeyPatch) -> NewReader:
    def make(topics: dict[str, list[list[bytes | None]]]) -> FakeReader:
        reader = FakeReader(topics)
        monkeypatch.setattr(history, "consumer", lambda _, **more: reader)
        return reader

    return make


def test_the_topics_are_searched_for_one_group_of_one_cluster(new_reader: NewReader, rows: "Rows") -> None:
    """From the given time on; tombstones and what is no record of ours are passed over."""
    encode = msgspec.json.encode
    alert = rows.make_alert(group="g", cluster="eu")
    reader = new_reader(
        {
            "groupwatch-transitions": [
                [
                    encode(transition(at_ms=1)),
                    None,
                    b'"g" is no record',
                    encode(transition("other")),
                    encode(transition(cluster="us")),
                    encode(transition()),
                ],
                [encode(transition(at_ms=2))],
            ],
            "groupwatch-alerts": [[encode(alert), encode(rows.make_alert(group="x", cluster="eu"))]],
        }
    )
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 1_234, 20.0)

    assert found == History([transition()], [alert], [])
    assert reader.sought_ms == [1_234, 1_234]
    assert reader.closed


def forged(**changes: Any) -> bytes:
    """Return a transition that groupwatch cannot have written."""
    return msgspec.json.encode(msgspec.structs.replace(transition(), **changes))


FORGED = [
    pytest.param({"at_ms": 253_402_300_800_000}, id="year-10000"),
    pytest.param({"at_ms": NOW_MS + 3 * 86_400_000}, id="future"),
    pytest.param({"recorded_at_ms": 2**62}, id="recorded"),
    pytest.param({"at_ms": -(2**62)}, id="before-1970"),
    pytest.param({"generation": 2**40}, id="generation"),
    pytest.param({"generation": -7}, id="negative-generation"),
    pytest.param({"id": ""}, id="no-id"),
    pytest.param({"id": "x" * 300}, id="long-id"),
    pytest.param({"replaces": "x" * 300}, id="long-replaces"),
    pytest.param({"group_type": "x" * 300}, id="long-type"),
    pytest.param({"source": "x" * 300}, id="long-source"),
    pytest.param({"cause": Cause(kind=CauseKind.UNKNOWN, detail="x" * 5_000)}, id="long-detail"),
    pytest.param({"cause": Cause(kind=CauseKind.UNKNOWN, client_id="x" * 70_000)}, id="long-client"),
    pytest.param({"reread": 2**60}, id="reread"),
]


@pytest.mark.parametrize("changes", FORGED)
def test_a_transition_that_no_groupwatch_can_have_written_is_left_out_and_counted(
    changes: dict[str, Any], new_reader: NewReader
) -> None:
    """Times, numbers and lengths; the rest of the story is told, and says that something is left out."""
    good = msgspec.json.encode(transition())
    new_reader({"groupwatch-transitions": [[b"", forged(**changes), good, forged(**changes)]]})
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0)

    assert found.transitions == [transition()]
    assert found.notes == [
        "Left out of the story: 2 records of groupwatch-transitions that groupwatch cannot have written "
        "(out_of_range)."
    ]


TIMES = [name for name in ToldCost.__struct_fields__ if name.endswith("_ms")]


@pytest.mark.parametrize("field", [*TIMES, "partitions", "moved", "rate_before"])
def test_a_cost_that_nobody_can_have_counted_is_left_out(field: str, new_reader: NewReader) -> None:
    """With the transition that tells it."""
    new_reader(
        {"groupwatch-transitions": [[b"", forged(cost=msgspec.structs.replace(COST, **{field: 2**60}))]]}
    )
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0)

    assert (found.transitions, len(found.notes)) == ([], 1)


def test_bounds_let_every_real_transition_through(new_reader: NewReader) -> None:
    """Names as long as Kafka allows, a time that is not known, a cost."""
    name = "n" * 32_767
    why = Cause(
        kind=CauseKind.MEMBER_LEFT,
        member_id=f"{name}-5bb1e7d4-93f5-4bd4-b7cb-1b7ba35bd3fd",
        client_id=name,
        client_host="/10.0.0.7",
        detail="d" * 1_000,
    )
    real = msgspec.structs.replace(
        transition(name), id="x", cause=why, cost=COST, reread=0, generation=-1, recorded_at_ms=-1
    )
    new_reader({"groupwatch-transitions": [[b"", msgspec.json.encode(real)]]})
    config = parse_config(CONFIG)

    assert read_history(plan_of(config, config.clusters[0]), name, 0, 20.0) == History([real], [], [])


def test_a_transition_under_another_key_is_left_out(
    new_reader: NewReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is the group."""
    monkeypatch.setattr(Record, "key", b"another")
    new_reader({"groupwatch-transitions": [[b"", msgspec.json.encode(transition())]]})
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0)

    assert found.transitions == []
    assert "(wrong_key)" in found.notes[0]


def test_forged_alerts_are_counted_as_well(new_reader: NewReader, rows: "Rows") -> None:
    """As they are by those who page."""
    alert = rows.make_alert(group="g", cluster="eu", revision=10**6)
    new_reader({"groupwatch-alerts": [[msgspec.json.encode(alert)]]})
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0)

    assert found.alerts == []
    assert found.notes == [
        "Left out of the story: 1 record of groupwatch-alerts that groupwatch cannot have written "
        "(out_of_range)."
    ]


@pytest.mark.parametrize("bound", ["RECORDS_MAX", "_SIZE_MAX"])
def test_a_flood_of_transitions_is_bounded(
    bound: str, new_reader: NewReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In number and in bytes: the newest count, and the story says so."""
    moves = [transition(at_ms=NOW_MS - 10 + n) for n in range(5)]
    size = len(msgspec.json.encode(moves[0]))
    monkeypatch.setattr(history, bound, 3 if bound == "RECORDS_MAX" else 4 * size - 1)
    new_reader({"groupwatch-transitions": [[b"", *map(msgspec.json.encode, moves)]]})
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0)

    assert found.transitions == moves[2:]
    assert found.notes == ["Left out of the story: the oldest 2 records of groupwatch-transitions."]


def test_a_search_that_takes_too_long_says_so(new_reader: NewReader) -> None:
    """Half a story is told as half a story."""
    new_reader({"groupwatch-transitions": [[b"x"] * 10], "groupwatch-alerts": [[b"x"]]})
    config = parse_config(CONFIG)
    found = read_history(plan_of(config, config.clusters[0]), "g", 0, -1.0)

    assert "could not be searched to their ends" in found.notes[0]


def test_kafka_that_is_away_leaves_the_jobs_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers, and says what is missing."""

    def away(_: object, **_more: object) -> None:
        raise KafkaTimeoutError

    monkeypatch.setattr(history, "consumer", away)
    found = TopicReader(parse_config(CONFIG))("eu", "g", 0)

    assert "could not be read (KafkaTimeoutError)" in found.notes[0]


# --- the command line --------------------------------------------------------------------------------


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.delenv("GROUPWATCH_DEBUG", raising=False)
    return lambda *arguments: CliRunner().invoke(cli.application(arguments), list(arguments))


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "groupwatch.yaml"
    path.write_text(CONFIG)
    return path


def test_explain_asks_a_running_groupwatch(invoke: Invoke, site: Site) -> None:
    """And prints what it tells, as text or JSON."""
    site.past.history = History([transition()], [], [])
    given = ("explain", "--cluster", "eu", "--group", "g", "--url", site.url, "--since", "2023-11-14")
    text, as_json = invoke(*given), invoke(*given, "--json")

    assert (text.exit_code, as_json.exit_code) == (0, 0)
    assert text.stdout.startswith("Group g of cluster eu, 2023-11-14 00:00:00 UTC to ")
    assert "app left." in text.stdout
    assert json.loads(as_json.stdout)["group"] == "g"


def test_explain_reads_the_topics_of_a_configuration(
    invoke: Invoke, config_file: Path, new_reader: NewReader
) -> None:
    """Where no job runs, the topics alone tell, and the story says so."""
    encoded = msgspec.json.encode(transition())
    new_reader({"groupwatch-transitions": [[b"x", encoded]], "groupwatch-alerts": []})
    result = invoke("explain", "--cluster", "eu", "--group", "g", "--config", str(config_file))

    assert result.exit_code == 0
    assert "Note: No running groupwatch answers at http://127.0.0.1:1" in result.stdout
    assert "g is PreparingRebalance for" in result.stdout


def test_explain_says_what_is_silenced_without_a_job(
    invoke: Invoke, tmp_path: Path, new_reader: NewReader, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the configuration or by a silence in the topic; what has ended is not mentioned."""
    storm = rows.make_alert(group="g", cluster="eu", name="RebalanceStorm")
    timeout = rows.make_alert(id="2", group="g", cluster="eu", name="SessionTimeout")
    over = rows.make_alert(id="3", group="g", cluster="eu", name="OffsetRewind")
    ended = msgspec.structs.replace(
        over, revision=1, status=AlertStatus.RESOLVED, ends_at_ms=over.detected_at_ms
    )
    told: list[bytes | None] = [msgspec.json.encode(one) for one in (storm, timeout, over, ended)]
    new_reader({"groupwatch-transitions": [[]], "groupwatch-alerts": [told]})
    kept = KeptSilence(
        id="s1", author="ada", comment="deploy", alert_id=storm.id, starts_at_ms=1, updated_at_ms=1
    )
    monkeypatch.setattr(SilencesTopic, "read", lambda _: [kept.record()])
    config = tmp_path / "silenced.yaml"
    config.write_text(f"{CONFIG}silences: [{{alerts: [SessionTimeout, OffsetRewind]}}]\n")
    result = invoke(
        "explain", "--cluster", "eu", "--group", "g", "--since", "2023-11-14", "--config", str(config)
    )

    assert result.exit_code == 0, result.output
    assert "RebalanceStorm is silenced by ada: deploy." in result.stdout
    assert "SessionTimeout is silenced by the configuration." in result.stdout
    assert "OffsetRewind is silenced" not in result.stdout


def test_explain_of_an_unknown_group_is_a_sentence_and_exit_1(
    invoke: Invoke, site: Site, config_file: Path, new_reader: NewReader
) -> None:
    """Whoever is asked."""
    new_reader({})
    for way in (("--url", site.url), ("--config", str(config_file))):
        result = invoke("explain", "--cluster", "eu", "--group", "nobody", *way)

        assert result.exit_code == 1
        assert "there is no group 'nobody' in cluster 'eu'" in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--cluster", "eu"), 2, "either --config FILE or --url"),
        (
            ("--cluster", "eu", "--url", "http://127.0.0.1:1"),
            1,
            "no groupwatch answers at http://127.0.0.1:1",
        ),
        (("--cluster", "eu", "--url", "http://127.0.0.1:1", "--since", "x"), 2, "--since: 'x' is neither"),
        (("--cluster", "us", "--config", "CONFIG"), 2, "has no cluster 'us'; it has eu"),
    ],
)
def test_explain_says_what_is_wrong(
    invoke: Invoke, config_file: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """In one sentence."""
    given = [str(config_file) if one == "CONFIG" else one for one in arguments]
    result = invoke("explain", "--group", "g", *given)

    assert (result.exit_code, says in result.stderr) == (code, True), result.stderr


def test_replay_explains_captured_logs(invoke: Invoke) -> None:
    """One group, or all of them."""
    one = invoke("replay", "--explain", "--group", "g1", str(SERVER_LOG))
    all_of_them = invoke("replay", "--explain", "--json", str(SERVER_LOG))
    groups = [json.loads(line)["group"] for line in all_of_them.stdout.splitlines()]

    assert one.exit_code == 0
    assert "03:14:13  victim was removed: no heartbeat for its session timeout." in one.stdout
    assert "03:14:37  The group was deleted." in one.stdout
    assert len(groups) == len(set(groups)) == 7


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--explain", "--group", "nobody"), 1, "there is no group 'nobody' in what was replayed"),
        (("--group", "g1"), 2, "--group needs --explain"),
    ],
)
def test_replay_says_which_group_there_is_not(
    invoke: Invoke, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """And that its story must be asked for."""
    result = invoke("replay", *arguments, str(SERVER_LOG))

    assert (result.exit_code, says in result.stderr) == (code, True)


# --- what rebalances cost ------------------------------------------------------------------------------


def stable(at_ms: int, **changes: Any) -> Transition:
    """The rebalance that ``transition`` began ends."""
    ended = msgspec.structs.replace(
        transition(at_ms=at_ms),
        id=f"stable{at_ms}",
        from_state=GroupState.COMPLETING_REBALANCE,
        to_state=GroupState.STABLE,
        generation=8,
    )
    return msgspec.structs.replace(ended, **changes)


COST = ToldCost(
    started_ms=NOW_MS - 5_000,
    join_ms=3_000,
    sync_ms=1_000,
    assigning_ms=None,
    reconciling_ms=None,
    eager=True,
    partitions=2,
    partition_ms=8_000,
    moved=1,
    least=1,
    initial=False,
    second_step=False,
    rate_before=None,
    rate_during=None,
)
SENTENCE = (
    "Cost: all 2 partitions stood still (eager), 8 partition-seconds without an owner; 1 partition moved, "
    "no more than had to; 12 records were read again."
)


def test_what_a_rebalance_cost_is_told_over_http(site: Site, rows: "Rows") -> None:
    """In words and as numbers: the cost from the topic, and from the job what was read again since."""
    ended_ms = NOW_MS - 1_000
    last = {"started_at_ms": NOW_MS - 5_000, "joined_at_ms": -1, "ended_at_ms": ended_ms, "cause": "unknown"}
    site.view.apply(
        "eu", [rows.report("g", last_rebalance={**last, "reread": 12}, last_commit_ms=ended_ms + 1)]
    )
    begun = transition(at_ms=NOW_MS - 5_000)
    site.past.history = History([begun, stable(ended_ms, cost=COST)], [], [])
    told = site.client.get("/api/v1/groups/eu/g/explain", params={"since": "1700000000000"}).json()
    (entry,) = told["entries"]

    assert entry["details"][1] == SENTENCE
    assert {name: entry["cost"][name] for name in ("steps", "partition_ms", "moved", "least", "reread")} == {
        "steps": 1,
        "partition_ms": 8_000,
        "moved": 1,
        "least": 1,
        "reread": 12,
    }


def test_what_nobody_committed_after_is_not_told_as_nothing(site: Site, rows: "Rows") -> None:
    """A group that has not committed since may read all of it again."""
    ended_ms = NOW_MS - 1_000
    last = {"started_at_ms": NOW_MS - 5_000, "joined_at_ms": -1, "ended_at_ms": ended_ms, "cause": "unknown"}
    site.view.apply("eu", [rows.report("g", last_rebalance={**last, "reread": 0}, last_commit_ms=ended_ms)])
    site.past.history = History([transition(at_ms=NOW_MS - 5_000), stable(ended_ms, cost=COST)], [], [])
    told = site.client.get("/api/v1/groups/eu/g/explain", params={"since": "1700000000000"}).json()

    assert told["entries"][0]["details"][1].endswith(" Not known: what was read again.")


def test_transitions_of_an_older_version_are_read(new_reader: NewReader) -> None:
    """They tell nothing of costs, and the bytes of those that have none to tell are what they were."""
    old = msgspec.json.encode(transition())
    names = "id cluster group group_type from to generation at_ms recorded_at_ms cause basis source replaces"
    assert list(msgspec.json.decode(old)) == names.split()

    new_reader({"groupwatch-transitions": [[b"x", old]], "groupwatch-alerts": []})
    config = parse_config(CONFIG)
    assert read_history(plan_of(config, config.clusters[0]), "g", 0, 20.0).transitions == [transition()]


@pytest.mark.parametrize("goes_on", [True, False])
def test_replay_tells_what_each_rebalance_cost(invoke: Invoke, tmp_path: Path, *, goes_on: bool) -> None:
    """From a real topic; what was read again after the last rebalance as well, though no transition tells it.

    x2 is expelled and x1's successor takes its three partitions over 159 ms later, and goes back by 40.
    """
    captured = [json.loads(line) for line in MODERN_RECORDS.read_text().splitlines()]
    over_ms = 1_795_246_721_781  # the last member leaves
    rows = [one for one in captured if goes_on or one["timestamp_ms"] < over_ms]
    for at_ms, offset in ((1_795_246_720_000, 500), (1_795_246_721_500, 460)):
        row = {"source": "offsets", "partition": shard_of("sta", 8), "timestamp_ms": at_ms}
        key, value = commit_key("sta", "orders", 3), commit_value(offset, at_ms)
        rows.append({**row, "key": key.hex(), "value": value.hex()})
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(f"{json.dumps(one)}\n" for one in sorted(rows, key=lambda one: one["timestamp_ms"]))
    )
    told = " ".join(invoke("replay", "--explain", "--group", "sta", str(path)).stdout.split())

    assert (
        "Computing the assignment 159 ms: Stable at generation 4 after 159 ms. Cost: 0.477 partition-seconds "
        "without an owner (of 6 partitions); 3 partitions moved, no more than had to; "
        "40 records were read again."
    ) in told
