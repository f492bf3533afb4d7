"""The process that Spark forks its Python workers from."""

import inspect
import subprocess
import sys

from pyspark import daemon


def test_it_waits_for_spark_and_ends_with_it() -> None:
    """It tells its port, and ends when Spark closes its input."""
    done = subprocess.run(
        [sys.executable, "-m", "streaming.workers.daemon"],
        stdin=subprocess.DEVNULL,
        env={"PYTHON_WORKER_FACTORY_SECRET": "secret"},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.stderr == b""
    assert int.from_bytes(done.stdout[-4:], "big") > 0


def test_a_forked_worker_imports_nothing_more_of_ours() -> None:
    """Both stages with all that they stand on are there before the first fork."""
    said = _said(
        "import sys, streaming.workers.daemon; before = set(sys.modules);"
        "import pandas, pyarrow, pyspark.worker, streaming.workers.shard_state, alerts.rules;"
        "print(sorted(set(sys.modules) - before))"
    )
    assert said == "[]"


def test_a_worker_collects_rarely() -> None:
    """Another Spark may collect in another way, and then ours would be in nobody's way."""
    assert inspect.getsource(daemon).count("gc.") == inspect.getsource(daemon).count("gc.collect()") == 1
    said = _said(
        "from streaming.workers import daemon as ours;"
        "ours.daemon.manager = lambda: print(type(ours.daemon.gc).__name__);"
        "ours.main()"
    )
    assert said == "RareCollector"


def _said(code: str) -> str:
    """Return what a Python of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
