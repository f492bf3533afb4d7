"""The metrics that this process keeps itself, and the list of all."""

import pytest
from prometheus_client import CollectorRegistry

from alerts.metrics import PICTURE, OwnMetrics

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
    for metric in PICTURE:
        assert not FORBIDDEN_LABELS & set(metric.labels), metric.name
        assert metric.name.startswith("groupwatch_")
        assert metric.help.endswith(".")
