"""The job on a Spark cluster, submitted as the documents say."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streaming.devkit.kafka import EmbeddedKafka, free_ports
from tests.live.support.spark_cluster import ROOT, SparkCluster, told_by_driver
from tests.live.support.stage import Job, Pager

OVERRULED = {"spark.master": "local[1]", "spark.executor.memory": "1g"}
"""In its configuration; the command line says otherwise."""


class Submitted(Job):
    """The job as ``deploy/spark/submit.sh`` runs it."""

    def __init__(
        self,
        kafka: EmbeddedKafka,
        folder: Path,
        pager: Pager,
        spark: SparkCluster,
        rules: Mapping[str, Any] | None = None,
        *,
        executor_cores: int = 1,
    ) -> None:
        """Write its configuration, and a properties file as an operator of Spark would."""
        folder.mkdir()
        shared = {"checkpoint": f"{spark.shared}/checkpoint", "checkpoint_is_shared": True}
        super().__init__(kafka.bootstrap_servers, folder, pager, rules, {**shared, "spark": OVERRULED})
        (ui_port,) = free_ports(1)
        self.ui = f"http://127.0.0.1:{ui_port}"
        self._jar = folder / "theirs.jar"
        self._jar.touch()
        self._properties = folder / "spark.properties"
        self._properties.write_text(
            f"spark.ui.enabled true\nspark.ui.port {ui_port}\nspark.jars {self._jar}\n"
            # Driver and executors are different users of one group in the checkpoint's folder.
            "spark.hadoop.fs.permissions.umask-mode 002\n"
        )
        self._master = spark.url
        self._options = [*("--total-executor-cores", "2"), *("--executor-cores", str(executor_cores))]
        self._options += ["--executor-memory", f"{512 * executor_cores}m"]

    def start(self, *flags: str, command: str = "run") -> None:
        """Submit it."""
        del flags, command
        given = [*("--master", self._master), *self._options, *("--properties-file", str(self._properties))]
        environment = _as_in_a_new_shell() | {"CONFIG": str(self.config), "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [ROOT / "deploy" / "spark" / "submit.sh", *given],
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
                umask=0o002,
            )

    @property
    def pid(self) -> int:
        """The driver's process."""
        assert self._process is not None
        return self._process.pid

    def settings(self) -> dict[str, str]:
        """Return Spark's settings, as its driver tells them."""
        return dict(told_by_driver(self.ui, "environment")["sparkProperties"])

    def jars(self) -> set[str]:
        """Return the names of the jars that executors get from the driver."""
        entries = told_by_driver(self.ui, "environment")["classpathEntries"]
        return {path.rpartition("/")[2] for path, how in entries if how == "Added By User"}


def _as_in_a_new_shell() -> dict[str, str]:
    """Return our environment without what Spark in this process has set for its own workers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
