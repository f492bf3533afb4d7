"""The names that a scrape of ours can have."""

import re

from prometheus_client import CollectorRegistry

from alerts.metrics.metrics import READ, OwnMetrics

METRIC = re.compile(r"\bgroupwatch_[a-z_]+\b")


def known_metrics() -> set[str]:
    """Every name that a scrape of ours can have."""
    registry = CollectorRegistry()
    OwnMetrics(registry)
    own = {
        (metric.name, metric.type) for metric in registry.collect() if metric.name.startswith("groupwatch_")
    }
    names = own | {(metric.name, metric.kind) for metric in READ}
    suffixes = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {name + suffix for name, kind in names for suffix in suffixes[kind]}
