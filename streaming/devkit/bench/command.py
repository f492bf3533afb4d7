"""Runs the requested rows of the bench and prints their figures."""

# ruff: noqa: PLC0415 - a row imports Spark, Kafka or the rules only when it runs

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streaming.devkit.bench.targets import TARGETS
from streaming.devkit.kafka import interruptible

ROWS = ("backlog", "delivery", "enveloped", "heartbeats", "latency", "mixed", "state")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns 0 whatever the figures say, since a loaded machine is no failure."""
    options = _parser().parse_args(arguments)
    rows = list(ROWS) if not options.rows or "all" in options.rows else options.rows
    with interruptible():  # the brokers that were started must not outlive us
        measured = run_bench(
            rows, scale=options.scale, cores=options.cores, groups=options.groups, keep=options.keep
        )
    print(json.dumps(measured, indent=2))  # noqa: T201 - the command's result
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groupwatch bench",
        description="Measures rows, each beside what Spark alone needs for the same input; prints JSON.",
    )
    parser.add_argument("rows", nargs="*", choices=[*ROWS, "all"], help="what to measure; all by default")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the full amount of input; 1 by default"
    )
    parser.add_argument("--cores", type=int, default=2, help="Spark's cores; 2 by default, as in the targets")
    parser.add_argument(
        "--groups", type=int, default=0, help="number of groups in the row backlog; 1,000 by default"
    )
    parser.add_argument("--keep", action="store_true", help="keep Kafka's data and the checkpoints")
    return parser


def run_bench(
    rows: Sequence[str], *, scale: float = 1.0, cores: int = 2, groups: int = 0, keep: bool = False
) -> dict[str, Any]:
    """Return what was measured: the machine, and each row with its bounds.

    Args:
        rows: names of ``ROWS``.
        scale: part of the full amount of input.
        cores: how many Spark may use.
        groups: of the row ``backlog``; 0 for its own number.
        keep: leave the working folder behind.
    """
    folder = Path(tempfile.mkdtemp(prefix="groupwatch-bench-"))
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "spark_cores": cores,
        "scale": scale,
        "rows": {},
    }
    try:
        for name in rows:
            result["rows"][name] = _measured(name, folder, scale, cores, groups)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def _measured(name: str, folder: Path, scale: float, cores: int, groups: int) -> dict[str, Any]:
    load, began = os.getloadavg()[0], time.monotonic()
    row = _measure(name, groups)(folder, scale, cores)
    row |= TARGETS[name].verdict(row)
    row |= {"load_before": round(load, 2), "took_s": round(time.monotonic() - began, 1)}
    return row


def _measure(name: str, groups: int) -> Callable[[Path, float, int], dict[str, Any]]:
    if name == "state":
        return _state
    if name == "latency":
        return _latency
    if name == "delivery":
        return _delivery
    return _with_spark(name, {"groups": groups} if groups and name == "backlog" else {})


def _state(_folder: Path, _scale: float, _cores: int) -> dict[str, Any]:
    from streaming.devkit.bench import state

    return state.state()


def _latency(folder: Path, scale: float, cores: int) -> dict[str, Any]:
    from streaming.devkit.bench import latency

    return latency.latency(folder, scale=scale, cores=cores)


def _delivery(folder: Path, scale: float, _cores: int) -> dict[str, Any]:
    from streaming.devkit.bench import delivery

    return delivery.delivery(folder, scale=scale)


def _with_spark(name: str, more: Mapping[str, int]) -> Callable[[Path, float, int], dict[str, Any]]:
    def measure(folder: Path, scale: float, cores: int) -> dict[str, Any]:
        from streaming.devkit.bench import reading, rig

        with rig.spark_session(folder, cores) as spark:
            row: dict[str, Any] = getattr(reading, name)(spark, folder, scale=scale, **more)
            return row

    return measure
