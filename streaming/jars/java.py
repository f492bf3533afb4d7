"""Finds a Java that Spark 4 and Kafka 4 can run on."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

JAVA_MAJOR_MIN = 17
"""Spark 4.2 and the Kafka 4 brokers refuse anything older."""
QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone: what lives for minutes, or works in short batches, is cheaper without C2."""
SERIAL_COLLECTOR = "-XX:+NeverActAsServerClassMachine"
"""By it Java takes the serial collector, unless somebody has chosen one: to choose two would stop it."""
FEW_PROCESSORS = 4
"""Up to so many the serial collector is cheaper; with more, its one thread would hold up too many others."""


class JavaError(Exception):
    """There is no usable Java; the message is one sentence for the person at the keyboard."""


@cache
def java_command() -> str:
    """The path of ``java`` from ``JAVA_HOME``, else from ``PATH``.

    Raises:
        JavaError: if there is none, or it is older than 17.
    """
    command = _find_java()
    if command is None:
        raise JavaError(
            f"No Java was found: install version {JAVA_MAJOR_MIN} or newer "
            "(Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one."
        )
    banner = subprocess.run([command, "-version"], capture_output=True, text=True, check=False).stderr
    major = java_major(banner)
    if major is None or major < JAVA_MAJOR_MIN:
        found = "an unknown version" if major is None else f"version {major}"
        raise JavaError(f"Java {JAVA_MAJOR_MIN} or newer is needed, but {command} is {found}: set JAVA_HOME.")
    return command


def _find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def java_major(banner: str) -> int | None:
    """The major version in what ``java -version`` prints; 8 for the old ``1.8.0`` spelling."""
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(match.group(1)) if match else None
