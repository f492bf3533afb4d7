"""The jars of Kafka and of Spark's connector, and the Java that runs them."""

from streaming.jars.jars import (
    DEFAULT_VERSIONS,
    JarError,
    Tell,
    ensure_jars,
    locked_versions,
    tell_stderr,
)
from streaming.jars.java import JavaError, java_command

__all__ = [
    "DEFAULT_VERSIONS",
    "JarError",
    "JavaError",
    "Tell",
    "ensure_jars",
    "java_command",
    "locked_versions",
    "tell_stderr",
]
