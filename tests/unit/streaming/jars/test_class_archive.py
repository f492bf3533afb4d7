"""Which archive of classes belongs to which Java and which class path."""

import os
from pathlib import Path

import pytest

from streaming.jars import archive_file, broker_archive_file, class_archive, made_once, taking


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Java, a Spark of two jars and a connector of one."""
    for name in ("java/bin/java", "java/lib/modules", "spark/jars/a.jar", "spark/jars/b.jar", "kafka.jar"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        os.utime(file, (1_000, 1_000))
    monkeypatch.setenv("GROUPWATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive, "java_command", lambda: str(tmp_path / "java/bin/java"))
    monkeypatch.setattr(class_archive, "_find_spark_home", lambda: str(tmp_path / "spark"))
    return tmp_path


def test_the_same_class_path_has_the_same_archive(home: Path) -> None:
    """It stands in the cache, beside the jars."""
    file = archive_file([home / "kafka.jar"], {})

    assert file == archive_file([home / "kafka.jar"], {"HOME": "/home/anybody"})
    assert file.parent == home / "cache" / "classes"


@pytest.mark.parametrize("name", ["java/bin/java", "java/lib/modules", "spark/jars/b.jar", "kafka.jar"])
@pytest.mark.parametrize("what", ["size", "time", "gone"])
def test_a_java_or_jar_that_changed_has_another_archive(home: Path, name: str, what: str) -> None:
    """Java would refuse the old one."""
    before, file = archive_file([home / "kafka.jar"], {}), home / name
    if what == "gone":
        file.unlink()
    else:
        file.write_text("other" if what == "size" else name)
        os.utime(file, (1_000, 1_000) if what == "size" else (2_000, 2_000))

    assert archive_file([home / "kafka.jar"], {}) != before


def test_jars_in_another_order_have_another_archive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java finds Spark's jars in the order of their folder, which another file system may change."""
    before, listed = archive_file([], {}), os.listdir(home / "spark/jars")
    monkeypatch.setattr(os, "listdir", lambda _: listed[::-1])

    assert archive_file([], {}) != before


@pytest.mark.parametrize("name", ["SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"])
def test_more_on_the_class_path_has_another_archive(home: Path, name: str) -> None:
    """Spark's launcher adds what these variables name."""
    assert archive_file([home / "kafka.jar"], {name: "/etc/spark"}) != archive_file([home / "kafka.jar"], {})


@pytest.mark.parametrize("name", ["java/bin/java", "java/lib/modules", "kafka.jar"])
def test_a_broker_has_an_archive_of_its_own(home: Path, name: str) -> None:
    """Spark's jars are none of its concern; where its Java or a jar changed, it has another."""
    (home / "spark/jars/b.jar").write_text("other")
    before = broker_archive_file([home / "kafka.jar"])
    assert before.parent == home / "cache" / "broker-classes"

    (home / "spark/jars/b.jar").write_text("yet another")
    assert broker_archive_file([home / "kafka.jar"]) == before
    (home / name).write_text("changed")
    assert broker_archive_file([home / "kafka.jar"]) != before


def test_java_takes_its_classes_from_an_archive_that_is_there(tmp_path: Path) -> None:
    """It would complain of one that is not."""
    archive = tmp_path / "classes.jsa"
    assert taking(archive) == []

    archive.touch()

    assert taking(archive) == [f"-XX:SharedArchiveFile={archive}"]


@pytest.mark.parametrize("is_made", [True, False])
def test_an_archive_takes_the_place_of_older_ones_once_it_is_whole(tmp_path: Path, *, is_made: bool) -> None:
    """Where Java makes none, the old one stays; nothing half made is left behind."""
    old, file = tmp_path / "old.jsa", tmp_path / "new.jsa"
    told: list[str] = []
    old.touch()

    def make(partial: Path) -> None:
        if is_made:
            partial.write_text("classes")

    assert made_once(file, make, whose="classes", tell=told.append) is is_made
    assert [one.name for one in tmp_path.iterdir()] == ["new.jsa" if is_made else "old.jsa"]
    assert told == [f"Archiving classes into {file}"]
