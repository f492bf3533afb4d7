"""Dashboards for Grafana: the fleet, one group, groupwatch itself."""

from collections.abc import Mapping

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.generator.dashboards.fleet import fleet
from deploy.generator.dashboards.group import group
from deploy.generator.dashboards.itself import itself


def dashboard_files(cluster_label: str) -> Mapping[str, str]:
    """Return the dashboards: path below ``deploy/`` -> JSON."""
    made = {"fleet": fleet(cluster_label), "group": group(cluster_label), "self": itself(cluster_label)}
    encoder = JSONEncoder(sort_keys=True, indent=2)
    return {f"grafana/groupwatch-{name}.json": f"{encoder.encode(one)}\n" for name, one in made.items()}
