"""A JVM with our classes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from streaming.jars import ensure_jars, own_java
from streaming.jars.java import java_command

_SPARK = Path(pyspark.__file__).parent / "jars"


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A JVM with Spark, its connector and our classes, which finds no program to start."""
    needed = [own_java.OWN_JAR, *ensure_jars("connector"), *_SPARK.glob("*.jar")]
    command = java_command()
    monkeypatch.setenv("PATH", "/nowhere")
    port, process = launch_gateway(
        classpath=os.pathsep.join(map(str, needed)),
        jarpath=str(next(_SPARK.glob("py4j-*.jar"))),
        java_path=shutil.which(command) or command,
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)
