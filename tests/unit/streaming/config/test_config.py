"""The configuration file: what is accepted, what is refused, and how mistakes are told."""

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest

from alerts.alert.alert import Severity
from alerts.rules.members import SESSION_TIMEOUT_IMMINENT
from alerts.rules.rebalances import REBALANCE_STORM, STUCK_PREPARING_REBALANCE
from alerts.rules.registry import ALL_RULES
from alerts.rules.settings import Settings
from streaming.config.config import Config, ConfigError, load_config, notes, parse_config, settings_json
from streaming.config.plan import plan_of
from streaming.config.types import parse_duration_ms
from tests.alert_names import ALERT_NAMES

MINIMAL = "clusters:\n  - {name: a, bootstrap_servers: [127.0.0.1:9092]}\n"


def parsed(text: str, **environment: str) -> Config:
    return parse_config(dedent(text), environment)


def mistakes(text: str, **environment: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parsed(text, **environment)
    return dict(caught.value.mistakes)


def test_only_name_and_bootstrap_servers_are_needed() -> None:
    """Every other key has a default, and the defaults are the contract's."""
    config = parsed(MINIMAL)
    cluster = config.clusters[0]
    assert (cluster.offsets.topic, cluster.events.topic) == ("__consumer_offsets", "groupwatch-events")
    assert (cluster.groups.allow, cluster.groups.deny, cluster.forget_after_ms) == ([".*"], [], 604_800_000)
    assert (config.checkpoint, config.trigger_interval_ms) == ("./checkpoint", 1000)
    assert (config.http.host, config.http.port, config.http.max_groups) == ("127.0.0.1", 9464, 10_000)
    assert config.output.alerts_topic == "groupwatch-alerts"
    assert config.rule("rebalance_storm") == {
        "enabled": True,
        "severity": "warning",
        "rebalances": 5,
        "window_ms": 600_000,
        "overrides": [],
    }
    assert config.rule("session_timeout_imminent")["at"] == 0.7


def test_every_alert_of_the_contract_is_a_rule_in_snake_case() -> None:
    """Each alert name has its options block, and no other block is accepted."""
    assert {rule.name for rule in ALL_RULES} >= set(ALERT_NAMES)
    keys = [rule.key for rule in ALL_RULES]
    text = MINIMAL + "rules:\n" + "".join(f"  {rule}: {{enabled: false, severity: info}}\n" for rule in keys)
    config = parsed(text)
    assert all(config.rule(rule)["enabled"] is False for rule in keys)


def test_the_reference_configuration_shows_every_option_with_its_default() -> None:
    """An operator who copies the example changes nothing but the cluster's address."""
    text = (Path(__file__).parents[4] / "deploy" / "groupwatch.yaml").read_text()
    shown = parse_config(text, {})
    plain = parsed(MINIMAL).model_dump()
    dumped = shown.model_dump()
    for key in ("clusters", "receivers", "routes"):
        del plain[key], dumped[key]
    assert dumped == plain
    for option in _options(Config.model_json_schema(by_alias=True)):
        assert re.search(rf"(?m)^[\s#{{-]*(?:.*[{{, ])?{re.escape(option)}:", text), option


def _options(schema: dict[str, object]) -> set[str]:
    definitions = schema.get("$defs", {})
    assert isinstance(definitions, dict)
    models = [schema, *(value for name, value in definitions.items() if name != "Severity")]
    return {option for model in models for option in model.get("properties", {})}


def test_all_mistakes_are_told_at_once_each_with_its_path() -> None:
    """One run of check-config shows everything that is wrong."""
    found = mistakes("""
        clusters:
          - nam: a
            bootstrap_servers: [127.0.0.1:99092, nonsense]
            groups: {deny: ["("]}
          - {name: b, bootstrap_servers: "x:1"}
          - {name: b, bootstrap_servers: "x:1"}
        http: {port: 70000}
        rules: {rebalance_storm: {rebalances: 1, window: soon}}
        receivers: [{name: oncall}]
        routes: [{match: {severity: [loud]}, receivers: [onkall]}]
        """)
    assert set(found) == {
        "clusters[0].nam",
        "clusters[0].name",
        "clusters[0].bootstrap_servers[0]",
        "clusters[0].bootstrap_servers[1]",
        "clusters[0].groups.deny[0]",
        "clusters[2].name",
        "http.port",
        "rules.rebalance_storm.rebalances",
        "rules.rebalance_storm.window",
        "receivers[0]",
        "routes[0].match.severity[0]",
        "routes[0].receivers",
    }


@pytest.mark.parametrize(
    ("text", "path", "meant"),
    [
        ("chekpoint: x", "chekpoint", "checkpoint"),
        ("http: {prot: 1}", "http.prot", "port"),
        ("rules: {rebalance_strom: {}}", "rules.rebalance_strom", "rebalance_storm"),
        ("rules: {rebalance_storm: {windw: 1m}}", "rules.rebalance_storm.windw", "window"),
        (
            "rules: {rebalance_storm: {overrides: [{groups: [a], windw: 1m}]}}",
            "rules.rebalance_storm.overrides[0].windw",
            "window",
        ),
        ("receivers: [{name: a, webhok: {}}]", "receivers[0].webhok", "webhook"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(text: str, path: str, meant: str) -> None:
    """A slip of the pen is answered with its path, its line and the likely word."""
    message = mistakes(MINIMAL + text)[path]
    assert f"did you mean '{meant}'?" in message
    assert "(line 3)" in message


def test_the_python_names_of_options_are_not_accepted() -> None:
    """forget_after_ms is ours inside; in the file it would be silently in other units."""
    assert "rules.rebalance_storm.window_ms" in mistakes(MINIMAL + "rules: {rebalance_storm: {window_ms: 5}}")


def test_a_syntax_error_names_line_and_column() -> None:
    """YAML that cannot be read says where."""
    assert "line 2, column" in mistakes("clusters: [\n  }")[""]


def test_a_key_given_twice_is_a_mistake() -> None:
    """YAML would silently keep the last of two."""
    found = mistakes(MINIMAL + "http: {port: 1}\ncheckpoint: x\nhttp: {port: 2}\n")
    assert found["http"] == "given twice (lines 3 and 5)"


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "just words\n"])
def test_a_file_without_keys_is_one_clear_mistake(text: str) -> None:
    """An empty file or a list is not a traceback."""
    assert list(mistakes(text)) == [""]


def test_a_missing_file_is_one_clear_mistake(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(ConfigError, match=r"absent\.yaml"):
        load_config(tmp_path / "absent.yaml")


def test_a_file_that_is_no_text_is_one_clear_mistake(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are told, not raised."""
    (tmp_path / "c.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "c.yaml")


def test_variables_are_put_in_with_defaults_and_an_escape() -> None:
    """Secrets come from the environment; $${ is a literal ${."""
    text = MINIMAL.replace(
        "]}", '], client: {a: "${SECRET}", b: "${NONE:-x}", c: "$${SECRET}", d: "${EMPTY}"}}'
    )
    client = parsed(text, SECRET="s3", EMPTY="").clusters[0].client  # noqa: S106
    assert client == {"a": "s3", "b": "x", "c": "${SECRET}", "d": ""}


def test_a_variable_can_give_a_number() -> None:
    """The port may come from the environment."""
    assert parsed(MINIMAL + 'http: {port: "${PORT}"}', PORT="1234").http.port == 1234


def test_a_missing_variable_is_told_once_with_path_and_name() -> None:
    """The broken value is not complained about a second time."""
    found = mistakes('clusters: [{name: a, bootstrap_servers: "${KAFKA}"}]')
    assert found == {"clusters[0].bootstrap_servers": "the environment variable KAFKA is not set (line 1)"}


@pytest.mark.parametrize("text", ["${", "${1A}", "${a-b}"])
def test_a_malformed_variable_is_a_mistake(text: str) -> None:
    """A typo in ${…} is not sent to Kafka as it stands."""
    assert "not followed by a variable" in mistakes(MINIMAL + f'checkpoint: "{text}"')["checkpoint"]


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("500ms", 500),
        ("10m", 600_000),
        ("7d", 604_800_000),
        (60, 60_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        ("90", 90_000),
        ("2w", 1_209_600_000),
        (0.5, 500),
    ],
)
def test_durations(text: str | float, expected_ms: int) -> None:
    """A duration is a number with a unit; a bare number is seconds."""
    assert parse_duration_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "soon", "10 parsecs", "-5s", "5mm", None, True, [], "m"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"duration"):
        parse_duration_ms(text)


def test_a_duration_of_nothing_is_refused() -> None:
    """An alert after 0 s would fire always."""
    assert (
        "longer"
        in mistakes(MINIMAL + "forget: 1\nrules: {source_silent: {after: 0s}}")["rules.source_silent.after"]
    )


def test_a_receiver_has_exactly_one_kind() -> None:
    """Neither none nor two."""
    both = mistakes(MINIMAL + "receivers: [{name: a, log: {}, webhook: {url: 'http://x'}}]")
    none = mistakes(MINIMAL + "receivers: [{name: a}]")
    assert "exactly one" in both["receivers[0]"]
    assert "exactly one" in none["receivers[0]"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "http://",
        "x",
        "http://h:99999/",
        "http://[::1/",
        "http://h/a b",
        "https:///path?token=s3cret",
    ],
)
def test_a_webhook_address_that_cannot_work_is_refused_without_repeating_it(url: str) -> None:
    """Such addresses often carry their secret, and mistakes end up in tickets."""
    message = mistakes(MINIMAL + f"receivers: [{{name: a, webhook: {{url: '{url}'}}}}]")[
        "receivers[0].webhook.url"
    ]
    assert "URL" in message
    assert "s3cret" not in message


@pytest.mark.parametrize("header", ["'a b': x", "X: 'ü'", 'X: "a\\nb"'])
def test_headers_that_http_does_not_know_are_refused(header: str) -> None:
    """A line break in a secret would otherwise fail at the first alert."""
    found = mistakes(
        MINIMAL + f"receivers: [{{name: a, webhook: {{url: 'http://h', headers: {{{header}}}}}}}]"
    )
    assert all(path.startswith("receivers[0].webhook.headers") for path in found)


@pytest.mark.parametrize(
    "text", ["clusters: &x [*x]", "[" * 2_000, "clusters: !!python/name:os.system x", "\x00"]
)
def test_hostile_yaml_is_one_clear_mistake(text: str) -> None:
    """No recursion error, no code run."""
    assert list(mistakes(text)) == [""]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("*hunter2secret", id="an-alias"),
        pytest.param("!hunter2secret x", id="a-tag"),
        pytest.param("&hunter2secret a\nx: &hunter2secret b", id="an-anchor-twice"),
        pytest.param("'a${hunter2secret!}'", id="half-a-variable"),
        pytest.param("'${hunter2secret'", id="an-open-variable"),
        pytest.param('"\\hunter2secret"', id="an-escape"),
        pytest.param("%hunter2secret", id="a-directive"),
        pytest.param("@hunter2secret", id="a-reserved-character"),
        pytest.param("'hunter2secret", id="an-open-quote"),
        pytest.param("[hunter2secret", id="an-open-list"),
        pytest.param("{hunter2secret: 1}", id="a-mapping"),
        pytest.param("[hunter2secret]", id="a-list"),
        pytest.param("2020-99-99hunter2secret: x", id="no-date"),
        pytest.param("hunter2secret\x00", id="a-control-character"),
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "clusters: [{{name: a, bootstrap_servers: b:1}}]\noutput:\n  client:\n    sasl.jaas.config: {}",
        "clusters: [{{name: a, bootstrap_servers: b:1}}]\nreceivers:\n- name: x\n  webhook:\n    url: {}",
        "clusters: [{{name: a, bootstrap_servers: b:1}}]\nspark:\n  fs.s3a.secret.key: {}",
    ],
)
def test_a_mistake_repeats_no_part_of_a_secret(place: str, value: str) -> None:
    """A password that YAML takes for an alias, a tag or a variable is not in the message."""
    assert "hunter2" not in str(mistakes(place.format(value)))


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2/secret@h/x",
        "http://[hunter2]/",
        "http://h:hunter2",
        "http://hunter2\N{ACCOUNT OF}/",
    ],
)
def test_an_address_that_python_cannot_read_is_not_repeated(url: str) -> None:
    """Python's own message holds the piece that it took for a port or a host."""
    found = mistakes(MINIMAL + f"receivers: [{{name: a, webhook: {{url: '{url}'}}}}]")
    assert "hunter2" not in str(found)
    assert "receivers[0].webhook.url" in found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("receivers: [{name: r, webhook: {https://h/hunter2: }}]", id="an-address-as-key"),
        pytest.param(
            "receivers: [{name: r, webhook: {url: http://h, headers: {'Authorization: hunter2': x}}}]",
            id="a-header-as-key",
        ),
        pytest.param("output: {bootstrap_servers: ['user:hunter2@h:9092']}", id="an-address-with-a-password"),
    ],
)
def test_what_looks_like_an_address_is_not_repeated(text: str) -> None:
    """A missing space makes a key of a whole address, and keys are shown."""
    assert "hunter2" not in str(mistakes(MINIMAL + text))


@pytest.mark.parametrize(
    "text",
    [
        "receivers: [{name: r, webhook: {url: http://h, timeout: '${PW}'}}]",
        "output: {alerts_topic: '${PW} x'}",
        "routes: [{receivers: ['${PW}']}]",
        "events: {timezone: '${PW}'}",
        "silences: [{groups: a, until: 'x ${PW}'}]",
    ],
)
def test_what_a_variable_held_is_not_repeated(text: str) -> None:
    """Wherever it was put by mistake."""
    assert "hunter2" not in str(mistakes(MINIMAL + text, PW="hunter2'\\secret"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("trigger_interval: '" + "9" * 400 + "s'", id="an-endless-duration"),
        pytest.param("trigger_interval: " + "9" * 400, id="an-endless-number"),
        pytest.param("trigger_interval: '" + "1" * 40_000 + "'", id="a-long-text"),
        pytest.param(
            "routes: [{receivers: x, match: {group: 'a{99999999999999999999}'}}]", id="a-repetition"
        ),
        pytest.param("routes: [{receivers: x, match: {group: '" + "(" * 3_000 + "'}}]", id="deep-brackets"),
        pytest.param("receivers: [{name: [a], log: {}}]", id="a-list-as-name"),
        pytest.param("receivers: [{name: {a: b}, log: {}}]", id="a-mapping-as-name"),
        pytest.param(
            "silences: [{groups: a, until: 0001-01-01T00:00, timezone: Asia/Tokyo}]", id="before-the-year-1"
        ),
        pytest.param('state_dir: "a\\0b"', id="a-nul"),
        pytest.param('checkpoint: "\\uD800"', id="half-a-character"),
        pytest.param('receivers: [{name: r, webhook: {url: "http://h/\\x01"}}]', id="a-control-character"),
        pytest.param(
            f"receivers: [{{name: r, webhook: {{url: 'http://h/{'x' * 70_000}'}}}}]", id="a-long-url"
        ),
    ],
)
def test_values_that_cannot_be_are_told_with_their_path(text: str) -> None:
    """No traceback, and the other mistakes of the file are told as well."""
    found = mistakes(MINIMAL + text + "\nnonsense: 1")
    assert "nonsense" in found
    assert len(found) >= 2
    assert max(map(len, found.values())) < 600


def test_aliases_are_bounded() -> None:
    """A dozen lines that stand for a billion values are one mistake, found at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    found = mistakes("\n".join(lines))
    assert list(found) == [""]
    assert "alias" in found[""]


def test_aliases_that_say_little_are_taken() -> None:
    """A list of patterns may be written once and used for several clusters."""
    text = (
        "clusters:\n"
        "- {name: a, bootstrap_servers: a:1, groups: {deny: &noise ['test-.*', 'dev-.*']}}\n"
        "- {name: b, bootstrap_servers: b:1, groups: {deny: *noise}}\n"
    )
    config = parse_config(text, {})
    assert config.clusters[0].groups == config.clusters[1].groups


@pytest.mark.parametrize(
    "text", ["1: 2", "clusters: {true: 1}", "clusters: 2020-01-01", "http: [1]", "rules: x"]
)
def test_values_of_the_wrong_kind_are_mistakes(text: str) -> None:
    """Whatever YAML makes of a slip, it is told with a path and not raised."""
    assert mistakes(text)


@pytest.mark.parametrize("block", ["http:", "rules:", "rules:\n  source_silent:", "output:", "spark: {}"])
def test_an_empty_block_means_its_defaults(block: str) -> None:
    """Whoever comments out every line of a block wants what was there without it."""
    assert parsed(MINIMAL + block) == parsed(MINIMAL)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("http: [1]", "http", "expected keys and values"),
        ("http: {port: x}", "http.port", "expected a whole number"),
        ("receivers: x", "receivers", "expected a list"),
        ("trigger_interval: 1ms", "trigger_interval", "at least 100ms"),
        ("rules: {source_silent: {enabled: maybe}}", "rules.source_silent.enabled", "expected true or false"),
        ("routes: [{receivers: []}]", "routes[0].receivers", "must not be empty"),
        (
            "rules: {session_timeout_imminent: {at: 1}}",
            "rules.session_timeout_imminent.at",
            "must be less than 1",
        ),
    ],
)
def test_mistakes_are_told_in_plain_words(text: str, path: str, message: str) -> None:
    """Nobody needs to know Python to mend the file."""
    assert message in mistakes(MINIMAL + text)[path]


def test_single_values_are_accepted_where_lists_are() -> None:
    """match: {severity: critical} and receivers: oncall mean lists of one."""
    config = parsed(
        MINIMAL
        + "receivers: [{name: a, log: {}}]\n"
        + "routes: [{match: {severity: critical, group: 'pay-.*'}, receivers: a, continue: true}]\n"
    )
    route = config.routes[0]
    assert route.match.severity == [Severity.CRITICAL]
    assert route.match.group == ["pay-.*"]
    assert (route.receivers, route.goes_on, route.repeat_interval_ms) == (["a"], True, 14_400_000)


def test_two_outputs_in_one_topic_are_refused() -> None:
    """Alerts in the control topic would be read as control records."""
    assert (
        "also the alerts_topic"
        in mistakes(MINIMAL + "output: {alerts_topic: groupwatch-control}")["output.control_topic"]
    )


def test_nothing_to_watch_is_a_mistake() -> None:
    """With both sources off the monitor would be silently blind."""
    text = MINIMAL.replace("]}", "], offsets: {enabled: false}, events: {enabled: false}}")
    assert "nothing to watch" in mistakes(text)["clusters[0]"]


def test_settings_are_canonical_and_carry_durations_in_ms() -> None:
    """Equal settings give equal bytes, so that a restart does not look like a change of the rules."""
    first = parsed(
        MINIMAL + "rules: {rebalance_storm: {overrides: [{groups: 'b-.*', window: 1h, enabled: false}]}}"
    )
    again = parsed(
        "rules: {rebalance_storm: {overrides: [{enabled: false, window: 60m, groups: ['b-.*']}]}}\n" + MINIMAL
    )
    text = settings_json(first, first.clusters[0])
    assert text == settings_json(again, again.clusters[0])
    settings = json.loads(text)
    assert settings["rules"]["rebalance_storm"]["overrides"] == [
        {"groups": ["b-.*"], "window_ms": 3_600_000, "enabled": False}
    ]
    assert settings["groups"] == {"allow": [".*"], "deny": []}
    assert (settings["forget_after_ms"], settings["offsets_enabled"], settings["events_enabled"]) == (
        604_800_000,
        True,
        True,
    )


def test_a_file_without_receivers_is_noted() -> None:
    """It is legal, and nobody is paged."""
    (note,) = notes(parsed(MINIMAL))
    assert note.startswith("receivers: none")
    assert not notes(parsed(MINIMAL + "receivers: [{name: ours, log: {}}]"))


def test_the_rules_read_what_the_file_says() -> None:
    """The defaults of file and rules are the same, and every option arrives, overrides included."""
    defaults = parsed(MINIMAL)
    assert Settings(settings_json(defaults, defaults.clusters[0])).defaults == Settings().defaults
    changed = parsed(
        MINIMAL
        + """
rules:
  rebalance_storm: {rebalances: 9, window: 1h, severity: critical, overrides: [{groups: b.*, rebalances: 20}]}
  stuck_preparing_rebalance: {after: 61s, enabled: false}
  session_timeout_imminent: {at: 0.5, overrides: [{groups: [b.*], enabled: false, severity: info}]}
runbook_base: https://runbooks.example/
"""
    )
    settings = Settings(settings_json(changed, changed.clusters[0]))
    plain, batch = settings.of_group("a"), settings.of_group("b-1")
    assert (plain.of(REBALANCE_STORM.options).rebalances, batch.of(REBALANCE_STORM.options).rebalances) == (
        9,
        20,
    )
    assert (batch.of(REBALANCE_STORM.options).window_ms, batch.of(REBALANCE_STORM.options).severity) == (
        3_600_000,
        "critical",
    )
    assert (
        plain.of(STUCK_PREPARING_REBALANCE.options).after_ms,
        plain.of(STUCK_PREPARING_REBALANCE.options).enabled,
    ) == (
        61_000,
        False,
    )
    assert (
        plain.of(SESSION_TIMEOUT_IMMINENT.options).at,
        plain.of(SESSION_TIMEOUT_IMMINENT.options).enabled,
    ) == (0.5, True)
    assert batch.of(SESSION_TIMEOUT_IMMINENT.options).enabled is False
    assert settings.runbook_base == "https://runbooks.example/"


def test_the_probe_has_a_rate_and_can_be_off() -> None:
    """On by default, at ten groups a second; what it is not is told with its path."""
    config = parsed(MINIMAL)
    usual = plan_of(config, config.clusters[0]).probe
    entry = "clusters: [{{name: a, bootstrap_servers: ['127.0.0.1:9092'], probe: {}}}]"
    off = parsed(entry.format("{enabled: false}"))
    assert plan_of(off, off.clusters[0]).probe is None
    slow = parsed(entry.format("{groups_per_second: 0.5}"))
    slower = plan_of(slow, slow.clusters[0]).probe
    assert [one and one.groups_per_second for one in (usual, slower)] == [10, 0.5]
    assert "clusters[0].probe.rate" in mistakes(entry.format("{rate: 1}"))
    assert (
        "expected a number"
        in mistakes(entry.format("{groups_per_second: many}"))["clusters[0].probe.groups_per_second"]
    )
    assert mistakes(entry.format("{groups_per_second: 0}"))


def test_evidence_is_off_unless_configured() -> None:
    """Nobody's log level is touched by a configuration that does not say so."""
    config = parsed(MINIMAL)
    assert plan_of(config, config.clusters[0]).evidence is None
    config = parsed(MINIMAL.replace("]}", "], evidence: {enabled: true, for: 90s, alerts: SessionTimeout}}"))
    evidence = plan_of(config, config.clusters[0]).evidence
    assert evidence is not None
    assert evidence.model_dump() == {
        "enabled": True,
        "alerts": ["SessionTimeout"],
        "for_ms": 90_000,
        "every_ms": 1_800_000,
        "brokers": 1,
    }


def test_what_is_wrong_with_evidence_is_told_with_its_path() -> None:
    """Names of alerts too; what it cannot do without must not be disabled."""
    found = mistakes("""
        clusters:
          - name: a
            bootstrap_servers: "x:1"
            evidence: {alerts: [SessionTimeouts, SourceSilent], for: 2h, brokers: 0}
          - {name: b, bootstrap_servers: "x:1", evidence: {for: 10m, every: 5m}}
          - {name: c, bootstrap_servers: "x:1", evidence: {enabled: true}, probe: {enabled: false}}
        output: {evidence_topic: groupwatch-control}
        """)
    assert found.keys() == {
        "clusters[0].evidence.alerts[0]",
        "clusters[0].evidence.alerts[1]",
        "clusters[0].evidence.for",
        "clusters[0].evidence.brokers",
        "clusters[1].evidence",
        "clusters[2]",
        "output.evidence_topic",
    }
    assert "did you mean 'SessionTimeout'?" in found["clusters[0].evidence.alerts[0]"]
    assert "between 5s and 1h" in found["clusters[0].evidence.for"]
    assert "every must not be shorter" in found["clusters[1].evidence"]


QUIET = """
clusters: [{name: a, bootstrap_servers: [127.0.0.1:9092]}]
silences:
  - {groups: "batch-.*", alerts: RebalanceStorm, timezone: Europe/Berlin,
     from: 2026-11-21 22:00:00, until: 2026-11-22T04:00}
  - {groups: [x], until: 2026-11-22}
maintenance:
  - {days: [Saturday, sun], from: 22:00, to: "02:30", timezone: Europe/Berlin, clusters: a}
  - {from: "00:00", to: "24:00"}
"""


def test_silences_and_maintenance_are_read() -> None:
    """Times in their zone; of a day as YAML reads them with and without quotes."""
    config = parse_config(QUIET)
    first, second = (one.silence() for one in config.silences)
    nightly, daily = (one.maintenance() for one in config.maintenance)

    assert (first.match.groups, first.match.alerts) == (("batch-.*",), ("RebalanceStorm",))
    assert (first.from_ms, first.until_ms) == (1_795_294_800_000, 1_795_316_400_000)
    assert (second.from_ms, second.until_ms) == (0, 1_795_305_600_000)
    assert (nightly.days, nightly.from_minute, nightly.to_minute) == ((5, 6), 1_320, 150)
    assert (nightly.timezone, nightly.match.clusters) == ("Europe/Berlin", ("a",))
    assert (daily.days, daily.from_minute, daily.to_minute) == (tuple(range(7)), 0, 1_440)


@pytest.mark.parametrize(
    ("block", "mistake"),
    [
        (
            "silences: [{alerts: RebalanceStom}]",
            "silences[0].alerts: there is no alert 'RebalanceStom'; did you",
        ),
        ("silences: [{from: 2026-11-21}]", "silences[0]: would silence every alert for ever"),
        ("silences: [{groups: x, until: soon}]", "silences[0].until: 'soon' is not a time"),
        ("silences: [{from: 2026-11-22, until: 2026-11-21}]", "silences[0]: until must be later than from"),
        ("silences: [{clusters: [b]}]", "silences[0].clusters: there is no cluster 'b'"),
        ("silences: [{groups: ['(']}]", "silences[0].groups[0]: '(' is not a regular expression"),
        ("maintenance: [{from: 25:00, to: 3:00}]", "maintenance[0].from: 1500 is not a time of day"),
        ("maintenance: [{from: 3:00, to: 3:00}]", "maintenance[0]: from and to are the same time"),
        ("maintenance: [{from: 3:00}]", "maintenance[0].to: is required"),
        (
            "maintenance: [{days: [funday], from: 3:00, to: 4:00}]",
            "maintenance[0].days[0]: 'funday' is not a day",
        ),
        (
            "maintenance: [{from: 3:00, to: 4:00, timezone: Mars}]",
            "maintenance[0].timezone: 'Mars' is not a time zone",
        ),
        (
            "maintenance: [{from: 3:00, to: 4:00, group: x}]",
            "maintenance[0].group: unknown key; did you mean",
        ),
    ],
)
def test_mistakes_in_silences_and_maintenance_are_told_with_their_path(block: str, mistake: str) -> None:
    """Before a night shift finds out."""
    with pytest.raises(ConfigError) as told:
        parse_config(f"clusters: [{{name: a, bootstrap_servers: [127.0.0.1:9092]}}]\n{block}\n")

    assert str(told.value).startswith(mistake)


def test_a_mistake_that_two_places_make_together_is_told_with_its_line() -> None:
    """An unknown receiver shows only beside the receivers, and still has a line."""
    found = mistakes(MINIMAL + "receivers: [{name: a, log: {}}]\nroutes:\n  - {receivers: [b]}\n")

    assert found == {"routes[0].receivers": f"there is no receiver 'b' (line {MINIMAL.count(chr(10)) + 3})"}


def test_an_unquoted_variable_between_braces_is_told_how_to_be_written() -> None:
    """YAML takes its brace for a mapping, and its own message helps nobody."""
    with pytest.raises(ConfigError, match="needs quotes"):
        parse_config("spark: {a: ${NAME}}")
