"""The rules' thresholds, read from the settings that travel in band."""

import json
from typing import Any

import msgspec
import pytest

from alerts.alert.alert import Severity
from alerts.rules.engine.options import Thresholds
from alerts.rules.members import SESSION_TIMEOUT, SESSION_TIMEOUT_IMMINENT
from alerts.rules.monitor import CLUSTER_UNREACHABLE, MONITOR_STALLED
from alerts.rules.rebalances import (
    REBALANCE_STORM,
    STUCK_COMPLETING_REBALANCE,
    STUCK_PREPARING_REBALANCE,
)
from alerts.rules.registry import ALL_RULES
from alerts.rules.settings import Settings, ThresholdsError


def settings(**rules: Any) -> Settings:
    return Settings(json.dumps({"rules": rules}).encode())


def test_no_settings_are_the_defaults() -> None:
    """The numbers of the configuration's documentation."""
    found = Settings().of_group("any")

    assert [found.of(rule.options) for rule in ALL_RULES] == [rule.options() for rule in ALL_RULES]
    assert [Thresholds().of(rule.options) for rule in ALL_RULES] == [rule.options() for rule in ALL_RULES]
    assert (found.of(REBALANCE_STORM.options).rebalances, found.of(REBALANCE_STORM.options).window_ms) == (
        5,
        600_000,
    )
    assert found.of(STUCK_PREPARING_REBALANCE.options).after_ms == 60_000
    assert found.of(STUCK_COMPLETING_REBALANCE.options).after_ms == 30_000
    assert found.of(SESSION_TIMEOUT_IMMINENT.options).at == 0.7
    assert (
        found.of(CLUSTER_UNREACHABLE.options).severity
        is found.of(MONITOR_STALLED.options).severity
        is Severity.CRITICAL
    )


def test_a_rule_takes_what_is_given_and_keeps_the_rest() -> None:
    """Only what is written changes."""
    found = settings(rebalance_storm={"rebalances": 9, "severity": "critical"}).of_group("any")

    assert found.of(REBALANCE_STORM.options).rebalances == 9
    assert found.of(REBALANCE_STORM.options).window_ms == 600_000
    assert found.of(REBALANCE_STORM.options).severity is Severity.CRITICAL
    assert found.of(SESSION_TIMEOUT.options) == SESSION_TIMEOUT.options()


@pytest.mark.parametrize(
    ("group", "rebalances"),
    [
        pytest.param("batch-7", 20, id="the-first-that-matches"),
        pytest.param("batch-nightly", 20, id="even-if-a-later-one-matches-better"),
        pytest.param("nightly", 30, id="the-second"),
        pytest.param("my-batch-7", 9, id="only-in-full"),
        pytest.param("orders", 9, id="none"),
    ],
)
def test_the_first_override_that_matches_in_full_wins(group: str, rebalances: int) -> None:
    """Patterns are tried in the order of the file."""
    found = settings(
        rebalance_storm={
            "rebalances": 9,
            "window_ms": 1_000,
            "overrides": [
                {"groups": ["batch-.*"], "rebalances": 20},
                {"groups": ["x", ".*nightly"], "rebalances": 30},
            ],
        }
    ).of_group(group)

    assert found.of(REBALANCE_STORM.options).rebalances == rebalances
    assert found.of(REBALANCE_STORM.options).window_ms == 1_000


def test_overrides_of_one_rule_leave_the_others() -> None:
    """Each rule chooses by itself."""
    found = settings(
        rebalance_storm={"overrides": [{"groups": ["a.*"], "enabled": False}]},
        session_timeout={"overrides": [{"groups": [".*b"], "severity": "info"}]},
    )

    assert [found.of_group(group).of(REBALANCE_STORM.options).enabled for group in ("a", "ab", "b")] == [
        False,
        False,
        True,
    ]
    assert found.of_group("ab").of(SESSION_TIMEOUT.options).severity is Severity.INFO
    assert found.of_group("a").of(SESSION_TIMEOUT.options).severity is Severity.WARNING


def test_groups_with_equal_overrides_share_their_thresholds() -> None:
    """A hundred thousand groups do not cost a hundred thousand copies."""
    found = settings(rebalance_storm={"overrides": [{"groups": ["a.*"], "rebalances": 2}]})

    assert found.of_group("a1") is found.of_group("a2")
    assert found.of_group("b1") is found.of_group("b2")


def test_unknown_keys_are_passed_over() -> None:
    """A newer driver may say more than this executor understands."""
    found = Settings(
        b'{"rules":{"lag_growing":{"x":1},"session_timeout":{"new":true,"enabled":false}},"more":[]}'
    )

    assert found.of_group("g").of(SESSION_TIMEOUT.options).enabled is False


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"{", id="no-json"),
        pytest.param(b"[]", id="no-object"),
        pytest.param(b'{"rules":{"rebalance_storm":{"rebalances":"many"}}}', id="no-number"),
        pytest.param(b'{"rules":{"rebalance_storm":{"severity":"loud"}}}', id="no-severity"),
        pytest.param(b'{"rules":{"rebalance_storm":{"overrides":[{"rebalances":3}]}}}', id="no-groups"),
        pytest.param(b'{"rules":{"rebalance_storm":{"overrides":[{"groups":["("]}]}}}', id="no-pattern"),
        pytest.param(
            b'{"rules":{"rebalance_storm":{"overrides":[{"groups":["a"],"rebalances":"x"}]}}}',
            id="no-number-in-an-override",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(raw: bytes) -> None:
    """Not when the first group that it concerns comes along."""
    with pytest.raises(ThresholdsError):
        Settings(raw)


def test_the_configuration_file_gives_what_is_read_here() -> None:
    """Both sides know the same rules, thresholds and defaults."""
    config_rules = pytest.importorskip("streaming.config.rules")
    written = config_rules.rules_settings(config_rules.Rules())
    read = Settings(json.dumps({"rules": written}).encode()).defaults

    assert read == Settings().defaults
    assert {
        name: {key: value for key, value in rule.items() if key != "overrides"}
        for name, rule in written.items()
    } == {rule.key: msgspec.to_builtins(read.of(rule.options)) for rule in ALL_RULES}
