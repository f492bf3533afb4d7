"""Runs the requested rows of the bench and prints their figures."""

# ruff: noqa: PLC0415 - a row imports Spark, Kafka or the rules only when it runs

import argparse
import json
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from streaming.devkit.bench.targets import TARGETS
from streaming.devkit.kafka import interruptible

ROWS = tuple(TARGETS)
_ROOMS = {"state": "state", "delivery": "delivery", "latency": "latency", "latency-beside": "latency"}
"""Which module has a row that is not about a running job."""
_WITH_SPARK = frozenset({"backlog", "enveloped", "heartbeats", "mixed"})
"""Rows that drive Spark in this process, warm; in module ``reading``."""


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns 0 whatever the figures say, since a loaded machine is no failure."""
    options = _parser().parse_args(arguments)
    rows = list(ROWS) if "all" in options.rows else options.rows
    with interruptible():  # the brokers that were started must not outlive us
        measured = run_bench(rows, scale=options.scale, cores=options.cores, keep=options.keep)
    print(json.dumps(measured, indent=2))  # noqa: T201 - the command's result
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groupwatch bench",
        description="Measures rows and prints JSON: figures, what they must be and should be, and whether "
        "they are.  CPU seconds are of all processes but the broker and the feeder.  Rows about a "
        "running job need confluent-kafka, which `make setup` installs.",
    )
    # A list as the default would be looked for among the choices by Python 3.11.
    parser.add_argument(
        "rows", nargs="*", choices=[*ROWS, "all"], default="all", help="what to measure; all by default"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the full amount of input and time; 1 by default"
    )
    parser.add_argument("--cores", type=int, default=2, help="Spark's cores; 2 by default, as in the targets")
    parser.add_argument("--keep", action="store_true", help="keep Kafka's data and the checkpoints")
    return parser


def run_bench(
    rows: Sequence[str], *, scale: float = 1.0, cores: int = 2, keep: bool = False
) -> dict[str, Any]:
    """Return what was measured: the machine, and each row with its bounds.

    Args:
        rows: names of ``ROWS``.
        scale: part of the full amount of input.
        cores: how many Spark may use.
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
        for number, name in enumerate(rows, start=1):
            _say(f"row {number} of {len(rows)}: {name}")
            result["rows"][name] = _measured(name, folder, scale, cores)
            _say(f"{name}: {json.dumps(result['rows'][name])}")
            if not keep:
                shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def _say(words: str) -> None:
    from streaming.devkit.bench.rig import say

    say(words)


def _measured(name: str, folder: Path, scale: float, cores: int) -> dict[str, Any]:
    load, began = os.getloadavg()[0], time.monotonic()
    own = folder / name
    own.mkdir(exist_ok=True)
    try:
        row = measure_of(name)(own, scale=scale, cores=cores)
        row["targets"] = [target.verdict(row) for target in TARGETS[name]]
    except Exception as error:
        traceback.print_exc()  # and go on: the other rows are worth measuring
        row = {"failed": f"{type(error).__name__}: {error}"}
    return row | {
        "load_before": round(load, 2),
        "took_s": round(time.monotonic() - began, 1),
    }


def measure_of(name: str) -> Callable[..., dict[str, Any]]:
    """Return what measures a row: a function of its name."""
    if name in _WITH_SPARK:
        return _with_spark(name)
    module = import_module(f"streaming.devkit.bench.{_ROOMS.get(name, 'running')}")
    measure: Callable[..., dict[str, Any]] = getattr(module, name.replace("-", "_"))
    return measure


def _with_spark(name: str) -> Callable[..., dict[str, Any]]:
    def measure(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
        from streaming.devkit.bench import reading, rig

        with rig.spark_session(folder, cores) as spark:
            row: dict[str, Any] = getattr(reading, name)(spark, folder, scale=scale)
            return row

    return measure
