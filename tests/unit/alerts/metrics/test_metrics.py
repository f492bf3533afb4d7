"""The metrics that this process keeps itself, and the list of all."""

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from alerts.delivery.silences import KeptSilence
from alerts.metrics.delivery_metrics import SilenceCollector
from alerts.metrics.health_metrics import HistoryCollector
from alerts.metrics.metrics import READ, OwnMetrics
from tests.tables.metrics import METRICS, with_metrics

FORBIDDEN_LABELS = {"member", "member_id", "client", "client_id", "client_host", "host", "instance_id"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_foreseeable_series_exist_at_zero(registry: CollectorRegistry) -> None:
    """``rate`` sees the first failure, because the counter was there before."""
    OwnMetrics(registry, clusters=["eu"], receivers=["oncall"])
    for outcome in ("delivered", "retry", "rejected", "expired"):
        labels = {"receiver": "oncall", "outcome": outcome}
        assert registry.get_sample_value("groupwatch_notifications_total", labels) == 0
    assert registry.get_sample_value("groupwatch_rebalance_duration_seconds_count", {"cluster": "eu"}) == 0
    assert registry.get_sample_value("groupwatch_detection_seconds_count") == 0


def test_what_happens_is_counted(registry: CollectorRegistry) -> None:
    """Each under its labels."""
    own = OwnMetrics(registry, clusters=["eu"], receivers=["oncall"])
    own.notified("oncall", "delivered")
    own.rebalanced("eu", 4.0)
    own.detected(0.7)
    labels = {"receiver": "oncall", "outcome": "delivered"}
    assert registry.get_sample_value("groupwatch_notifications_total", labels) == 1
    bucket = {"cluster": "eu", "le": "5.0"}
    assert registry.get_sample_value("groupwatch_rebalance_duration_seconds_bucket", bucket) == 1
    assert registry.get_sample_value("groupwatch_detection_seconds_bucket", {"le": "0.5"}) == 0
    assert registry.get_sample_value("groupwatch_detection_seconds_bucket", {"le": "1.0"}) == 1


def test_no_label_is_without_bound() -> None:
    """Member, client and host names are never labels, and every metric is ours by name and has a help."""
    for metric in READ:
        assert not FORBIDDEN_LABELS & set(metric.labels), metric.name
        assert metric.name.startswith("groupwatch_")
        assert metric.help.endswith(".")


def test_the_documented_metrics_are_those_that_exist(registry: CollectorRegistry) -> None:
    """Operators copy names, types and labels from deploy/metrics.md."""
    own = OwnMetrics(registry, clusters=["c"], receivers=["r"], external_url="https://gw.example")
    own.missed("c", "t", 0)
    own.leader("c", lambda: True)
    own.corrected("c", 1, 0.0)
    expected = {
        (f"{m.name}_total" if m.kind == "counter" else m.name, m.kind, frozenset(m.labels)) for m in READ
    }
    for family in registry.collect():
        if not family.name.startswith("groupwatch_"):
            continue  # the library's own, of the process
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = family.samples[0].labels.keys() - {"le"}
        expected.add((name, family.type, frozenset(labels)))
    text = (Path(__file__).parents[4] / "deploy" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([\w, ]*)\|", text, flags=re.MULTILINE)
    documented = {(name, kind, frozenset(re.findall(r"\w+", labels))) for name, kind, labels in rows}
    assert documented == expected


def test_the_table_gets_the_metrics_that_it_lacks() -> None:
    """With names, labels and help as declared; what somebody wrote stays."""
    whole = METRICS.read_text()
    assert with_metrics(whole) == whole
    lines = [one for one in whole.splitlines(keepends=True) if "`groupwatch_leader`" not in one]
    (added,) = set(with_metrics("".join(lines)).splitlines(keepends=True)) - set(lines)
    assert added == (
        "| `groupwatch_leader` | gauge | cluster | "
        "1 while this process watches the cluster; 0 while it stands by, because another one does |\n"
    )


def test_requests_for_evidence_are_counted_from_zero(registry: CollectorRegistry) -> None:
    """And the brokers that are raised are shown as they are now."""
    own = OwnMetrics(registry, clusters=["eu"])
    refused = {"cluster": "eu", "outcome": "refused"}
    assert registry.get_sample_value("groupwatch_evidence_requests_total", refused) == 0
    own.sought("eu", "refused")
    own.raised("eu", 2)
    own.raised("eu", 1)
    assert registry.get_sample_value("groupwatch_evidence_requests_total", refused) == 1
    assert registry.get_sample_value("groupwatch_evidence_brokers", {"cluster": "eu"}) == 1


class _Silences:
    """One silence in force and one that has ended, and records that were none."""

    def newest(self) -> dict[str, KeptSilence]:
        common: Any = {"author": "ada", "starts_at_ms": 1, "updated_at_ms": 1}
        kept = [KeptSilence(id=str(end), ends_at_ms=end, **common) for end in (500, 2_000)]
        return {one.id: one for one in kept}

    def refused(self) -> dict[str, int]:
        return {"not_a_silence": 3}


def test_silences_are_counted_by_state(registry: CollectorRegistry) -> None:
    """And what stands in their topic without being one; what there is none of is 0."""
    registry.register(SilenceCollector(_Silences(), lambda: 1_000))
    states = {
        state: registry.get_sample_value("groupwatch_silences", {"state": state})
        for state in ("pending", "active", "expired")
    }
    assert states == {"pending": 0, "active": 1, "expired": 1}
    refused = "groupwatch_refused_silence_records_total"
    assert registry.get_sample_value(refused, {"reason": "not_a_silence"}) == 3
    assert registry.get_sample_value(refused, {"reason": "wrong_key"}) == 0


def test_lost_rows_of_history_are_counted_by_reason(registry: CollectorRegistry) -> None:
    """From 0 on, so that the first loss is seen."""
    lost = {"no_room": 0, "not_written": 7}
    registry.register(HistoryCollector(lambda: lost))
    found = {
        reason: registry.get_sample_value("groupwatch_history_dropped_rows_total", {"reason": reason})
        for reason in lost
    }
    assert found == {"no_room": 0, "not_written": 7}
