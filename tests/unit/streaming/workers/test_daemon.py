"""The process that Spark forks its Python workers from."""

import subprocess
import sys


def test_it_waits_for_spark_and_ends_with_it() -> None:
    """It tells its port, and ends when Spark closes its input."""
    done = subprocess.run(
        [sys.executable, "-m", "streaming.workers.daemon"],
        stdin=subprocess.DEVNULL,
        env={"PYTHON_WORKER_FACTORY_SECRET": "secret"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    assert int.from_bytes(done.stdout[-4:], "big") > 0


def test_a_forked_worker_imports_nothing_more_of_ours() -> None:
    """Both stages with all that they stand on are there before the first fork."""
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, streaming.workers.daemon; before = set(sys.modules);"
            "import pandas, pyarrow, pyspark.worker, streaming.workers.shard_state, alerts.rules;"
            "print(sorted(set(sys.modules) - before))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "[]"
