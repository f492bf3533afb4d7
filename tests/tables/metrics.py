"""Adds metrics that the table of deploy/metrics.md does not have yet, from their declarations."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from alerts.metrics.metrics import READ, OwnMetrics

METRICS = Path(__file__).parents[2] / "deploy" / "metrics.md"
_ROW = re.compile(r"^\| `(\w+)` \|.*\n", re.MULTILINE)


class _Declared(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    help: str

    @property
    def row(self) -> str:
        """Return its line of the table; the help text begins in lower case and has no full stop there."""
        meaning = (self.help[:1].lower() + self.help[1:]).removesuffix(".")
        return f"| `{self.name}` | {self.kind} | {', '.join(self.labels)} | {meaning} |\n"


def with_metrics(document: str) -> str:
    """Return the document with a row for every metric; rows that are there stay as somebody wrote them."""
    rows = list(_ROW.finditer(document))
    known = {row[1] for row in rows}
    missing = "".join(one.row for one in _declared() if one.name not in known)
    return document[: rows[-1].end()] + missing + document[rows[-1].end() :]


def _declared() -> Iterator[_Declared]:
    for one in READ:
        yield _Declared(_full_name(one.name, one.kind), one.kind, one.labels, one.help)
    for own in vars(OwnMetrics(CollectorRegistry())).values():
        if isinstance(own, MetricWrapperBase):
            (family,) = own.describe()
            yield _Declared(
                _full_name(family.name, family.type),
                family.type,
                tuple(own._labelnames),
                family.documentation,
            )


def _full_name(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name
