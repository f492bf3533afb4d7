"""Plays a start without Kafka, so that Java can archive the classes that a start loads.

The stages are the job's own; only the rows do not come out of Kafka, whose classes are loaded by name.
"""

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streaming.config import ClusterPlan, Config, plan_of
from streaming.jars import Tell, archive_file, begin_jvm, ensure_jars, made_once, tell_stderr
from streaming.pipeline.beginning import FORMAT, Beginning
from streaming.pipeline.query import start_on
from streaming.pipeline.session import start_session
from streaming.pipeline.sinks import rows_in
from streaming.workers import EVENTS

_SETTINGS = {"spark.master": "local[2]", "spark.log.level": "ERROR"}
_BATCHES = 3
_PATIENCE_S = 120.0
_LEFT_OUT = ("org/apache/kafka/shaded/", "META-INF/", "module-info")
"""What no source of Spark uses."""


class RehearsalError(RuntimeError):
    """The archive could not be made; the message says why."""


def make_archive(tell: Tell = tell_stderr) -> Path:
    """Return the archive of the classes that a start loads, made if need be: that takes half a minute.

    Spark's JVM of this process is used up by that.

    Raises:
        streaming.jars.JarError: the Kafka connector is not available.
        RehearsalError: Java made none.
    """
    connector = ensure_jars("connector")
    file = archive_file(connector, os.environ)

    def make(partial: Path) -> None:
        begin_jvm(_SETTINGS, archive_to=partial)
        _rehearse(connector)

    if not made_once(file, make, whose="Spark's classes", tell=tell):
        raise RehearsalError("Java archived no classes: starts are as slow as without an archive")
    return file


def _rehearse(connector: Sequence[Path]) -> None:
    """Start a session, run the job's stages over some rows, load the connector, and end the JVM."""
    with tempfile.TemporaryDirectory(prefix="groupwatch-rehearsal-") as folder:
        spark = start_session(_SETTINGS, checkpoint=folder)
        try:
            _run_stages(spark, folder)
            _load(spark, connector)
        finally:
            spark.stop()
            _end_jvm()


def _run_stages(spark: SparkSession, folder: str) -> None:
    seen, enough = [], Event()

    def sink(frame: DataFrame, number: int) -> None:
        rows_in(frame)
        seen.append(number)
        if len(seen) >= _BATCHES:
            enough.set()

    rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    line = "[2026-01-01 00:00:00,000] INFO nothing (kafka.coordinator.group.GroupCoordinator)"
    raw = rows.select(
        f.lit(EVENTS).cast("tinyint").alias("feed"),
        f.lit(0).alias("partition"),
        f.col("value").alias("offset"),
        f.unix_millis("timestamp").alias("timestamp_ms"),
        f.lit(b"1").alias("key"),
        f.lit(line.encode()).alias("value"),
    )
    plan = _plan(folder)
    query = start_on(raw.coalesce(2), plan, _beginning(plan), sink)
    try:
        if not enough.wait(_PATIENCE_S):
            raise RehearsalError(f"no batch ended: {query.exception()}")
    finally:
        query.stop()


def _plan(folder: str) -> ClusterPlan:
    cluster = {"name": "rehearsal", "bootstrap_servers": ["127.0.0.1:9"]}
    config = Config.model_validate({"clusters": [cluster], "checkpoint": folder, "trigger_interval": "500ms"})
    return plan_of(config, config.clusters[0])


def _beginning(plan: ClusterPlan) -> Beginning:
    return Beginning(
        format=FORMAT,
        cluster=plan.cluster,
        run="rehearsal",
        shard_count=4,
        started_at_ms=0,
        own_output=False,
        offsets_topic=plan.offsets_topic,
        events_topic=plan.events_topic,
        offsets_ends=[],
        events_ends=[],
        events_starts=[],
        control_end=0,
    )


def _load(spark: SparkSession, jars: Sequence[Path]) -> None:
    """Load every class of these jars that can be loaded without running any of it."""
    java = spark.sparkContext._jvm.java.lang
    loader, by_name = java.Thread.currentThread().getContextClassLoader(), java.Class.forName
    for name in _classes(jars):
        try:
            by_name(name, False, loader)
        except Py4JError:
            continue  # it needs something that nobody here has


def _classes(jars: Sequence[Path]) -> Iterator[str]:
    for jar in jars:
        with zipfile.ZipFile(jar) as entries:
            for name in entries.namelist():
                if name.endswith(".class") and not name.startswith(_LEFT_OUT):
                    yield name.removesuffix(".class").replace("/", ".")


def _end_jvm() -> None:
    """End the JVM that we started, and wait until it has written its archive."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process.stdin is not None:
        process.stdin.close()
    process.wait(_PATIENCE_S)
