"""``make monitoring``: write the rules, the mixin and the dashboards, here or into a folder of yours."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from deploy.generator.dashboards import dashboard_files
from deploy.generator.rules import rule_files

_DEPLOY = Path(__file__).parents[1]


def files(cluster_label: str = "cluster") -> Mapping[str, str]:
    """Return what is generated: path below ``deploy/`` -> text.

    ``cluster_label`` is the name of the label that holds the Kafka cluster, as ``http.cluster_label`` has it.
    """
    return {**rule_files(cluster_label), **dashboard_files(cluster_label), **mixin_files()}


def mixin_files() -> Mapping[str, str]:
    """Return the same as JSON with texts that the mixin replaces: the cluster's label and the job."""
    made = {**rule_files("__CLUSTER__", "__JOB__"), **dashboard_files("__CLUSTER__")}
    return {
        f"mixin/templates/{Path(path).stem}.json": f"{json.dumps(yaml.safe_load(text), indent=1)}\n"
        for path, text in made.items()
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m deploy.generator", description=__doc__)
    parser.add_argument("--into", type=Path, default=_DEPLOY, help="the folder (default: deploy itself)")
    parser.add_argument(
        "--cluster-label", default="cluster", help="as http.cluster_label in your configuration"
    )
    given = parser.parse_args()
    for path, text in files(given.cluster_label).items():
        target = given.into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
