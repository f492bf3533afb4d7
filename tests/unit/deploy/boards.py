"""The shipped dashboards, as tests read them."""

import json
from pathlib import Path
from typing import Any

GRAFANA = Path(__file__).parents[3] / "deploy" / "grafana"
_VARIABLES = {
    "$job": ".*",
    "$cluster": ".*",
    "$group": "orders",
    "$__rate_interval": "1m",
    "$__range": "1m",
}


def boards() -> dict[str, dict[str, Any]]:
    """Return file name -> dashboard."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(GRAFANA.glob("*.json"))}


def expressions() -> dict[str, str]:
    """Return dashboard, panel and query -> its expression, with the variables as somebody may choose them."""
    return {
        f"{name} / {panel['title']} / {target['refId']}": filled(target["expr"])
        for name, board in boards().items()
        for panel in board["panels"]
        for target in panel["targets"]
    }


def filled(expr: str) -> str:
    """Return an expression without variables."""
    for variable, value in _VARIABLES.items():
        expr = expr.replace(variable, value)
    return expr
