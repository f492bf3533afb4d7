"""When Spark's JVM is started, and by whom."""

import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark import SparkContext

from streaming.jars import JarError, launch
from streaming.jars.java import java_command


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, str]]]:
    """Each start that was made: its thread and settings; no JVM runs."""
    made: list[tuple[str, Mapping[str, str]]] = []
    monkeypatch.setattr(launch, "_begun", [])
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(
        launch,
        "_launch",
        lambda settings, archive_to=None: made.append((threading.current_thread().name, settings)),
    )
    monkeypatch.setattr(launch, "_conf", lambda: {"spark.master": "local[*]", "spark.a": "1"})
    return made


def test_a_jvm_that_was_begun_is_waited_for(launched: list[tuple[str, Mapping[str, str]]]) -> None:
    """It starts in a thread of its own, once, and what others have set in it is told."""
    launch.begin_jvm({"spark.b": "2"})
    launch.begin_jvm({"spark.b": "3"})

    assert launch.given_to_jvm({"spark.b": "2"}) == {"spark.a": "1"}
    assert launched == [("jvm", {"spark.b": "2"})]


def test_without_a_beginning_it_starts_when_it_is_asked(
    launched: list[tuple[str, Mapping[str, str]]],
) -> None:
    """As in the bench, and in tests."""
    launch.given_to_jvm({})

    assert launched == [(threading.current_thread().name, {})]


def test_what_goes_wrong_early_is_raised_where_it_is_needed(
    launched: list[tuple[str, Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing jars are the sentence that the command ends with."""

    def refuse(*_: object) -> None:
        raise JarError("no network")

    monkeypatch.setattr(launch, "_launch", refuse)
    launch.begin_jvm({})
    with pytest.raises(JarError, match="no network"):
        launch.given_to_jvm({})


def test_under_spark_submit_nothing_is_begun(
    launched: list[tuple[str, Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM is there: it has started us."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    launch.begin_jvm({})

    assert (launched, launch._begun) == ([], [])


def test_options_of_java_stand_before_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java takes the last of two."""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=4")
    for name in ("SPARK_DIST_CLASSPATH", *launch._ENVIRONMENT):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda **_: None)
    monkeypatch.setattr(launch, "ensure_jars", lambda _: [])
    monkeypatch.setattr(launch, "archive_file", lambda *_: Path("/nowhere"))
    monkeypatch.setattr(launch, "_passed", {})

    launch._launch({})

    first, *_, last = os.environ["SPARK_SUBMIT_OPTS"].split()
    assert (first, last) == ("-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4")


@pytest.mark.parametrize(("processors", "is_serial"), [(2, True), (4, True), (8, False)])
def test_few_processors_get_the_collector_that_keeps_the_heap_small(
    monkeypatch: pytest.MonkeyPatch, processors: int, *, is_serial: bool
) -> None:
    """With many, one thread that collects would hold up all others."""
    monkeypatch.setattr(launch, "processors", lambda: processors)

    told = [*launch._java_options(Path("/nowhere"), None)]

    assert ("-XX:+NeverActAsServerClassMachine" in told) is is_serial
    assert ("-XX:NewSize=180m" in told) is is_serial


def test_the_smallest_heap_that_spark_allows_can_begin_as_we_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does not start with a first heap above the largest; Spark's least is 450 MB."""
    monkeypatch.setattr(launch, "processors", lambda: 2)
    ours = [*launch._java_options(Path("/nowhere"), None)]
    java = [java_command(), *ours, "-Xmx450m", "-version"]

    assert subprocess.run(java, check=True, capture_output=True, text=True).stdout == ""


def test_a_user_may_choose_any_collector() -> None:
    """Java refuses two that are chosen by name, so ours is none that was chosen."""
    ours = [one for one in launch._java_options(Path("/nowhere"), None) if one.startswith("-X")]
    java = [java_command(), *ours, "-XX:+UseG1GC", "-XX:+PrintFlagsFinal", "-version"]

    said = subprocess.run(java, capture_output=True, text=True, check=True).stdout

    assert re.search(r"bool UseG1GC += true", said)


@pytest.mark.parametrize(
    ("quota", "most"), [("150000 100000", 2), ("10000 100000", 1), ("max 100000", 2**16), ("", 2**16)]
)
def test_the_quota_of_a_container_counts(tmp_path: Path, quota: str, most: int) -> None:
    """As it does for Java itself: a container of two processors stands on a machine of many."""
    file = tmp_path / "cpu.max"
    file.write_text(quota)

    assert launch.processors(file) == min(most, launch.processors(tmp_path / "missing"))


def test_classes_are_taken_from_an_archive_that_is_there(tmp_path: Path) -> None:
    """Java is given none that is missing, about which it would complain."""
    archive = tmp_path / "classes.jsa"
    option = f"-XX:SharedArchiveFile={archive}"

    assert option not in launch._java_options(archive, None)
    archive.touch()
    assert option in launch._java_options(archive, None)


def test_an_archive_that_is_made_is_not_read(tmp_path: Path) -> None:
    """Java can do one of the two."""
    archive, made = tmp_path / "classes.jsa", tmp_path / "new"
    archive.touch()

    told = [*launch._java_options(archive, made)]

    assert f"-XX:ArchiveClassesAtExit={made}" in told
    assert not [one for one in told if "SharedArchiveFile" in one]


def test_a_cache_may_have_blanks_in_its_path(tmp_path: Path) -> None:
    """Spark's launcher takes the quotes off."""
    archive = tmp_path / "my classes.jsa"
    archive.touch()

    assert f'"-XX:SharedArchiveFile={archive}"' in launch._java_options(archive, None)
