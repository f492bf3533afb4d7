"""The jars of Kafka and of Spark's connector, and the Java that runs them."""

from streaming.jars.class_archive import archive_file, archiving, broker_archive_file, made_once, taking
from streaming.jars.jars import (
    DEFAULT_VERSIONS,
    JarError,
    Tell,
    ensure_jars,
    locked_versions,
    tell_stderr,
)
from streaming.jars.java import FEW_PROCESSORS, QUICK_COMPILER, SERIAL_COLLECTOR, JavaError, java_command
from streaming.jars.launch import begin_jvm, brings_connector, given_to_jvm, is_submitted
from streaming.jars.own_java import (
    CUT_FEED,
    CUT_WORDS,
    EVEN_KAFKA,
    EVEN_TASKS,
    LOCAL_FILES,
    PACKED_FEEDS,
    PLAIN_BYTES,
)

__all__ = [
    "CUT_FEED",
    "CUT_WORDS",
    "DEFAULT_VERSIONS",
    "EVEN_KAFKA",
    "EVEN_TASKS",
    "FEW_PROCESSORS",
    "LOCAL_FILES",
    "PACKED_FEEDS",
    "PLAIN_BYTES",
    "QUICK_COMPILER",
    "SERIAL_COLLECTOR",
    "JarError",
    "JavaError",
    "Tell",
    "archive_file",
    "archiving",
    "begin_jvm",
    "brings_connector",
    "broker_archive_file",
    "ensure_jars",
    "given_to_jvm",
    "is_submitted",
    "java_command",
    "locked_versions",
    "made_once",
    "taking",
    "tell_stderr",
]
