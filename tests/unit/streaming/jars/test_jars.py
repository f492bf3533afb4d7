"""Jars come once, exactly as locked, or not at all; a small program plays Ivy."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.jars import jars
from streaming.jars.jars import JarError, ensure_jars, ivy_failure, locked_jars, locked_versions
from streaming.jars.java import java_command
from streaming.jars.lock import lock_text

CONTENT = b"a jar"
NAME = "org.example_thing-1.0.jar"

# It answers -version, and as Ivy writes $FAKE_CONTENT to where [organisation]_[artifact]-… points.
FAKE_JAVA = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit 0; }
echo run >> "$FAKE_RUNS"
[ -n "$FAKE_FAILURE" ] && { echo "$FAKE_FAILURE"; exit 1; }
while [ "$1" != -retrieve ]; do shift; done
printf %s "$FAKE_CONTENT" > "$(dirname "$2")/org.example_thing-1.0.jar"
echo "[SUCCESSFUL ] org.example#thing;1.0!thing.jar (1ms)"
"""


@pytest.fixture(autouse=True)
def ivy_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A lock of one jar, an empty cache and a Java that plays Ivy; returns the file with its runs."""
    lock = tmp_path / "lock.json"
    jar = {
        "organisation": "org.example", "artifact": "thing", "revision": "1.0", "type": "jar",
        "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(),
    }  # fmt: skip
    lock.write_text(json.dumps({"broker-9.9": [jar]}))
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_JAVA)
    program.chmod(0o755)
    monkeypatch.setattr(jars, "_LOCK_FILE", lock)
    monkeypatch.setenv("GROUPWATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("FAKE_CONTENT", CONTENT.decode())
    monkeypatch.setenv("FAKE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("GROUPWATCH_IVY_SETTINGS", raising=False)
    java_command.cache_clear()
    yield tmp_path / "runs"
    java_command.cache_clear()


def _ensure(said: list[str] | None = None) -> list[Path]:
    return ensure_jars("broker", "9.9", tell=(said if said is not None else []).append)


def test_jars_are_fetched_and_their_arrival_is_told() -> None:
    """The first run brings the file and says how far it is."""
    said: list[str] = []

    paths = _ensure(said)

    assert [path.name for path in paths] == [NAME]
    assert paths[0].read_bytes() == CONTENT
    assert said[-1] == "  1/1 org.example#thing;1.0"


def test_a_second_run_needs_neither_ivy_nor_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is there and as the lock has it is only read."""
    _ensure()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", "")
    java_command.cache_clear()

    assert _ensure()[0].read_bytes() == CONTENT


def test_a_damaged_jar_is_fetched_again(ivy_runs: Path) -> None:
    """A file that changed after it was verified is hashed again and replaced."""
    (path,) = _ensure()
    path.write_bytes(b"A JAR")

    _ensure()

    assert path.read_bytes() == CONTENT
    assert ivy_runs.read_text() == "run\nrun\n"


def test_a_jar_that_somebody_put_in_its_place_is_fetched_again(ivy_runs: Path) -> None:
    """Same size, same time, other content: size and time prove nothing."""
    (path,) = _ensure()
    before = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    _ensure()

    assert path.read_bytes() == CONTENT
    assert ivy_runs.read_text() == "run\nrun\n"


def test_a_touched_jar_is_only_hashed(ivy_runs: Path) -> None:
    """A new time with the old content costs a hash and no fetch."""
    (path,) = _ensure()
    path.write_bytes(CONTENT)

    _ensure()

    assert ivy_runs.read_text() == "run\n"


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is not what the lock says never gets a name that a class path could hold."""
    monkeypatch.setenv("FAKE_CONTENT", "b jar")

    with pytest.raises(JarError, match=rf"{NAME} does not have the SHA-256 in jars-lock.json"):
        _ensure()
    assert list((tmp_path / "cache").rglob("*.jar")) == []


def test_a_full_disk_is_told_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch, ivy_runs: Path
) -> None:
    """Below 2 GB nothing is begun."""
    monkeypatch.setattr(jars, "FREE_BYTES_MIN", 1 << 62)

    with pytest.raises(JarError, match=r"GB are free .* make room"):
        _ensure()
    assert not ivy_runs.exists()


def test_no_network_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown host names the mirror setting."""
    monkeypatch.setenv("FAKE_FAILURE", ":: UNRESOLVED DEPENDENCIES :: java.net.UnknownHostException")

    with pytest.raises(JarError, match=r"could not be reached: .* GROUPWATCH_IVY_SETTINGS"):
        _ensure()


def test_a_repository_without_them_is_not_called_unreachable(tmp_path: Path) -> None:
    """A mirror that answers but lacks a jar is another trouble."""
    said = ivy_failure(":: UNRESOLVED DEPENDENCIES :: not found", tmp_path)

    assert "did not have all of them" in said


def test_no_java_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ivy needs Java, and the message is about Java."""
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(JarError, match="No Java was found"):
        _ensure()


def test_an_unknown_version_names_the_known_ones() -> None:
    """Nobody has to guess what can be had."""
    with pytest.raises(JarError, match=r"no broker 1\.0 in jars-lock\.json; known versions: 9\.9\."):
        ensure_jars("broker", "1.0")


def test_the_real_lock_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each default version is locked, with one file of each name and whole sums."""
    monkeypatch.undo()

    for kind, version in jars.DEFAULT_VERSIONS.items():
        assert version in locked_versions(kind)
        found = locked_jars(kind)
        assert len({jar.file_name for jar in found}) == len(found)
        assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in found)


def test_the_lock_file_is_as_its_maker_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding a version changes nothing of the others."""
    monkeypatch.undo()
    lock = {
        f"{kind}-{version}": locked_jars(kind, version)
        for kind in jars.DEFAULT_VERSIONS
        for version in locked_versions(kind)
    }

    assert lock_text(lock) == jars._LOCK_FILE.read_text(encoding="utf-8")
