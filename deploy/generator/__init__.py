"""Writes what other tools load: rules for Prometheus, the mixin, dashboards for Grafana."""
