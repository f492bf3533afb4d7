"""Which Java is taken, and what is said if it will not do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.jars.java import JavaError, java_command, java_major


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    java_command.cache_clear()
    yield
    java_command.cache_clear()


def _fake_java(home: Path, banner: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', 17, id="since-9"),
        pytest.param('java version "1.8.0_402"', 8, id="up-to-8"),
        pytest.param('openjdk version "21" 2023-09-19', 21, id="first-of-its-major"),
        pytest.param("no such thing", None, id="something-else"),
    ],
)
def test_the_major_version_is_read_from_the_banner(banner: str, major: int | None) -> None:
    """Old and new spellings of Java's version give its major number."""
    assert java_major(banner) == major


def test_no_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any Java the message says what to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(JavaError, match=r"No Java was found: install version 17"):
        java_command()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java 11 is named together with what is needed."""
    _fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaError, match=r"Java 17 or newer is needed, but .* is version 11"):
        java_command()


def test_java_home_wins_over_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java named on purpose is taken."""
    _fake_java(tmp_path, 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert java_command() == str(tmp_path / "bin" / "java")
