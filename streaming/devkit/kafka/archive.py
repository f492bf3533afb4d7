"""Archives the classes that a broker loads, so that brokers start faster (Java's class-data sharing)."""

import tempfile
from pathlib import Path

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import EmbeddedKafkaError
from streaming.jars import Tell, archiving, broker_archive_file, ensure_jars, made_once, tell_stderr


def make_broker_archive(tell: Tell = tell_stderr) -> Path:
    """Return the archive for brokers of the default version, made by one that is started for it if need be.

    Raises:
        EmbeddedKafkaError: the broker did not start, or Java made no archive.
        streaming.jars.JarError: its jars cannot be had.
    """
    file = broker_archive_file(ensure_jars("broker", tell=tell))

    def make(partial: Path) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="groupwatch-archive-") as folder,
            _Archiving(folder, partial, tell) as kafka,
        ):
            kafka.stop_broker(1)  # which waits longer for its end

    if not made_once(file, make, whose="the classes of Kafka's brokers", tell=tell):
        raise EmbeddedKafkaError("Java archived no classes: brokers start as slowly as without an archive")
    return file


class _Archiving(EmbeddedKafka):
    """A cluster whose brokers archive their classes when they end."""

    def __init__(self, folder: str, archive_to: Path, tell: Tell) -> None:
        super().__init__(folder, tell=tell)
        self._archive_to = archive_to

    def broker_options(self) -> list[str]:
        return archiving(self._archive_to)
