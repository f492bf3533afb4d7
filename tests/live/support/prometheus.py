"""A Prometheus with our rules as we ship them, beside a job: whatever becomes pending is remembered."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml

from streaming.devkit.kafka import free_ports
from tests.live.support.stage import await_that

SHIPPED = Path(__file__).parents[3] / "deploy" / "prometheus"
RULES = ("groupwatch-rules.yml", "groupwatch-self-rules.yml")
PATIENCE_S = 120.0
INTERVAL = "5s"
"""Shorter than the shipped one, so it sees more; each ``for`` and each window is as shipped."""


class Prometheus:
    """One process."""

    def __init__(self, url: str) -> None:
        self._url = url

    def values(self, expr: str) -> list[dict[str, str]]:
        """Return the labels of each series of an expression."""
        with suppress(httpx.TransportError):
            answer = httpx.get(f"{self._url}/api/v1/query", params={"query": expr}, timeout=10)
            if answer.status_code == 200:
                return [one["metric"] for one in answer.json()["data"]["result"]]
        return []

    def ever(self) -> list[str]:
        """Return every alert that was pending or firing at any time, with its labels."""
        found = self.values("count_over_time(ALERTS[1d])")
        return sorted({" ".join(f"{name}={value}" for name, value in sorted(one.items())) for one in found})


@contextmanager
def running(folder: Path, config: dict[str, Any]) -> Iterator[str]:
    """Start one that scrapes each 5 s; yields its address at once."""
    folder.mkdir()
    (port,) = free_ports(1)
    every = {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL}
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"global": every, **config}))
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def watched(folder: Path, job_port: int) -> Iterator[Prometheus]:
    """Scrape a job with the shipped rules; yields once it was scraped and every rule was evaluated."""
    config = {
        "rule_files": [str(SHIPPED / name) for name in RULES],
        "scrape_configs": [
            {"job_name": "groupwatch", "static_configs": [{"targets": [f"127.0.0.1:{job_port}"]}]}
        ],
    }
    with running(folder, config) as url:
        one = Prometheus(url)
        await_that(lambda: one.values('up{job="groupwatch"} == 1'), "Prometheus scrapes", PATIENCE_S)
        yield one
