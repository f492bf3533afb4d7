"""A Prometheus that keeps lag and nothing else, as it would from an exporter of lag."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import yaml

from streaming.devkit.kafka import free_ports
from tests.live.support.stage import await_that

LAG = "groupwatch_group_partition_lag"
INTERVAL = "5s"


class LagOnly:
    """One running Prometheus, with its own page of graphs."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def knows(self, group: str) -> bool:
        """Say whether it has lag of this group."""
        return bool(self._ask(f'{LAG}{{group="{group}"}}'))

    def kept(self) -> set[str]:
        """Return the names of all series it has, but those about the scrape itself."""
        names = {one["metric"]["__name__"] for one in self._ask('{job="lag"}')}
        return {name for name in names if name != "up" and not name.startswith("scrape_")}

    def graph(self, expr: str, seconds: int) -> str:
        """Return the address of its graph of the last seconds."""
        query = f"g0.expr={quote(expr)}&g0.tab=0&g0.stacked=0&g0.range_input={seconds}s"
        return f"{self._url}/classic/graph?{query}"

    def _ask(self, expr: str) -> list[dict[str, dict[str, str]]]:
        with suppress(httpx.TransportError):
            answer = httpx.get(f"{self._url}/api/v1/query", params={"query": expr}, timeout=10)
            if answer.status_code == 200:
                found: list[dict[str, dict[str, str]]] = answer.json()["data"]["result"]
                return found
        return []


@contextmanager
def keeping_lag(folder: Path, job_port: int) -> Iterator[LagOnly]:
    """Scrape a job that exports the lag of partitions, and drop all the rest of it."""
    if shutil.which("prometheus") is None:
        pytest.skip("not installed (Debian's package): prometheus")
    folder.mkdir()
    (port,) = free_ports(1)
    scrape = {
        "job_name": "lag",
        "static_configs": [{"targets": [f"127.0.0.1:{job_port}"]}],
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": LAG, "action": "keep"}],
    }
    config = {"global": {"scrape_interval": INTERVAL}, "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        await_that(lambda: _is_up(port), f"Prometheus answers (see {folder / 'log'})")
        yield LagOnly(port)
    finally:
        process.terminate()
        process.wait(30)


def _is_up(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/-/ready", timeout=5).status_code == 200
    return False
