"""Archives the classes that a broker loads, so that brokers start faster (Java's class-data sharing)."""

import os
import tempfile
from pathlib import Path

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import EmbeddedKafkaError
from streaming.jars import Tell, broker_archive_file, ensure_jars, tell_stderr


def make_broker_archive(tell: Tell = tell_stderr) -> Path:
    """Return the archive for brokers of the default version, made by one that is started for it if need be.

    Raises:
        EmbeddedKafkaError: the broker did not start, or Java made no archive.
        streaming.jars.JarError: its jars cannot be had.
    """
    file = broker_archive_file(ensure_jars("broker", tell=tell))
    if file.exists():
        return file
    tell(f"Archiving the classes of Kafka's brokers into {file}")
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="groupwatch-archive-") as folder,
            _Archiving(folder, partial, tell) as kafka,
        ):
            kafka.stop_broker(1)  # which waits longer for its end
        if not partial.exists():
            raise EmbeddedKafkaError(
                "Java archived no classes: brokers start as slowly as without an archive"
            )
        for old in file.parent.glob("*.jsa"):
            old.unlink()
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return file


class _Archiving(EmbeddedKafka):
    """A cluster whose Java archives its classes when it ends."""

    def __init__(self, folder: str, archive_to: Path, tell: Tell) -> None:
        super().__init__(folder, tell=tell)
        self._archive_to = archive_to

    def class_options(self, archive: Path) -> list[str]:
        # A line for each class that no archive takes helps nobody.
        return [f"-XX:ArchiveClassesAtExit={self._archive_to}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
