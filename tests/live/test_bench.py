"""A row of the bench about a running job, for nine seconds and with few groups."""

from pathlib import Path

import pytest

from streaming.devkit.bench import running
from tests.live.support.stage import need_jars

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_an_idle_job_is_measured_beside_its_broker_and_feeder(tmp_path: Path) -> None:
    """CPU by process, batches, memory, and the load that was really sent."""
    need_jars()

    row = running.idle(tmp_path, scale=0.15, cores=2)

    assert row["groups"] == 1_500
    assert {"driver_python", "jvm", "python_workers", "broker", "feeder"} <= {
        kind for kind, spent in row["cpu_s"].items() if spent >= 0
    }
    assert row["cpu_s"]["jvm"] > 0
    assert row["feeder"]["sent"] >= 5
    assert 0.3 < row["memory_gib"] < 8
    assert 0 < row["batch_s_p50"] <= row["batch_s_p95"]
    assert row["batches"] > 0
