"""The form of log lines, and what a JVM is told of it."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.logs.formats import JsonFormatter, LineFormatter
from streaming.logs.setup import LogFormat, LogLevel, set_up

_SPARK = "SPARK_SUBMIT_OPTS"


@pytest.fixture(autouse=True)
def _log_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers.clear()
    monkeypatch.setenv(_SPARK, "")
    yield
    root.handlers[:] = before
    root.setLevel(level)


def _record(error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord(
        "streaming.x", logging.WARNING, "f", 1, "%s waits", ("prod",), info, "_stand_by"
    )
    record.created, record.msecs = 1_763_913_600.5, 500.0
    return record


def test_a_line_has_its_time_in_utc_and_names_its_event() -> None:
    """Whatever the zone of the machine; the event is where it was logged."""
    assert LineFormatter().format(_record()) == (
        "2025-11-23T16:00:00.500Z WARNING streaming.x.stand_by: prod waits"
    )


def test_json_has_the_same_and_the_trace() -> None:
    """One object in one line."""
    line = JsonFormatter().format(_record(ValueError("a\nb")))
    told = json.loads(line)
    assert "\n" not in line
    assert told.pop("trace") == "ValueError: a\nb"
    assert told == {
        "time": "2025-11-23T16:00:00.500Z",
        "level": "WARNING",
        "event": "streaming.x.stand_by",
        "message": "prod waits",
    }


@pytest.mark.parametrize("form", LogFormat)
def test_a_jvm_gets_the_file_of_its_form(form: LogFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside options that a user gave; a file that a user named stays."""
    monkeypatch.setenv(_SPARK, "-Dmine=1")
    set_up(LogLevel.INFO, form)
    mine, ours = _options()
    assert mine == "-Dmine=1"
    path = Path(ours.removeprefix("-Dlog4j2.configurationFile=file://"))
    assert path.name == f"log4j2-{form}.properties"
    assert "appender.stderr.layout" in path.read_text()
    monkeypatch.setenv(_SPARK, "-Dlog4j2.configurationFile=/mine")
    set_up(LogLevel.INFO, form)
    assert _options() == ["-Dlog4j2.configurationFile=/mine"]


def _options() -> list[str]:
    return os.environ[_SPARK].split()


@pytest.mark.parametrize(
    ("level", "logged"),
    [("debug", "ours kafka ours kafka"), ("info", "ours ours kafka"), ("error", "ours kafka")],
)
def test_libraries_are_quieter_than_we_are(level: str, logged: str) -> None:
    """But for errors, which all may report; in a process of its own, since a log is set up once."""
    program = (
        "import logging, sys; from streaming.logs import *; set_up(LogLevel(sys.argv[1]), LogFormat.TEXT)\n"
        "for level in ('INFO', 'ERROR'):\n"
        "    for name in ('ours', 'kafka'): logging.getLogger(name).log(getattr(logging, level), 'x')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, level], capture_output=True, text=True, check=True, timeout=240
    )
    lines = ended.stderr.splitlines()
    assert " ".join(line.split()[2].partition(".")[0] for line in lines) == logged
