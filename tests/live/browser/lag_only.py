"""A Prometheus that keeps lag and nothing else, as it would from an exporter of lag."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.live.support.prometheus import Prometheus, running
from tests.live.support.stage import await_that

LAG = "groupwatch_group_partition_lag"


class LagOnly(Prometheus):
    """One running Prometheus, with its own page of graphs."""

    def knows(self, group: str) -> bool:
        """Say whether it has lag of this group."""
        return bool(self.values(f'{LAG}{{group="{group}"}}'))

    def kept(self) -> set[str]:
        """Return the names of all series it has, but those about the scrape itself."""
        names = {one["__name__"] for one in self.values('{job="lag"}')}
        return {name for name in names if name != "up" and not name.startswith("scrape_")}

    def graph(self, expr: str, seconds: int) -> str:
        """Return the address of its graph of the last seconds."""
        query = f"g0.expr={quote(expr)}&g0.tab=0&g0.stacked=0&g0.range_input={seconds}s"
        return f"{self._url}/classic/graph?{query}"


@contextmanager
def keeping_lag(folder: Path, job_port: int) -> Iterator[LagOnly]:
    """Scrape a job that exports the lag of partitions, and drop all the rest of it."""
    if shutil.which("prometheus") is None:
        pytest.skip("not installed (Debian's package): prometheus")
    scrape = {
        "job_name": "lag",
        "static_configs": [{"targets": [f"127.0.0.1:{job_port}"]}],
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": LAG, "action": "keep"}],
    }
    with running(folder, {"scrape_configs": [scrape]}) as url:
        await_that(lambda: _is_up(url), f"Prometheus answers (see {folder / 'log'})")
        yield LagOnly(url)


def _is_up(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/-/ready", timeout=5).status_code == 200
    return False
